"""Marks of turns in the text of an answer: where the model's own turn ends, and what was made up behind it. Pure.

A server that does not know a model's template leaves its marks in the text, and a model that is not stopped at them
goes on with what the customer might say next, and with its own answer to that (SWE-agent/mini-swe-agent#581,
FoundationAgents/MetaGPT#1603). The customer reads the first turn, without marks. No later request repeats the others:
the server would read its marks again, and the customer would have said what was made up (anthropics/claude-code#68367).
A mark in Markdown's code is quoted, by somebody who explains templates, and no mark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from haru_fsm.conversation import JSON

_BEGINS = r"<\|im_start\|>|<start_of_turn>|<\|start_header_id\|>"
_ENDS = r"<\|(?:im_end|endoftext|eot_id|eom_id)\|>|<end_of_turn>|<eos>"
_BEFORE = re.compile(
    rf"(?:(?:(?:{_BEGINS})\s*(?:assistant|model)\b(?:<\|end_header_id\|>)?|<\|assistant\|>|<bos>|{_ENDS})\s*)+"
)
_NEXT = re.compile(rf"(?P<quoted>```.*?```|`[^`\n]+`)|{_BEGINS}|{_ENDS}|<\|(?:user|assistant|system)\|>", re.DOTALL)
_BEHIND = ("<|end|>", "<|return|>", "<|call|>", "</s>")
"""Marks that may also stand within an answer, and end it only where nothing else follows."""

MARK = re.compile(rf"<\||{_BEGINS}|{_ENDS}|<bos>|</s>")
"""Where one of these marks may begin."""


def own_turn(text: str) -> str:
    """The text of the model's first turn, without the marks around it; a text without marks as it is."""
    begin, end = _first_turn(text)
    return _without_ends(text[begin:end])


def without_made_up_turns(parts: Sequence[JSON]) -> list[JSON]:
    """The parts of a reply as far as the model's first turn goes, which may end in any of them; calls and thoughts
    stay."""
    spoken = [part["text"] if part.get("text") and not part.get("thought") else "" for part in parts]
    begin, end = _first_turn("".join(spoken))
    kept: list[JSON] = []
    for part, text in zip(parts, spoken, strict=True):
        turn = text[max(0, begin) : max(0, end)]
        begin, end = begin - len(text), end - len(text)
        if turn == text:
            kept.append(part)
        elif turn or "thoughtSignature" in part:
            kept.append({**part, "text": turn})
    return kept


def _first_turn(text: str) -> tuple[int, int]:
    """Where the model's first turn begins and ends, between the marks."""
    begun = _BEFORE.match(text, len(text) - len(text.lstrip()))
    begin = begun.end() if begun else 0
    behind = next((mark for mark in _NEXT.finditer(text, begin) if not mark["quoted"]), None)
    return begin, begin + len(text[begin : behind.start()].rstrip()) if behind else len(text)


def _without_ends(text: str) -> str:
    """The text without the marks behind it that end a turn."""
    ends = [mark for mark in _BEHIND if mark != "</s>" or "<s>" not in text]  # struck through, as an old price
    end = last = len(text)
    while last:
        if text[last - 1].isspace():
            last -= 1
        elif mark := next((each for each in ends if text.endswith(each, 0, last)), None):
            end = last = last - len(mark)
        else:
            break
    return text[:end]
