"""Laws 1, 2, 5: every run ends, within the certificate, in exactly one ending, with valid requests only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm import Limits
from haru_fsm.certificate import certify
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import FailureReason, ModelAnswered, ModelFailed, TicketOpened, Usage, executed
from haru_fsm.models.scripted import Line, ScriptedModel, answer, calls
from haru_fsm.testing.strict import check_contents
from tests.engine.shopless import Tools, bare, broken, engine, not_done

wanted = st.tuples(
    st.sampled_from(["look", "pay", "book", "nothing_like_it", "default_api.look"]),
    st.sampled_from([{"what": "A"}, {"what": "B"}, {}, {"what": 3}, {"what": None}, {"what": "A", "tool_code": "x"}]),
)
replies = st.one_of(
    st.sampled_from(["네.", "", "티켓 HT-1234567890을 접수했습니다.", "상담 티켓이 접수되었습니다."]).map(answer),
    st.builds(
        lambda asked, text, tokens: calls(*asked, text=text, usage=Usage(prompt=tokens)),
        st.lists(wanted, min_size=1, max_size=3),
        st.sampled_from(["", "확인해 볼게요"]),
        st.integers(0, 900),
    ),
    st.builds(ModelFailed, reason=st.sampled_from(FailureReason), requests=st.integers(1, 4)),
)
behaviours = st.sampled_from(
    [broken, not_done, lambda a: "x" * 40_000, lambda a: {1: float("nan"), "s": "\ud800"}, lambda a: None]
)
limits = st.fixed_dictionaries(
    {"max_steps": st.integers(1, 9), "max_tool_calls": st.integers(1, 9), "loop_nudges": st.integers(0, 3)},
    optional={"token_budget": st.integers(1, 3000), "loop_repeats": st.integers(2, 4), "deadline_s": st.just(0.5)},
)


@given(
    script=st.lists(replies, max_size=12),
    does=st.dictionaries(st.sampled_from(["look", "pay", "book"]), behaviours),
    chosen=limits,
)
@settings(max_examples=150, deadline=None)
def test_every_run_ends_once_within_its_certificate(
    script: list[Line], does: dict[str, Callable[[str], Any]], chosen: dict[str, Any]
) -> None:
    async def run() -> None:
        model, tools = ScriptedModel(script), Tools(**does)
        async with engine(model, tools=tools, **chosen) as haru:
            done = await haru.ask("주문 확인해 주세요", customer_id="C1")
            record = await haru.store.load(done.conversation_id)
            assert record is not None
            certificate = certify(haru.app.workflow, limits=haru.app.limits)

            assert done.finished
            assert certificate.transitions.value is not None
            assert len(record.steps) <= certificate.transitions.value
            assert certificate.model_requests.value is not None
            assert len(model.requests) <= certificate.model_requests.value
            assert done.tool_runs == sum(tools.runs.values()) <= chosen["max_tool_calls"]
            endings = [step for step in record.steps if step.rests]
            assert len(endings) == 1
            assert endings[0] is record.steps[-1]

            filed = [stored.ticket for stored in await haru.store.tickets()]
            match endings[0].event:
                case ModelAnswered():
                    assert (done.state, filed, done.answer) == ("DONE", [], endings[0].event.text)
                case TicketOpened(ticket=ticket):
                    assert (done.state, filed) == ("ESCALATE_TICKET", [ticket])
                    assert ticket.ticket_id in done.answer
                    assert done.stopped_by is not None
                case _:
                    raise AssertionError(endings[0])
            for request in model.requests:
                assert check_contents(list(request.contents)) == []

    asyncio.run(run())


async def test_at_the_limit_the_last_calls_are_not_run_and_a_ticket_is_filed_with_the_step() -> None:
    tools = Tools()
    model = ScriptedModel(lambda request: [("look", {"what": str(len(request.contents))})])
    async with engine(model, tools=tools) as haru:
        done = await haru.ask("언제 오나요?", customer_id="C1")
        record = await haru.store.load(done.conversation_id)
    assert record is not None
    assert (done.state, done.steps, done.tool_runs) == ("ESCALATE_TICKET", 8, 7)
    assert done.ticket is not None
    assert (done.ticket.category, done.ticket.urgency) == ("기타", "보통")
    for word in ("언제 오나요?", "look(", "배송중", "StepBudget"):
        assert word in done.ticket.summary
    assert done.stopped_by is not None
    assert (done.stopped_by.figure, done.stopped_by.limit) == (8, 8)


async def test_a_stubborn_loop_costs_five_requests_and_two_runs() -> None:
    tools, model = Tools(), ScriptedModel(lambda _: [("look", {"what": "A"})])
    async with engine(model, tools=tools) as haru:
        done = await haru.ask("A 어디 있나요?", customer_id="C1")
    assert (done.steps, tools.runs["look(A)"]) == (5, 2)
    assert done.stopped_by is not None
    assert "Nudged" in done.stopped_by.guard
    refusals = [
        part for content in model.requests[-1].contents for part in content["parts"] if "was not run" in str(part)
    ]
    assert len(refusals) == 2


async def test_a_loop_that_ends_after_the_nudge_is_an_answer() -> None:
    model = ScriptedModel([*[[("look", {"what": "A"})]] * 3, "A는 배송중입니다."])
    async with engine(model) as haru:
        done = await haru.ask("A 어디 있나요?", customer_id="C1")
    assert (done.state, done.steps) == ("DONE", 4)


async def test_invalid_calls_are_told_why_and_end_at_the_fourth() -> None:
    tools, model = Tools(), ScriptedModel(lambda _: [("look", {})])
    async with engine(model, tools=tools) as haru:
        done = await haru.ask("뭐든지요", customer_id="C1")
    assert (done.state, done.steps, done.tool_runs) == ("ESCALATE_TICKET", 4, 0)
    assert done.ticket is not None
    assert "invalid arguments" in done.ticket.summary


async def test_a_later_escalation_adds_to_the_open_ticket() -> None:
    async with engine(ScriptedModel([])) as haru:
        first = await haru.ask("하나", customer_id="C1")
        second = await haru.ask("둘", customer_id="C1", conversation_id=first.conversation_id)
        stored = await haru.store.tickets()
    assert first.ticket == second.ticket
    assert len(stored) == 1
    assert "둘" in stored[0].notes[0]


@pytest.mark.parametrize("max_steps", [1, 2, 5])
async def test_more_steps_are_more_steps(max_steps: int) -> None:
    model = ScriptedModel(lambda request: [("look", {"what": str(len(request.contents))})])
    async with engine(model, max_steps=max_steps) as haru:
        assert (await haru.ask("?", customer_id="C1")).steps == max_steps


def test_the_default_table_is_certified() -> None:
    certificate = certify(bare(Limits()).workflow, limits=Limits())
    assert certificate.model_requests.value == 8
    assert certificate.tool_calls.value == 40


async def test_what_there_is_no_time_for_is_not_begun_and_so_is_in_no_doubt() -> None:
    clock = FakeClock()
    tools = Tools(look=lambda what: clock.advance(10) if what == "A" else "never")
    asked = [("look", {"what": "A"}), ("pay", {"what": "B"}), ("look", {"what": "C"})]
    async with engine(ScriptedModel([asked, "네."]), tools=tools, clock=clock, deadline_s=5) as haru:
        done = await haru.ask("B 내 주세요", customer_id="C1")
        record = await haru.store.load(done.conversation_id)
    assert dict(tools.runs) == {"look(A)": 1}
    assert record is not None
    assert record.ledger == {}
    results = [result for _, _, result in executed(record.steps)]
    assert [(result.status, result.ran) for result in results] == [
        ("done", True),
        ("not_done", False),
        ("failed", False),
    ]
    assert done.stopped_by is not None
    assert done.stopped_by.guard == "Deadline(5.0)"
    assert done.ticket is not None
    assert '요청되었으나 실행하지 않은 일: pay({"what": "B"}); look({"what": "C"})' in done.ticket.summary
