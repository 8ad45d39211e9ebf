"""One conversation with Haru, to be read aloud."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from haru_fsm import Engine
from haru_fsm.conversation import FailureReason, ModelFailed, ResultStatus, Ticket, ToolsExecuted
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.stores.sqlite import SQLiteStore
from tests.engine.shopless import Tools, engine


async def test_a_day_at_the_counter() -> None:
    tools = Tools()
    model = ScriptedModel(
        [
            [("look", {"what": "orders"})],
            [("look", {"what": "A"}), ("look", {"what": "B"})],
            "A와 B 모두 배송중입니다.",
            [("pay", {"what": "A"})],
            "결제했습니다.",
            ModelFailed(reason=FailureReason.SERVER, detail="overloaded"),
            "어제 일은 해결되었습니다.",
        ]
    )
    async with engine(model, tools=tools) as haru:
        # The customer asks; the model looks twice, and answers.
        first = await haru.ask("제 주문 어디 있나요?", customer_id="C1")
        assert (first.state, first.answer) == ("DONE", "A와 B 모두 배송중입니다.")
        assert (first.steps, first.tool_runs, first.ticket, first.stopped_by) == (3, 3, None, None)

        # The same conversation goes on, and an effect takes place, once.
        paid = await haru.ask(
            "A 결제해 주세요", customer_id="C1", conversation_id=first.conversation_id, message_id="m2"
        )
        assert (paid.answer, tools.runs["pay(A)"]) == ("결제했습니다.", 1)

        # The customer's phone sends the message a second time: the same run, the same reply.
        again = await haru.ask(
            "A 결제해 주세요", customer_id="C1", conversation_id=first.conversation_id, message_id="m2"
        )
        assert again == paid
        assert tools.runs["pay(A)"] == 1

        # The model's server is down: a ticket really exists, and the customer reads its number.
        failed = await haru.ask("환불은요?", customer_id="C1", conversation_id=first.conversation_id)
        assert failed.state == "ESCALATE_TICKET"
        assert failed.ticket is not None
        assert failed.ticket.ticket_id in failed.answer
        assert failed.stopped_by is not None
        assert "server" in failed.stopped_by.because
        assert "환불은요?" in failed.ticket.summary
        assert [stored.ticket for stored in await haru.store.tickets()] == [failed.ticket]

        # A person answers, and the conversation goes on with what they said in it.
        await haru.close_ticket(failed.ticket.ticket_id, "환불해 드렸습니다.")
        last = await haru.ask("고마워요", customer_id="C1", conversation_id=first.conversation_id)
        assert last.answer == "어제 일은 해결되었습니다."
        assert "환불해 드렸습니다." in str(model.requests[-1].contents)


async def test_a_rehearsal_touches_no_desk_but_its_own() -> None:
    filed: list[str] = []

    class TheirDesk:
        def open(self, ticket: Ticket) -> Ticket:
            filed.append(ticket.key)
            return ticket

    haru = engine(ScriptedModel([[("look", {"what": "A"})], "A는 배송중입니다."]))
    haru = Engine(haru.app, model=haru.model, store=haru.store, clock=haru.clock, desk=TheirDesk())
    async with haru:
        first = await haru.ask("A 어디 있나요?", customer_id="C1")
        rehearsed = await haru.fork(first.conversation_id, at=4)  # the script is over: the rehearsal ends in a ticket
        assert rehearsed.ticket is not None
        assert rehearsed.ticket.rehearsal
        assert filed == []


async def test_a_rehearsal_knows_what_was_done_however_the_model_spelled_it() -> None:
    tools = Tools()
    async with engine(
        ScriptedModel([[("default_api.pay", {"what": "A"})], "냈습니다.", "냈습니다."]), tools=tools
    ) as haru:
        first = await haru.ask("A 결제해 주세요", customer_id="C1")
        rehearsed = await haru.fork(first.conversation_id, at=2)
        record = await haru.store.load(rehearsed.conversation_id)
        assert record is not None
        [result] = next(step.event.results for step in record.steps if isinstance(step.event, ToolsExecuted))
        assert (result.status, result.response) == (ResultStatus.DONE, {"result": {"paid": "A"}})
        assert tools.runs == {"pay(A)": 1}


async def test_an_outcome_that_comes_after_its_time_is_written_down() -> None:
    let_go = threading.Event()

    def slow(what: str) -> dict[str, str]:
        let_go.wait(5)
        return {"paid": what}

    model = ScriptedModel([[("pay", {"what": "A"})], "결제했습니다."])
    async with engine(model, tools=Tools(pay=slow), tool_timeout_s=0.05) as haru:
        doubtful = await haru.ask("A 결제해 주세요", customer_id="C1")
        assert doubtful.state == "ESCALATE_TICKET", "words of the model do not settle what is in doubt"
        let_go.set()
        for _ in range(500):
            record = await haru.store.load(doubtful.conversation_id)
            assert record is not None
            (entry,) = record.ledger.values()
            if entry.outcome is not None:
                break
            await asyncio.sleep(0.01)
    assert entry.outcome is not None
    assert entry.outcome.response == {"result": {"paid": "A"}}


async def test_an_outcome_that_comes_after_the_engine_was_closed_leaves_the_call_in_doubt(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    let_go, gone, before = threading.Event(), threading.Event(), set(threading.enumerate())

    def slow(what: str) -> dict[str, str]:
        let_go.wait(5)
        gone.set()
        return {"paid": what}

    model = ScriptedModel([[("pay", {"what": "A"})], "결제했습니다."])
    store = SQLiteStore(tmp_path / "haru.db")
    async with engine(model, tools=Tools(pay=slow), store=store, tool_timeout_s=0.05) as haru:
        doubtful = await haru.ask("A 결제해 주세요", customer_id="C1")
    let_go.set()
    assert gone.wait(5)
    for _ in range(500):
        if caplog.messages:
            break
        await asyncio.sleep(0.01)
    assert "came after the engine was closed" in caplog.text
    assert "2.0" in caplog.text
    fresh = SQLiteStore(tmp_path / "haru.db")
    record = await fresh.load(doubtful.conversation_id)
    assert record is not None
    assert record.ledger["2.0"].outcome is None
    await fresh.aclose()
    assert not [new for new in set(threading.enumerate()) - before if new.name == "haru-writer"]
