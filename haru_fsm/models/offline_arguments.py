"""What the offline planner gives to a parameter: something that the question says, or nothing.

Tools that act get only what was really said; where that is not enough, the planner asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from haru_fsm.conversation import JSON
from haru_fsm.models.offline_reading import Situation
from haru_fsm.models.offline_words import (
    GENERAL,
    NEUTRAL,
    UNCOMMITTED,
    folded,
    heard,
    in_korean,
    says,
    singular,
    words_of_name,
)

_ID_ENDING = re.compile(r"id|no|number|num|code")
_SEARCH = re.compile(r"query|question|q|keywords?|search|terms?")
_TELL = re.compile(r"summary|details?|description|message|content|reason|complaint|text")
_TOLD_CHARS = 500
_NOUN = re.compile("[가-힣]{1,8}( [가-힣]{1,6})?")

_QUOTED = re.compile("[\"“'‘「]([^\"”'’」\n]{2,200})[\"”'’」]")
_REGION = "서울|부산|대구|인천|광주|대전|울산|세종|경기|강원|충북|충남|전북|전남|경북|경남|제주"
_ADDRESS = re.compile(
    rf"(?:(?:{_REGION})\s+)?[가-힣]{{1,8}}(?:특별자치도|특별자치시|특별시|광역시|시|도|군|구)\s[^\n?!]*\d[^\n?!]*"
)
_ADDRESS_END = re.compile(
    r"\s*((으로|로)\s*(배송|주소|변경|바꿔|바꾸|보내|수정|부탁|해|옮)|(입니다|이에요|예요|이요|요)?\s*[.,]?\s*$).*",
    re.DOTALL,
)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a tool, with its schema looked up."""

    name: str
    schema: JSON
    required: bool

    @cached_property
    def words(self) -> list[str]:
        """The words its name is made of."""
        return words_of_name(self.name)

    @cached_property
    def is_id(self) -> bool:
        """Whether it takes the number of something."""
        return (
            bool(self.words)
            and bool(_ID_ENDING.fullmatch(self.words[-1]))
            and "string" in self.types
            and not self.choices
        )

    @cached_property
    def nouns(self) -> frozenset[str]:
        """The concepts that its number stands for: an order number for an order."""
        return heard(" ".join(self.words)) if self.is_id else frozenset()

    @cached_property
    def plain_nouns(self) -> frozenset[str]:
        """The same in plain words: card_id stands for a card."""
        return frozenset(map(singular, self.words[:-1])) if self.is_id else frozenset()

    @cached_property
    def called(self) -> str | None:
        """What its description calls it in Korean: "예약번호" of "예약번호, BK-로 시작"."""
        description = self.schema.get("description")
        head = re.split(r"[,.(:;/\n]", description)[0].strip() if isinstance(description, str) else ""
        return head if _NOUN.fullmatch(head) else None

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """The values it allows, if it is an enumeration of texts."""
        options = [option for schema in _alternatives(self.schema) for option in _listed(schema.get("enum"))]
        return tuple(option for option in options if isinstance(option, str))

    @cached_property
    def types(self) -> frozenset[str]:
        """The JSON types it allows; text where it does not say."""
        found = {kind for schema in _alternatives(self.schema) for kind in _listed(schema.get("type"))}
        return frozenset(kind for kind in found if isinstance(kind, str)) or frozenset({"string"})

    def value(self, situation: Situation, acts: bool) -> Any:
        """What the question gives it; None for nothing. `acts`: its tool may change something."""
        if self.choices:
            return self._chosen(situation.question)
        if self.is_id:
            return situation.ids[0] if situation.ids else None
        if self.types & {"integer", "number"}:
            return situation.amounts[0] if situation.amounts else None
        return self._text(situation, acts) if "string" in self.types else None

    def _chosen(self, question: str) -> str | None:
        """The value that the question says, else one that speaks of the same, else (where it must) a neutral one."""
        said = [choice for choice in self.choices if says(question, choice)]
        if said:
            return max(said, key=len)
        if not self.required:
            return None
        spoken = heard(question) - GENERAL
        alike = [choice for choice in self.choices if heard(choice) & spoken or _same_word(choice, question)]
        neutral = [choice for choice in self.choices if NEUTRAL.fullmatch(choice.strip())]
        return next(iter(alike + neutral), None)

    def _text(self, situation: Situation, acts: bool) -> str | None:
        question, name = situation.question, self.words[-1] if self.words else ""
        if "address" in heard(" ".join(self.words)):
            return address_in(question)
        quoted = _QUOTED.search(question)
        if quoted:
            return quoted[1]
        if _SEARCH.fullmatch(name) and not acts:
            return in_korean(question) if situation.in_korea else question
        if not self.required:
            return None
        if _TELL.fullmatch(name):
            return " ".join(question.split())[:_TOLD_CHARS]
        return UNCOMMITTED.get(name) if acts else question


def parameters_of(schema: JSON | None) -> tuple[Parameter, ...]:
    """The parameters that a declaration's schema describes; what is no schema describes none."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(schema, dict) or not isinstance(properties, dict):
        return ()
    required = _listed(schema.get("required"))
    return tuple(
        Parameter(str(name), _looked_up(inner, schema), name in required) for name, inner in properties.items()
    )


def address_in(question: str) -> str | None:
    """A Korean postal address in a text, without the words around it."""
    found = _QUOTED.search(question) or _ADDRESS.search(question)
    if found is None:
        return None
    text = found[1] if found.re is _QUOTED else found[0]
    return _ADDRESS_END.sub("", text).strip() or None


def _same_word(choice: str, question: str) -> bool:
    """Whether the question has a telling word of a value that has several: 변심 of 단순 변심, not 상품 of 상품 불량."""
    plain = folded(question)
    telling = (word for word in choice.split() if len(word) > 1 and not heard(word) & GENERAL)
    return any(folded(word) in plain for word in telling)


def _looked_up(schema: Any, root: JSON, depth: int = 0) -> JSON:
    """A schema with its reference followed, and with those of its alternatives."""
    if not isinstance(schema, dict) or depth > 4:
        return {}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target: Any = root
        for part in reference.removeprefix("#/").split("/"):
            target = target.get(part) if isinstance(target, dict) else None
        return {**_looked_up(target, root, depth + 1), **{k: v for k, v in schema.items() if k != "$ref"}}
    inner = {
        key: [_looked_up(each, root, depth + 1) for each in _listed(schema[key])]
        for key in ("anyOf", "oneOf", "allOf")
        if key in schema
    }
    return {**schema, **inner}


def _alternatives(schema: JSON) -> Iterator[JSON]:
    yield schema
    for key in ("anyOf", "oneOf", "allOf"):
        for inner in _listed(schema.get(key)):
            if isinstance(inner, dict):
                yield from _alternatives(inner)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
