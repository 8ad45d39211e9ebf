"""The heart: one table of rows, and the function that takes an event to the next state.

    while not conversation.resting:
        event = work[conversation.state](conversation, services)    # the one thing this state still has to do
        conversation = workflow.advance(conversation, event)        # the first row whose guard passes
        store.append(conversation)                                  # durable before anything else happens

What holds here, and is relied upon everywhere else:

* A workflow is its table, read from the top. No transition is hidden in code, so the diagram and the
  certificate see all of them.
* `advance` is pure: the same journal and the same event give the same step, in any process, at any time.
* Guards are folds of the journal. Their memos travel beside the conversation and can always be rebuilt
  from its steps; nothing that a restart could lose decides anything.
* Rest belongs to rows. A conversation rests exactly when its last step came from a row that rests.

`transitions` reads the table: one Machine per workflow, without a model and without callbacks, and a cursor
that is thrown away after each step. It asks the transitions out of the cursor's state in the order of the rows
until one fires; we ask it for nothing else (its queues, asynchronous machine and bound methods lose exceptions
and cancellations).

Not perfect: a `transitions` machine knows nothing of rest or of answers, so the row that fired is noted by
the transition itself, on the cursor; and its own `Transition` speaks to a logger and looks for callbacks a dozen
times a step, so ours does neither.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from transitions import EventData, Machine, Transition

from haru_fsm.conversation import (
    Answer,
    Conversation,
    Event,
    HistoryAdopted,
    MessageReceived,
    Step,
    TicketOpened,
    Trip,
    kind_of,
)
from haru_fsm.errors import NoTransition, WorkflowError
from haru_fsm.given_events import events_of
from haru_fsm.guards.folds import Folds
from haru_fsm.guards.guard import Guard, atoms
from haru_fsm.guards.refused import why_no_guard
from haru_fsm.guards.verdicts import Verdict, verdict
from haru_fsm.own_events import own_kinds, typed

Work = Callable[..., Event | Awaitable[Event]]
"""What a state still has to do: `(conversation, services) -> event`. A function that returns its event at once
touches nothing outside and is committed together with the step before it; one that returns an awaitable acts on
the world, and all that came before is made durable first."""

CHANGED, RESUMED_TOO_OFTEN = "definition_changed", "resumed_too_often"
"""The two reasons, beside the table's own, for which a run goes to a person: see `Workflow.strand`."""

# --------------------------------------------------------------------------- the table


@dataclass(frozen=True)
class Row:
    """One line of the table: on this event, from these states, to that state, when this guard trips.

    `rests`: the conversation then waits for something from outside. `answer`: how the row answers its guard's
    trip; the work of the target state reads it from the journal.
    """

    event: type[Event]
    source: str | tuple[str, ...]
    target: str
    when: Guard | None = None
    rests: bool = False
    answer: Answer | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        """The states the row leads out of."""
        return (self.source,) if isinstance(self.source, str) else tuple(self.source)

    @property
    def kind(self) -> str:
        """The name of the event."""
        return kind_of(self.event)

    def __str__(self) -> str:
        when = f" when {self.when.name}" if self.when else ""
        return f"{self.kind}: {' | '.join(self.sources)} -> {self.target}{when}{' (rests)' if self.rests else ''}"


def _check(row: Row) -> None:
    """Raise WorkflowError where this is no row, or its guard is none, or cannot judge its event."""
    if isinstance(row, Row) and isinstance(row.event, str):
        raise WorkflowError(f"{row.event!r} is a text. Write the class of the event, as in Row(MessageReceived, ...).")
    if not (isinstance(row, Row) and isinstance(row.event, type) and issubclass(row.event, Event)):
        raise WorkflowError(f"{row!r} is not a row of this table: write Row(event, source, target, ...).")
    for guard in atoms(row.when):
        if (wrong := why_no_guard(guard)) is not None:
            raise WorkflowError(f"{wrong} Row: {row.kind}, {' | '.join(row.sources)} -> {row.target}.")
        if guard.judges is not None and not issubclass(row.event, guard.judges):
            judged = ", ".join(map(kind_of, guard.judges))
            raise WorkflowError(f"{guard.name} cannot judge {row.kind}; it judges {judged}. Row: {row}.")


class _Cursor:
    """What `transitions` moves: the current state, the event being judged, and the row that fired."""

    __slots__ = ("asked", "event", "memos", "row", "state", "trip")

    def __init__(self, state: str, memos: Sequence[Any], event: Event) -> None:
        self.state = state
        self.memos = memos
        self.event = event
        self.row: Row | None = None
        self.trip: Trip | None = None
        self.asked: list[str] = []


class _RowTransition(Transition):
    """A row out of one of its states. It has no callbacks, and looks for none."""

    def __init__(self, source: str, dest: str, *_callbacks: None, row: Row, holds: Verdict | None) -> None:
        super().__init__(source, dest)
        self.row = row
        self.target = str(row.target)
        self.holds = holds

    def execute(self, event_data: EventData) -> bool:
        """Move the cursor, and note the row, if its guard trips or it has none."""
        cursor = cast(_Cursor, event_data.model)
        if self.holds is not None:
            cursor.trip = self.holds(cursor.memos, cursor.event, cursor.asked)
            if cursor.trip is None:
                return False
        cursor.row, cursor.state = self.row, self.target
        return True


class _Table(Machine):
    transition_cls = _RowTransition


class Workflow:
    """A table of rows and the work of each state.

    `rows` are read from the top: of those that fit the state and the event, the first whose guard trips (or that
    has none) fires. `work` maps each state in which there is something to do to a function that does it.
    `initial` is where a new conversation rests; by default the first source of the first row.

    Raises WorkflowError when the table is no table: no rows, something else among them, a guard that cannot judge its
    row's event, work that does not say which events it gives. Whether it may *run* is for the certificate to say.
    """

    def __init__(self, rows: Iterable[Row], *, work: Mapping[str, Work], initial: str | None = None) -> None:
        self.rows: tuple[Row, ...] = tuple(rows)
        if not self.rows:
            raise WorkflowError("This workflow has no rows. Give Workflow(rows, work=...) at least one Row.")
        for row in self.rows:
            _check(row)
        self.work: dict[str, Work] = {str(state): work for state, work in work.items()}
        self.initial = str(initial if initial is not None else self.rows[0].sources[0])
        named = (str(state) for row in self.rows for state in (*row.sources, row.target))
        self.states: tuple[str, ...] = tuple(dict.fromkeys([self.initial, *named, *self.work]))
        self.gives: dict[str, tuple[type[Event], ...]] = {state: events_of(work) for state, work in self.work.items()}
        self.opens_tickets = tuple(state for state, events in self.gives.items() if TicketOpened in events)
        """The states in which a run is handed over to a person."""
        given = (event for events in self.gives.values() for event in events)
        self.own_events = own_kinds((*(row.event for row in self.rows), *given))
        """The app's own events, by kind."""
        asked = [guard for row in self.rows for guard in atoms(row.when)]
        self.guards: tuple[Guard, ...] = tuple(dict.fromkeys(asked))
        self.folds = Folds(asked)

    @cached_property
    def _machine(self) -> Machine:
        places = self.folds.places
        verdicts = [verdict(row.when, places) if row.when is not None else None for row in self.rows]
        return _Table(
            model=None,
            states=list(self.states),
            initial=self.initial,
            auto_transitions=False,
            send_event=True,
            transitions=[
                {"trigger": row.kind, "source": str(source), "dest": str(row.target), "row": row, "holds": holds}
                for row, holds in zip(self.rows, verdicts, strict=True)
                for source in row.sources
            ],
        )

    @cached_property
    def _pairs(self) -> frozenset[tuple[str, str]]:
        return frozenset((str(source), row.kind) for row in self.rows for source in row.sources)

    def rows_for(self, state: str, event: type[Event]) -> tuple[Row, ...]:
        """The rows that are asked on this event in this state, in order."""
        return tuple(row for row in self.rows if row.event is event and state in row.sources)

    def accepts(self, state: str, event: type[Event]) -> bool:
        """Whether the table has a row for this event in this state."""
        return (state, kind_of(event)) in self._pairs

    def lets_in(self, state: str) -> bool:
        """Whether a message can begin a run in this state. In a state that is gone it can: the run goes to a person."""
        return state not in self.states or self.accepts(state, MessageReceived)

    # -- conversations

    def begin(
        self, conversation_id: str, customer_id: str, *, parent: str | None = None, rehearsal: bool = False
    ) -> Conversation:
        """A new conversation: at rest in the initial state, with an empty journal."""
        return Conversation(
            conversation_id=conversation_id,
            customer_id=customer_id,
            state=self.initial,
            memos=self.folds.initial(),
            parent=parent,
            rehearsal=rehearsal,
        )

    def replay(self, conversation: Conversation, steps: Sequence[Step]) -> Conversation:
        """The conversation, which has just begun, after these journaled steps.

        Nothing is judged again: what is written happened.
        """
        if not steps:
            return conversation
        steps = typed(steps, self.own_events)
        last, memos = steps[-1], self.folds.replayed(steps)
        return dataclasses.replace(conversation, state=last.state, resting=last.rests, steps=steps, memos=memos)

    def advance(self, conversation: Conversation, event: Event) -> Conversation:
        """The conversation after this event: one step longer, in the state of the first row that fires.

        Raises NoTransition when the table has no row for the event in this state, or none that fires.
        """
        cursor = _Cursor(conversation.state, conversation.memos, event)
        if (cursor.state, event.kind) not in self._pairs:
            raise NoTransition(self._refusal(conversation, event, "has no row for it"))
        self._machine.events[event.kind].trigger(cursor)
        row = cursor.row
        if row is None:
            raise NoTransition(self._refusal(conversation, event, "has only guarded rows for it, and no guard tripped"))
        step = _step(conversation, event, cursor, row)
        return Conversation(
            conversation_id=conversation.conversation_id,
            customer_id=conversation.customer_id,
            state=cursor.state,
            resting=row.rests,
            steps=conversation.steps + (step,),  # noqa: RUF005 - unpacking would copy them twice
            memos=self.folds.after(conversation.memos, step, conversation.run),
            parent=conversation.parent,
            rehearsal=conversation.rehearsal,
        )

    def adopt(self, conversation: Conversation, adopted: HistoryAdopted) -> Conversation:
        """A conversation that begins with a history made elsewhere, and rests. That is no run, and spends no budget."""
        step = Step(seq=1, run=0, event=adopted, source=conversation.state, state=conversation.state, rests=True)
        return self.replay(conversation, (step,))

    def stay(self, conversation: Conversation, event: Event) -> Conversation:
        """Journal an event of which the table says nothing, and go on with the work of the state as it was."""
        return self._outside(conversation, event, conversation.state, None)

    def hold(self, conversation: Conversation, held: Event) -> Conversation:
        """Journal an event of which the table says nothing, and rest on: a message that came in a pause, or a person's
        reply to a ticket."""
        return self._outside(conversation, held, conversation.state, None, rests=True)

    def strand(self, conversation: Conversation, event: Event, guard: str, because: str) -> Conversation:
        """The one move outside the table: a run that cannot go on as the table says goes to a person.

        Raises NoTransition where no state of this workflow opens tickets.
        """
        if not self.opens_tickets:
            raise NoTransition(self._refusal(conversation, event, f"opens no tickets, and {because}"))
        target = self.opens_tickets[0]
        return self._outside(conversation, event, target, Trip(guard=guard, figure=0, limit=0, because=because))

    def _outside(
        self, conversation: Conversation, event: Event, state: str, trip: Trip | None, *, rests: bool = False
    ) -> Conversation:
        run = conversation.run + isinstance(event, MessageReceived)
        step = Step(conversation.seq + 1, run, event, conversation.state, state, rests, trip)
        memos = self.folds.after(conversation.memos, step, conversation.run)
        steps = (*conversation.steps, step)
        return dataclasses.replace(conversation, state=state, resting=rests, steps=steps, memos=memos)

    @staticmethod
    def _refusal(conversation: Conversation, event: Event, why: str) -> str:
        return (
            f"Conversation {conversation.conversation_id or '?'}: {event.kind} came in state {conversation.state}, "
            f"and the table {why}."
        )


def _step(conversation: Conversation, event: Event, cursor: _Cursor, row: Row) -> Step:
    """The journal's line."""
    return Step(
        seq=conversation.seq + 1,
        run=conversation.run + isinstance(event, MessageReceived),
        event=event,
        source=conversation.state,
        state=cursor.state,
        rests=row.rests,
        trip=cursor.trip,
        answer=row.answer,
        asked=tuple(dict.fromkeys(cursor.asked)),
    )
