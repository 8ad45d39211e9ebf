"""Law 4 from inside one process: what the ledger knows is used, whoever wrote it and whenever it comes to light."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

import pytest

from haru_fsm import Engine, IdempotencyKey, tool
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import ResultStatus, executed
from haru_fsm.execution import REPEATED_NOTE
from haru_fsm.ledger import doubts, inherited
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.stores import LedgerEntry, Outcome, Started
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.testing.crashes import Crashed, Crasher, CrashingStore, CrashPoint
from tests.engine.shopless import Makes, Tools, Where, broken, engine, not_done, record_of

HERE = Where(customer_id="C1", conversation_id="c-1")
PAY = [("pay", {"what": "A"})]
THEIRS = Outcome(status=ResultStatus.DONE, response={"result": "somebody else's"}, at=1.0)


async def results_of(haru: Engine) -> list[tuple[ResultStatus, Any]]:
    """How each call of the conversation has ended, and what it brought."""
    steps = (await record_of(haru, "c-1")).steps
    return [(result.status, result.response.get("result")) for _, _, result in executed(steps)]


@pytest.mark.parametrize("ended", [True, False], ids=["with an outcome", "without one"])
async def test_whoever_loses_the_claim_does_not_run_the_call(ended: bool) -> None:
    class Contested(MemoryStore):
        """Somebody else claims each call just before."""

        async def note(self, conversation_id: str, call: str, what: Started | Outcome) -> bool:
            if isinstance(what, Started):
                await super().note(conversation_id, call, what)
                if ended:
                    await super().note(conversation_id, call, THEIRS)
            return await super().note(conversation_id, call, what)

    tools = Tools()
    async with engine(ScriptedModel([PAY, "냈습니다."]), tools=tools, store=Contested()) as haru:
        run = await haru.ask("내 주세요", **HERE)
        assert not tools.runs
        [(status, said)] = await results_of(haru)
        assert (status, said) == ((ResultStatus.DONE, "somebody else's") if ended else (ResultStatus.IN_DOUBT, None))
        assert (run.ticket is None) is ended


async def test_the_first_outcome_stays_and_is_what_the_model_reads() -> None:
    store = MemoryStore()

    @tool(read_only=False)
    async def pay(what: str) -> str:
        """Pay; meanwhile a person says how it ended."""
        await store.note("c-1", "2.0", THEIRS)
        return what

    made = engine(ScriptedModel([PAY, "냈습니다."]), store=store)
    async with Engine(made.app.with_tools(lambda _session: [pay]), model=made.model, store=store) as haru:
        await haru.ask("내 주세요", **HERE)
        assert await results_of(haru) == [(ResultStatus.DONE, "somebody else's")]


async def test_a_read_that_came_back_before_a_crash_is_not_made_again() -> None:
    """Two at once: one comes back and fails to end the run, for the other hangs until the process is gone."""
    runs: list[str] = []
    hangs, came = asyncio.Event(), asyncio.Event()

    def looks(hang: bool) -> Callable[[Any], list[Callable[..., Any]]]:
        @tool(read_only=True)
        async def look(what: str) -> str:
            """Look something up."""
            runs.append(what)
            if what == "slow" and hang:
                hangs.set()
                await asyncio.Event().wait()
            return f"{what} {len(runs)}"

        return lambda _session: [look]

    class Telling(MemoryStore):
        async def note(self, conversation_id: str, call: str, what: Started | Outcome) -> bool:
            noted = await super().note(conversation_id, call, what)
            came.set()
            return noted

    store, clock = Telling(), FakeClock()
    both = [("look", {"what": "slow"}), ("look", {"what": "quick"})]
    made = engine(ScriptedModel([both, "네."]), store=store, clock=clock)

    def again(hang: bool) -> Engine:
        return Engine(made.app.with_tools(looks(hang)), model=made.model, store=store, clock=clock)

    asking = asyncio.create_task(again(True).ask("어디쯤 왔나요?", **HERE))
    await asyncio.gather(hangs.wait(), came.wait())
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    haru = again(False)
    assert (await haru.resume("c-1")).answer == "네."
    assert runs == ["slow", "quick", "slow"]
    assert [said for _, said in await results_of(haru)] == ["slow 3", "quick 2"]


# --------------------------------------------------------------------------- a crash between an effect and its outcome


@pytest.mark.parametrize(("name", "runs"), [("pay", 1), ("book", 2)])
async def test_an_effect_whose_outcome_a_crash_has_swallowed_runs_again_only_under_its_key(
    name: str, runs: int
) -> None:
    keys, tools = list[str](), Tools()
    model = ScriptedModel([[(name, {"what": "A"})], "됐습니다."])

    def made(session: Any) -> list[Callable[..., Any]]:
        look, pay, _ = tools.make(session)

        @tool(read_only=False, idempotent=True)
        def book(what: str, key: Annotated[str, IdempotencyKey]) -> str:
            """Book something under a key."""
            keys.append(key)
            tools.runs[f"book({what})"] += 1
            return what

        return [look, pay, book]

    crasher = Crasher(CrashPoint("write", 4, "before"), in_process=True)  # message, reply, started: then the outcome
    store = MemoryStore()
    base = engine(model, store=store)
    dying = Engine(base.app.with_tools(made), model=model, store=CrashingStore(store, crasher))
    with pytest.raises(Crashed):
        await dying.ask("해 주세요", **HERE)
    haru = Engine(base.app.with_tools(made), model=model, store=store)
    run = await haru.resume("c-1")
    assert tools.runs == {f"{name}(A)": runs}
    assert len(set(keys)) == runs - 1, "one key, however often"
    assert (run.ticket is None) is (name == "book")


# --------------------------------------------------------------------------- the same effect again


async def twice(tools: Makes, *, again: str = "A", died: bool = False) -> tuple[Engine, list[dict[str, Any]]]:
    """The model asks for the same in two replies (and the process may be gone in between); what it read of both."""
    model = ScriptedModel([PAY, [("pay", {"what": again})], "네."])
    haru = engine(model, tools=tools)
    if died:
        crasher = Crasher(CrashPoint("write", 6, "after"), in_process=True)  # the second reply, before its call
        with pytest.raises(Crashed):
            await engine(model, tools=tools, store=CrashingStore(haru.store, crasher)).ask("내 주세요", **HERE)
        await haru.resume("c-1")
    else:
        await haru.ask("내 주세요", **HERE)
    steps = (await record_of(haru, "c-1")).steps
    return haru, [result.response for _, _, result in executed(steps)]


@pytest.mark.parametrize("died", [False, True])
async def test_the_same_effect_again_in_a_run_is_told_and_not_made(died: bool) -> None:
    tools = Tools()
    haru, (first, second) = await twice(tools, died=died)
    assert tools.runs == {"pay(A)": 1}
    assert second == {**first, "note": REPEATED_NOTE}
    again = engine(ScriptedModel([PAY, "네."]), tools=tools, store=haru.store)
    await again.ask("또 내 주세요", **HERE)
    assert tools.runs == {"pay(A)": 2}, "another message may want it again"


async def test_other_arguments_are_another_effect() -> None:
    tools = Tools()
    await twice(tools, again="B")
    assert tools.runs == {"pay(A)": 1, "pay(B)": 1}


async def test_what_was_not_done_may_be_asked_for_again() -> None:
    tools = Tools(pay=not_done)
    await twice(tools)
    assert tools.runs == {"pay(A)": 2}


@pytest.mark.parametrize("marks", [{}, {"read_only": False, "repeatable": True}], ids=["undeclared", "repeatable"])
async def test_what_states_no_effect_or_may_be_repeated_runs_again(marks: dict[str, Any]) -> None:
    ran: list[str] = []

    class Undeclared:
        def make(self, _session: Any) -> list[Callable[..., Any]]:
            def pay(what: str) -> str:
                """Pay."""
                ran.append(what)
                return what

            return [tool(**marks)(pay) if marks else pay]

    await twice(Undeclared())
    assert ran == ["A", "A"]


async def test_the_same_effect_again_is_in_doubt_where_the_first_one_is() -> None:
    tools = Tools(pay=broken)
    haru, (_, second) = await twice(tools)
    assert tools.runs == {"pay(A)": 1}
    assert "not known" in second["error"]
    assert len(await haru.store.tickets()) == 1


# --------------------------------------------------------------------------- what is read out of a ledger


STARTED = Started(run=2, name="pay", digest="d")
ENTRIES = [
    LedgerEntry("2.0", Started(run=1, name="pay", digest="d")),
    LedgerEntry("2.1", Started(run=1, name="pay", digest="d"), THEIRS),
    LedgerEntry("7.0", STARTED),
    LedgerEntry("7.1", STARTED, THEIRS),
    LedgerEntry("7.2", None, THEIRS),  # a read that came back before its siblings
]


@pytest.mark.parametrize(("run", "calls"), [(None, ["2.0", "7.0"]), (1, ["2.0"]), (2, ["7.0"]), (3, [])])
def test_in_doubt_is_what_was_started_and_has_no_outcome(run: int | None, calls: list[str]) -> None:
    assert [entry.call for entry in doubts(ENTRIES, run=run)] == calls


async def test_a_fork_takes_over_the_effects_of_its_own_journal_as_the_nearest_ledger_knows_them() -> None:
    both = [("look", {"what": "A"}), ("pay", {"what": "A"}), ("pay", {"what": "A"})]
    async with engine(ScriptedModel([both, "네."])) as haru:
        await haru.ask("내 주세요", **HERE)
        steps = (await record_of(haru, "c-1")).steps
    near, far = LedgerEntry("2.1", STARTED, THEIRS), LedgerEntry("2.1", STARTED)
    known = [near, LedgerEntry("9.0", STARTED), LedgerEntry("2.0", STARTED), LedgerEntry("2.2", STARTED), far]
    assert inherited(steps, known) == {"2.1": near}, "a read, what was not run and what came later are not among them"
    assert inherited(steps, []) == {}
