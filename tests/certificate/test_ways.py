"""Rows as logic: the ways of firing against all assignments of truth to the guards."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from haru_fsm.certificate.ways import MOST_WAYS, Verdicts, ways_to_fire
from haru_fsm.guards.guard import AllOf, AnyOf, Guard, Not, atoms

from .tables import Asked, Free, Visits

GUARDS: list[Guard] = [
    Free("f"),
    Free("g"),
    Visits("v", 3, frozenset({"S"})),
    Visits("w", 3, frozenset({"T"})),
    Asked("a", 2),
]

composites: st.SearchStrategy[Guard] = st.recursive(
    st.sampled_from(GUARDS),
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, max_size=3).map(lambda parts: AnyOf(*parts)),
        st.lists(inner, max_size=3).map(lambda parts: AllOf(*parts)),
    ),
    max_leaves=5,
)
tables = st.lists(st.none() | composites, min_size=1, max_size=4)


def verdict(guard: Guard | None, truth: Verdicts, passed: set[Guard]) -> bool:
    """As the machine evaluates it; `passed` collects what was asked and did not trip."""
    match guard:
        case None:
            return True
        case AnyOf(guards=parts):
            return any(verdict(part, truth, passed) for part in parts)
        case AllOf(guards=parts):
            return all(verdict(part, truth, passed) for part in parts)
        case Not(guard=part):
            return not verdict(part, truth, passed)
    if not truth[guard]:
        passed.add(guard)
    return truth[guard]


def first_to_pass(conditions: Sequence[Guard | None], truth: Verdicts) -> tuple[int | None, set[Guard]]:
    passed: set[Guard] = set()
    row = next((number for number, guard in enumerate(conditions) if verdict(guard, truth, passed)), None)
    return row, {guard for guard in passed if guard.limit is not None}


def assignments(conditions: Sequence[Guard | None]) -> list[dict[Guard, bool]]:
    guards = list(dict.fromkeys(atom for guard in conditions for atom in atoms(guard)))
    return [dict(zip(guards, values, strict=True)) for values in product((True, False), repeat=len(guards))]


@given(tables)
def test_every_way_fires_its_row_whatever_the_guards_say_that_it_did_not_need(conditions: list[Guard | None]) -> None:
    for number, ways in enumerate(ways_to_fire(conditions)):
        for way in ways:
            asked = {guard for guard, tripped in way.items() if not tripped and guard.limit is not None}
            completions = [truth for truth in assignments(conditions) if truth.items() >= way.items()]
            assert completions
            for truth in completions:
                assert first_to_pass(conditions, truth) == (number, asked)


@given(tables)
def test_every_assignment_is_covered_by_a_way_that_asks_no_more(conditions: list[Guard | None]) -> None:
    ways = ways_to_fire(conditions)
    for truth in assignments(conditions):
        row, asked = first_to_pass(conditions, truth)
        if row is not None:
            assert any(
                asked >= {guard for guard, tripped in way.items() if not tripped and guard.limit is not None}
                for way in ways[row]
            )


def test_many_guards_side_by_side_have_few_ways() -> None:
    pairs = [AllOf(Free(f"a{n}"), Free(f"b{n}")) for n in range(40)]
    budgets = AnyOf(*(Visits(f"v{n}", 2, frozenset({"S"})) for n in range(40)))
    assert [len(each) for each in ways_to_fire([*pairs, budgets, None])] == [1] * 42


def test_ways_that_cannot_be_told_apart_are_taken_to_allow_more() -> None:
    pairs = [AllOf(Free(f"a{n}"), Free(f"b{n}")) for n in range(40)]
    ways = ways_to_fire([*pairs, AnyOf(*pairs, Visits("v", 2, frozenset({"S"}))), None])
    assert all(ways)
    assert max(map(len, ways)) <= MOST_WAYS
