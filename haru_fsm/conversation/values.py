"""The values that events are made of (usage, calls, results, tickets), and reading calls and texts out of contents."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

JSON = dict[str, Any]
"""A JSON object: string keys; strings, finite numbers, booleans, None, lists and objects as values."""


class Frozen(BaseModel):
    """What is written down is not changed afterwards; a field that a newer version wrote is kept, not lost."""

    model_config = ConfigDict(frozen=True, extra="allow", ser_json_inf_nan="null")


COST_DIGITS = 12
"""Digits behind the point to which sums of US dollars are rounded: finer than any price of one token, coarser than the
noise of adding floats."""


class Usage(Frozen):
    """Tokens of one or more requests. `prompt` includes `cached`; `thoughts` are not part of `answer`.

    Source: Gemini's `usageMetadata` (promptTokenCount, cachedContentTokenCount, thoughtsTokenCount,
    toolUsePromptTokenCount, candidatesTokenCount). `estimated` marks counts that no provider gave. `cost_usd` is that
    of the requests whose price was known; None where that was none of them.
    """

    prompt: int = 0
    cached: int = 0
    thoughts: int = 0
    tool: int = 0
    answer: int = 0
    cost_usd: float | None = None
    estimated: bool = False

    @property
    def total(self) -> int:
        """Tokens that are paid for: cached ones are part of the prompt and are counted once."""
        return self.prompt + self.thoughts + self.tool + self.answer

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            prompt=self.prompt + other.prompt,
            cached=self.cached + other.cached,
            thoughts=self.thoughts + other.thoughts,
            tool=self.tool + other.tool,
            answer=self.answer + other.answer,
            cost_usd=round(sum(costs), COST_DIGITS) if costs else None,
            estimated=self.estimated or other.estimated,
        )


class Share(Frozen):
    """What one of several models has spent of an event."""

    model: str
    requests: int = 1
    usage: Usage = Usage()


class Incident(Frozen):
    """One request that gave nothing usable, kept for whoever asks later what the provider had said."""

    reason: str
    detail: str = ""
    finish_reason: str | None = None
    http_status: int | None = None


class ToolCall(NamedTuple):
    """One function call as the model asked for it. `position` counts within its reply, from 0."""

    position: int
    name: str
    args: JSON
    id: str | None = None
    unusable: str | None = None
    """Why the arguments could not even be read (they came as a list, say); None for a readable call."""


class ResultStatus(StrEnum):
    """What is known of a call after it was dealt with."""

    DONE = "done"
    FAILED = "failed"
    """It raised, was refused or had bad arguments: the response says which. It has certainly had no effect."""
    NOT_DONE = "not_done"
    """A tool with an effect said `NotDone`: the effect did not take place."""
    IN_DOUBT = "in_doubt"
    """A tool with an effect was started and nobody knows how it ended."""


class ToolResult(Frozen):
    """What came of one call. `response` is what the model reads: {"result": ...} or {"error": ...}, with a `note`."""

    position: int
    status: ResultStatus
    response: JSON = Field(default_factory=dict)
    took_ms: int = 0
    repairs: tuple[str, ...] = ()
    polling: bool = False
    """The tool is one that is asked again until its answer changes; repeating it is no loop."""
    effect: bool = False
    """The call went through the effect ledger."""
    noted: bool = False
    """The response is the ledger's outcome; stores keep it there and only there."""
    repeated: bool = False
    """Not run: answered from the ledger, because the same effect had been done in this run already."""
    ran: bool = True
    """The tool's own code was started for this call."""


class Awaited(Frozen):
    """A call that waits for a person to agree. What they agree to is its `digest`: this call with these arguments of
    this tool, as it was declared then, in this conversation."""

    position: int
    call: str
    """`seq.position` of the request: the call's name in the ledger, and for people."""
    tool: str
    args: JSON
    """The exact arguments that it would run with."""
    digest: str
    expires_at: float
    """From then on the request counts as denied, and an approval that nothing was begun with as void."""


class Ticket(Frozen):
    """A case for a person. `key` names what it was opened for, so that opening it twice gives one ticket."""

    ticket_id: str
    key: str
    conversation_id: str
    customer_id: str
    category: str
    urgency: str
    summary: str
    created_at: float = 0.0
    rehearsal: bool = False


def content_text(content: JSON) -> str:
    """The text of a content that is meant to be read: without thoughts, in order."""
    parts = content.get("parts") or ()
    return "".join(part["text"] for part in parts if part.get("text") and not part.get("thought"))


def content_calls(content: JSON, unusable: Mapping[int, str] | None = None) -> tuple[ToolCall, ...]:
    """The function calls of a content, numbered from 0."""
    found = [part["functionCall"] for part in content.get("parts") or () if "functionCall" in part]
    why = unusable or {}
    return tuple(
        [
            ToolCall(position, call.get("name") or "", call.get("args") or {}, call.get("id"), why.get(position))
            for position, call in enumerate(found)
        ]
    )
