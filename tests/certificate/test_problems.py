"""Each thing that can be wrong with a table: found, named, and told with what to do about it."""

from __future__ import annotations

import pytest

from haru_fsm.certificate import ProblemKind, certify, problems, require_sound
from haru_fsm.conversation import (
    ApprovalDecided,
    ApprovalRequested,
    Event,
    MessageReceived,
    ModelAnswered,
    ModelFailed,
    ObservationAppended,
    Resumed,
    TicketClosed,
    ToolsExecuted,
    ToolsRequested,
)
from haru_fsm.errors import EndlessWorkflow, WorkflowError
from haru_fsm.guards.guard import AllOf, AnyOf, Not
from haru_fsm.machine import Row, Workflow

from .tables import Asked, Decided, Free, Shared, Visits, table

ASK = Row(MessageReceived, "DONE", "AWAIT")
ANSWER = Row(ModelAnswered, "AWAIT", "DONE", rests=True)
FREE = Free("f")
STEPS = Visits("steps", 3, frozenset({"AWAIT"}))
ANSWERS: dict[str, list[type[Event]]] = {"AWAIT": [ModelAnswered]}
REQUESTS: dict[str, list[type[Event]]] = {"AWAIT": [ModelAnswered, ToolsRequested], "ACT": [ToolsExecuted]}


def shop(*rows: Row, gives: dict[str, list[type[Event]]] = ANSWERS) -> Workflow:
    return table([ASK, ANSWER, *rows], gives, initial="DONE")


def kinds(workflow: Workflow) -> list[ProblemKind]:
    return [problem.kind for problem in problems(workflow)]


def test_a_workflow_that_may_run_has_no_problems() -> None:
    assert problems(shop()) == ()
    require_sound(shop())
    assert certify(shop()).transitions.value == 2


def test_an_endless_loop_is_shown_with_the_way_there_and_what_its_limits_lack() -> None:
    workflow = shop(
        Row(ToolsRequested, "AWAIT", "ACT"),
        Row(ToolsExecuted, "ACT", "DONE", when=Visits("acts", 3, frozenset({"AWAIT"})), rests=True),
        Row(ToolsExecuted, "ACT", "ACT", when=FREE),
        Row(ToolsExecuted, "ACT", "AWAIT"),
        gives=REQUESTS,
    )
    (problem,) = problems(workflow)
    assert problem.kind is ProblemKind.ENDLESS
    assert [(move.event, move.source, move.target, move.row) for move in problem.path] == [
        ("message_received", "DONE", "AWAIT", 0),
        ("tools_requested", "AWAIT", "ACT", 2),
    ]
    assert [(move.event, move.source, move.target, move.row) for move in problem.loop] == [
        ("tools_executed", "ACT", "ACT", 4)
    ]
    assert "ACT -tools_executed-> ACT, and so on" in problem.text
    assert "is asked in it, but what it counts (visits of AWAIT) does not happen there" in problem.text


def test_a_guard_that_counts_in_the_loop_but_is_not_asked_there_is_named() -> None:
    workflow = shop(
        Row(ToolsRequested, "AWAIT", "ACT"),
        Row(ToolsExecuted, "ACT", "AWAIT"),
        Row(ModelFailed, "AWAIT", "DONE", when=STEPS, rests=True),
        Row(ModelFailed, "AWAIT", "DONE", rests=True),
        gives={"AWAIT": [ModelAnswered, ToolsRequested, ModelFailed], "ACT": [ToolsExecuted]},
    )
    (problem,) = problems(workflow)
    assert f"{STEPS.name} counts what happens in it (visits of AWAIT), but no row of it asks that guard" in problem.text


def test_all_problems_are_listed_in_one_error() -> None:
    workflow = shop(
        Row(ToolsRequested, "AWAIT", "AWAIT"), Row(ModelFailed, "NOWHERE", "DONE", rests=True), gives=REQUESTS
    )
    with pytest.raises(EndlessWorkflow) as refused:
        certify(workflow)
    assert refused.value.loop == ("AWAIT",)
    for problem in problems(workflow):
        assert problem.text in str(refused.value)
    assert {ProblemKind.ENDLESS, ProblemKind.UNREACHABLE, ProblemKind.NO_ROW} <= set(kinds(workflow))


def test_a_state_nobody_comes_to() -> None:
    assert kinds(shop(Row(ToolsExecuted, "ACT", "DONE", rests=True), gives=ANSWERS | {"ACT": [ToolsExecuted]})) == [
        ProblemKind.UNREACHABLE
    ]


def test_an_event_without_a_row() -> None:
    workflow = shop(gives={"AWAIT": [ModelAnswered, ModelFailed]})
    (problem,) = problems(workflow)
    assert problem.kind is ProblemKind.NO_ROW
    assert problem.text == "The work of AWAIT may give model_failed, which has no row there. Add one, without a guard."
    with pytest.raises(WorkflowError, match="model_failed"):
        require_sound(workflow)


@pytest.mark.parametrize("guard", [FREE, AnyOf(FREE, Not(FREE)), AllOf()])
def test_a_last_row_with_a_guard(guard: Free) -> None:
    workflow = table([ASK, Row(ModelAnswered, "AWAIT", "DONE", when=guard, rests=True)], ANSWERS, initial="DONE")
    assert kinds(workflow) == [ProblemKind.GUARDED_LAST]


@pytest.mark.parametrize("guard", [AllOf(FREE, Not(FREE)), AnyOf(), Not(AllOf())])
def test_a_row_whose_guard_contradicts_itself(guard: Free) -> None:
    dead = Row(ModelAnswered, "AWAIT", "DONE", when=guard, rests=True)
    assert kinds(table([ASK, dead, ANSWER], ANSWERS, initial="DONE")) == [ProblemKind.DEAD_ROW]


def test_a_row_below_one_that_always_fires() -> None:
    (problem,) = problems(shop(Row(ModelAnswered, "AWAIT", "DONE", rests=True)))
    assert (problem.kind, problem.row, problem.state) == (ProblemKind.DEAD_ROW, 2, "AWAIT")
    assert "the rows above it leave nothing over" in problem.text


def test_a_row_that_is_closed_by_a_guard_above_it() -> None:
    rows = [ASK, Row(ModelAnswered, "AWAIT", "DONE", when=AnyOf(FREE, STEPS), rests=True)]
    rows += [Row(ModelAnswered, "AWAIT", "DONE", when=AllOf(FREE, Free("g")), rests=True), ANSWER]
    assert kinds(table(rows, ANSWERS, initial="DONE")) == [ProblemKind.DEAD_ROW]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (Row(ObservationAppended, "AWAIT", "DONE", rests=True), "no work gives observation_appended there"),
        (Row(Resumed, "DONE", "DONE", rests=True), "no work gives resumed there"),
        (Row(TicketClosed, "AWAIT", "DONE", rests=True), "ticket_closed comes from outside, and no row rests there"),
        (Row(Decided, "AWAIT", "DONE", rests=True), "decided comes from outside, and no row rests there"),
    ],
)
def test_a_row_for_an_event_that_cannot_come_there(row: Row, why: str) -> None:
    (problem,) = problems(shop(row))
    assert (problem.kind, problem.row) == (ProblemKind.DEAD_ROW, 2)
    assert why in problem.text


def test_work_of_a_state_in_which_a_conversation_only_rests() -> None:
    workflow = table(
        [ASK, ANSWER, Row(ModelAnswered, "DONE", "DONE", rests=True)], ANSWERS | {"DONE": [ModelAnswered]}, "DONE"
    )
    (problem,) = problems(workflow)
    assert problem.kind is ProblemKind.DEAD_ROW
    assert "only rests there" in problem.text


def test_a_state_that_is_entered_without_rest_and_has_no_work() -> None:
    workflow = shop(Row(ModelFailed, "AWAIT", "LOST"), gives={"AWAIT": [ModelAnswered, ModelFailed]})
    assert kinds(workflow) == [ProblemKind.NO_WORK]


@pytest.mark.parametrize("most", [0, 1])
def test_a_limit_so_small_that_rows_never_fire_is_a_limit_and_no_problem(most: int) -> None:
    steps = Visits("steps", most, frozenset({"AWAIT"}))
    workflow = shop(
        Row(ToolsRequested, "AWAIT", "DONE", when=steps, rests=True),
        Row(ToolsRequested, "AWAIT", "ACT"),
        Row(ToolsExecuted, "ACT", "AWAIT"),
        gives=REQUESTS,
    )
    assert problems(workflow) == ()
    assert certify(workflow).transitions.value == 2


# --------------------------------------------------------------------------- rest, pauses, resumes


def paused(*guarded: Row) -> Workflow:
    return shop(
        Row(ToolsRequested, "AWAIT", "ACT"),
        Row(ToolsExecuted, "ACT", "DONE", rests=True),
        *guarded,
        Row(ModelFailed, "ACT", "ACT", rests=True),
        Row(Decided, "ACT", "ACT"),
        gives=REQUESTS | {"ACT": [ToolsExecuted, ModelFailed]},
    )


def test_a_pause_that_goes_on_needs_a_limit() -> None:
    (problem,) = problems(paused())
    assert [move.event for move in problem.loop] == ["model_failed", "decided"]


def test_a_pause_with_a_limit_is_part_of_the_run() -> None:
    workflow = paused(Row(ModelFailed, "ACT", "DONE", when=Asked("approvals", 2), rests=True))
    assert problems(workflow) == ()
    assert certify(workflow).transitions.value == 2 + 2 * 2 + 1


def waiting(*more: Row) -> Workflow:
    return shop(
        Row(ToolsRequested, "AWAIT", "ACT"),
        Row(ToolsExecuted, "ACT", "DONE", rests=True),
        Row(ApprovalRequested, "ACT", "DONE", when=Asked("approvals", 2), rests=True),
        Row(ApprovalRequested, "ACT", "ACT", rests=True),
        Row(ApprovalDecided, "ACT", "ACT"),
        Row(ModelFailed, "AWAIT", "TICKET", rests=True),
        *more,
        gives={"AWAIT": [ModelAnswered, ToolsRequested, ModelFailed], "ACT": [ToolsExecuted, ApprovalRequested]},
    )


def test_after_every_ending_a_kept_message_must_be_able_to_begin() -> None:
    (problem,) = problems(waiting())
    assert (problem.kind, problem.row, problem.state) == (ProblemKind.NO_NEXT_RUN, 7, "TICKET")
    assert "a message that comes meanwhile is kept" in problem.text
    assert "TICKET has no row for message_received" in problem.text
    assert problems(waiting(Row(MessageReceived, "TICKET", "AWAIT"))) == ()


def test_a_table_that_waits_for_nobody_may_have_a_last_state() -> None:
    final = shop(Row(ModelFailed, "AWAIT", "TICKET", rests=True), gives={"AWAIT": [ModelAnswered, ModelFailed]})
    assert problems(final) == ()


def test_resumes_need_a_limit_of_their_own_and_are_told_apart_from_the_run() -> None:
    again = Row(Resumed, "AWAIT", "AWAIT")
    assert kinds(shop(again)) == [ProblemKind.ENDLESS]
    certificate = certify(shop(Row(Resumed, "AWAIT", "DONE", when=Shared(4), rests=True), again))
    assert certificate.transitions.value == 2
    assert certificate.resumes.value == 5


def test_a_loop_that_nothing_leaves_room_for_is_no_loop() -> None:
    """ACT could go on for ever, but a run that comes there has spent what the loop asks."""
    workflow = shop(
        Row(ToolsRequested, "AWAIT", "ACT"),
        Row(ToolsExecuted, "ACT", "DONE", when=Visits("steps", 1, frozenset({"AWAIT"})), rests=True),
        Row(ToolsExecuted, "ACT", "ACT"),
        gives=REQUESTS,
    )
    assert problems(workflow) == ()
    assert certify(workflow).transitions.value == 3
