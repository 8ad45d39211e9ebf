"""What can happen in a conversation: facts in the past tense.

They carry `at` (seconds since the epoch, for people) and `took_ms` (measured monotonically, for deadlines); nothing in
here ever reads a clock. The model's own content is kept verbatim, as the Gemini REST API writes it (camelCase,
signatures in base64), and is stored once: calls and texts are read out of it where they are needed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, Field, SerializeAsAny

from haru_fsm.conversation.values import (
    JSON,
    Awaited,
    Frozen,
    Incident,
    Share,
    Ticket,
    ToolCall,
    ToolResult,
    Usage,
    content_calls,
    content_text,
)
from haru_fsm.meaning import meaning, wording


class Event(Frozen):
    """A fact. `kind` is its name in the table and in the journal."""

    kind: str
    at: float = 0.0
    took_ms: int = 0

    def model_post_init(self, _context: Any, /) -> None:
        # The journal leaves out what was not set; an event's name always counts as set.
        self.__pydantic_fields_set__.add("kind")


def kind_of(event: type[Event]) -> str:
    """The name of an event's class in tables and journals."""
    return str(event.model_fields["kind"].default)


class MessageReceived(Event):
    """The customer wrote. A `message_id` seen before in the conversation is the same message again."""

    kind: Literal["message_received"] = "message_received"
    text: str
    message_id: str | None = None
    definition: str = ""
    """Digest of the definition (rows, kinds of guards, tools) under which the run began."""
    held: int | None = None
    """Number of the step that has kept this message, where it came in a pause (see MessageHeld)."""


class MessageHeld(Event):
    """The customer wrote while the run waits for a person. It begins the next run, when this one has ended."""

    kind: Literal["message_held"] = "message_held"
    text: str
    message_id: str | None = None


class Compaction(Frozen):
    """How the history was made shorter before a request. Whoever reads the journal later makes the same contents by it.

    Positions count the contents as they were before: see `haru_fsm/compaction.py`.
    """

    until: int
    """Before this position old results became short notes."""
    digested: int = 0
    """What stood before this position was replaced by `record`; 0: nothing was."""
    kept: tuple[int, ...] = ()
    """Positions before `until` that were left as they are."""
    record: str = ""
    """What the model reads in the place of what was replaced."""
    recent_chars: int | None = None
    """Characters that each result from `until` on may still have; None: they were left alone."""
    first_chars: int | None = None
    """Characters that each text of the first content may still have; None: it was left alone."""
    seq: int = 0
    """The last step of which something was cut."""
    before: int = 0
    """Bytes of the contents before, as JSON in UTF-8."""
    after: int = 0
    by: Literal["digest", "model"] = "digest"
    """Who wrote the record."""
    failed: str = ""
    """Why a summary that a model was asked for is not the record."""
    refused: int | None = None
    """The size of the contents that the provider had refused as too large; None: it was not asked before."""
    requests: int = 0
    """Requests for the summary; they are part of the event's."""
    usage: Usage = Usage()
    """Tokens of the summary; they are part of the event's."""


class ModelEvent(Event):
    """What the three outcomes of asking a model share: all that was asked and spent until the outcome was there."""

    model: str = ""
    requests: int = 1
    """HTTP requests that this piece of work made, re-asks and failed attempts included."""
    usage: Usage = Usage()
    incidents: tuple[Incident, ...] = ()
    shares: tuple[Share, ...] = ()
    """What each has spent of it, where more than one model was asked; none: `model` has spent all."""
    settled: dict[str, JSON] = Field(default_factory=dict)
    """How calls in doubt (`seq.position`) have ended, where that came to be known since the last request. The model was
    told it with this one."""
    compaction: Compaction | None = None
    """How the history was made shorter for this request, and is from here on."""

    @property
    def by_model(self) -> tuple[Share, ...]:
        """What was spent, by who has spent it."""
        return self.shares or (Share(model=self.model, requests=max(1, self.requests), usage=self.usage),)


class ModelAnswered(ModelEvent):
    """Text and no call: the model holds this to be the answer."""

    kind: Literal["model_answered"] = "model_answered"
    content: JSON
    shown: str | None = None
    """What the customer may read, where that is not simply the content's text (a leaked thought was cut off)."""

    @property
    def text(self) -> str:
        """The answer as the customer reads it."""
        return content_text(self.content) if self.shown is None else self.shown


class ToolsRequested(ModelEvent):
    """At least one function call. `unusable` maps positions to the reason why a call's arguments are no object."""

    kind: Literal["tools_requested"] = "tools_requested"
    content: JSON
    unusable: dict[int, str] = Field(default_factory=dict)

    @cached_property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls in the order of the reply; absent and null arguments are {}."""
        return content_calls(self.content, self.unusable)

    @cached_property
    def meant(self) -> tuple[Hashable, ...]:
        """The calls as what they mean: equal for the same call, however it is spelled."""
        return tuple([(call.name.rpartition(".")[2], meaning(call.args)) for call in self.calls])

    @cached_property
    def wording(self) -> frozenset[str]:
        """The calls as words, to see whether others are nearly the same: each word with its place and tool."""
        return frozenset(
            f"{call.position}.{call.name} {word}" for call in self.calls for word in ("", *wording(call.args))
        )

    @property
    def text(self) -> str:
        """What the model said beside the calls: its visible thought."""
        return content_text(self.content)


class ModelFailed(ModelEvent):
    """No usable outcome after all re-asks and retries that were allowed. `reason` is one of `FailureReason`."""

    kind: Literal["model_failed"] = "model_failed"
    reason: str
    detail: str = ""


class FailureReason(StrEnum):
    """Why a model gave nothing usable. Values are stable: they stand in journals."""

    EMPTY = "empty"
    MALFORMED_CALL = "malformed_call"
    UNEXPECTED_CALL = "unexpected_call"
    PARTIAL_CALL = "partial_call"
    CUT_OFF = "cut_off"
    UNFINISHED = "unfinished"
    REPEATING = "repeating"
    PROMPT_BLOCKED = "prompt_blocked"
    ANSWER_BLOCKED = "answer_blocked"
    RECITATION = "recitation"
    LANGUAGE = "language"
    UNKNOWN_FINISH = "unknown_finish"
    UNREADABLE = "unreadable"
    BAD_REQUEST = "bad_request"
    TOO_LARGE = "too_large"
    WRONG_KEY = "wrong_key"
    UNKNOWN_MODEL = "unknown_model"
    QUOTA = "quota"
    RATE_LIMITED = "rate_limited"
    SERVER = "server"
    TRANSPORT = "transport"
    TIMEOUT = "timeout"
    DEADLINE = "deadline"
    REPLAY = "replay"
    """A recorded or scripted model had nothing (more) that fits the request."""


class ResultsEvent(Event):
    """What came of calls of the last reply, in their order."""

    results: tuple[ToolResult, ...]


class ToolsExecuted(ResultsEvent):
    """The calls of the last reply were dealt with, each with one result, in the order of the calls."""

    kind: Literal["tools_executed"] = "tools_executed"
    ticket: Ticket | None = None
    """The ticket that one of the calls has filed, or added to, at its session's desk."""


class ApprovalRequested(ResultsEvent):
    """Calls of the last reply wait for a person. `results` are those of all its other calls, which did not wait."""

    kind: Literal["approval_requested"] = "approval_requested"
    waiting: tuple[Awaited, ...]


class ApprovalDecided(Event):
    """A person has decided about one waiting call, or nobody has in time (`expired`). The first decision counts."""

    kind: Literal["approval_decided"] = "approval_decided"
    continues: ClassVar[bool] = True
    """It goes on with the run that paused for it; no other event from outside does."""
    call: str
    digest: str
    approved: bool
    by: str = ""
    """Who decided, as they were called; for the journal alone."""
    reason: str = ""
    expired: bool = False


class ObservationAppended(Event):
    """The model will read this next. Results are not repeated here; `refusals` are for calls that were not run."""

    kind: Literal["observation_appended"] = "observation_appended"
    refusals: dict[int, str] = Field(default_factory=dict)


class TicketOpened(Event):
    """A ticket really exists, and `notice` tells the customer its number.

    `added`: it was open already, and `note` is what this run adds to it.
    """

    kind: Literal["ticket_opened"] = "ticket_opened"
    ticket: Ticket
    notice: str
    added: bool = False
    note: str = ""


class TicketClosed(Event):
    """A person has dealt with the ticket; `reply` is what the customer reads."""

    kind: Literal["ticket_closed"] = "ticket_closed"
    ticket_id: str
    reply: str


class Resumed(Event):
    """A process has taken up a run that another one (or an earlier one) had left unfinished."""

    kind: Literal["resumed"] = "resumed"
    worker: str = ""
    definition: str = ""
    """Digest of the definition from here on, where it is not the one that the run carried."""
    begun: tuple[str, ...] = ()
    """Calls (`seq.position`) with an effect that had been started, and of which nobody knew how they ended."""


class HistoryAdopted(Event):
    """A history that another loop had made was taken in, repaired into a valid one. `repairs` says what was mended."""

    kind: Literal["history_adopted"] = "history_adopted"
    contents: tuple[JSON, ...]
    repairs: tuple[str, ...] = ()


EVENTS: tuple[Any, ...] = (
    MessageReceived,
    MessageHeld,
    ModelAnswered,
    ToolsRequested,
    ModelFailed,
    ToolsExecuted,
    ApprovalRequested,
    ApprovalDecided,
    ObservationAppended,
    TicketOpened,
    TicketClosed,
    Resumed,
    HistoryAdopted,
)
OUTSIDE: frozenset[type[Event]] = frozenset(
    (MessageReceived, MessageHeld, ApprovalDecided, TicketClosed, HistoryAdopted)
)
"""Events that no state's work gives: they come from outside, to a conversation that rests."""

KINDS: Mapping[str, type[Event]] = {kind_of(event): event for event in EVENTS}
"""The engine's own events by kind. An app may have others."""

KnownEvent = Annotated[
    MessageReceived
    | MessageHeld
    | ModelAnswered
    | ToolsRequested
    | ModelFailed
    | ToolsExecuted
    | ApprovalRequested
    | ApprovalDecided
    | ObservationAppended
    | TicketOpened
    | TicketClosed
    | Resumed
    | HistoryAdopted,
    Field(discriminator="kind"),
]
assert set(EVENTS) == set(get_args(get_args(KnownEvent)[0]))


def _not_ours(event: Event) -> Event:
    """An app's own event, which cannot have one of the engine's kinds: those have their own fields."""
    if type(event) is not KINDS.get(event.kind, type(event)):
        raise ValueError(f"this is no {event.kind}")
    return event


AnyEvent = SerializeAsAny[
    Annotated[KnownEvent | Annotated[Event, AfterValidator(_not_ours)], Field(union_mode="left_to_right")]
]
"""One of the engine's events, or an app's own, which is read from a journal as a plain `Event` with all its fields."""
