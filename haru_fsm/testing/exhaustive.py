"""Every conversation over a small alphabet, up to a depth: through the pure core, with beginnings shared.

At each place in a run the state's work may give any event of the alphabet (`alphabet.py`): a few for each kind that
its annotation names. Events of an app's own are made up from their fields (`own_alphabet.py`), unless `events` holds
some. A conversation that goes on from where another one stands shares all that came before, so each transition is made
once. What is proved holds for every order of these events, and for no others: the coverage says what they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from haru_fsm.app import App
from haru_fsm.certificate import certify
from haru_fsm.contents import History
from haru_fsm.conversation import (
    JSON,
    KINDS,
    Conversation,
    Event,
    MessageReceived,
    ModelAnswered,
    ModelEvent,
    ModelFailed,
    ResultsEvent,
    ResultStatus,
    Resumed,
    Step,
    ToolResult,
    ToolsRequested,
    executed,
    kind_of,
)
from haru_fsm.errors import HaruError
from haru_fsm.testing.alphabet import Alphabet, decisions, possible
from haru_fsm.testing.behaviours import Behaviour, Does
from haru_fsm.testing.own_alphabet import made_up
from haru_fsm.testing.plays import Play
from haru_fsm.testing.strict import check_contents

TICKS = 2_000
"""Transitions between two reports of progress."""


@dataclass(slots=True)
class Explored:
    """What was gone through, and the first thing that was wrong, with the events that lead there."""

    depth: int
    alphabet: dict[str, int]
    """By kind of event: how many there are to choose from."""
    rows_in_all: int
    transitions: int = 0
    conversations: int = 0
    """Conversations that came to rest, or to the depth."""
    cut_off: int = 0
    """Of these: those that the depth has cut off."""
    endings: Counter[str] = field(default_factory=Counter)
    rows: set[int] = field(default_factory=set)
    """Numbers of the rows that fired."""
    unknown: set[str] = field(default_factory=set)
    """Kinds of events that the alphabet has none of: what follows them was not seen."""
    broken: str = ""
    shown_by: tuple[Step, ...] = ()

    def as_json(self) -> JSON:
        """For programs."""
        return {
            "depth": self.depth,
            "alphabet": self.alphabet,
            "transitions": self.transitions,
            "conversations": self.conversations,
            "cut_off": self.cut_off,
            "endings": dict(self.endings),
            "rows": sorted(self.rows),
            "rows_in_all": self.rows_in_all,
            "not_covered": sorted(self.unknown),
            "broken": self.broken or None,
            "shown_by": [f"{step.event.kind} -> {step.state}" for step in self.shown_by],
        }


@dataclass(slots=True)
class _Place:
    """Where a conversation stands."""

    conversation: Conversation
    history: History
    choices: int = 0
    """How often on the way here an event was chosen from several."""
    resumes: int = 0
    valid: tuple[JSON, ...] = ()
    """The contents of the last request that was made on the way here: they were found valid."""
    share: float = 1.0
    """How much of the whole tree begins here, between 0 and 1."""


class Explorer:
    """Goes through an app's table, depth first.

    `depth`: how often in one conversation an event is chosen from several. `resumes`: how often the process may die.
    `on_tick` is told, now and then, the share of the tree that is done (by its widest branches) and the transitions.
    """

    def __init__(
        self,
        app: App,
        *,
        depth: int,
        events: Alphabet,
        resumes: int = 0,
        on_tick: Callable[[float, int], object] | None = None,
    ) -> None:
        self._workflow = app.workflow
        own = {kind: made_up(kind) for kinds in app.workflow.gives.values() for kind in kinds if _is_own(kind)}
        self._events = {**{kind: some for kind, some in own.items() if some}, **events}
        self._resumes = resumes
        self._on_tick = on_tick
        self._ticked = 0
        self._most = certify(app.workflow, limits=app.limits).transitions.value
        self._asking = {
            state for state, kinds in app.workflow.gives.items() if any(issubclass(kind, ModelEvent) for kind in kinds)
        }
        self._noted: set[tuple[str, type[Event], str, bool]] = set()
        self._rows = {id(row): number for number, row in enumerate(app.workflow.rows)}
        chosen = {kind: some for kind, some in self._events.items() if resumes or kind is not Resumed}
        self.seen = Explored(depth, {kind_of(kind): len(some) for kind, some in chosen.items()}, len(self._rows))

    def explore(self) -> Explored:
        """All of it; stops at the first thing that is wrong."""
        begun = self._workflow.begin("c-explored", "C001")
        message = self._workflow.advance(begun, MessageReceived(text="주문 확인해 주세요"))
        self._note_row(message.steps[-1])
        waiting = [_Place(message, History().fold(message.steps[-1]))]
        done = 0.0
        while waiting and not self.seen.broken:
            place = waiting.pop()
            rests = place.conversation.resting and not place.conversation.steps[-1].pauses
            events = [] if rests else list(self._given(place))
            if rests or (place.choices >= self.seen.depth and len(events) > 1):
                self._end(place)
                done += place.share
            else:
                waiting += self._next(place, events)
            if self._on_tick is not None and self.seen.transitions >= self._ticked + TICKS:
                self._ticked = self.seen.transitions
                self._on_tick(done, self.seen.transitions)
        return self.seen

    def _end(self, place: _Place) -> None:
        self.seen.conversations += 1
        last = place.conversation.steps[-1]
        if not place.conversation.resting or last.pauses:
            self.seen.cut_off += 1
            return
        self.seen.endings[last.event.kind] += 1
        if sum(step.rests and not step.pauses for step in place.conversation.steps) != 1:
            self._wrong(place, "it has more than one ending")

    def _next(self, place: _Place, events: Sequence[Event]) -> Iterator[_Place]:
        chosen = place.choices + (len(events) > 1)
        for event in events:
            try:
                moved = self._workflow.advance(place.conversation, event)
            except HaruError as error:
                return self._wrong(place, str(error))
            self.seen.transitions += 1
            resumes = place.resumes + isinstance(event, Resumed)
            after = _Place(
                moved, place.history.fold(moved.steps[-1]), chosen, resumes, place.valid, place.share / len(events)
            )
            self._judge(place, after)
            yield after

    def _given(self, place: _Place) -> Iterator[Event]:
        conversation = place.conversation
        if conversation.resting:
            yield from decisions(conversation)
            return
        for kind in self._workflow.gives[conversation.state]:
            made = list(possible(kind, conversation, self._events))
            if not made:
                self.seen.unknown.add(kind_of(kind))
            yield from made
        if place.resumes < self._resumes and self._workflow.accepts(conversation.state, Resumed):
            yield from self._events.get(Resumed, ())

    # -- judging

    def _judge(self, before: _Place, after: _Place) -> None:
        step = after.conversation.steps[-1]
        last = before.conversation.steps[-1]
        if (step.seq, step.run, step.source) != (last.seq + 1, last.run, last.state):
            self._wrong(after, f"step {step.seq} does not go on from step {last.seq}")
        if self._most is not None and step.seq > self._most + after.resumes:
            self._wrong(after, f"it has {step.seq} transitions, and its certificate allows {self._most}")
        if after.conversation.resting or after.conversation.state in self._asking:
            after.valid, wrong = _unfit(before, after.history)
            if wrong:
                self._wrong(after, f"the next request would be refused: {wrong}")
        self._note_row(step)

    def _note_row(self, step: Step) -> None:
        place = (step.source, type(step.event), step.state, step.trip is not None)
        if place in self._noted:
            return
        self._noted.add(place)
        for row in self._workflow.rows_for(step.source, type(step.event)):
            if row.target == step.state and (row.when is not None) == (step.trip is not None):
                self.seen.rows.add(self._rows[id(row)])

    def _wrong(self, place: _Place, why: str) -> None:
        if not self.seen.broken or len(place.conversation.steps) < len(self.seen.shown_by):
            self.seen.broken, self.seen.shown_by = why, place.conversation.steps


def _is_own(kind: type[Event]) -> bool:
    """Whether it says what the engine has no word for. What models and tools say has a form that no type tells."""
    return not issubclass(kind, (ModelEvent, ResultsEvent, *KINDS.values()))


def _unfit(before: _Place, history: History) -> tuple[tuple[JSON, ...], str]:
    """The next request's contents, and what is wrong with them; a beginning that was sent before is not looked at
    again."""
    request = history.request()
    same = len(before.valid)
    while same and (same > len(request) or request[same - 1] is not before.valid[same - 1]):
        same -= 1
    return request, next(iter(check_contents(list(request), checked=same)), "")


def as_play(steps: Sequence[Step], customer: str) -> Play:
    """The way to a finding as a play, as far as tools can be made to do what the alphabet says of them."""
    replies = [step.event for step in steps if isinstance(step.event, ModelAnswered | ToolsRequested | ModelFailed)]
    rounds: dict[str, list[Behaviour]] = {}
    for _, call, result in executed(steps):
        rounds.setdefault(call.name, []).append(_behaviour(result))
    return Play(
        replies=tuple(replies), behaviours={name: tuple(some) for name, some in rounds.items()}, customer=customer
    )


def _behaviour(result: ToolResult) -> Behaviour:
    if result.status is ResultStatus.DONE:
        return Behaviour(does=Does.RETURNS, value=result.response.get("result"))
    return Behaviour(does=Does.RAISES, value=result.response.get("error"))
