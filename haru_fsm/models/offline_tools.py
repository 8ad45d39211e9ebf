"""A tool as the offline planner sees it: what it is about, what it takes, and whether it acts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from haru_fsm.models import Declaration
from haru_fsm.models.offline_arguments import Parameter, parameters_of
from haru_fsm.models.offline_words import PERSON, READING_VERB, READS, STATE, heard, singular, words_of_name

_DENIAL = re.compile(r"[^.\n]*(\b(no|not|never|without|cannot)\b|없)[^.\n]*")


@dataclass(frozen=True, eq=False)
class Tool:
    """A declaration, as the planner reads it."""

    declaration: Declaration

    @property
    def name(self) -> str:
        return self.declaration.name

    @property
    def description(self) -> str:
        return self.declaration.description or ""

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """What it takes."""
        return parameters_of(self.declaration.parameters)

    @cached_property
    def name_words(self) -> list[str]:
        """The words its name is made of."""
        return words_of_name(self.name)

    @cached_property
    def named(self) -> frozenset[str]:
        """The concepts in its name."""
        return heard(" ".join(self.name_words))

    @cached_property
    def concepts(self) -> frozenset[str]:
        """The concepts in its name and description; a sentence that says what it does not do is left out."""
        spoken = self.named | heard(_DENIAL.sub("", self.description))
        return frozenset(concept for concept in spoken if not concept.startswith(STATE))

    @cached_property
    def acts(self) -> bool:
        """Whether it may change something: as its function says, else everything that does not clearly only look."""
        if self.declaration.read_only is not None:
            return not self.declaration.read_only
        verbs = [word for word in self.name_words if READING_VERB.fullmatch(word)]
        if verbs and verbs[0] in (self.name_words[0], self.name_words[-1]):
            return False
        return not READS.match(self.description.strip())

    @cached_property
    def core(self) -> frozenset[str]:
        """What must be spoken of before it acts: the concepts of its name, less those that a number stands for."""
        return self.named - {noun for parameter in self.parameters for noun in parameter.nouns}

    @cached_property
    def plain_words(self) -> frozenset[str]:
        """All words of its name and description."""
        text = f"{' '.join(self.name_words)} {self.description}"
        return frozenset(re.findall(r"[가-힣]{2,}|[a-z]{4,}", text.lower()))

    @cached_property
    def nouns(self) -> frozenset[str]:
        """The words of its name, without their plurals."""
        return frozenset(map(singular, self.name_words))

    @cached_property
    def id_parameter(self) -> Parameter | None:
        """The required parameter that takes the number of something, if there is one."""
        return next((parameter for parameter in self.parameters if parameter.is_id and parameter.required), None)

    @property
    def wants_person(self) -> bool:
        """Whether it brings a person in."""
        return PERSON in self.core

    @property
    def searches(self) -> bool:
        """Whether its name says that it searches."""
        return bool({"search", "find"} & set(self.name_words))

    @property
    def needs_nothing(self) -> bool:
        """Whether it can be called with no arguments."""
        return not any(parameter.required for parameter in self.parameters)
