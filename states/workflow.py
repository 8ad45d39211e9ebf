"""What may happen, as one table: read it from the top.

When an event comes, the rows for it in the present state are asked in their order. The first one whose guard trips, or
that has none, fires. Change a row, and `haru check` tells whether every run still ends; `haru diagram` draws it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from haru_fsm.conversation import (
    Answer,
    ApprovalDecided,
    ApprovalRequested,
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
from haru_fsm.guards import (
    AllOf,
    AnyOf,
    ApprovalBudget,
    CallCycle,
    CostBudget,
    Deadline,
    FailingCalls,
    Guard,
    InDoubt,
    LastWord,
    LastWordGiven,
    NoProgress,
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
from haru_fsm.limits import Limits
from haru_fsm.machine import Row, Work, Workflow

from .append_observation import append_observation
from .await_model import await_model
from .escalate_ticket import escalate_ticket
from .execute_tools import execute_tools


class State(StrEnum):
    """Where a conversation can be. A state names the one thing still to be done."""

    AWAIT_MODEL = "AWAIT_MODEL"
    EXECUTE_TOOLS = "EXECUTE_TOOLS"
    APPEND_OBSERVATION = "APPEND_OBSERVATION"
    ESCALATE_TICKET = "ESCALATE_TICKET"
    DONE = "DONE"


AWAIT_MODEL, EXECUTE_TOOLS, APPEND_OBSERVATION, ESCALATE_TICKET, DONE = State
RESTING = (DONE, ESCALATE_TICKET)


def workflow(limits: Limits) -> Workflow:
    """Haru's workflow under these limits."""
    in_circles, stubborn = circles(limits)
    spent_on_request, spent_on_observation = spent(limits)
    unfit = AnyOf(InDoubt(), UnfoundedTicketClaim())
    # Work goes on after each decision, so whoever sets a deadline has it asked in this loop as well.
    asked_too_often = AnyOf(ApprovalBudget(limits.max_approvals), *deadline(limits))
    resumed_too_often = ResumeBudget(limits.max_resumes)
    rows = (
        Row(MessageReceived, RESTING, AWAIT_MODEL),
        Row(ModelAnswered, AWAIT_MODEL, ESCALATE_TICKET, when=unfit),
        Row(ModelAnswered, AWAIT_MODEL, DONE, rests=True),
        Row(ModelFailed, AWAIT_MODEL, ESCALATE_TICKET),
        *spent_on_request,
        Row(ToolsRequested, AWAIT_MODEL, ESCALATE_TICKET, when=stubborn),
        Row(ToolsRequested, AWAIT_MODEL, APPEND_OBSERVATION, when=in_circles, answer=Answer.NUDGE),
        Row(ToolsRequested, AWAIT_MODEL, EXECUTE_TOOLS),
        Row(ToolsExecuted, EXECUTE_TOOLS, APPEND_OBSERVATION),
        Row(ApprovalRequested, EXECUTE_TOOLS, ESCALATE_TICKET, when=asked_too_often),
        Row(ApprovalRequested, EXECUTE_TOOLS, EXECUTE_TOOLS, rests=True),
        Row(ApprovalDecided, EXECUTE_TOOLS, EXECUTE_TOOLS),
        *spent_on_observation,
        Row(ObservationAppended, APPEND_OBSERVATION, AWAIT_MODEL),
        Row(Resumed, AWAIT_MODEL, ESCALATE_TICKET, when=resumed_too_often),
        Row(Resumed, AWAIT_MODEL, AWAIT_MODEL),
        Row(Resumed, EXECUTE_TOOLS, ESCALATE_TICKET, when=resumed_too_often),
        Row(Resumed, EXECUTE_TOOLS, EXECUTE_TOOLS),
        Row(Resumed, APPEND_OBSERVATION, ESCALATE_TICKET, when=resumed_too_often),
        Row(Resumed, APPEND_OBSERVATION, APPEND_OBSERVATION),
        Row(TicketOpened, ESCALATE_TICKET, ESCALATE_TICKET, rests=True),
        Row(TicketClosed, RESTING, DONE, rests=True),
    )
    work: dict[str, Work] = {
        AWAIT_MODEL: await_model,
        EXECUTE_TOOLS: execute_tools,
        APPEND_OBSERVATION: append_observation,
        ESCALATE_TICKET: escalate_ticket,
    }
    return Workflow(rows, work=work, initial=DONE)


def circles(limits: Limits) -> tuple[Guard, Guard]:
    """When the model goes in circles and is nudged; and when nudging has not helped, so that a person takes over."""
    repeats, nudges = limits.loop_repeats, limits.loop_nudges
    plain = AnyOf(RepeatedCall(repeats), CallCycle())
    in_circles = AnyOf(
        plain,
        AllOf(RepeatedCall(repeats - 1, grace=1), SimilarThoughts()),
        NoProgress(repeats, repeats + nudges),
        UnusableCalls(repeats),
        FailingCalls(repeats + nudges),
    )
    stubborn = AnyOf(
        # The ledger's answer has told the model that the effect is done: that was its nudge.
        RepeatedEffect(),
        # Errors have told what is allowed, which counts as one nudge.
        AllOf(NudgedInVain(max(0, nudges - 1)), UnusableCalls(repeats)),
        AllOf(NudgedInVain(nudges), plain),
        # Lighter evidence must come once more. A second identical call is then enough, so that a loop which goes on for
        # three more turns after its nudge is stopped, whatever its shape.
        AllOf(NudgedInVain(nudges + 1, grace=0), AnyOf(in_circles, RepeatedCall(2))),
    )
    return in_circles, stubborn


def spent(limits: Limits) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """The rows that are asked when the model wants tools, and after each observation, whether a budget is spent.

    Where one is, a person takes over at once; or where the limits say so, the model has a last word: one request more,
    with tools off. A model that wants tools even then goes to a person, and so does every run whose deadline is over.
    """
    late = deadline(limits)
    run_out = (StepBudget(limits.max_steps), *budgets(limits))
    out_of_calls = ToolCallBudget(limits.max_tool_calls)
    if not limits.final_answer_without_tools:
        return (
            (Row(ToolsRequested, AWAIT_MODEL, ESCALATE_TICKET, when=AnyOf(*run_out, *late, out_of_calls)),),
            (Row(ObservationAppended, APPEND_OBSERVATION, ESCALATE_TICKET, when=AnyOf(*run_out, *late)),),
        )
    by_request, by_observation = AnyOf(*run_out, out_of_calls), AnyOf(*run_out)
    too_late = AnyOf(*late, AllOf(by_request, LastWord()))
    too_late_to_go_on = AnyOf(*late, AllOf(by_observation, LastWord()))
    return (
        (
            Row(ToolsRequested, AWAIT_MODEL, ESCALATE_TICKET, when=too_late),
            Row(ToolsRequested, AWAIT_MODEL, APPEND_OBSERVATION, when=by_request, answer=Answer.LAST_WORD),
        ),
        (
            Row(ObservationAppended, APPEND_OBSERVATION, AWAIT_MODEL, when=LastWordGiven()),
            Row(ObservationAppended, APPEND_OBSERVATION, ESCALATE_TICKET, when=too_late_to_go_on),
            Row(ObservationAppended, APPEND_OBSERVATION, AWAIT_MODEL, when=by_observation, answer=Answer.LAST_WORD),
        ),
    )


def budgets(limits: Limits) -> Iterator[Guard]:
    """The budgets that are set, beside that of steps."""
    if limits.token_budget is not None:
        yield TokenBudget(limits.token_budget)
    if limits.cost_budget_usd is not None:
        yield CostBudget(limits.cost_budget_usd)


def deadline(limits: Limits) -> tuple[Guard, ...]:
    """The deadline, where one is set."""
    return (Deadline(limits.deadline_s),) if limits.deadline_s is not None else ()
