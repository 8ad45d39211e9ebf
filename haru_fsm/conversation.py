"""The data of a conversation: calls, results, events, steps. Frozen, and without any behaviour that acts.

A conversation *is* its journal. Each step of the journal says which event came, which state it led to and,
where a guard tripped, which one. Everything else (state, budgets, what the model reads) is a fold of it.

Events are facts in the past tense. They carry `at` (seconds since the epoch, for people) and `took_ms`
(measured monotonically, for deadlines); nothing in here ever reads a clock. The model's own content is
kept verbatim, as the Gemini REST API writes it (camelCase, signatures in base64), and is stored once: calls
and texts are read out of it where they are needed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SerializeAsAny

from haru_fsm.meaning import meaning, wording

JSON = dict[str, Any]
"""A JSON object: string keys; strings, finite numbers, booleans, None, lists and objects as values."""


class Frozen(BaseModel):
    """What is written down is not changed afterwards; a field that a newer version wrote is kept, not lost."""

    model_config = ConfigDict(frozen=True, extra="allow", ser_json_inf_nan="null")


# --------------------------------------------------------------------------- what models and tools say


COST_DIGITS = 12
"""Of a sum of prices, in US dollars: finer than any price of one token, coarser than the noise of adding floats."""


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
    """It raised, was refused or had bad arguments: the response says what. Without an effect, or surely none."""
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


# --------------------------------------------------------------------------- events


class Event(Frozen):
    """A fact. `kind` is its name in the table and in the journal."""

    kind: str
    at: float = 0.0
    took_ms: int = 0

    def model_post_init(self, _context: Any, /) -> None:
        # The journal leaves out what was not set; an event's name always counts as set.
        self.__pydantic_fields_set__.add("kind")


class MessageReceived(Event):
    """The customer wrote. A `message_id` seen before in the conversation is the same message again."""

    kind: Literal["message_received"] = "message_received"
    text: str
    message_id: str | None = None
    definition: str = ""
    """Digest of the definition (rows, kinds of guards, tools) under which the run began."""
    held: int | None = None
    """The step that has kept the message, where it came in a pause."""


class MessageHeld(Event):
    """The customer wrote while the run waits for a person. It begins the next run, when this one has ended."""

    kind: Literal["message_held"] = "message_held"
    text: str
    message_id: str | None = None


class Compaction(Frozen):
    """How the history was made shorter before a request, so that everybody who reads the journal makes it the same.

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
    """What three kinds of model events share: all that was asked for and spent until this outcome was there."""

    model: str = ""
    requests: int = 1
    """HTTP requests that this piece of work made, re-asks and failed attempts included."""
    usage: Usage = Usage()
    incidents: tuple[Incident, ...] = ()
    settled: dict[str, JSON] = Field(default_factory=dict)
    """Outcomes that came to be known since the last request, by call (`seq.position`): the model read them as well."""
    compaction: Compaction | None = None
    """How the history was made shorter for this request, and is from here on."""


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
"""Events that no state's work gives: they come from outside and leave rest."""

KINDS: Mapping[str, type[Event]] = {event.model_fields["kind"].default: event for event in EVENTS}
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
    if type(event) is not KINDS.get(event.kind, type(event)):
        raise ValueError(f"this is no {event.kind}")
    return event


AnyEvent = SerializeAsAny[
    Annotated[KnownEvent | Annotated[Event, AfterValidator(_not_ours)], Field(union_mode="left_to_right")]
]
"""One of the engine's events, or one of an app's own: read from a journal, that is a plain `Event` with its fields."""


# --------------------------------------------------------------------------- steps


class Answer(StrEnum):
    """How a row answers the guard that tripped. The work of the state it leads to reads it from the journal."""

    NUDGE = "nudge"
    """Refuse the calls, say why, ask for another way or a simple answer."""
    SIMPLIFY = "simplify"
    """Refuse the calls, say why, ask for a simple answer to the question."""
    LAST_WORD = "last_word"
    """No tool any more: the next request is the last, with tools off; answer from what is known."""
    ESCALATE = "escalate"
    """A person takes over: what a guarded row without an answer does, said aloud."""


class Trip(Frozen):
    """A guard has tripped: which one, the figure it saw, its limit, and a sentence for people and models."""

    guard: str
    figure: float
    limit: float
    because: str


class Step(NamedTuple):
    """One row of the journal: what happened, where it led, and whether the conversation rests there."""

    seq: int
    run: int
    event: AnyEvent
    source: str
    state: str
    rests: bool = False
    trip: Trip | None = None
    answer: Answer | None = None
    asked: tuple[str, ...] = ()
    """Kinds of counted guards that were asked about this event and let it pass."""

    @property
    def stops(self) -> bool:
        """A guard has tripped, and the row's answer does not let the model go on."""
        return self.trip is not None and self.answer in (None, Answer.ESCALATE)

    @property
    def pauses(self) -> bool:
        """It rests without being an ending: the run waits for a person's approval."""
        return self.rests and isinstance(self.event, ApprovalRequested | MessageHeld)

    def written(self, *, whole: bool = False) -> JSON:
        """The step as a JSON object: without what was never set, or the whole of it."""
        event = self.event.model_dump(mode="json", exclude_unset=not whole)
        said = {"seq": self.seq, "run": self.run, "event": event, "source": self.source, "state": self.state}
        return said | self.notes(whole=whole)

    def notes(self, *, whole: bool = False) -> JSON:
        """What the row added to the event, as JSON: rest, trip, answer, guards that were asked."""
        trip = self.trip.model_dump(mode="json", exclude_unset=True) if self.trip is not None else None
        notes = {"rests": self.rests, "trip": trip, "answer": self.answer, "asked": list(self.asked)}
        return notes if whole else {name: note for name, note in notes.items() if note}


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation at one moment. `memos` are the guards' folds of `steps`: rebuilt on load, never stored."""

    conversation_id: str
    customer_id: str
    state: str
    resting: bool = True
    steps: tuple[Step, ...] = field(default=(), repr=False)
    memos: tuple[Any, ...] = field(default=(), repr=False)
    parent: str | None = None
    """The conversation that this one was forked from."""
    rehearsal: bool = False
    """A fork that must not act on the world."""

    @property
    def seq(self) -> int:
        """Number of the last step; 0 for an empty journal."""
        return self.steps[-1].seq if self.steps else 0

    @property
    def run(self) -> int:
        """Number of the current or last run; 0 before the first message."""
        return self.steps[-1].run if self.steps else 0

    @property
    def run_steps(self) -> tuple[Step, ...]:
        """The steps of the current or last run, its message first."""
        steps, run = self.steps, self.run
        start = len(steps)
        while start and steps[start - 1].run == run:
            start -= 1
        return steps[start:]

    @property
    def paused(self) -> bool:
        """The current run waits for a person's approval."""
        return self.resting and bool(self.steps) and self.steps[-1].pauses


def last_request(conversation: Conversation) -> tuple[int, ToolsRequested]:
    """The number of the latest step that requested tools, and its event. Raises LookupError when there is none."""
    for step in reversed(conversation.steps):
        if isinstance(step.event, ToolsRequested):
            return step.seq, step.event
    raise LookupError(f"Conversation {conversation.conversation_id}: no tools were ever requested.")


def has_last_word(conversation: Conversation) -> bool:
    """Whether the model was given the last word in this run: the request that comes now has no tools."""
    for step in reversed(conversation.steps):
        if step.answer is Answer.LAST_WORD:
            return True
        if isinstance(step.event, ModelEvent | MessageReceived):
            return False
    return False


def executed(steps: Iterable[Step]) -> Iterator[tuple[str, ToolCall, ToolResult]]:
    """Each call that was dealt with and its result, under the call's name in the ledger: `seq.position`."""
    requested, calls, results = 0, tuple[ToolCall, ...](), tuple[ToolResult, ...]()
    for step in (*steps, None):
        event = step.event if step is not None else None
        if isinstance(event, ResultsEvent):
            results = event.results  # after a pause the results from before it come again
        elif step is None or isinstance(event, ToolsRequested | ObservationAppended | MessageReceived):
            yield from ((f"{requested}.{result.position}", calls[result.position], result) for result in results)
            results = ()
        if step is not None and isinstance(event, ToolsRequested):
            requested, calls = step.seq, event.calls


def awaited(steps: Sequence[Step]) -> tuple[Awaited, ...]:
    """The calls for which a conversation with this journal waits; none where it does not pause."""
    if not steps or not steps[-1].pauses:
        return ()
    asked = (step.event for step in reversed(steps) if isinstance(step.event, ApprovalRequested))
    return next(asked).waiting


def held_messages(steps: Iterable[Step]) -> list[tuple[int, MessageHeld]]:
    """The messages that came in a pause and have begun no run yet, each with the number of its step."""
    held: dict[int, MessageHeld] = {}
    for step in steps:
        match step.event:
            case MessageHeld():
                held[step.seq] = step.event
            case MessageReceived(held=int(begun)):
                held.pop(begun, None)
    return list(held.items())


def is_held(steps: Iterable[Step], message_id: str | None) -> bool:
    """Whether this message came in a pause, and was kept."""
    held = (step.event for step in steps if isinstance(step.event, MessageHeld))
    return message_id is not None and any(event.message_id == message_id for event in held)


def self_contained(step: Step) -> Step:
    """The step for another database: its results stand in its own journal, for they are in no ledger there."""
    if not isinstance(step.event, ResultsEvent):
        return step
    results = tuple(result.model_copy(update={"noted": False}) for result in step.event.results)
    return step._replace(event=step.event.model_copy(update={"results": results}))


# --------------------------------------------------------------------------- reading contents


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
