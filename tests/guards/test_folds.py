"""What is folded once, for several guards, is what each of them would have folded for itself."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm.conversation import Event, Step, Trip
from haru_fsm.guards import (
    ApprovalBudget,
    CallCycle,
    CostBudget,
    Deadline,
    FailingCalls,
    Guard,
    InDoubt,
    NoProgress,
    Nudged,
    NudgedInVain,
    RepeatedCall,
    RepeatedEffect,
    ResumeBudget,
    SimilarThoughts,
    StepBudget,
    TokenBudget,
    ToolCallBudget,
    UnfoundedTicketClaim,
    UnusableCalls,
)
from haru_fsm.guards.folds import Folds
from haru_fsm.guards.trail import Trail
from haru_fsm.models.scripted import calls
from tests.guards.strategies import answers, events, journals


@dataclass(frozen=True)
class Every(Guard):
    """A user's guard that says nothing of its fold: it counts the steps it was shown."""

    times: int

    def initial(self) -> int:
        return 0

    def fold(self, memo: int, step: Step) -> int:
        return memo + 1

    def judge(self, memo: int, event: Event) -> Trip | None:
        return self.trip(memo, "every step", self.times) if memo >= self.times else None


KINDS = (StepBudget, ToolCallBudget, TokenBudget, Nudged, ResumeBudget, ApprovalBudget, RepeatedCall, FailingCalls)
GUARDS: tuple[Guard, ...] = (
    *(kind(limit) for kind in KINDS for limit in (2, 3)),
    *(CostBudget(limit) for limit in (0.5, 1)),
    *(Deadline(limit) for limit in (0.5, 1)),
    *(CallCycle(), CallCycle(3, 3), NoProgress(2, 2), NoProgress(3, 5), UnusableCalls(2), NudgedInVain(1)),
    *(SimilarThoughts(), SimilarThoughts(0.5, 1), RepeatedEffect(), InDoubt(), UnfoundedTicketClaim()),
    *(Every(3), Every(5), ToolCallBudget(3, scope="conversation"), RepeatedCall(2, scope="conversation")),
)
FOLDS = Folds(GUARDS)


def alone(guard: Guard, steps: list[Step]) -> object:
    """The memo as the guard folds it for itself, every step shown to it."""
    memo = guard.initial()
    for step in steps:
        if guard.scope == "conversation" or step.run == steps[-1].run:
            memo = guard.fold(memo, step)
    return memo


@given(journals(), st.one_of(answers, events))
@settings(max_examples=400, deadline=None)
def test_shared_memos_judge_as_memos_of_ones_own(steps: list[Step], event: Event) -> None:
    memos = FOLDS.replayed(steps)
    for guard in GUARDS:
        if guard.judges is None or isinstance(event, guard.judges):
            mine = guard.judge(alone(guard, steps), event)
            assert guard.judge(memos[FOLDS.places[id(guard)]], event) == mine, guard.name


@given(journals())
@settings(max_examples=200, deadline=None)
def test_step_by_step_and_at_once_are_the_same(steps: list[Step]) -> None:
    """A restart at any step, and no step changes a memo in place: an earlier one can be gone on from again."""
    so_far = [FOLDS.initial()]
    for before, step in enumerate(steps):
        so_far.append(FOLDS.after(so_far[-1], step, steps[before - 1].run if before else 0))
    for seq, memos in enumerate(so_far):
        assert memos == FOLDS.replayed(steps[:seq])


def test_guards_that_differ_in_their_limit_share_a_fold() -> None:
    shared = Folds([RepeatedCall(3), RepeatedCall(2), FailingCalls(3), SimilarThoughts(), StepBudget(8), StepBudget(9)])
    assert len(shared.guards) == 2
    assert len(Folds([RepeatedCall(3), RepeatedCall(3, scope="conversation")]).guards) == 2


def test_a_subclass_with_a_fold_of_its_own_is_folded_for_itself() -> None:
    class Double(ToolCallBudget):
        def fold(self, memo: int, step: Step) -> int:
            return super().fold(super().fold(memo, step), step)

    folds = Folds([plain := ToolCallBudget(9), double := Double(9)])
    step = Step(seq=1, run=1, event=calls(("f", {})), source="A", state="B")
    memos = folds.after(folds.initial(), step, 0)
    assert (memos[folds.places[id(plain)]], memos[folds.places[id(double)]]) == (1, 2)


def test_a_detector_with_a_fold_of_its_own_leaves_the_others_theirs() -> None:
    class Blind(RepeatedCall):
        def fold(self, memo: Trail, step: Step) -> Trail:
            return memo

    folds = Folds([RepeatedCall(3), Blind(3), FailingCalls(3)])
    assert len(folds.guards) == 2


@dataclass(frozen=True)
class RequestsOf(StepBudget):
    """A budget of one's own, for one model."""

    model: str = ""

    def fold(self, memo: int, step: Step) -> int:
        return memo + (getattr(step.event, "model", None) == self.model)


def test_a_fold_of_ones_own_may_depend_on_a_field_of_ones_own() -> None:
    assert len(Folds([RequestsOf(3, model="a"), RequestsOf(3, model="b"), RequestsOf(3, model="b")]).guards) == 2
    assert len(Folds([StepBudget(3), StepBudget(5)]).guards) == 1
