"""Which tool a question is for.

A tool that acts is chosen only upon a clear wish for what its name says; everything else is left to tools that look,
and among those to the one that has most in common with the question.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from haru_fsm.models.offline_arguments import Parameter
from haru_fsm.models.offline_deeds import said_plainly
from haru_fsm.models.offline_reading import Situation
from haru_fsm.models.offline_sentences import (
    ASKS,
    LOOKS_FOR,
    REFUSES,
    WANTS_TO_TALK,
    WISHES,
    asks,
    sentences,
    wishes,
)
from haru_fsm.models.offline_tools import Tool
from haru_fsm.models.offline_words import ACTS, EVERYDAY, FIELDS, GENERAL, POLICY, heard, states

_ENOUGH = 1.0
"""Score from which a tool is taken to be able to answer."""
_NAMED, _GENERALLY_NAMED = 2.0, 1.5
"""What a concept in a tool's name weighs beside one in its description: a telling concept, and a general one."""
_TAKES_ID = 2.0
"""What it is worth that a tool takes a number, where the question has one."""
_HOP = 0.5
"""What a value costs that has to be found out first."""


def choose(situation: Situation, tools: Sequence[Tool]) -> Tool | None:
    """The tool that the question is for; None where none fits."""
    wanted = _subject(situation.question)
    willing = [tool for tool in tools if tool.acts and _wished_for(tool, situation.question, wanted)]
    if willing:
        return max(willing, key=lambda tool: (tool.wants_person, len(tool.core)))
    undone = acts_wished(situation.question)
    # An act that nobody here can do: how it is done is what there is to tell, not how far an earlier one is.
    wanted |= {POLICY} if undone else frozenset()
    best = _best_looking(situation, wanted, [tool for tool in tools if not tool.acts], tools)
    # Somebody who wants an act that nobody here can do is told so, not shown something else.
    return None if best is None or (undone and not undone & best.concepts) else best


def _subject(question: str) -> frozenset[str]:
    """What a question is about, with what goes without saying."""
    wanted = heard(question)
    if wanted & (FIELDS | {"delivery", "parcel"}):
        wanted |= {"order"}  # nobody asks when a delivery comes without having ordered something
    if states(question) or "mine" in wanted:
        wanted -= {POLICY}  # their own order is meant, not orders in general
    return wanted


def _best_looking(
    situation: Situation, wanted: frozenset[str], looking: Sequence[Tool], tools: Sequence[Tool]
) -> Tool | None:
    scores = {tool: _score(tool, situation, wanted, tools) for tool in looking}
    best = max(scores, key=lambda tool: scores[tool], default=None)
    if best is not None and scores[best] >= _ENOUGH:
        return best
    shelves = [tool for tool in looking if "product" in tool.named and tool.searches]
    return shelves[0] if shelves and LOOKS_FOR.search(situation.question) else None


def _wished_for(tool: Tool, question: str, wanted: frozenset[str]) -> bool:
    """Whether the customer clearly asks for what this tool does, and does not merely ask about it."""
    if not tool.core:
        return said_plainly(tool, question)
    if not tool.core <= wanted:
        return False
    about = [sentence for sentence in sentences(question) if tool.core & heard(sentence)]
    if tool.wants_person:
        return "hours" not in wanted and any(WANTS_TO_TALK.search(sentence.lower()) for sentence in about)
    against = any(asks(sentence) or REFUSES.search(sentence.lower()) for sentence in about)
    return any(map(wishes, sentences(question))) and not against


def acts_wished(question: str) -> frozenset[str]:
    """The acts that the question wants done."""
    wishing = [sentence for sentence in sentences(question) if wishes(sentence)]
    return ACTS & frozenset(concept for sentence in wishing for concept in heard(sentence))


def _score(tool: Tool, situation: Situation, wanted: frozenset[str], tools: Sequence[Tool]) -> float:
    """How well a tool's words fit the question. What many tools speak of says little about any of them."""
    shared = wanted & tool.concepts
    score = sum(_GENERALLY_NAMED if each in tool.named else 1.0 for each in shared & GENERAL)
    score += sum(_rarity(each, tools) * (_NAMED if each in tool.named else 1.0) for each in shared - GENERAL)
    score += sum(1.0 for _ in _words_alike(situation.question, tool))
    score += _TAKES_ID if tool.id_parameter and _takes(tool, situation.ids, tools) else 0.0
    unknown = [each for each in tool.parameters if each.required and each.value(situation, acts=False) is None]
    return score - _HOP * len(unknown)


def _takes(tool: Tool, ids: Sequence[str], tools: Sequence[Tool]) -> bool:
    """Whether one of these numbers may be for this tool: where its letters say of what kind it is, for tools of that
    kind alone (CARD-7001 for a card_id)."""
    kinds = [found[0].lower() for each in ids if (found := re.match("[A-Za-z]+", each))]
    takers = [each for each in tools if each.id_parameter is not None and _is_of_kind(each.id_parameter, kinds)]
    return bool(ids) and (not takers or tool in takers)


def _is_of_kind(parameter: Parameter, kinds: Sequence[str]) -> bool:
    words = parameter.words[:-1]
    return any(word.startswith(kind) or kind.startswith(word) for word in words for kind in kinds)


def _rarity(concept: str, tools: Sequence[Tool]) -> float:
    return 1.0 + math.log(len(tools) / sum(concept in tool.concepts for tool in tools))


def _words_alike(question: str, tool: Tool) -> Iterator[str]:
    """Plain words of the question that the tool has too: for things that no concept names."""
    for word in set(re.findall(r"[가-힣]{2,}|[a-z]{4,}", question.lower())):
        # Without the particle, or the plural, that may have grown onto it.
        stem = word.rstrip("s") if word.isascii() else word[: max(2, len(word) - 2)]
        everyday = heard(word) or EVERYDAY.fullmatch(word) or ASKS.search(word) or WISHES.search(word)
        if not everyday and any(other.startswith(stem) for other in tool.plain_words):
            yield word
