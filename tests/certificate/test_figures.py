"""The worst case in each column, on the default workflow and on small ones; and that no run exceeds it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm.app import load_app
from haru_fsm.certificate import Certificate, Costs, certify
from haru_fsm.certificate.routes import one_by_one
from haru_fsm.conversation import (
    Event,
    MessageReceived,
    ModelAnswered,
    ModelEvent,
    ObservationAppended,
    ToolsExecuted,
    ToolsRequested,
    Usage,
)
from haru_fsm.guards import CostBudget, Deadline, StepBudget, TokenBudget, ToolCallBudget
from haru_fsm.guards.guard import AllOf, AnyOf, Counted, Guard
from haru_fsm.limits import Limits
from haru_fsm.machine import Row, Workflow

from .tables import Free, Visits, table

ROOT = Path(__file__).parent.parent.parent
KNOWN = Costs(window_tokens=1000, usd_per_token=0.001, calls_per_reply=4)


def default(limits: Limits) -> Workflow:
    return load_app(ROOT, limits=limits).workflow


@cache
def certified(**limits: Any) -> Certificate:
    chosen = Limits(**limits)
    return certify(default(chosen), limits=chosen)


def react(guards: Guard, *, observed: Guard | None = None) -> Workflow:
    """Ask, act, observe; `guards` stand before acting, `observed` before asking again."""
    rows = [
        Row(MessageReceived, "DONE", "AWAIT_MODEL"),
        Row(ModelAnswered, "AWAIT_MODEL", "DONE", rests=True),
        Row(ToolsRequested, "AWAIT_MODEL", "DONE", when=guards, rests=True),
        Row(ToolsRequested, "AWAIT_MODEL", "ACT"),
        Row(ToolsExecuted, "ACT", "SEE"),
        *([Row(ObservationAppended, "SEE", "DONE", when=observed, rests=True)] if observed else []),
        Row(ObservationAppended, "SEE", "AWAIT_MODEL"),
    ]
    gives: dict[str, list[type[Event]]] = {
        "AWAIT_MODEL": [ModelAnswered, ToolsRequested],
        "ACT": [ToolsExecuted],
        "SEE": [ObservationAppended],
    }
    return table(rows, gives, initial="DONE")


# --------------------------------------------------------------------------- the default workflow


PAUSES = 2 * Limits().max_approvals
"""Steps of the longest run in which approvals are asked for and decided."""


@pytest.mark.parametrize("steps", [2, 3, 8, 20])
def test_the_default_workflow_at_any_number_of_steps(steps: int) -> None:
    certificate = certified(max_steps=steps)
    assert certificate.transitions.value == 3 * steps + PAUSES
    assert certificate.model_requests.value == steps
    assert certificate.http_requests.value == steps + 3
    assert certificate.tool_calls.value == 40
    assert certificate.resumes.value == 6
    assert not certificate.transitions.at_most


def test_one_step_runs_no_tool() -> None:
    certificate = certified(max_steps=1)
    assert (certificate.tool_calls.value, certificate.model_requests.value) == (0, 1)
    assert certificate.transitions.value == 3


def test_fewer_tool_calls_than_steps_still_leave_nudges() -> None:
    assert certified(max_steps=8, max_tool_calls=3, loop_nudges=0).transitions.value == 3 + 3 * 3 + PAUSES
    assert certified(max_steps=8, max_tool_calls=3, loop_nudges=5).tool_calls.value == 3


def test_the_path_is_a_run_that_is_as_long_as_the_figure_says() -> None:
    path = one_by_one(certified().transitions.path)
    assert len(path) == 24 + PAUSES
    assert path[0].event == "message_received"
    assert path[-1].rests
    assert all(before.target == after.source for before, after in pairwise(path))


def test_what_is_repeated_is_told_once() -> None:
    columns = {name: path for name, _, path in certified().table()}
    assert columns["transitions"].count("tools_executed") == 2, "once for six rounds, once for that with the pauses"
    assert " x 6 " in columns["transitions"]
    assert (
        f"(-approval_requested-> EXECUTE_TOOLS -approval_decided-> EXECUTE_TOOLS) x {PAUSES // 2}"
        in columns["transitions"]
    )


def test_as_json_and_back() -> None:
    certificate = certified()
    assert Certificate.model_validate_json(certificate.model_dump_json()) == certificate


@pytest.mark.parametrize(
    "limits",
    [
        {"max_steps": 3000, "max_tool_calls": 5000, "loop_nudges": 1000, "token_budget": 100_000},
        {"max_steps": 5000, "max_tool_calls": 2000, "loop_nudges": 3000},
        {"max_steps": 10**6, "max_tool_calls": 10**6, "loop_nudges": 10**6, "max_resumes": 10**6},
    ],
)
def test_limits_in_the_thousands_are_no_matter(limits: dict[str, int]) -> None:
    began = time.process_time()
    certificate = certified(**limits)
    assert time.process_time() - began < 10
    replies = min(limits["max_steps"], limits["max_tool_calls"] + 1)
    assert certificate.model_requests.value == limits["max_steps"]
    # In an estimate every round may have all the pauses: a bound still, and marked as one.
    most = (3 + PAUSES + 1) * (replies + 1) if certificate.transitions.at_most else 3 * replies + PAUSES
    assert 3 * replies <= (certificate.transitions.value or 0) <= most + 6


# --------------------------------------------------------------------------- what budgets tighten


def test_requests_are_visits_times_re_asks_where_no_guard_counts_them() -> None:
    steps = Visits("steps", 5, frozenset({"AWAIT_MODEL"}))
    certificate = certify(react(steps), costs=replace(KNOWN, model_retries=2, http_retries=1))
    assert certificate.model_requests.value == 5 * 3
    assert certificate.http_requests.value == 5 * 4
    assert certificate.tool_calls.value == 4 * 4
    assert certificate.tokens.value == 20 * 1000
    assert certificate.usd.value == 20.0


def test_a_budget_of_requests_bounds_them_and_the_repeats_of_the_last_piece_come_on_top() -> None:
    certificate = certify(react(StepBudget(5)), costs=KNOWN)
    assert certificate.model_requests.value == 5
    assert certificate.http_requests.value == 5 + 3


def test_few_visits_bound_requests_below_the_budget() -> None:
    two = Visits("visits", 2, frozenset({"AWAIT_MODEL"}))
    assert certify(react(AnyOf(two, StepBudget(50))), costs=KNOWN).model_requests.value == 2 * 3


@pytest.mark.parametrize("circumvented", [AllOf(Free("f"), StepBudget(3)), AllOf(StepBudget(3), Free("f"))])
def test_beyond_a_budget_that_can_be_passed_by_each_visit_makes_one_request(circumvented: Guard) -> None:
    four, seven = (Visits("visits", visits, frozenset({"AWAIT_MODEL"})) for visits in (4, 7))
    certificate = certify(react(AnyOf(four, circumvented)), costs=KNOWN)
    assert certificate.model_requests.value == 3 + 3, "all three at the first visit, and one at each of the others"
    assert certificate.http_requests.value == (3 + 3) + 3 * (1 + 3)
    assert certify(react(AnyOf(seven, circumvented)), costs=KNOWN).model_requests.value == 3 + 6


def test_a_budget_of_calls_must_be_asked_before_they_run() -> None:
    steps = Visits("steps", 9, frozenset({"AWAIT_MODEL"}))
    assert certify(react(AnyOf(steps, ToolCallBudget(3)))).tool_calls.value == 3
    assert certify(react(steps)).tool_calls.value is None
    assert str(certify(react(steps)).tool_calls) == "not limited"


def test_a_deadline_must_be_asked_between_all_that_takes_time() -> None:
    steps = Visits("steps", 3, frozenset({"AWAIT_MODEL"}))
    both = certify(react(AnyOf(steps, Deadline(30.0)), observed=Deadline(30.0)), costs=KNOWN)
    assert (both.seconds.value, both.seconds.at_most) == (30, True)
    once = certify(react(AnyOf(steps, Deadline(30.0))), costs=KNOWN)
    requests, repeats, calls = 3 * 6, 3 * 3, 2 * 4
    assert once.seconds.value == requests * 60 + repeats * 300 + calls * 10


@pytest.mark.parametrize("circumvented", [AllOf(Free("f"), Deadline(30.0)), AllOf(Deadline(30.0), Free("f"))])
def test_a_deadline_that_can_be_passed_by_bounds_nothing(circumvented: Guard) -> None:
    steps = Visits("steps", 3, frozenset({"AWAIT_MODEL"}))
    certificate = certify(react(AnyOf(steps, Deadline(30.0)), observed=circumvented), costs=KNOWN)
    assert (certificate.seconds.value or 0) > 1000


def test_budgets_of_tokens_and_money_leave_the_last_piece_over() -> None:
    steps = Visits("steps", 100, frozenset({"AWAIT_MODEL"}))
    certificate = certify(react(AnyOf(steps, TokenBudget(5000), CostBudget(2.0))), costs=KNOWN)
    assert certificate.tokens.value == 4999 + 6 * 1000
    assert certificate.usd.value == pytest.approx(2.0 + 6.0)


def test_a_request_may_be_cheaper_than_its_dearest_token_times_its_size() -> None:
    """Most of a request is prompt, and prompts are cheaper than replies."""
    steps = Visits("steps", 5, frozenset({"AWAIT_MODEL"}))
    costs = replace(KNOWN, model_retries=2, http_retries=1, usd_per_request=0.25)
    assert certify(react(steps), costs=costs).usd.value == pytest.approx(20 * 0.25)
    both = certify(react(AnyOf(steps, CostBudget(2.0))), costs=costs)
    assert both.usd.value == pytest.approx(2.0 + 4 * 0.25)
    few = certify(react(AnyOf(steps, TokenBudget(100))), costs=costs)
    assert few.usd.value == pytest.approx((99 + 4 * 1000) * 0.001)


def test_what_nobody_asks_money_for_costs_nothing() -> None:
    steps = Visits("steps", 5, frozenset({"AWAIT_MODEL"}))
    certificate = certify(react(steps), costs=Costs(usd_per_token=0.0, usd_per_request=0.0))
    assert (str(certificate.usd), certificate.usd.path) == ("0", ())
    assert certificate.tokens.value is None


def test_what_nobody_knows_is_not_limited() -> None:
    certificate = certified()
    assert certificate.tokens.value is None
    assert certificate.usd.value is None
    assert str(certificate.seconds).startswith("at most ")


@dataclass(frozen=True)
class Often(Counted):
    """One count, wherever it is asked."""


def test_a_counted_guard_has_one_count_for_all_the_places_where_it_is_asked() -> None:
    rows = [
        Row(MessageReceived, "DONE", "A"),
        Row(ModelAnswered, "A", "DONE", when=Often(3), rests=True),
        Row(ModelAnswered, "A", "B"),
        Row(ToolsExecuted, "B", "DONE", when=Often(3), rests=True),
        Row(ToolsExecuted, "B", "A"),
    ]
    workflow = table(rows, {"A": [ModelAnswered], "B": [ToolsExecuted]}, initial="DONE")
    assert certify(workflow).transitions.value == 1 + 3 + 1


# --------------------------------------------------------------------------- no run exceeds it

Kind = Literal["answer", "tools"]
replies = st.tuples(
    st.sampled_from(["tools", "tools", "tools", "answer"]), st.integers(0, 9), st.integers(0, 9), st.integers(1, 4)
)


@settings(max_examples=200)
@given(
    steps=st.integers(1, 6),
    calls=st.integers(1, 9),
    tokens=st.integers(1, 9000),
    retries=st.integers(0, 2),
    repeats=st.integers(0, 3),
    script=st.lists(replies, max_size=12),
)
def test_no_run_of_the_default_budgets_exceeds_a_figure(
    steps: int, calls: int, tokens: int, retries: int, repeats: int, script: list[tuple[Kind, int, int, int]]
) -> None:
    spent = AnyOf(StepBudget(steps), TokenBudget(tokens))
    workflow = react(AnyOf(spent, ToolCallBudget(calls)), observed=spent)
    costs = replace(KNOWN, model_retries=retries, http_retries=repeats)
    certificate = certify(workflow, costs=costs)
    conversation = workflow.advance(workflow.begin("c1", "C003"), MessageReceived(text="?"))
    requests = asked = ran = used = 0
    for kind, re_asks, faults, wanted in script:
        if conversation.resting:
            break
        # A model that does the most it may: re-asks while requests are left, and repeats after faults at the end.
        answers = 1 + min(re_asks, retries, max(1, steps - requests) - 1)
        made = answers + min(faults, repeats)
        requests, asked, used = requests + made, asked + answers, used + 1000 * made
        conversation = workflow.advance(conversation, _reply(kind, made, wanted))
        if conversation.state == "ACT":
            ran += wanted
            conversation = workflow.advance(conversation, ToolsExecuted(results=()))
            conversation = workflow.advance(conversation, ObservationAppended())
    assert conversation.seq <= (certificate.transitions.value or 0)
    assert asked <= (certificate.model_requests.value or 0)
    assert requests <= (certificate.http_requests.value or 0)
    assert ran <= (certificate.tool_calls.value or 0)
    assert used <= (certificate.tokens.value or 0)


def _reply(kind: Kind, requests: int, calls: int) -> ModelEvent:
    usage = Usage(prompt=1000 * requests)
    if kind == "answer":
        return ModelAnswered(content={"parts": [{"text": "!"}]}, requests=requests, usage=usage)
    parts = [{"functionCall": {"name": "look"}}] * calls
    return ToolsRequested(content={"parts": parts}, requests=requests, usage=usage)
