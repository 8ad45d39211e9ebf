"""A question taken apart, where it asks for several things at once.

"배송 언제 와요? 그리고 쿠폰 있나요?" is for two tools. A sentence that neither asks nor wishes belongs to the one after
it, for it only says what that is about; and sentences that are for the same tool stay together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from haru_fsm.models.offline_choice import choose
from haru_fsm.models.offline_reading import Situation
from haru_fsm.models.offline_sentences import ACT_AND_MORE, BOTH, JOINED, asks, wishes
from haru_fsm.models.offline_tools import Tool
from haru_fsm.models.offline_words import ACTS, FIELDS, GENERAL, POLICY, heard

_ENDS = re.compile(
    r"(?<=[.!?~\n])\s+|,?\s+(?:그리고|그런데|근데|그럼|또|and also|also)\s+"
    r"|\s+and\s+(?=(?:do|does|can|could|what|when|where|how|is|are)\b)"
)
MOST_PARTS = 3

Part = tuple[Situation, Tool]


def parts(situation: Situation, tools: Sequence[Tool]) -> list[Part]:
    """What the question asks for, each with the tool that it is for; one part for most questions, none where no tool
    fits. An act that the customer wishes comes first, and is read from all that they have said."""
    situation = replace(situation, question=ACT_AND_MORE.sub(r"\g<act>해 주세요. ", situation.question))
    goal = choose(situation, tools)
    if goal is not None and goal.acts:
        return [(situation, goal), *_beside(situation, goal, tools)]
    found = _apart(situation, tools)
    if len(found) > 1:
        return found
    if goal is None:
        return []
    return [*_of_the_thing(situation, goal, tools), (situation, goal)]


def _apart(situation: Situation, tools: Sequence[Tool]) -> list[Part]:
    """The parts that are for different tools that look."""
    found = _by_tool(situation, _texts(situation.question), tools)
    # What a part of the question wants done is not clear without the rest.
    return [] if any(tool.acts for tool in found) else [(part, tool) for tool, part in found.items()][:MOST_PARTS]


def _by_tool(situation: Situation, texts: Sequence[str], tools: Sequence[Tool]) -> dict[Tool, Situation]:
    """The tools that these texts are for, each with what is asked of it; a text that is for none is left out."""
    found: dict[Tool, str] = {}
    for text in texts:
        tool = choose(_part(situation, text), tools)
        if tool is not None:
            found[tool] = f"{found[tool]} {text}" if tool in found else text
    return {tool: _part(situation, text) for tool, text in found.items()}


def _beside(situation: Situation, goal: Tool, tools: Sequence[Tool]) -> list[Part]:
    """What is asked beside the wish for an act, and was not asked in an earlier message."""
    if goal.wants_person or "\n" in situation.question:
        return []
    asked = [text for text in _texts(situation.question) if _asks(text) and not goal.core & heard(text)]
    found = _by_tool(situation, asked, tools).items()
    return [(part, tool) for tool, part in found if not tool.acts][: MOST_PARTS - 1]


def _of_the_thing(situation: Situation, goal: Tool, tools: Sequence[Tool]) -> Iterator[Part]:
    """For a question about the rules that names a thing by its number: what there is to say of that very thing."""
    if not situation.ids and situation.pointed_at is not None:
        situation = replace(situation, question=f"{situation.question} {situation.pointed_at}")
    if not situation.ids or goal.id_parameter is not None or POLICY not in goal.concepts:
        return
    tool = choose(situation, [each for each in tools if each.id_parameter is not None and not each.acts])
    if tool is not None:
        yield situation, tool


def _texts(question: str) -> list[str]:
    """The sentences that want something, each with those before it that do not."""
    texts: list[str] = []
    before = ""
    for sentence in (each for each in _ENDS.split(question) if each.strip()):
        text = f"{before} {sentence}".strip()
        if _wants(sentence):
            texts += _joined(text)
            before = ""
        else:
            before = text
    if before and texts:
        texts[-1] = f"{texts[-1]} {before}"
    return texts


def _wants(sentence: str) -> bool:
    return _asks(sentence) or wishes(sentence)


def _asks(sentence: str) -> bool:
    return asks(sentence) or sentence.rstrip().endswith("?")


def _joined(sentence: str) -> list[str]:
    """Two subjects that one sentence asks for: "쿠폰이랑 배송 둘 다 알려 주세요"."""
    found = JOINED.search(sentence) if BOTH.search(sentence) else None
    if found is None:
        return [sentence]
    one, other = (heard(found[name]) - GENERAL | heard(found[name]) & {"delivery"} for name in ("one", "other"))
    if not one or not other or one & other:
        return [sentence]
    rest = BOTH.sub("", sentence[found.end() :]).strip()
    return [f"{sentence[: found.start()]}{found[name]} {rest}" for name in ("one", "other")]


def _part(situation: Situation, text: str) -> Situation:
    """The situation as if only this had been asked. Details and acts are of the thing that was named."""
    part = replace(situation, question=text, context=situation.question)
    if not part.ids and situation.ids and heard(text) & (FIELDS | ACTS):
        part = replace(part, question=f"{text} {' '.join(situation.ids)}")
    return part
