"""Tables of dozens of states: decided at once, and bounded where they are too large to be exact."""

from __future__ import annotations

import time

import pytest

from haru_fsm.certificate import ProblemKind, certify, problems
from haru_fsm.conversation import Event, MessageReceived, ModelAnswered, ModelFailed, ToolsExecuted
from haru_fsm.guards.guard import AnyOf
from haru_fsm.machine import Row, Workflow

from .explorer import explore, heaviest
from .tables import Asked, Free, Visits, table


def ring(states: int, most: int, *, laps: bool = True) -> Workflow:
    """States in a ring; each may also stay where it is, for a limit of its own."""
    names = [f"S{number}" for number in range(states)]
    rows = [Row(MessageReceived, "DONE", names[0])]
    gives: dict[str, list[type[Event]]] = {}
    for number, name in enumerate(names):
        onward = names[(number + 1) % states]
        stays = Visits(f"stays {name}", most + number, frozenset({name}))
        ends = AnyOf(Free("done"), *([Asked("laps", most)] if laps or number else []))
        rows += [
            Row(ModelFailed, name, "DONE", when=stays, rests=True),
            Row(ModelFailed, name, name),
            Row(ToolsExecuted, name, "DONE", when=ends, rests=True),
            Row(ToolsExecuted, name, onward),
        ]
        gives[name] = [ModelFailed, ToolsExecuted]
    return table(rows, gives, initial="DONE")


@pytest.mark.parametrize(("states", "most"), [(40, 3), (40, 3000), (12, 10**9)])
def test_many_states_and_large_limits_give_a_bound_in_seconds(states: int, most: int) -> None:
    began = time.process_time()
    certificate = certify(ring(states, most))
    assert time.process_time() - began < 10
    transitions = certificate.transitions
    assert transitions.at_most
    assert transitions.value is not None
    assert transitions.value >= states * most
    assert str(transitions).startswith("at most ")


def test_what_is_small_enough_is_exact() -> None:
    workflow = ring(3, 2)
    transitions = certify(workflow).transitions
    exact = heaviest(workflow, explore(workflow, resumes=False))
    assert exact is not None
    assert (transitions.value, transitions.at_most) == (exact[0], False)


def test_a_single_gap_in_a_large_table_is_found() -> None:
    workflow = ring(30, 5)
    rows = [row for row in workflow.rows if not (row.source == "S17" and row.rests and row.event is ModelFailed)]
    found = problems(Workflow(rows, work=workflow.work, initial="DONE"))
    assert [problem.kind for problem in found] == [ProblemKind.ENDLESS]
    assert [move.source for move in found[0].loop] == ["S17"]
    assert len(found[0].path) == 18


def test_a_loop_through_every_state_is_found() -> None:
    names = [f"S{number}" for number in range(60)]
    rows = [Row(MessageReceived, "DONE", "S0")]
    rows += [Row(ModelAnswered, name, names[(number + 1) % 60]) for number, name in enumerate(names)]
    gives: dict[str, list[type[Event]]] = {name: [ModelAnswered] for name in names}
    (problem,) = problems(table(rows, gives, initial="DONE"))
    assert len(problem.loop) == 60
