"""Thoughts that leak into the answer as plain text, and how they are kept from the customer.

A thinking model marks its thoughts (`thought: true`), mostly. Seen in the field without any mark: a text that begins
with "THOUGHT:" (googleapis/python-genai#2121), one whose first line is the bare word "thought" (recorded with
gemini-2.5-flash, see `shared/data/gemini_http.jsonl.gz`), tags such as <think>...</think> from models behind
gateways (and in the marks that some of these have instead: RooCodeInc/Roo-Code#8522), and the channels of gpt-oss, of
which only the final one is for people (ggml-org/llama.cpp#15181). The marks of turns go with them (`turn_marks.py`),
and what an answer is wrapped in (`wrappings.py`). A tag in Markdown's code is quoted, by somebody who explains such
models, and no thought, unless the code is all that there is. Where the thought ends is certain with a closing tag, a
label ("Answer:") or a part of its own; else it is taken to end at the first blank line, and where a later paragraph is
in Korean and the thought was not, only there. What is left may be nothing: then the reply was no answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from haru_fsm.models.turn_marks import MARK, own_turn
from haru_fsm.models.wrappings import BEGINNING, LABELS, unwrapped

_TAG = r"(?:think(?:ing)?|thoughts?|reasoning|(?:reasoning_)?scratchpad)"
_GAP = r"\s{0,4}"
"""Blanks within a tag; without a bound a `<` before thousands of them takes minutes to look at."""
_QUOTED = r"(?P<quoted>^[ \t]{0,8}```.*?^[ \t]{0,8}```|`[^`\n]+`)|"
_FLAGS = re.IGNORECASE | re.DOTALL | re.MULTILINE
_CLOSING = rf"<{_GAP}/{_GAP}{_TAG}{_GAP}>\s*"
_TAGGED = re.compile(rf"{_QUOTED}<{_GAP}{_TAG}{_GAP}>.*?(?:{_CLOSING}|\Z)", _FLAGS)
_STRAY_CLOSING = re.compile(f"{_QUOTED}{_CLOSING}", _FLAGS)
_ONE_BLOCK = re.compile(r"\A\s*```(?=(?:(?!```).)*```\s*\Z)", re.DOTALL)
_OPENING = re.compile(rf"<{_GAP}/?{_GAP}(?:{_TAG}|seed:think){_GAP}>", re.IGNORECASE)
_MAYBE_OPENING = re.compile(r"(?:<[\s/a-z_:]{0,24}|\[[think]{0,5}|◁[/think]{0,6})\Z", re.IGNORECASE)

_CHANNEL = re.compile(
    r"(?:<\|start\|>[^<]*)?<\|channel\|>(?!\s*final\b)[^<]*(?:<\|constrain\|>[^<]*)?"
    r"(?:<\|message\|>.*?)?(?:<\|(?:end|call|return)\|>|(?=<\|(?:start|channel)\|>)|\Z)",
    re.DOTALL,
)
_FINAL = re.compile(r"(?:<\|start\|>[^<]*)?<\|channel\|>\s*final\b[^<]*(?:<\|constrain\|>[^<]*)?(?:<\|message\|>)?")

_FOREIGN = (
    (re.compile(r"\[THINK\]((?:(?!\[THINK\]).)*?)\[/THINK\]", re.DOTALL), r"<think>\1</think>"),
    (re.compile(r"◁think▷|<seed:think>|<\|(?:START_THINKING|begin_of_thought)\|>"), "<think>"),
    (re.compile(r"◁/think▷|</seed:think>|<\|(?:END_THINKING|end_of_thought)\|>"), "</think>"),
)
"""What Magistral, Kimi, Seed, Command A and others write in the place of a tag. A word in square brackets is a thought
only where it is closed: shops write brands in them."""
_FOREIGN_OPENING = re.compile(r"\[THINK\]|◁/?think▷")

_LABELLED = re.compile(
    r"\A[\s*_#>]*(?:(?:thoughts?|thinking|생각)[\s*_]*[:\uff1a]|thoughts?[*_]*[ \t]*\r?\n)", re.IGNORECASE
)
_DECORATION = " \t\r\n*_#>"
_LABELS = ("thoughts", "thinking", "생각", *LABELS)
_ANSWER = re.compile(
    r"^[ \t*_#>]*(?:final answer|answer|response|reply|최종 답변|답변)[\s*_]*[:\uff1a][\s*_]*",
    re.IGNORECASE | re.MULTILINE,
)
LAYERS = 64
"""Thoughts and wrappings within each other. A text with more of them goes round in circles, and is no answer."""
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_HANGUL = re.compile("[가-힣]")


def without_thoughts(texts: Sequence[str]) -> str | None:
    """What may be shown of an answer that came in these texts, one a part; None where nothing had leaked."""
    text = "".join(texts)
    tagged = _in_tags(text)
    shown = _once(texts if tagged == text else [tagged])
    rest = shown
    for _ in range(LAYERS):  # what was behind one thought may be another
        if rest is None:
            return shown
        shown, rest = rest, _once([rest])
    return ""


def _in_tags(text: str) -> str:
    """The text with thoughts in tags, whatever marks were around them."""
    for marks, tag in _FOREIGN:
        text = marks.sub(tag, text)
    return text


def _once(texts: Sequence[str]) -> str | None:
    text = "".join(texts)
    if _LABELLED.match(text):
        return _after_label(texts).strip()
    if _OPENING.search(text) and (untagged := _without_tags(text)) is not None:
        return untagged
    if (inner := unwrapped(text)) is not None:
        return inner
    if MARK.search(text):
        shown = own_turn(_FINAL.sub("", _CHANNEL.sub("", text)))
        return shown if shown != text else None
    return None


def _without_tags(text: str) -> str | None:
    """The text without thoughts in tags, and from behind the last tag that closes none; None where all are quoted."""
    fence = _ONE_BLOCK.match(text)
    begin = fence.end() if fence else 0
    untagged = _TAGGED.sub(lambda found: found["quoted"] or "", text[begin:])
    stray = max((found.end() for found in _STRAY_CLOSING.finditer(untagged) if not found["quoted"]), default=0)
    shown = text[:begin] + untagged[stray:]
    return shown.lstrip() if shown != text else None


def _after_label(texts: Sequence[str]) -> str:
    text = "".join(texts)
    if label := _ANSWER.search(text):
        return text[label.end() :]
    thought, *others = [part for part in texts if part.strip()]
    if others and _LABELLED.match(thought):
        return "".join(others)
    thought, *paragraphs = _BLANK_LINE.split(text)
    thoughts = [thought, *takewhile(_LABELLED.match, paragraphs)]
    paragraphs = paragraphs[len(thoughts) - 1 :]
    if not _HANGUL.search(thoughts[-1]):
        korean = next((index for index, paragraph in enumerate(paragraphs) if _HANGUL.search(paragraph)), 0)
        paragraphs = paragraphs[korean:]
    return "\n\n".join(paragraphs)


def certain(text: str) -> str:
    """The beginning of a text, still being written, that will be shown whatever follows.

    Holds back all of a text that begins, or may yet turn out to begin, as a thought, and everything from a tag on.
    """
    if _LABELLED.match(text) or BEGINNING.match(text) or _may_become_label(text):
        return ""
    found = (pattern.search(text) for pattern in (_OPENING, MARK, _FOREIGN_OPENING, _MAYBE_OPENING))
    return text[: min((tag.start() for tag in found if tag), default=len(text))]


def _may_become_label(text: str) -> bool:
    begun = text.lstrip(_DECORATION).rstrip(_DECORATION).casefold()
    return any(label.startswith(begun) for label in _LABELS)
