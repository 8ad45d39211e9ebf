"""A condition that was put together once says what its guards say, read from the left, one by one."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm.conversation import (
    Event,
    ObservationAppended,
    ResultStatus,
    Step,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
    Trip,
)
from haru_fsm.guards import (
    AllOf,
    AnyOf,
    CallCycle,
    FailingCalls,
    Guard,
    NoProgress,
    Not,
    Nudged,
    NudgedInVain,
    RepeatedCall,
    RepeatedEffect,
    SimilarThoughts,
    StepBudget,
    UnusableCalls,
)
from haru_fsm.guards.folds import Folds
from haru_fsm.guards.guard import Counted, atoms
from haru_fsm.guards.trail import Trail
from haru_fsm.guards.verdicts import verdict
from haru_fsm.models.scripted import calls
from tests.guards.strategies import journals, requests

DETECTORS: tuple[Guard, ...] = (
    *(RepeatedCall(times) for times in (1, 2, 3)),
    *(kind(times) for kind in (FailingCalls, UnusableCalls, NudgedInVain) for times in (0, 1, 2, 3)),
    *(CallCycle(), CallCycle(3, 3), CallCycle(2, 6), NoProgress(1, 2), NoProgress(2, 1), NoProgress(2, 2)),
    *(RepeatedEffect(), SimilarThoughts()),
)
LEAVES = (*DETECTORS, StepBudget(4), Nudged(2), RepeatedCall(2, scope="conversation"))
conditions = st.recursive(
    st.sampled_from(LEAVES),
    lambda parts: st.one_of(
        st.lists(parts, max_size=3).map(lambda found: AnyOf(*found)),
        st.lists(parts, max_size=3).map(lambda found: AllOf(*found)),
        parts.map(Not),
    ),
    max_leaves=6,
)


def read(guard: Guard, steps: list[Step], event: Event, asked: list[str]) -> str | None:
    """Why the condition holds, as its definition reads; None where it does not."""
    match guard:
        case AnyOf(guards=parts):
            return next((why for part in parts if (why := read(part, steps, event, asked)) is not None), None)
        case AllOf(guards=parts):
            said = []
            for part in parts:
                if (why := read(part, steps, event, asked)) is None:
                    return None
                said.append(why)
            return "; ".join(said) if said else guard.name
        case Not(guard=part):
            return None if read(part, steps, event, asked) is not None else guard.name
    memo = guard.initial()
    for step in steps:
        if guard.scope == "conversation" or step.run == steps[-1].run:
            memo = guard.fold(memo, step)
    trip = guard.judge(memo, event)
    if trip is None and isinstance(guard, Counted):
        asked.append(type(guard).__name__)
    return trip.because if trip is not None else None


@given(conditions, journals(), requests)
@settings(max_examples=600, deadline=None)
def test_a_condition_says_what_its_parts_say(condition: Guard, steps: list[Step], event: Event) -> None:
    folds = Folds(atoms(condition))
    asked, expected = list[str](), list[str]()
    trip = verdict(condition, folds.places)(folds.replayed(steps), event, asked)
    why = read(condition, steps, event, expected)
    assert (trip.because if trip is not None else None) == why
    assert asked == expected


@pytest.mark.parametrize("guard", DETECTORS, ids=lambda guard: guard.name)
@given(steps=journals(), event=requests)
@settings(max_examples=80, deadline=None)
def test_who_is_spared_where_nothing_happens_would_not_have_tripped(
    guard: Guard, steps: list[Step], event: ToolsRequested
) -> None:
    memo = guard.initial()
    for step in steps:
        memo = guard.fold(memo, step)
    if guard.spared_idle and guard.idle(memo, event):
        assert guard.judge(memo, event) is None


def test_detectors_idle_in_a_run_that_gets_on_and_no_longer_when_a_call_comes_again() -> None:
    guard, asked = RepeatedCall(3), calls(("f", {"page": 1}))
    memo = guard.fold(guard.initial(), Step(seq=1, run=1, event=asked, source="A", state="B"))
    assert guard.idle(memo, calls(("f", {"page": 2})))
    assert not guard.idle(Trail(known=dict.fromkeys(asked.meant, ({}, 1))), asked)


@dataclass(frozen=True)
class Always(RepeatedCall):
    """A detector of one's own that trips on everything, and says nothing of being spared."""

    def judge(self, memo: Trail, event: Event) -> Trip | None:
        return self.trip(1, "always")


def test_a_judgement_of_ones_own_is_not_spared_unasked() -> None:
    guard = AnyOf(RepeatedCall(3), Always(3))
    folds = Folds(guard.guards)
    assert verdict(guard, folds.places)(folds.initial(), calls(("f", {})), []) is not None


@pytest.mark.parametrize(("guard", "failed"), [(NoProgress(1, 3), False), (NoProgress(3, 1), True)])
def test_a_detector_that_is_content_with_one_observation_is_asked(guard: Guard, failed: bool) -> None:
    status = ResultStatus.FAILED if failed else ResultStatus.DONE
    brought = ToolsExecuted(results=(ToolResult(position=0, status=status, response={"result": []}),))
    events = [calls(("f", {"limit": 100})), brought, ObservationAppended()]
    steps = [Step(seq=seq, run=1, event=event, source="A", state="B") for seq, event in enumerate(events, 1)]
    folds = Folds([guard])
    assert verdict(guard, folds.places)(folds.replayed(steps), calls(("f", {"limit": 101})), []) is not None


@dataclass(frozen=True)
class Asleep(Guard):
    """It idles always, and cannot be asked. Those of one kind fold alike."""

    spared: bool = True
    folds_by_kind = True

    @property
    def spared_idle(self) -> bool:
        return self.spared

    def idle(self, memo: object, event: Event) -> bool:
        return True


@pytest.mark.parametrize(
    ("condition", "spared"),
    [
        (ASLEEP := Asleep(), True),
        (AWAKE := Asleep(spared=False), False),
        (AnyOf(ASLEEP, ASLEEP), True),
        (AnyOf(ASLEEP, AWAKE), False),
        (AllOf(ASLEEP, ASLEEP), True),
        (AllOf(ASLEEP, AWAKE), True),
        (AllOf(AWAKE, ASLEEP), True),
        (AllOf(AWAKE, AWAKE), False),
        (AllOf(AnyOf(ASLEEP, AWAKE), AWAKE), False),
        (AllOf(ASLEEP, Nudged(9)), False),
        (Not(ASLEEP), False),
    ],
)
def test_who_idles_is_asked_only_where_the_condition_may_hold_all_the_same(condition: Guard, spared: bool) -> None:
    folds = Folds(atoms(condition))
    judged = verdict(condition, folds.places)
    with nullcontext() if spared else pytest.raises(NotImplementedError):
        assert judged(folds.initial(), calls(("f", {})), []) is None


@dataclass(frozen=True)
class Fixed(Guard):
    """A guard of one's own that begins with what it judges by, folds nothing and says nothing of when it idles."""

    spared_idle = True

    def initial(self) -> int:
        return 7

    def judge(self, memo: int, event: Event) -> Trip | None:
        return self.trip(memo, "always", memo)


@given(journals())
@settings(max_examples=20, deadline=None)
def test_what_a_guard_does_not_say_is_as_if_it_were_not_there(steps: list[Step]) -> None:
    guard = Fixed()
    folds = Folds([guard])
    trip = verdict(guard, folds.places)(folds.along(folds.initial(), steps), calls(("f", {})), [])
    assert trip == Trip(guard="Fixed()", figure=7, limit=7, because="always")


def test_a_guard_without_a_judgement_is_no_guard() -> None:
    guard = Guard()
    with pytest.raises(NotImplementedError):
        verdict(guard, Folds([guard]).places)([None], calls(("f", {})), [])


@dataclass(frozen=True)
class Patience(Counted):
    """A counted guard of one's own, without words of its own."""


def test_a_counted_guard_of_ones_own_says_what_it_has_counted() -> None:
    trip = Patience(2).judge(3, calls(("f", {})))
    assert trip == Trip(guard="Patience(2)", figure=3, limit=2, because="Patience(2) was passed 3 times")
