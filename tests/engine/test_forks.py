"""A fork knows what was done in the conversations before it, however many they are."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from haru_fsm.conversation import ResultStatus, executed
from haru_fsm.errors import JournalDamaged, SettingsError
from haru_fsm.models.scripted import Line, ScriptedModel
from haru_fsm.stores import Outcome, Store
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.stores.sqlite import SQLiteStore
from tests.engine.shopless import Tools, broken, engine, not_done
from tests.engine.test_approvals import Counter, wipe


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "haru.db")


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


async def test_a_rehearsal_makes_nothing_and_knows_only_what_is_known() -> None:
    """What was done is answered as it was; what was not, or is in doubt, or has other arguments, is refused."""

    def pays(what: str) -> Any:
        return not_done(what) if what == "sold out" else broken(what) if what == "broken" else {"paid": what}

    tools = Tools(pay=pays)
    reads = [("look", {"what": "A"}), ("look", {"what": "B"})]
    did: list[tuple[str, dict[str, Any]]] = [("pay", {"what": what}) for what in ("done", "sold out", "broken")]
    script: list[Line] = [[*reads, *did], "네.", [*reads, *did, ("pay", {"what": "new"}), ("book", {"what": "done"})]]
    async with engine(ScriptedModel([*script, "네."]), tools=tools) as haru:
        run = await haru.ask("결제해 주세요", customer_id="C1")
        forked = await haru.fork(run.conversation_id, at=1)
        record = await haru.store.load(forked.conversation_id)
        assert record is not None
        told = [result for _, _, result in executed(record.steps)]
    assert [result.ran for result in told] == [True] * 2 + [False] * 5
    assert [result.status for result in told] == [ResultStatus.DONE] * 3 + [ResultStatus.NOT_DONE] * 4
    assert told[2].response == {"result": {"paid": "done"}}
    assert ["rehearsal" in str(result.response) for result in told] == [False] * 4 + [True] * 3
    assert [tools.runs[f"look({what})"] for what in "AB"] == [2, 2]
    assert sum(tools.runs.values()) == 4 + 3


async def test_a_fork_shares_from_one_step_to_all_of_them() -> None:
    async with engine(ScriptedModel(["네."] * 2)) as haru:
        run = await haru.ask("안녕하세요", customer_id="C1")
        for none in (-1, 0, 3):
            with pytest.raises(SettingsError, match=f"--at {none} "):
                await haru.fork(run.conversation_id, at=none)
        assert len(await haru.store.conversations()) == 1
        for at in (1, 2):
            assert (await haru.fork(run.conversation_id, at=at)).answer == "네."


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


@pytest.mark.parametrize("live", [True, False])
async def test_damage_of_the_conversation_before_it_is_not_the_fork_s(tmp_path: Path, live: bool) -> None:
    path, tools = tmp_path / "haru.db", Tools()
    script: list[Line] = [[("look", {"what": "A"})], "배송중입니다.", "네.", [("pay", {"what": "A"})], "확인했습니다."]
    async with engine(ScriptedModel(script), tools=tools, store=SQLiteStore(path)) as haru:
        first = await haru.ask("A 어디 있어요?", customer_id="C1")
        forked = await haru.fork(first.conversation_id, at=4, live=live)
        with closing(sqlite3.connect(path, isolation_level=None)) as by_hand:
            where = "(SELECT number FROM conversations WHERE conversation_id = ?)"
            by_hand.execute(
                f"UPDATE steps SET run = 9 WHERE seq = 2 AND conversation = {where}", (first.conversation_id,)
            )
        with pytest.raises(JournalDamaged):
            await haru.resume(first.conversation_id)
        run = await haru.ask("A 결제해 주세요", customer_id="C1", conversation_id=forked.conversation_id)
        assert (run.state, run.answer) == ("DONE", "확인했습니다.")
    assert tools.runs["pay(A)"] == live


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


@pytest.mark.parametrize("generations", [1, 2])
async def test_a_live_fork_under_way_keeps_those_that_know_what_its_run_has_done(
    store: Store, generations: int
) -> None:
    """Its parent has long rested, and would be forgotten: with it what the fork must not do again."""
    tools = Counter()
    pay: Line = [("pay", {"what": "A"})]
    script: list[Line] = [pay, "냈습니다.", *["네."] * (generations - 1), [*wipe("B")], pay, "다 했습니다."]
    async with engine(ScriptedModel(script), tools=tools, store=store) as haru:
        run = await haru.ask("A 결제하고 B 지워 주세요", customer_id="C1")
        for _ in range(generations):
            run = await haru.fork(run.conversation_id, at=4, live=True)
        assert run.waiting
        assert await haru.store.prune(4e9) == 0
        done = await haru.approve(run.conversation_id, run.waiting[0].call)
        assert (done.state, done.answer) == ("DONE", "다 했습니다.")
        assert await haru.store.prune(4e9) == generations + 1
    assert tools.runs == {"pay(A)": 1, "wipe(B, 1)": 1}
