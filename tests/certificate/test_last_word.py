"""With a last word one request comes on top of the budget: the figures say so, and a model that does its worst gets there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm import Limits
from haru_fsm.certificate import Certificate, Costs, certify
from haru_fsm.conversation import (
    Conversation,
    MessageReceived,
    ModelAnswered,
    ModelEvent,
    ObservationAppended,
    ResultStatus,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
    Usage,
    has_last_word,
    last_request,
)
from haru_fsm.machine import Workflow
from haru_fsm.progress import Progress
from tests.engine.shopless import bare

WINDOW = 1000


class Reply(NamedTuple):
    """What a model would do in one piece of work, if it may."""

    kind: Literal["tools", "answer"] = "tools"
    re_asks: int = 0
    faults: int = 0
    calls: int = 1
    tokens: int = WINDOW


class Spent(NamedTuple):
    """What a run has really cost."""

    transitions: int
    visits: int = 0
    asked: int = 0
    requests: int = 0
    calls: int = 0
    tokens: int = 0
    last_words: int = 0


def certified(limits: Limits) -> tuple[Workflow, Certificate]:
    workflow = bare(limits).workflow
    return workflow, certify(workflow, limits=limits, costs=replace(Costs.of(limits), window_tokens=WINDOW))


def driven(workflow: Workflow, limits: Limits, script: list[Reply]) -> Spent:
    """A run whose model does as the script says, as far as it is told that requests are left."""
    conversation = workflow.advance(workflow.begin("c", "C1"), MessageReceived(text="?"))
    spent, replies = Spent(1), iter(script)
    while conversation.state == "AWAIT_MODEL" and (reply := next(replies, None)) is not None:
        progress = Progress()
        for step in conversation.steps:
            progress = progress.fold(step)
        left = max(1, limits.max_steps - progress.requests)
        asked = 1 + min(reply.re_asks, limits.model_retries, left - 1)
        made = asked + min(reply.faults, limits.http_retries)
        spent = spent._replace(
            visits=spent.visits + 1,
            asked=spent.asked + asked,
            requests=spent.requests + made,
            tokens=spent.tokens + reply.tokens * made,
            last_words=spent.last_words + has_last_word(conversation),
        )
        conversation = workflow.advance(conversation, _event(reply, made, spent.visits))
        if conversation.state == "EXECUTE_TOOLS":
            spent = spent._replace(calls=spent.calls + reply.calls)
            conversation = workflow.advance(conversation, _executed(conversation))
        if conversation.state == "APPEND_OBSERVATION":
            conversation = workflow.advance(conversation, _observed(conversation))
    return spent._replace(transitions=conversation.seq + (conversation.state == "ESCALATE_TICKET"))


def _event(reply: Reply, requests: int, visit: int) -> ModelEvent:
    spent: dict[str, Any] = {"requests": requests, "usage": Usage(prompt=reply.tokens * requests)}
    if reply.kind == "answer":
        return ModelAnswered(content={"parts": [{"text": "!"}]}, **spent)
    parts = [{"functionCall": {"name": "look", "args": {"n": f"{visit}.{n}"}}} for n in range(reply.calls)]
    return ToolsRequested(content={"parts": parts}, **spent)


def _executed(conversation: Conversation) -> ToolsExecuted:
    seq, request = last_request(conversation)
    done = (
        ToolResult(position=call.position, status=ResultStatus.DONE, response={"result": f"{seq}.{call.position}"})
        for call in request.calls
    )
    return ToolsExecuted(results=tuple(done))


def _observed(conversation: Conversation) -> ObservationAppended:
    """As the work of the state does it: what a row has refused is told, and what was run is there already."""
    step = conversation.steps[-1]
    if not isinstance(step.event, ToolsRequested):
        return ObservationAppended()
    return ObservationAppended(refusals={call.position: "no" for call in step.event.calls})


replies = st.builds(
    Reply,
    st.sampled_from(["tools", "tools", "tools", "tools", "answer"]),
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(1, 3),
    st.sampled_from([1, WINDOW]),
)
limited = st.builds(
    Limits,
    final_answer_without_tools=st.just(True),
    max_steps=st.integers(1, 6),
    max_tool_calls=st.integers(1, 8),
    token_budget=st.one_of(st.none(), st.integers(1, 9000)),
    model_retries=st.integers(0, 2),
    http_retries=st.integers(0, 3),
)


@given(limited, st.lists(replies, min_size=1, max_size=10))
@settings(max_examples=300, deadline=None)
def test_no_run_with_a_last_word_exceeds_a_figure(limits: Limits, script: list[Reply]) -> None:
    workflow, certificate = certified(limits)
    spent = driven(workflow, limits, script)
    assert spent.last_words <= 1
    assert spent.transitions <= (certificate.transitions.value or 0)
    assert spent.asked <= (certificate.model_requests.value or 0)
    assert spent.requests <= (certificate.http_requests.value or 0)
    assert spent.calls <= (certificate.tool_calls.value or 0)
    assert spent.tokens <= (certificate.tokens.value or 0)


@pytest.mark.parametrize("steps", [1, 2, 3, 8, 20])
def test_a_run_comes_as_far_as_the_figures_say(steps: int) -> None:
    limits = Limits(final_answer_without_tools=True, max_steps=steps)
    workflow, certificate = certified(limits)
    assert certificate.model_requests.value == steps + 1
    assert certificate.http_requests.value == (steps + 3) + (1 + 3)
    assert not certificate.model_requests.at_most
    spent = driven(workflow, limits, [Reply()] * (steps - 1) + [Reply(faults=3, re_asks=9)] * 2)
    assert (spent.asked, spent.requests) == (certificate.model_requests.value, certificate.http_requests.value)


def test_a_last_word_before_the_steps_are_spent_makes_use_of_those_that_are_left() -> None:
    limits = Limits(final_answer_without_tools=True, max_steps=6, max_tool_calls=1)
    workflow, certificate = certified(limits)
    assert certificate.model_requests.value == 6 + 1
    spent = driven(workflow, limits, [Reply(calls=2), Reply(re_asks=9)])
    assert (spent.asked, spent.last_words) == (1 + 3, 1)


def test_a_budget_of_tokens_leaves_two_pieces_of_work_over() -> None:
    """That which it is spent in, and the last word."""
    limits = Limits(final_answer_without_tools=True, max_steps=100, token_budget=5000)
    piece = WINDOW * (1 + limits.model_retries + limits.http_retries)
    assert certified(limits)[1].tokens.value == 4999 + 2 * piece
