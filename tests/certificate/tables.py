"""Guards whose verdicts are scripted, and random small tables made of them.

A guard here keeps exactly what it claims and nothing more: it trips when the script of the event says so, and
always once its count is full. So whatever the certificate says can happen, a script can make happen.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, ClassVar, Literal

from haru_fsm.conversation import (
    Event,
    MessageReceived,
    ModelAnswered,
    ModelFailed,
    ObservationAppended,
    Resumed,
    Step,
    Ticket,
    TicketClosed,
    TicketOpened,
    ToolsExecuted,
    ToolsRequested,
    Trip,
)
from haru_fsm.guards.guard import AllOf, AnyOf, Counted, Guard, Not
from haru_fsm.machine import Row, Workflow

GIVEN: tuple[type[Event], ...] = (
    ModelAnswered,
    ToolsRequested,
    ModelFailed,
    ToolsExecuted,
    ObservationAppended,
    TicketOpened,
)
NOT_WORK = (MessageReceived, TicketClosed, Resumed)


class Decided(Event):
    """Comes from outside and continues the run that paused for it."""

    kind: Literal["decided"] = "decided"
    continues: ClassVar[bool] = True


_EXTRAS: dict[type[Event], dict[str, Any]] = {
    MessageReceived: {"text": "?"},
    ModelAnswered: {"content": {"parts": [{"text": "!"}]}},
    ToolsRequested: {"content": {"parts": [{"functionCall": {"name": "look"}}]}},
    ModelFailed: {"reason": "empty"},
    ToolsExecuted: {"results": ()},
    TicketOpened: {
        "ticket": Ticket(
            ticket_id="T1", key="k", conversation_id="c", customer_id="C1", category="기타", urgency="보통", summary="s"
        ),
        "notice": "T1",
    },
    TicketClosed: {"ticket_id": "T1", "reply": "답변"},
}


def scripted(event: type[Event], state: str, verdicts: Mapping[Guard, bool]) -> Event:
    """An event that tells the guards below where they are asked, and what to say there if they still may."""
    script = {guard.name: tripped for guard, tripped in verdicts.items()}
    return event(here=state, script=script, **_EXTRAS.get(event, {}))


def _script(event: Event) -> dict[str, bool]:
    return getattr(event, "script", {})


@dataclass(frozen=True)
class Free(Guard):
    """Promises nothing."""

    label: str

    def judge(self, memo: Any, event: Event) -> Trip | None:
        return self.trip(0, "says the script") if _script(event).get(self.name) else None


@dataclass(frozen=True)
class Visits(Guard):
    """Promises `most` visits of its states."""

    label: str
    most: int
    states: frozenset[str]

    @property
    def limit(self) -> int:
        return self.most

    @property
    def counts(self) -> frozenset[str]:
        return self.states

    def initial(self) -> int:
        return 0

    def fold(self, memo: int, step: Step) -> int:
        return memo + (step.source in self.states and not isinstance(step.event, NOT_WORK))

    def judge(self, memo: int, event: Event) -> Trip | None:
        here: str = getattr(event, "here", "")
        count = memo + (here in self.states and not isinstance(event, NOT_WORK))
        spent = count >= self.most or _script(event).get(self.name)
        return self.trip(count, "spent") if spent else None


@dataclass(frozen=True)
class Asked(Guard):
    """Promises `most` askings at each (state, event)."""

    label: str
    most: int

    @property
    def limit(self) -> int:
        return self.most

    def initial(self) -> dict[tuple[str, str], int]:
        return {}

    def fold(self, memo: dict[tuple[str, str], int], step: Step) -> dict[tuple[str, str], int]:
        if _script(step.event).get(self.name, True):
            return memo
        pair = (step.source, step.event.kind)
        return {**memo, pair: memo.get(pair, 0) + 1}

    def judge(self, memo: dict[tuple[str, str], int], event: Event) -> Trip | None:
        count = memo.get((getattr(event, "here", ""), event.kind), 0)
        return self.trip(count, "spent") if count >= self.most or _script(event).get(self.name) else None


@dataclass(frozen=True)
class Shared(Counted):
    """Counts its askings wherever it is asked."""

    def judge(self, memo: int, event: Event) -> Trip | None:
        return self.trip(memo, "spent") if memo >= self.times or _script(event).get(self.name) else None


def work(*events: type[Event]) -> Callable[..., Event]:
    """A state's work that may give these events."""

    def give(conversation: Any, services: Any) -> Event:
        raise AssertionError("a certificate never does the work")

    give.__annotations__ = {"return": reduce(or_, events)}
    return give


def table(rows: Iterable[Row], gives: Mapping[str, Sequence[type[Event]]], initial: str = "REST") -> Workflow:
    """A workflow in which states give these events."""
    return Workflow(rows, work={state: work(*events) for state, events in gives.items()}, initial=initial)


# --------------------------------------------------------------------------- at random


def random_table(seed: int) -> Workflow:
    """A small workflow: up to four states of work, guards shared among rows, composites, pauses, resumes.

    In most of them a budget stands before most of what goes on, so that about half of them end.
    """
    rng = random.Random(seed)
    states = [f"S{number}" for number in range(rng.randint(1, 4))]
    pool = _random_guards(rng, states)
    careful = rng.choice((0.0, 0.8, 0.9, 1.0, 1.0))
    gives = {state: rng.sample(GIVEN, rng.choice((1, 1, 2, 2, 3))) for state in states}
    pairs = [(event, state) for state, events in gives.items() for event in events]
    pairs += [(event, state) for state in states for event in (Resumed, Decided) if rng.random() < 0.15]
    begin = _rows(rng, MessageReceived, "REST", states, pool, careful=0.0)
    return table([*begin, *(row for pair in pairs for row in _rows(rng, *pair, states, pool, careful))], gives)


def _random_guards(rng: random.Random, states: list[str]) -> list[Guard]:
    """Guards of every kind; the last ones are budgets."""

    def some() -> frozenset[str]:
        return frozenset(rng.sample(states, rng.randint(1, len(states))))

    pool: list[Guard] = [Free("f"), Free("g"), *([Shared(rng.choice((0, 1, 2)))] * rng.randint(0, 1))]
    pool += [Asked(label, rng.choice((0, 1, 2, 2))) for label in rng.sample("ab", rng.randint(0, 2))]
    labels = rng.sample("uvw", rng.randint(1, 2))
    return pool + [Visits(label, rng.choice((0, 1, 2, 3, 3, 4)), some()) for label in labels]


def _rows(
    rng: random.Random, event: type[Event], state: str, states: list[str], pool: list[Guard], careful: float
) -> list[Row]:
    """A few guarded rows and one without a guard; with probability `careful` the first one watches a budget."""
    guards = [_composite(rng, pool) for _ in range(rng.choice((0, 0, 1, 1, 2)))]
    if rng.random() < careful:
        guards.insert(0, AnyOf(rng.choice(pool[2:]), *([_composite(rng, pool, 1)] * rng.randint(0, 1))))
    ends = [(rng.choice(states), False) if rng.random() < 0.7 else ("REST", True) for _ in guards]
    if guards and rng.random() < careful:
        ends[0] = ("REST", True)
    rests = rng.random() < 0.1
    last = Row(event, state, rng.choice(states), rests=rests)
    return [*(Row(event, state, end, when, rests) for when, (end, rests) in zip(guards, ends, strict=True)), last]


def _composite(rng: random.Random, pool: list[Guard], depth: int = 2) -> Guard:
    kind = rng.choice(("atom", "atom", "any", "any", "all", "not")) if depth else "atom"
    if kind == "atom":
        return rng.choice(pool)
    if kind == "not":
        return Not(_composite(rng, pool, depth - 1))
    parts = [_composite(rng, pool, depth - 1) for _ in range(rng.randint(2, 3))]
    return AnyOf(*parts) if kind == "any" else AllOf(*parts)
