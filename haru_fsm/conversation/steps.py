"""The journal: steps, the conversation that they make, and what is read out of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from haru_fsm.conversation.events import (
    AnyEvent,
    ApprovalRequested,
    MessageHeld,
    MessageReceived,
    ModelEvent,
    ObservationAppended,
    ResultsEvent,
    ToolsRequested,
)
from haru_fsm.conversation.values import JSON, Awaited, Frozen, ToolCall, ToolResult


class Answer(StrEnum):
    """How a row answers its guard's trip. The work of the state that the row leads to reads it from the journal."""

    NUDGE = "nudge"
    """Refuse the calls, say why, ask for another way or a simple answer."""
    SIMPLIFY = "simplify"
    """Refuse the calls, say why, ask for a simple answer to the question."""
    LAST_WORD = "last_word"
    """No tool any more: the next request is the last, with tools off; answer from what is known."""
    ESCALATE = "escalate"
    """A person takes over. A guarded row without an answer means the same."""


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
        """The conversation rests here, and that is no ending: the run waits for a person's approval."""
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
    """Each call that was dealt with: its name in the ledger (`seq.position`), the call, and its result.

    After a pause a reply's results from before it stand in the journal a second time; here each comes once.
    """
    requested, calls, results = 0, tuple[ToolCall, ...](), tuple[ToolResult, ...]()
    for step in (*steps, None):
        event = step.event if step is not None else None
        if isinstance(event, ResultsEvent):
            results = event.results
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
