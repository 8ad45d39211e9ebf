"""What may happen, as one table: read it from the top.

On an event, of the rows that fit the state the first whose guard trips fires. Change a row, and `haru check` tells
whether every run still ends; `haru diagram` draws what you wrote.
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
    late = deadline(limits)
    spendable = (StepBudget(limits.max_steps), *budgets(limits))
    out_of_calls = ToolCallBudget(limits.max_tool_calls)
    repeats, nudges = limits.loop_repeats, limits.loop_nudges
    plain = AnyOf(RepeatedCall(repeats), CallCycle())
    circles = AnyOf(
        plain,
        AllOf(RepeatedCall(repeats - 1, grace=1), SimilarThoughts()),
        NoProgress(repeats, repeats + nudges),
        UnusableCalls(repeats),
        FailingCalls(repeats + nudges),
    )
    # A call that could not be run was told why; going on like that has been nudged once by the error itself.
    # An effect that the ledger has answered was nudged by that answer. Lighter evidence must come once more; then it is
    # enough to ask again at all, so that a loop which goes on for three more turns after its nudge is stopped.
    stubborn = AnyOf(
        RepeatedEffect(),
        AllOf(NudgedInVain(max(0, nudges - 1)), UnusableCalls(repeats)),
        AllOf(NudgedInVain(nudges), plain),
        AllOf(NudgedInVain(nudges + 1, grace=0), AnyOf(circles, RepeatedCall(2))),
    )
    unfit = AnyOf(InDoubt(), UnfoundedTicketClaim())
    # Work goes on after each decision, so whoever sets a deadline has it asked in this loop as well.
    asked_too_often = AnyOf(ApprovalBudget(limits.max_approvals), *late)
    resumed_too_often = ResumeBudget(limits.max_resumes)
    # At a spent budget a ticket at once, or where the limits say so a last word: one request more, with tools off.
    # After the deadline there is no time for it, and a model that asks for tools even then goes to a person.
    spent_on_request: tuple[Row, ...] = (
        Row(ToolsRequested, AWAIT_MODEL, ESCALATE_TICKET, when=AnyOf(*spendable, *late, out_of_calls)),
    )
    spent_on_observation: tuple[Row, ...] = (
        Row(ObservationAppended, APPEND_OBSERVATION, ESCALATE_TICKET, when=AnyOf(*spendable, *late)),
    )
    if limits.final_answer_without_tools:
        spent = AnyOf(*spendable)
        spent_by_request = AnyOf(*spendable, out_of_calls)
        refused = AnyOf(*late, AllOf(spent_by_request, LastWord()))
        given = AnyOf(*late, AllOf(spent, LastWord()))
        spent_on_request = (
            Row(ToolsRequested, AWAIT_MODEL, ESCALATE_TICKET, when=refused),
            Row(ToolsRequested, AWAIT_MODEL, APPEND_OBSERVATION, when=spent_by_request, answer=Answer.LAST_WORD),
        )
        spent_on_observation = (
            Row(ObservationAppended, APPEND_OBSERVATION, AWAIT_MODEL, when=LastWordGiven()),
            Row(ObservationAppended, APPEND_OBSERVATION, ESCALATE_TICKET, when=given),
            Row(ObservationAppended, APPEND_OBSERVATION, AWAIT_MODEL, when=spent, answer=Answer.LAST_WORD),
        )
    rows = (
        Row(MessageReceived, RESTING, AWAIT_MODEL),
        Row(ModelAnswered, AWAIT_MODEL, ESCALATE_TICKET, when=unfit),
        Row(ModelAnswered, AWAIT_MODEL, DONE, rests=True),
        Row(ModelFailed, AWAIT_MODEL, ESCALATE_TICKET),
        *spent_on_request,
        Row(ToolsRequested, AWAIT_MODEL, ESCALATE_TICKET, when=stubborn),
        Row(ToolsRequested, AWAIT_MODEL, APPEND_OBSERVATION, when=circles, answer=Answer.NUDGE),
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


def budgets(limits: Limits) -> Iterator[Guard]:
    """The budgets that are set, beside that of steps."""
    if limits.token_budget is not None:
        yield TokenBudget(limits.token_budget)
    if limits.cost_budget_usd is not None:
        yield CostBudget(limits.cost_budget_usd)


def deadline(limits: Limits) -> tuple[Guard, ...]:
    """The deadline, where one is set."""
    return (Deadline(limits.deadline_s),) if limits.deadline_s is not None else ()
