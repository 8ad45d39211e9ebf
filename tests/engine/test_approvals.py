"""Approval: what a person agreed to runs once, with exactly those arguments, and nothing else that waits runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from haru_fsm import App, Engine, Run, Workflow, tool
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import (
    ApprovalDecided,
    ApprovalRequested,
    Conversation,
    FailureReason,
    MessageHeld,
    MessageReceived,
    ModelFailed,
    ToolsExecuted,
    last_request,
)
from haru_fsm.errors import ConversationBusy, StoreError, ToolError, UnknownCall
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.notices import KOREAN
from haru_fsm.services import Services
from haru_fsm.stores import Store
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.testing.strict import check_contents
from tests.engine.shopless import Tools, Where, broken, engine, record_of


class Counter(Tools):
    """The three small tools, and one that cannot be taken back."""

    def make(self, session: Any) -> list[Callable[..., Any]]:
        @tool(read_only=False, destructive=True, approval=True)
        def wipe(what: str, how_much: int = 1) -> Any:
            """Wipe something out.

            Args:
                what: What.
            """
            return self._do("wipe", f"{what}, {how_much}", {"wiped": what})

        return [*super().make(session), wipe]


def wipe(*what: str) -> list[tuple[str, dict[str, Any]]]:
    return [("wipe", {"what": each}) for each in what]


def results(haru: Engine, number: int) -> list[dict[str, Any]]:
    """The responses at the end of the model's n-th request."""
    assert isinstance(haru.model, ScriptedModel)
    contents = haru.model.requests[number - 1].contents
    assert check_contents(list(contents)) == []
    return [part["functionResponse"]["response"] for part in contents[-1]["parts"] if "functionResponse" in part]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "haru.db")


async def test_what_was_approved_runs_once_and_the_run_goes_on(store: Store) -> None:
    tools, model = Counter(), ScriptedModel([wipe("A"), "지웠습니다."])
    async with engine(model, tools=tools, store=store) as haru:
        paused = await haru.ask("A 지워 주세요", customer_id="C1", message_id="m1")
        assert (paused.finished, paused.state, paused.answer) == (False, "EXECUTE_TOOLS", KOREAN.waiting)
        [asked] = paused.waiting
        assert (asked.call, asked.tool, asked.args) == ("2.0", "wipe", {"what": "A"})
        assert not tools.runs
        assert await haru.ask("A 지워 주세요", customer_id="C1", message_id="m1") == paused
        assert await haru.resume(paused.conversation_id) == paused
        assert await haru.resume_all() == []

        done = await haru.approve(paused.conversation_id, "2.0", by=" kim\ud800\n")
        assert (done.finished, done.answer, done.waiting) == (True, "지웠습니다.", ())
        assert done.run_id == paused.run_id
        assert done.reply_id != paused.reply_id, "a channel must not take the answer for the notice once more"
        assert dict(tools.runs) == {"wipe(A, 1)": 1}
        with pytest.raises(UnknownCall, match="approved by kim\ufffd\\."):
            await haru.approve(paused.conversation_id, "2.0")
        assert results(haru, 2) == [{"result": {"wiped": "A"}}]


async def test_a_denial_is_an_observation() -> None:
    tools, model = Counter(), ScriptedModel([wipe("A"), "지우지 않았습니다."])
    async with engine(model, tools=tools) as haru:
        paused = await haru.ask("A 지워 주세요", customer_id="C1")
        done = await haru.deny(paused.conversation_id, "2.0", reason=" 아직 쓰는 중\ud800\n", by="\tkim\ud800 ")
        assert (done.state, done.answer, done.tool_runs) == ("DONE", "지우지 않았습니다.", 0)
        [told] = results(haru, 2)
        assert told["error"].endswith("Their reason: 아직 쓰는 중\ufffd")
        assert not tools.runs
        with pytest.raises(UnknownCall, match="denied by kim\ufffd\\."):
            await haru.approve(paused.conversation_id, "2.0")


@pytest.mark.parametrize("how", ["denied", "expired"])
async def test_nobody_is_asked_again_in_the_run_for_what_they_were_against(store: Store, how: str) -> None:
    clock, tools = FakeClock(), Counter()
    model = ScriptedModel([wipe("A"), wipe("A"), wipe("B"), "못 지웠습니다.", wipe("A"), "또 못 지웠습니다."])
    async with engine(model, tools=tools, store=store, clock=clock, approval_ttl_s=60) as haru:
        paused = await haru.ask("지워 주세요", customer_id="C1")
        if how == "denied":
            asked_next = await haru.deny(paused.conversation_id, "2.0", reason="아직 쓰는 중")
        else:
            clock.advance(60)
            asked_next = await haru.resume(paused.conversation_id)
        # The same call is not asked about any more; another one is.
        assert [each.args for each in asked_next.waiting] == [{"what": "B"}]
        assert results(haru, 2) == results(haru, 3)
        assert ("아직 쓰는 중" if how == "denied" else "in time") in results(haru, 3)[0]["error"]
        done = await haru.approve(paused.conversation_id, asked_next.waiting[0].call)
        assert (done.answer, dict(tools.runs)) == ("못 지웠습니다.", {"wipe(B, 1)": 1})
        # The next message is another run, and another question.
        later = await haru.ask("그래도 A 지워 주세요", customer_id="C1", conversation_id=paused.conversation_id)
        assert [each.args for each in later.waiting] == [{"what": "A"}]


async def test_the_calls_of_one_reply_are_decided_one_by_one_and_hold_up_no_other() -> None:
    tools = Counter()
    asked = [*wipe("A"), ("pay", {"what": "B"}), *wipe("C"), ("look", {"what": "D"}), *wipe("E")]
    async with engine(ScriptedModel([asked, "끝났습니다."]), tools=tools) as haru:
        paused = await haru.ask("모두 해 주세요", customer_id="C1")
        assert [each.call for each in paused.waiting] == ["2.0", "2.2", "2.4"]
        assert dict(tools.runs) == {"pay(B)": 1, "look(D)": 1}
        second = await haru.approve(paused.conversation_id, "2.4")
        assert [each.call for each in second.waiting] == ["2.0", "2.2"]
        assert tools.runs["wipe(E, 1)"] == 1
        third = await haru.deny(paused.conversation_id, "2.0")
        assert [each.call for each in third.waiting] == ["2.2"]
        done = await haru.approve(paused.conversation_id, "2.2")
        assert done.finished
        assert dict(tools.runs) == {"pay(B)": 1, "look(D)": 1, "wipe(E, 1)": 1, "wipe(C, 1)": 1}
        assert done.tool_runs == 4
        assert ["error" in each for each in results(haru, 2)] == [True, False, False, False, False]


async def test_what_came_of_one_reply_s_calls_is_not_taken_for_the_next_one_s() -> None:
    tools = Counter()
    model = ScriptedModel([[("look", {"what": "A"}), *wipe("B")], [("look", {"what": "C"}), *wipe("D")], "네."])
    async with engine(model, tools=tools) as haru:
        paused = await haru.ask("지워 주세요", customer_id="C1")
        again = await haru.approve(paused.conversation_id, "2.1")
        assert [each.args for each in again.waiting] == [{"what": "D"}]
        await haru.deny(paused.conversation_id, again.waiting[0].call)
        assert results(haru, 3)[0]["result"]["what"] == "C"
    assert tools.runs == {"look(A)": 1, "wipe(B, 1)": 1, "look(C)": 1}


async def test_a_call_that_failed_before_the_pause_is_not_made_again_after_it() -> None:
    tools = Counter(look=broken)
    async with engine(ScriptedModel([[("look", {"what": "B"}), *wipe("A")], "네."]), tools=tools) as haru:
        paused = await haru.ask("지워 주세요", customer_id="C1")
        await haru.approve(paused.conversation_id, "2.1")
        assert dict(tools.runs) == {"look(B)": 1, "wipe(A, 1)": 1}
        assert ["error" in each for each in results(haru, 2)] == [True, False]


async def test_an_approval_that_nobody_gave_in_time_is_a_denial_of_whoever_looks_next() -> None:
    for look in ("ask", "resume", "resume_all", "approve"):
        clock, tools = FakeClock(), Counter()
        model = ScriptedModel([wipe("A"), "지우지 못했습니다.", "네."])
        async with engine(model, tools=tools, clock=clock, approval_ttl_s=60, deadline_s=5) as haru:
            paused = await haru.ask("A 지워 주세요", customer_id="C1")
            clock.advance(60)
            match look:
                case "ask":
                    next_one = await haru.ask("네?", customer_id="C1", conversation_id=paused.conversation_id)
                    assert next_one.answer == "네."
                case "resume":
                    assert (await haru.resume(paused.conversation_id)).answer == "지우지 못했습니다."
                case "resume_all":
                    [run] = await haru.resume_all()
                    assert isinstance(run, Run)
                    assert run.answer == "지우지 못했습니다."
                case "approve":
                    with pytest.raises(UnknownCall, match="time was up"):
                        await haru.approve(paused.conversation_id, "2.0")
            [decided] = [
                step.event
                for step in (await record_of(haru, paused.conversation_id)).steps
                if isinstance(step.event, ApprovalDecided)
            ]
            assert (decided.approved, decided.expired) == (False, True)
            assert not tools.runs
            [told] = results(haru, 2)
            assert "in time" in told["error"]


async def test_a_message_in_a_pause_is_kept_and_begins_the_next_run(store: Store) -> None:
    model = ScriptedModel([wipe("A"), "지웠습니다.", "둘째 답", "셋째 답"])
    async with engine(model, tools=Counter(), store=store) as haru:
        paused = await haru.ask("A 지워 주세요", customer_id="C1", message_id="m1")
        where = Where(customer_id="C1", conversation_id=paused.conversation_id)
        kept = await haru.ask("그리고요?", **where, message_id="m2")
        assert (kept.answer, kept.waiting, kept.run_id) == (KOREAN.held, paused.waiting, paused.run_id)
        also = await haru.ask("하나 더요", **where, message_id="m3")
        assert await haru.ask("그리고요?", **where, message_id="m2") == kept
        assert len({paused.reply_id, kept.reply_id, also.reply_id}) == 3
        assert len(model.requests) == 1

        done = await haru.approve(paused.conversation_id, "2.0")
        assert (done.run_id, done.answer) == (paused.run_id, "지웠습니다.")
        assert (await record_of(haru, paused.conversation_id)).summary.resting, "what was kept is answered unasked"
        assert (await haru.ask("그리고요?", **where, message_id="m2")).answer == "둘째 답"
        assert (await haru.ask("하나 더요", **where, message_id="m3")).answer == "셋째 답"
        steps = (await record_of(haru, paused.conversation_id)).steps
        assert [step.event.text for step in steps if isinstance(step.event, MessageHeld)] == ["그리고요?", "하나 더요"]
        assert [step.run for step in steps if isinstance(step.event, MessageReceived)] == [1, 2, 3]
        for request in model.requests:
            assert check_contents(list(request.contents)) == []


class Meddled(MemoryStore):
    """Something else happens just before, or an error just after, the first message that is kept."""

    def __init__(self, before: Callable[[], Awaitable[object]] | None = None, *, fails: bool = False) -> None:
        super().__init__()
        self.before, self.fails = before, fails
        self.after: Callable[[], Awaitable[object]] | None = None

    async def append(self, conversation: Conversation, **place: Any) -> None:
        if not isinstance(conversation.steps[-1].event, MessageHeld):
            return await super().append(conversation, **place)
        before, self.before = self.before, None
        if before is not None:
            await before()
        await super().append(conversation, **place)
        fails, self.fails = self.fails, False
        after, self.after = self.after, None
        if after is not None:
            await after()
        if fails:
            raise StoreError("It was stored, and nobody could say so.")


@pytest.mark.parametrize("calls", ["A", "AB"])
@pytest.mark.parametrize("message_id", [None, "m2"])
async def test_a_message_that_meets_a_decision_is_kept_or_begins_the_next_run(
    calls: str, message_id: str | None
) -> None:
    store, model = Meddled(), ScriptedModel([wipe(*calls), "지우지 않았습니다.", "둘째 답"])
    async with engine(model, tools=Counter(), store=store) as haru:
        where = Where(customer_id="C1", conversation_id="c-1")
        await haru.ask("지워 주세요", **where)
        store.before = lambda: haru.deny("c-1", "2.0")
        run = await haru.ask("그리고요?", **where, message_id=message_id)
        assert run.answer == ("둘째 답" if calls == "A" else KOREAN.held)


@pytest.mark.parametrize("more", [(), ("하나 더요",)])
async def test_a_message_that_was_kept_though_the_store_said_otherwise_is_kept_once(more: tuple[str, ...]) -> None:
    store = Meddled()
    async with engine(ScriptedModel([wipe("A")]), tools=Counter(), store=store) as haru:
        where = Where(customer_id="C1", conversation_id="c-1")
        await haru.ask("지워 주세요", **where)

        async def meanwhile() -> None:
            for text in more:
                await haru.ask(text, **where)

        store.fails, store.after = True, meanwhile
        assert (await haru.ask("그리고요?", **where)).answer == KOREAN.held
        steps = (await record_of(haru, "c-1")).steps
        held = [step.event.text for step in steps if isinstance(step.event, MessageHeld)]
        assert held == ["그리고요?", *more]


async def test_a_kept_message_that_fails_as_well_is_added_to_the_ticket_of_the_run_before_it() -> None:
    async with engine(ScriptedModel([wipe("A")]), tools=Counter()) as haru:  # the script is over: the model fails
        where = Where(customer_id="C1", conversation_id="c-1")
        await haru.ask("지워 주세요", **where)
        await haru.ask("그리고요?", **where, message_id="m2")
        first = await haru.deny("c-1", "2.0")
        second = await haru.ask("그리고요?", **where, message_id="m2")
        [stored] = await haru.store.tickets()
        assert first.ticket == second.ticket == stored.ticket
        assert len(stored.notes) == 1


async def test_a_pause_spends_no_deadline_and_opens_no_budget() -> None:
    clock = FakeClock()
    model = ScriptedModel(
        lambda request: wipe("A") if len(request.contents) == 1 else [("look", {"what": str(len(request.contents))})]
    )
    async with engine(model, tools=Counter(), clock=clock, deadline_s=100, max_steps=3) as haru:
        paused = await haru.ask("A 지워 주세요", customer_id="C1")
        clock.advance(80_000)
        done = await haru.approve(paused.conversation_id, "2.0")
        assert done.stopped_by is not None
        assert (done.stopped_by.guard, done.steps) == ("StepBudget(3)", 3)


async def test_asking_too_often_ends_in_a_ticket_and_what_was_done_is_told() -> None:
    tools = Counter()
    asked = [("pay", {"what": "B"}), *wipe("A", "C", "D")]
    async with engine(model := ScriptedModel([asked, "네."]), tools=tools, max_approvals=2) as haru:
        done = await haru.ask("지워 주세요", customer_id="C1")
        assert (done.state, done.waiting, dict(tools.runs)) == ("ESCALATE_TICKET", (), {"pay(B)": 1})
        assert done.stopped_by is not None
        assert "ApprovalBudget" in done.stopped_by.guard
        assert done.ticket is not None
        assert '"paid": "B"' in done.ticket.summary
        assert done.tool_runs == 1
        await haru.ask("네?", customer_id="C1", conversation_id=done.conversation_id)
        contents = model.requests[-1].contents
        assert check_contents(list(contents)) == []
        responses = [part["functionResponse"]["response"] for part in contents[2]["parts"]]
        assert [next(iter(each)) for each in responses] == ["result", "error", "error", "error"]


async def test_a_paused_run_is_unfinished_and_never_forgotten_and_its_ticket_stays_open(store: Store) -> None:
    model = ScriptedModel([ModelFailed(reason=FailureReason.SERVER), wipe("A"), "지웠습니다.", "네."])
    async with engine(model, tools=Counter(), store=store) as haru:
        failed = await haru.ask("A", customer_id="C1")
        assert failed.ticket is not None
        where = Where(customer_id="C1", conversation_id=failed.conversation_id)
        await haru.ask("A 지워 주세요", **where)
        with pytest.raises(ConversationBusy):
            await haru.close_ticket(failed.ticket.ticket_id, "해 드렸습니다.")
        [summary] = await haru.store.conversations(unfinished=True)
        assert (summary.paused, summary.resting, summary.owner) == (True, True, None)

        lone = await haru.ask("A", customer_id="C1")
        assert lone.finished
        paused = await haru.fork(failed.conversation_id, at=summary.seq - 1, live=True)
        assert paused.waiting
        assert await haru.store.prune(4e9) == 1, "the one that has ended without a ticket"
        assert await haru.store.load(paused.conversation_id) is not None
        await haru.approve(failed.conversation_id, "5.0")
        assert [one.paused for one in await haru.store.conversations(unfinished=True)] == [True]


async def test_what_is_approved_here_is_approved_nowhere_else(store: Store) -> None:
    """A fork asks anew; a rehearsal does not act, whatever was approved."""
    tools = Counter()
    model = ScriptedModel(lambda request: "끝." if "functionResponse" in str(request.contents) else wipe("A", "B"))
    async with engine(model, tools=tools, store=store) as haru:
        paused = await haru.ask("A 지워 주세요", customer_id="C1")
        await haru.approve(paused.conversation_id, "2.0")
        assert dict(tools.runs) == {"wipe(A, 1)": 1}
        for at in (3, 4):
            rehearsed = await haru.fork(paused.conversation_id, at=at)
            assert (rehearsed.finished, rehearsed.answer) == (True, "끝.")
            again = await haru.fork(paused.conversation_id, at=at, live=True)
            assert [call.call for call in again.waiting] == ["2.0", "2.1"]
            assert not {call.digest for call in again.waiting} & {call.digest for call in paused.waiting}
        assert dict(tools.runs) == {"wipe(A, 1)": 1}
        await haru.approve(again.conversation_id, "2.1")
        assert dict(tools.runs) == {"wipe(A, 1)": 1, "wipe(B, 1)": 1}


async def test_a_tool_that_was_changed_meanwhile_needs_a_new_approval(store: Store) -> None:
    """Approved, then the process stops before the call begins, and the app is changed before the run is resumed."""

    class Changed(Counter):
        def make(self, session: Any) -> list[Callable[..., Any]]:
            @tool(read_only=False, destructive=True, approval=True)
            def wipe(what: str, how_much: int = 99) -> Any:
                """Wipe something out."""
                return self._do("wipe", f"{what}, {how_much}", {"wiped": what})

            return [wipe]

    tools = Changed()
    async with engine(ScriptedModel([wipe("A")]), tools=Counter(), store=store) as haru:
        paused = await haru.ask("A 지워 주세요", customer_id="C1")
        rebuilt = haru._conversations.rebuilt(await record_of(haru, paused.conversation_id))
        decided = ApprovalDecided(call="2.0", digest=paused.waiting[0].digest, approved=True)
        approved = haru.app.workflow.advance(rebuilt, decided)
        await store.append(approved, expected_seq=rebuilt.seq, owner=None, over=None, lease_s=0)
        later = engine(ScriptedModel(["지웠습니다."]), tools=tools, store=store)
        [again] = await later.resume_all()
        assert isinstance(again, Run)
        [call] = again.waiting
        assert call.digest != paused.waiting[0].digest
        assert not tools.runs
        done = await later.approve(paused.conversation_id, "2.0")
        assert (done.finished, dict(tools.runs)) == (True, {"wipe(A, 99)": 1})


async def test_an_approval_that_came_in_time_is_void_when_nothing_was_begun_with_it(store: Store) -> None:
    clock, tools = FakeClock(), Counter()
    async with engine(ScriptedModel([wipe("A"), "네."]), tools=tools, store=store, clock=clock) as haru:
        paused = await haru.ask("A 지워 주세요", customer_id="C1")
        rebuilt = haru._conversations.rebuilt(await record_of(haru, paused.conversation_id))
        decided = ApprovalDecided(call="2.0", digest=paused.waiting[0].digest, approved=True)
        approved = haru.app.workflow.advance(rebuilt, decided)
        await store.append(approved, expected_seq=rebuilt.seq, owner=None, over=None, lease_s=0)
        clock.advance(86_400)
        done = await haru.resume(paused.conversation_id)
        assert (done.finished, dict(tools.runs)) == (True, {})
        [told] = results(haru, 2)
        assert "expired" in told["error"]


async def test_a_table_without_rows_for_approvals_refuses_what_needs_one() -> None:
    tools = Counter()
    haru = engine(ScriptedModel([wipe("A"), "못 했습니다."]), tools=tools)

    async def act(conversation: Conversation, services: Services) -> ToolsExecuted:
        seq, request = last_request(conversation)
        return ToolsExecuted(results=await services.run_calls(conversation, seq, request.calls))

    table = haru.app.workflow
    rows = [row for row in table.rows if row.event not in (ApprovalRequested, ApprovalDecided)]
    plain = Workflow(rows, work={**table.work, "EXECUTE_TOOLS": act}, initial=table.initial)
    app = App(workflow=plain, make_tools=tools.make, limits=haru.app.limits)
    async with Engine(app, model=haru.model, store=MemoryStore()) as haru:
        done = await haru.ask("A 지워 주세요", customer_id="C1")
        assert (done.finished, dict(tools.runs)) == (True, {})
        assert "approval" in results(haru, 2)[0]["error"]


async def test_an_app_may_have_every_destructive_tool_wait() -> None:
    class Bold(Tools):
        def make(self, session: Any) -> list[Callable[..., Any]]:
            @tool(read_only=False, destructive=True)
            def wipe(what: str) -> Any:
                """Wipe something out."""
                return self._do("wipe", what, {"wiped": what})

            return [*super().make(session), wipe]

    for approve_destructive in (False, True):
        tools = Bold()
        asked = [("pay", {"what": "B"}), *wipe("A")]
        async with engine(ScriptedModel([asked, "네."]), tools=tools, approve_destructive=approve_destructive) as haru:
            run = await haru.ask("A 지워 주세요", customer_id="C1")
            assert [call.tool for call in run.waiting] == ["wipe"] * approve_destructive
            assert tools.runs["wipe(A)"] == (not approve_destructive)
            assert tools.runs["pay(B)"] == 1


@pytest.mark.parametrize("word", ["denied", "expired", "approved"])
async def test_who_was_asked_has_the_word_even_where_the_app_asks_nobody_any_more(word: str, store: Store) -> None:
    class Bold(Tools):
        def make(self, session: Any) -> list[Callable[..., Any]]:
            @tool(read_only=False, destructive=True)
            def wipe(what: str) -> Any:
                """Wipe something out."""
                return self._do("wipe", what, {"wiped": what})

            return [*super().make(session), wipe]

    tools, clock = Bold(), FakeClock()
    model = ScriptedModel([wipe("A", "B"), "네."])
    haru = engine(model, tools=tools, store=store, clock=clock, approve_destructive=True)
    asked = await haru.ask("A와 B를 지워 주세요", customer_id="C1")
    first, second = (call.call for call in asked.waiting)
    # The process that takes the decision has another setting.
    async with engine(model, tools=tools, store=store, clock=clock) as later:
        if word == "expired":
            clock.advance(100_000)
            run = await later.resume(asked.conversation_id)
            assert not run.waiting
        elif word == "denied":
            run = await later.deny(asked.conversation_id, first)
            assert [call.call for call in run.waiting] == [second]
        else:
            run = await later.approve(asked.conversation_id, first)
            assert [call.call for call in run.waiting] == [second]
    assert tools.runs["wipe(A)"] == (word == "approved")
    assert tools.runs["wipe(B)"] == 0


def test_what_only_reads_needs_no_approval() -> None:
    with pytest.raises(ToolError, match="approval=True is for tools that act"):
        tool(read_only=True, approval=True)(lambda: 1)
