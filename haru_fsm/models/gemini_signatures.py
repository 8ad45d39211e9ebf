"""Thought signatures in a history that more than one model has made.

A signature is the model's own thinking, encrypted; what Gemini signed goes back to Gemini as it came. Two things need
more than that. Gemini 3 and later refuse a turn whose first call is not signed, and calls of another provider's model
never are; for these the API takes a word in the place of a signature (ai.google.dev, "Thought signatures", under
migrating from other models). And signatures of Gemini itself may be refused: by another model, or under another key.
Nobody can tell that beforehand, and signatures mostly do pass from one Gemini model to another, which would miss them.
So they are sent, and only where the API has refused one, the same word stands for all.
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


def countersigned(contents: Iterable[JSON]) -> Iterator[JSON]:
    """The contents, with the word in the first call of each turn whose first call is not signed."""
    for content in contents:
        first = _first_call(content)
        if first is None or "thoughtSignature" in content["parts"][first]:
            yield content
        else:
            yield _with_part(content, first, {**content["parts"][first], "thoughtSignature": UNSIGNED})


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
