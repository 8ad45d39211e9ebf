"""A fork knows what was done in the conversations before it, however many they are."""

from __future__ import annotations

import pytest

from haru_fsm.conversation import ResultStatus, executed
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.stores import Outcome
from tests.engine.shopless import Tools, broken, engine


async def test_a_rehearsal_of_a_rehearsal_knows_what_was_done_as_well() -> None:
    tools = Tools()
    model = ScriptedModel([[("pay", {"what": "A"})], "냈습니다."] * 3)
    async with engine(model, tools=tools) as haru:
        run = await haru.ask("A 결제해 주세요", customer_id="C1")
        for _ in range(2):
            run = await haru.fork(run.conversation_id, at=1)
            record = await haru.store.load(run.conversation_id)
            assert record is not None
            [(_, _, result)] = executed(record.steps)
            assert (result.status, result.response) == (ResultStatus.DONE, {"result": {"paid": "A"}})
    assert tools.runs == {"pay(A)": 1}


@pytest.mark.parametrize("generations", [1, 2])
async def test_a_live_fork_does_not_do_again_what_its_run_has_done_already(generations: int) -> None:
    tools = Tools()
    pay = [("pay", {"what": "A"})]
    async with engine(ScriptedModel([pay, "냈습니다.", pay, "냈습니다.", pay, "냈습니다."]), tools=tools) as haru:
        run = await haru.ask("A 결제해 주세요", customer_id="C1")
        for _ in range(generations):
            run = await haru.fork(run.conversation_id, at=4, live=True)
        record = await haru.store.load(run.conversation_id)
        assert record is not None
        _, again = (result for _, _, result in executed(record.steps))
        assert (again.ran, again.response["result"]) == (False, {"paid": "A"})
    assert tools.runs == {"pay(A)": 1}


async def test_a_live_fork_that_does_not_share_an_effect_has_its_own() -> None:
    tools = Tools()
    async with engine(ScriptedModel([[("pay", {"what": "A"})], "냈습니다."] * 2), tools=tools) as haru:
        run = await haru.ask("A 결제해 주세요", customer_id="C1")
        await haru.fork(run.conversation_id, at=1, live=True)
    assert tools.runs == {"pay(A)": 2}


async def test_a_live_fork_reads_how_a_doubt_of_the_steps_that_it_shares_has_ended() -> None:
    tools = Tools(pay=broken)
    pay = [("pay", {"what": "A"})]
    async with engine(ScriptedModel([pay, "모르겠습니다.", pay, "결제했습니다."]), tools=tools) as haru:
        doubtful = await haru.ask("A 결제해 주세요", customer_id="C1")
        assert doubtful.state == "ESCALATE_TICKET"
        paid = Outcome(status=ResultStatus.DONE, response={"result": {"paid": "A"}}, by="person")
        settled = await haru.settle(doubtful.conversation_id, "2.0", paid)
        assert settled == paid.model_copy(update={"at": haru.clock.now()})
        forked = await haru.fork(doubtful.conversation_id, at=4, live=True)
        assert (forked.state, forked.answer) == ("DONE", "결제했습니다.")
    assert tools.runs == {"pay(A)": 1}
