"""What one request to a model gave: something usable, or a problem with a type. The words that readers of wire
formats (`gemini_reading.py`, `openai_reading.py`) and the one who insists on an answer (`retrying.py`) share.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from haru_fsm.conversation import JSON, FailureReason, Incident, Usage
from haru_fsm.json_safe import json_safe, safe_text

_EVENTS = re.compile(r"\s*(?:data|event|id|retry)?:")
"""How a body begins that consists of server-sent events; a line that begins with the colon is a comment."""
DETAIL_CHARS = 600
"""Characters of what a provider said that an incident keeps."""


@dataclass(frozen=True, slots=True)
class Usable:
    """A reply that the conversation can go on with.

    `content` may be replayed as it is. `calls` counts its function calls; `unusable` says of some of them, by
    position, why their arguments could not be read. `shown` is what people may read of the text, where that is not
    all of it (a leaked thought was cut off).
    """

    content: JSON
    calls: int = 0
    unusable: dict[int, str] = field(default_factory=dict)
    shown: str | None = None
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Problem:
    """A request that gave nothing usable. `detail` is what the provider said; `retry_after_s` what it asked for.

    `wanted` names the tool that the model tried to call where it may not, as far as anybody can tell.
    """

    reason: FailureReason
    detail: str = ""
    finish_reason: str | None = None
    http_status: int | None = None
    retry_after_s: float | None = None
    wanted: str | None = None
    usage: Usage = field(default_factory=Usage)
    adapted: bool = False
    """The next request will do without what was refused in this one: it is sent at once, as one of the retries."""

    def incident(self) -> Incident:
        """The problem as the journal keeps it."""
        wanted = f" (wanted: {self.wanted})" if self.wanted and self.wanted not in self.detail else ""
        return Incident(
            reason=self.reason,
            detail=self.detail + wanted,
            finish_reason=self.finish_reason,
            http_status=self.http_status,
        )


Reply = Usable | Problem


def parse_reply(text: str) -> object:
    """The JSON of a 200 response, None for an empty one. A text that is no JSON is a Problem: UNREADABLE.

    Gateways that only know streams answer with one whether it was asked for or not (googleapis/python-genai#1364,
    simonw/llm-gemini#97): then it is the list of the stream's chunks.
    """
    text = text.removeprefix("\ufeff")
    try:
        if chunks := _events(text):
            return chunks
        return json.loads(text) if text.strip() else None
    except (ValueError, RecursionError) as error:
        return Problem(FailureReason.UNREADABLE, said(f"the reply is no JSON ({error})", text[:200]))


def _events(text: str) -> list[object]:
    """What the server-sent events in a text carry, one chunk a line; none where it holds no such lines."""
    if not _EVENTS.match(text):
        return []
    lines = (line.removeprefix("data:").strip() for line in text.split("\n") if line.startswith("data:"))
    return [json.loads(line) for line in lines if line not in ("", "[DONE]")]


def said(*words: object) -> str:
    """What a provider said, on one line, joined and cut to a length that a journal can bear."""
    text = ": ".join(filter(None, (_plain(word) for word in words)))
    return text if len(text) <= DETAIL_CHARS else text[: DETAIL_CHARS - 1] + "…"


def _plain(word: object) -> str:
    if word is None:
        return ""
    text = word if isinstance(word, str) else str(json_safe(word))
    return " ".join(safe_text(text[: 4 * DETAIL_CHARS]).split())


# --------------------------------------------------------------------------- odd bodies


def as_dict(value: object) -> dict[str, Any]:
    """The value where it is an object; elsewhere an empty one, so that a reader may go on asking."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The value where it is a list; elsewhere an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """The value where it is a string; elsewhere the empty one."""
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int:
    """A number of tokens. Gateways write them as 12, 12.0 or "12"; anything else counts nothing."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**15:
        return value
    return 0


def counts_so_far(before: JSON, latest: object, parts: Sequence[str], total: str) -> JSON:
    """The tokens that a stream has counted, after one more of its chunks.

    Whoever counts in a chunk counts all that was spent until then. So what a later chunk leaves out, or has 0 for,
    stays as it was, unless its own `parts` come to the `total` that it names: then it is the whole.
    """
    said = {key: value for key, value in as_dict(latest).items() if as_count(value) or as_dict(value)}
    if not any(as_count(value) for value in said.values()):
        return before
    whole = sum(as_count(said.get(part)) for part in parts) == as_count(said.get(total))
    older = {} if whole else {key: value for key, value in before.items() if key != total}
    return older | said
