"""Thought signatures in a history that more than one model has made.

A signature is the model's own thinking, encrypted; what Gemini said goes back to Gemini as it came, signed or not. Two
things need more than that. Gemini 3 and later refuse a turn whose first call is not signed, and calls of another
provider's model never are; for these the API takes a word in the place of a signature (ai.google.dev, "Thought
signatures", under migrating from other models). Whoever reads such a call writes the word beside it, and only earlier
models, which know of no such word, do not get it. And signatures of Gemini itself may be refused, or missed: by another
model, or under another key. Nobody can tell that beforehand, and signatures mostly do pass from one Gemini model to
another, which would miss them. So they are sent, and only where the API has refused one, or has twice had nothing to
say to them (googleapis/js-genai#1769), the same word stands for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from haru_fsm.conversation import JSON

UNSIGNED = "skip_thought_signature_validator"
"""What Gemini takes where a signature cannot be had. It reads as base64, which the field's type asks for."""

_EARLIER = re.compile(r"(?:models/)?gemini-[12]\b")
_GEMINI = re.compile(r"(?:models/)?gemini-")


def wants_signatures(name: str) -> bool:
    """Whether this model refuses calls without a signature: Gemini 3 and later, and the names that mean the latest."""
    return bool(_GEMINI.match(name) and not _EARLIER.match(name))


def unsigned(part: JSON) -> JSON:
    """The first call of a reply of another provider's model, as Gemini takes it."""
    return {**part, "thoughtSignature": UNSIGNED}


def without_the_word(contents: Iterable[JSON]) -> Iterator[JSON]:
    """The contents for a model that takes calls as they are, and no word in the place of a signature."""
    for content in contents:
        first = _first_call(content)
        if first is None or content["parts"][first].get("thoughtSignature") != UNSIGNED:
            yield content
        else:
            call = {key: value for key, value in content["parts"][first].items() if key != "thoughtSignature"}
            yield _with_part(content, first, call)


def countersigned(contents: Iterable[JSON]) -> Iterator[JSON]:
    """The contents, with the word in the first call of each turn whose first call is not signed."""
    for content in contents:
        first = _first_call(content)
        if first is None or "thoughtSignature" in content["parts"][first]:
            yield content
        else:
            yield _with_part(content, first, unsigned(content["parts"][first]))


def without_signatures(contents: Iterable[JSON]) -> Iterator[JSON]:
    """The contents without any signature, as another model would have made them. Nothing else is left of a part that
    had only a signature beside an empty text."""
    for content in contents:
        if content["role"] != "model" or not any("thoughtSignature" in part for part in content["parts"]):
            yield content
            continue
        bare = ({key: value for key, value in part.items() if key != "thoughtSignature"} for part in content["parts"])
        # A content without parts would be refused as well.
        yield {**content, "parts": [part for part in bare if part.get("text") != ""] or [{"text": " "}]}


def _first_call(content: JSON) -> int | None:
    if content["role"] != "model":
        return None
    return next((index for index, part in enumerate(content["parts"]) if "functionCall" in part), None)


def _with_part(content: JSON, index: int, part: JSON) -> JSON:
    parts = list(content["parts"])
    parts[index] = part
    return {**content, "parts": parts}
