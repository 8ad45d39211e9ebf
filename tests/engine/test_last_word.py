"""The last word: at a spent budget one request more, with tools off, where the limits choose it."""

from __future__ import annotations

from typing import Any

import pytest

from haru_fsm import Limits
from haru_fsm.certificate import certify
from haru_fsm.conversation import Answer
from haru_fsm.models import ModelRequest
from haru_fsm.models.scripted import ScriptedModel, calls
from haru_fsm.testing.strict import check_contents
from tests.engine.shopless import Tools, bare, engine

LIMITS: dict[str, Any] = {"final_answer_without_tools": True}


def looking(request: ModelRequest) -> Any:
    """Looks on and on, and answers when it may not."""
    if not request.tools_allowed:
        return "A는 배송중입니다. B는 확인하지 못했습니다."
    return [("look", {"what": str(len(request.contents))})]


@pytest.mark.parametrize("limits", [{"max_steps": 3}, {"max_tool_calls": 2, "max_steps": 9}])
async def test_the_last_request_has_no_tools_and_its_answer_ends_the_run(limits: dict[str, Any]) -> None:
    tools, model = Tools(), ScriptedModel(looking)
    async with engine(model, tools=tools, **LIMITS, **limits) as haru:
        done = await haru.ask("A와 B 어디 있나요?", customer_id="C1")
        record = await haru.store.load(done.conversation_id)
    assert (done.state, done.steps, done.ticket, done.stopped_by) == ("DONE", 4, None, None)
    assert done.answer.startswith("A는")
    assert [request.tools_allowed for request in model.requests] == [True, True, True, False]
    assert tools.runs.total() == 2
    assert record is not None
    assert [step.answer for step in record.steps if step.answer] == [Answer.LAST_WORD]
    assert check_contents(list(model.requests[-1].contents)) == []
    assert "no tool can be used any more" in str(model.requests[-1].contents[-1])


async def test_a_model_that_wants_tools_even_then_goes_to_a_person() -> None:
    model = ScriptedModel(lambda request: calls(("look", {"what": str(len(request.contents))})))
    async with engine(model, max_steps=3, **LIMITS) as haru:
        done = await haru.ask("A 어디 있나요?", customer_id="C1")
    assert (done.state, done.steps) == ("ESCALATE_TICKET", 4)
    assert done.stopped_by is not None
    assert "LastWord" in done.stopped_by.guard
    assert "StepBudget(3)" in done.stopped_by.guard


async def test_tokens_that_are_spent_on_the_way_leave_one_last_word() -> None:
    model = ScriptedModel(looking)
    async with engine(model, token_budget=1, **LIMITS) as haru:
        done = await haru.ask("A 어디 있나요?", customer_id="C1")
    assert (done.state, done.steps) == ("DONE", 2)


async def test_the_next_message_begins_with_tools_again() -> None:
    model = ScriptedModel(looking)
    async with engine(model, max_steps=2, **LIMITS) as haru:
        first = await haru.ask("하나", customer_id="C1")
        await haru.ask("둘", customer_id="C1", conversation_id=first.conversation_id)
    assert [request.tools_allowed for request in model.requests] == [True, True, False] * 2


def test_the_table_with_a_last_word_is_certified() -> None:
    limits = Limits(**LIMITS)
    certificate = certify(bare(limits).workflow, limits=limits)
    plain = certify(bare(Limits()).workflow, limits=Limits())
    assert isinstance(plain.transitions.value, int)
    assert certificate.transitions.value == plain.transitions.value + 2, "one request more, and its refusals before it"
    assert certificate.tool_calls.value == plain.tool_calls.value


async def test_a_resumption_does_not_take_the_last_word_back() -> None:
    async with engine(ScriptedModel(looking), max_steps=3, **LIMITS) as haru:
        first = await haru.ask("A 어디 있나요?", customer_id="C1")
        record = await haru.store.load(first.conversation_id)
        assert record is not None
        [given] = [step.seq for step in record.steps if step.answer is Answer.LAST_WORD]
        copy = await haru.fork(first.conversation_id, at=given)
    assert (copy.state, copy.answer, copy.stopped_by) == ("DONE", first.answer, None)
