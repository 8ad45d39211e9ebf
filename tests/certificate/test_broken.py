"""Sixty workflows that were sound until somebody changed one thing. Each is refused, and its loop really loops."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from haru_fsm.certificate import ProblemKind, certify, problems
from haru_fsm.certificate.arcs import read
from haru_fsm.certificate.loops import endless_loop
from haru_fsm.conversation import (
    Answer,
    Event,
    MessageReceived,
    ModelAnswered,
    ModelFailed,
    ObservationAppended,
    Resumed,
    TicketClosed,
    TicketOpened,
    ToolsExecuted,
    ToolsRequested,
)
from haru_fsm.errors import EndlessWorkflow
from haru_fsm.guards.guard import AllOf, AnyOf, Guard, Not
from haru_fsm.machine import Row, Workflow

from .driving import round_and_round
from .tables import Asked, Free, Shared, Visits, table

AWAIT, EXECUTE, OBSERVE, ESCALATE, DONE = (
    "AWAIT_MODEL",
    "EXECUTE_TOOLS",
    "APPEND_OBSERVATION",
    "ESCALATE_TICKET",
    "DONE",
)
SEEDS = range(12)


@dataclass(frozen=True)
class Plan:
    """A table like the default one, with what is drawn at random written out."""

    rows: tuple[Row, ...]
    between: tuple[str, ...]
    """Further states between the tools and the observation."""

    def workflow(self) -> Workflow:
        gives: dict[str, list[type[Event]]] = {
            AWAIT: [ModelAnswered, ToolsRequested, ModelFailed],
            EXECUTE: [ToolsExecuted],
            **{state: [ToolsExecuted] for state in self.between},
            OBSERVE: [ObservationAppended],
            ESCALATE: [TicketOpened],
        }
        return table(self.rows, gives, initial=DONE)

    def rewritten(self, change: Callable[[Guard], Guard]) -> Plan:
        """The same with each guard that is no composite changed."""
        return replace(self, rows=tuple(replace(row, when=_rewritten(row.when, change)) for row in self.rows))


def _rewritten(guard: Guard | None, change: Callable[[Guard], Guard]) -> Guard | None:
    def inner(part: Guard) -> Guard:
        match part:
            case AnyOf(guards=parts):
                return AnyOf(*map(inner, parts))
            case AllOf(guards=parts):
                return AllOf(*map(inner, parts))
            case Not(guard=negated):
                return Not(inner(negated))
        return change(part)

    return None if guard is None else inner(guard)


def sound(rng: random.Random) -> Plan:
    """Limits, shapes of the guards, and the number of states are drawn; every run ends."""
    steps = Visits("steps", rng.randint(1, 9), frozenset({AWAIT}))
    calls = Asked("calls", rng.randint(1, 9))
    deadline = Free("deadline")
    spent = rng.choice([steps, AnyOf(steps, deadline), AnyOf(deadline, Not(Not(steps))), AnyOf(AllOf(steps), deadline)])
    circles = rng.choice([Free("circles"), AnyOf(Free("circles"), AllOf(Free("thoughts"), Free("calls twice")))])
    stubborn = AllOf(circles, Shared(rng.randint(0, 3)))
    between = tuple(f"STEP_{number}" for number in range(rng.randint(0, 3)))
    chain = (EXECUTE, *between, OBSERVE)
    rows = [
        Row(MessageReceived, (DONE, ESCALATE), AWAIT),
        Row(ModelAnswered, AWAIT, ESCALATE, when=Free("unfit")),
        Row(ModelAnswered, AWAIT, DONE, rests=True),
        Row(ModelFailed, AWAIT, ESCALATE),
        Row(ToolsRequested, AWAIT, ESCALATE, when=AnyOf(spent, calls)),
        Row(ToolsRequested, AWAIT, ESCALATE, when=stubborn),
        Row(ToolsRequested, AWAIT, OBSERVE, when=circles, answer=Answer.NUDGE),
        Row(ToolsRequested, AWAIT, EXECUTE),
        *(Row(ToolsExecuted, source, target) for source, target in itertools.pairwise(chain)),
        Row(ObservationAppended, OBSERVE, ESCALATE, when=spent),
        Row(ObservationAppended, OBSERVE, AWAIT),
        Row(TicketOpened, ESCALATE, ESCALATE, rests=True),
        Row(TicketClosed, (DONE, ESCALATE), DONE, rests=True),
    ]
    if rng.random() < 0.5:
        resumes = Shared(rng.randint(1, 4), scope="conversation")
        rows += [
            Row(Resumed, AWAIT, ESCALATE, when=resumes),
            Row(Resumed, AWAIT, AWAIT),
        ]
    return Plan(tuple(rows), between)


def is_budget(guard: Guard) -> bool:
    return isinstance(guard, Visits | Asked)


def limit_dropped(plan: Plan, rng: random.Random) -> Plan:
    everything = rng.random() < 0.5

    def drop(guard: Guard) -> Guard:
        unlimited = is_budget(guard) or (everything and guard.limit is not None)
        return Free(guard.name) if unlimited else guard

    return plan.rewritten(drop)


def exit_removed(plan: Plan, rng: random.Random) -> Plan:
    def watches_a_budget(row: Row) -> bool:
        return row.when is not None and "steps" in row.when.name

    rows = tuple(row for row in plan.rows if not watches_a_budget(row))
    if rng.random() < 0.5:
        rows = tuple(row for row in rows if not (row.event is ToolsRequested and row.target == ESCALATE))
    return replace(plan, rows=rows)


def guard_inverted(plan: Plan, rng: random.Random) -> Plan:
    shape = rng.randrange(3)

    def turned(guard: Guard) -> Guard:
        return (Not(guard), AllOf(Not(guard)), Not(AnyOf(guard, Free("also"))))[shape]

    return plan.rewritten(lambda guard: turned(guard) if is_budget(guard) else guard)


def asked_where_nothing_raises_it(plan: Plan, rng: random.Random) -> Plan:
    elsewhere = frozenset({rng.choice([ESCALATE, DONE, "NOWHERE"])})
    return plan.rewritten(lambda guard: Visits("steps", 3, elsewhere) if is_budget(guard) else guard)


def self_loop_that_does_not_rest(plan: Plan, rng: random.Random) -> Plan:
    rows = list(plan.rows)
    at = rng.choice(
        [number for number, row in enumerate(rows) if row.event in (ModelFailed, ToolsExecuted, TicketOpened)]
    )
    row = rows[at]
    if row.event is TicketOpened or rng.random() < 0.3:
        rows[at] = replace(row, target=row.sources[0], rests=False)
    else:
        rows.insert(at, replace(row, target=row.sources[0], when=Free("once more")))
    return replace(plan, rows=tuple(rows))


BREAKS = [limit_dropped, exit_removed, guard_inverted, asked_where_nothing_raises_it, self_loop_that_does_not_rest]


@pytest.mark.parametrize("seed", SEEDS)
def test_before_the_change_every_run_ends(seed: int) -> None:
    for change in BREAKS:
        certify(sound(random.Random(f"{seed} {change.__name__}")).workflow())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("change", BREAKS)
def test_one_change_and_it_is_refused_with_a_loop_that_really_loops(
    change: Callable[[Plan, random.Random], Plan], seed: int
) -> None:
    rng = random.Random(f"{seed} {change.__name__}")
    workflow = change(sound(rng), rng).workflow()

    with pytest.raises(EndlessWorkflow, match="could run for ever") as refused:
        certify(workflow)

    loop = endless_loop(read(workflow))
    assert loop is not None
    assert refused.value.loop == tuple(arc.source.state for arc in loop.loop)
    shown = next(problem for problem in problems(workflow) if problem.kind is ProblemKind.ENDLESS)
    assert [move.row for move in shown.loop] == [arc.row for arc in loop.loop]
    round_and_round(workflow, loop, steps=200)
