"""An app changes while runs are open: each goes on where it still fits, and else goes to a person who is told why."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import TypeAdapter

from haru_fsm import Engine, IdempotencyKey, Limits, Row, Workflow, tool
from haru_fsm.certificate import certify
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import (
    ApprovalDecided,
    ApprovalRequested,
    Conversation,
    Event,
    FailureReason,
    MessageReceived,
    ModelAnswered,
    ModelFailed,
    Resumed,
    TicketClosed,
    TicketOpened,
    ToolsExecuted,
)
from haru_fsm.diagram import mermaid
from haru_fsm.errors import ConversationBusy, ConversationMoved, NoTransition, UnknownCustomer, WorkflowError
from haru_fsm.models.scripted import ScriptedModel, answer, calls
from haru_fsm.notices import KOREAN
from haru_fsm.replaying import replay
from haru_fsm.runs import Run
from haru_fsm.services import Services
from haru_fsm.stores import Started, Store
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.transfer import export, import_lines, verify
from tests.engine.changing import (
    BASIC,
    WORK,
    ParcelWeighed,
    engine,
    look,
    renamed,
    think,
    weighing,
    without_rows_for_resumed,
)
from tests.engine.shopless import Meddled, Where, bare

SMALL = without_rows_for_resumed()


@tool(read_only=False)
def pay(what: str) -> str:
    """Pay."""
    return what


@tool(read_only=False, idempotent=True)
def book(what: str, key: Annotated[str, IdempotencyKey]) -> str:
    """Book."""
    return f"{what} under {key}"


async def open_run(store: Store, *events: Event, workflow: Workflow = SMALL, tools: tuple[Any, ...] = (look,)) -> None:
    """A run of the first app that a process left behind after these events."""
    haru = engine(workflow, ScriptedModel([]), store, *tools)
    digest = haru.app.definition(haru.app.toolbox(haru.app.session("C1")))
    conversation = workflow.begin("c-1", "C1")
    for event in (MessageReceived(text="어디쯤 왔나요?", definition=digest), *events):
        conversation = workflow.advance(conversation, event)
    await store.append(conversation, expected_seq=0, owner=None, over=None, lease_s=15)


async def carried_on(store: Store, *tools: Any, workflow: Workflow = SMALL, says: str = "도착합니다.") -> Run:
    return await engine(workflow, ScriptedModel([says]), store, *tools).resume("c-1")


async def say(conversation: Conversation, services: Services) -> ModelAnswered | ModelFailed:
    outcome = await services.model.respond(services.request(conversation))
    assert isinstance(outcome, ModelAnswered | ModelFailed)
    return outcome


async def resumed_of(store: Store) -> Resumed:
    record = await store.load("c-1")
    assert record is not None
    return next(step.event for step in record.steps if isinstance(step.event, Resumed))


# --------------------------------------------------------------------------- the digest


def digest(*tools: Any, workflow: Workflow = SMALL, **limits: Any) -> str:
    app = engine(workflow, ScriptedModel([]), MemoryStore(), *tools, **limits).app
    return app.definition(app.toolbox(app.session("C1")))


def test_rows_guards_and_tools_are_the_definition_and_nothing_else_is() -> None:
    @tool(read_only=True)
    def look_(what: str) -> str:
        """Other words, the same tool."""
        return what

    @tool(read_only=True)
    def wider(what: str, description: str = "") -> str:
        """Another parameter, called like a word of JSON Schema."""
        return what

    look_.__name__ = wider.__name__ = "look"
    assert digest(look) == digest(look_) == digest(look, max_steps=99, tool_timeout_s=1)
    others = [digest(wider), digest(look, pay), digest(look, workflow=weighing()), digest(look, workflow=renamed())]
    assert len({digest(look), *others}) == 5


async def test_a_run_carries_the_digest_it_began_under() -> None:
    store = MemoryStore()
    run = await engine(SMALL, ScriptedModel(["네."]), store).ask("안녕하세요", customer_id="C1")
    record = await store.load(run.conversation_id)
    assert record is not None
    assert record.steps[0].event == MessageReceived(
        text="안녕하세요", message_id=None, definition=digest(look), at=record.steps[0].event.at
    )


# --------------------------------------------------------------------------- it still fits


async def test_a_run_goes_on_under_the_same_app_without_a_word_about_it() -> None:
    store = MemoryStore()
    await open_run(store, calls(("look", {"what": "A"})))
    assert (await carried_on(store, look)).answer == "도착합니다."
    assert (await resumed_of(store)).definition == ""


async def test_a_run_goes_on_under_a_changed_app_where_its_work_still_fits_and_says_so() -> None:
    store = MemoryStore()
    await open_run(store, calls(("look", {"what": "A"})))
    run = await carried_on(store, look, pay)
    assert (run.answer, run.tool_runs, run.ticket) == ("도착합니다.", 1, None)
    assert (await resumed_of(store)).definition == digest(look, pay)


async def test_what_waits_for_the_model_fits_whatever_became_of_the_tools() -> None:
    store = MemoryStore()
    await open_run(store)
    assert (await carried_on(store, pay)).answer == "도착합니다."


async def test_a_second_resume_compares_with_what_the_first_one_noted() -> None:
    store = MemoryStore()
    haru = engine(SMALL, ScriptedModel([]), store, look, pay)
    await open_run(store)
    worker = haru._conversations.worker(await haru._conversations.load("c-1"), None)
    await worker._take_up()
    await worker._save()
    await worker._let_go()
    await carried_on(store, look, pay)
    record = await store.load("c-1")
    assert record is not None
    noted = [step.event.definition for step in record.steps if isinstance(step.event, Resumed)]
    assert noted == [digest(look, pay), ""]


# --------------------------------------------------------------------------- it no longer fits


async def test_a_state_that_is_gone() -> None:
    store = MemoryStore()
    await open_run(store, calls(("look", {"what": "A"})))
    run = await carried_on(store, look, workflow=renamed())
    assert run.ticket is not None
    assert run.stopped_by is not None
    assert run.stopped_by.guard == "definition_changed"
    assert "no longer has work for the state ACT" in run.ticket.summary
    assert run.ticket.ticket_id in run.answer


async def test_a_tool_that_is_gone_and_arguments_that_no_longer_fit() -> None:
    @tool(read_only=True)
    def look(where: int) -> int:
        """Another look."""
        return where

    for tools, why in (((pay,), "no longer has the tool look"), ((look,), "arguments of the call of look no longer")):
        store = MemoryStore()
        await open_run(store, calls(("look", {"what": "A"})))
        run = await carried_on(store, *tools)
        assert run.ticket is not None
        assert why in run.ticket.summary
        assert run.tool_runs == 0


async def test_a_tool_that_never_was_is_told_to_the_model_as_ever() -> None:
    store = MemoryStore()
    await open_run(store, calls(("get_points", {})))
    assert (await carried_on(store, look)).answer == "도착합니다."


async def test_an_effect_that_was_begun_is_in_doubt_when_its_tool_is_gone() -> None:
    store = MemoryStore()
    await open_run(store, calls(("pay", {"what": "A"})), tools=(look, pay))
    await store.note("c-1", "2.0", Started(run=1, name="pay", digest="x", declared=True))
    haru = engine(SMALL, model := ScriptedModel(["감사합니다."]), store, look)
    run = await haru.resume("c-1")
    assert run.ticket is not None
    assert '처리 여부를 확인해야 하는 작업: pay({"what": "A"}) [2.0]' in run.ticket.summary
    # The next request says what is true of it.
    await haru.ask("됐나요?", customer_id="C1", conversation_id="c-1")
    assert "not known whether this call took place" in str(model.requests[-1].contents)


async def test_an_effect_that_was_begun_stays_one_when_its_tool_says_now_that_it_only_looks() -> None:
    ran: list[str] = []

    def only_looks(what: str) -> str:
        """Pay for something."""
        ran.append(what)
        return what

    harmless = tool(read_only=True)(only_looks)
    harmless.__name__ = "pay"
    store = MemoryStore()
    await open_run(store, calls(("pay", {"what": "A"})), tools=(look, pay))
    await store.note("c-1", "2.0", Started(run=1, name="pay", digest="x", declared=True))
    assert digest(look, pay) == digest(look, harmless), "no declaration says what a tool does to the world"
    run = await carried_on(store, look, harmless)
    assert ran == []
    assert run.ticket is not None
    assert "effect" in run.ticket.summary
    assert '처리 여부를 확인해야 하는 작업: pay({"what": "A"}) [2.0]' in run.ticket.summary


async def test_an_effect_that_was_begun_runs_again_only_under_the_same_key_and_meaning() -> None:
    @tool(read_only=False, idempotent=True)
    def book(what: str, key: Annotated[str, IdempotencyKey], nights: int = 1) -> str:
        """Book for some nights."""
        return what

    store = MemoryStore()
    await open_run(store, calls(("book", {"what": "A"})), tools=(look, book))
    begun = Started(run=1, name="book", digest="of other arguments", declared=True, keyed=True)
    await store.note("c-1", "2.0", begun)
    run = await carried_on(store, look)
    assert run.ticket is not None
    store = MemoryStore()
    await open_run(store, calls(("book", {"what": "A"})), tools=(look,))
    await store.note("c-1", "2.0", begun)
    run = await carried_on(store, look, book)
    assert run.ticket is not None
    assert "mean something else" in run.ticket.summary


async def test_an_effect_begun_without_a_key_does_not_run_again_because_its_tool_takes_one_now() -> None:
    store = MemoryStore()
    await open_run(store, calls(("book", {"what": "A"})))
    await store.note("c-1", "2.0", Started(run=1, name="book", digest="x", declared=True, keyed=False))
    haru = engine(SMALL, ScriptedModel(["네."]), store, look, book)
    await haru.resume("c-1")
    record = await store.load("c-1")
    assert record is not None
    (result,) = next(step.event.results for step in record.steps if isinstance(step.event, ToolsExecuted))
    assert result.status == "in_doubt"


async def test_a_message_to_a_conversation_that_rests_in_a_state_that_is_gone() -> None:
    store = MemoryStore()
    first = await engine(SMALL, ScriptedModel(["네."]), store).ask("안녕", customer_id="C1")
    other = engine(renamed(), ScriptedModel(["네."]), store)
    run = await other.ask("저기요", customer_id="C1", conversation_id=first.conversation_id)
    assert run.ticket is not None
    assert "no longer has the state DONE" in run.ticket.summary
    assert "저기요" in run.ticket.summary
    again = await other.ask("여보세요", customer_id="C1", conversation_id=first.conversation_id)
    assert again.answer == "네."


async def test_without_a_state_that_opens_tickets_the_error_says_why() -> None:
    store = MemoryStore()
    await open_run(store, calls(("look", {"what": "A"})))
    rows = (Row(MessageReceived, "READY", "DONE", rests=True),)
    with pytest.raises(NoTransition, match="no longer has work for the state ACT"):
        await carried_on(store, look, workflow=Workflow(rows, work={}))
    assert (await store.conversations())[0].owner is None


# --------------------------------------------------------------------------- it rests, and the app changes


def destructive() -> Any:
    @tool(read_only=False, destructive=True, approval=True)
    def wipe(what: str) -> str:
        """Wipe something out."""
        return what

    return wipe


def table(change: Callable[[Row], Row | None]) -> Workflow:
    """The default table, with its rows changed or left out."""
    old = bare(Limits()).workflow
    rows = [row for row in map(change, old.rows) if row is not None]
    named = {str(row.target) for row in rows}
    work = {state if state in named else _elsewhere(state): work for state, work in old.work.items()}
    return Workflow(rows, work=work, initial=old.initial)


def _elsewhere(state: str) -> str:
    return "RUN_TOOLS" if state == "EXECUTE_TOOLS" else str(state)


def elsewhere() -> Workflow:
    """EXECUTE_TOOLS has another name."""
    return table(lambda row: replace(row, source=tuple(map(_elsewhere, row.sources)), target=_elsewhere(row.target)))


def deaf() -> Workflow:
    """No row for a decision."""
    return table(lambda row: row if row.event is not ApprovalDecided else None)


async def waiting_twice(store: Store, clock: FakeClock) -> Run:
    """A run of the default table that waits for two approvals."""
    wiped = [("wipe", {"what": "A"}), ("wipe", {"what": "B"})]
    haru = engine(bare(Limits()).workflow, ScriptedModel([wiped]), store, destructive(), clock=clock)
    paused = await haru.ask("A, B 지워 주세요", customer_id="C1", message_id="m1")
    assert [call.call for call in paused.waiting] == ["2.0", "2.1"]
    return paused


@pytest.mark.parametrize("what", ["approve", "deny", "resume", "resume_all", "ask"])
@pytest.mark.parametrize(
    ("workflow", "tools", "why"),
    [
        (elsewhere(), (destructive(),), "no longer has work for the state EXECUTE_TOOLS"),
        (deaf(), (destructive(),), "no longer has a row for approval_decided in the state EXECUTE_TOOLS"),
        (bare(Limits()).workflow, (look,), "no longer has the tool wipe"),
    ],
)
async def test_a_run_that_waits_for_a_person_and_no_longer_fits_ends_in_a_ticket(
    what: str, workflow: Workflow, tools: tuple[Any, ...], why: str
) -> None:
    store, clock = MemoryStore(), FakeClock()
    paused = await waiting_twice(store, clock)
    later = engine(workflow, ScriptedModel(["네.", "네."]), store, *tools, clock=clock)
    await later.ask("여보세요?", customer_id="C1", conversation_id=paused.conversation_id, message_id="m2")
    match what:
        case "approve" | "deny":
            run = await getattr(later, what)(paused.conversation_id, "2.1")
        case _:
            clock.advance(86_400)
            if what == "resume":
                await later.resume(paused.conversation_id)
            elif what == "resume_all":
                await later.resume_all()
            run = await later.ask(
                "A, B 지워 주세요", customer_id="C1", conversation_id=paused.conversation_id, message_id="m1"
            )
    assert run.ticket is not None
    assert why in run.ticket.summary
    assert run.ticket.ticket_id in run.answer
    assert run.tool_runs == 0
    kept = await later.ask("여보세요?", customer_id="C1", conversation_id=paused.conversation_id, message_id="m2")
    assert kept.answer == "네."
    record = await store.load(paused.conversation_id)
    assert record is not None
    assert sum(isinstance(step.event, ApprovalDecided) for step in record.steps) == 1
    if workflow.accepts("EXECUTE_TOOLS", ApprovalRequested) and later.app.toolbox(later.app.session("C1")).find("wipe"):
        assert replay(later.app, record).identical


def without_customers(haru: Engine) -> Engine:
    """The same engine for a shop that has forgotten all its customers."""

    def nobody(customer_id: str, **_more: Any) -> Any:
        raise UnknownCustomer(f"There is no customer {customer_id}.")

    return Engine(replace(haru.app, make_session=nobody), model=haru.model, store=haru.store, clock=haru.clock)


@pytest.mark.parametrize("what", ["approve", "deny", "resume", "resume_all"])
async def test_an_open_run_of_a_customer_who_is_gone_ends_in_a_ticket_and_so_does_a_kept_message(what: str) -> None:
    store, clock = MemoryStore(), FakeClock()
    paused = await waiting_twice(store, clock)
    haru = engine(bare(Limits()).workflow, ScriptedModel([]), store, destructive(), clock=clock)
    await haru.ask("여보세요?", customer_id="C1", conversation_id=paused.conversation_id, message_id="m2")
    later = without_customers(haru)
    if what in ("approve", "deny"):
        await getattr(later, what)(paused.conversation_id, "2.1")
    else:
        clock.advance(86_400)
        await (later.resume_all() if what == "resume_all" else later.resume(paused.conversation_id))
    record = await store.load(paused.conversation_id)
    assert record is not None
    assert record.summary.resting
    assert not record.ledger
    first, second = (step.event for step in record.steps if isinstance(step.event, TicketOpened))
    assert (first.added, second.added) == (False, True)
    assert first.ticket.ticket_id == second.ticket.ticket_id
    assert "no longer knows the customer (There is no customer C1.)" in first.ticket.summary
    with pytest.raises(UnknownCustomer):
        await later.ask("다시요", customer_id="C1", conversation_id=paused.conversation_id, message_id="m3")


async def test_no_model_is_asked_without_tools_for_a_customer_who_goes_in_the_middle() -> None:
    store, clock = MemoryStore(), FakeClock()
    paused = await waiting_twice(store, clock)
    haru = engine(bare(Limits()).workflow, ScriptedModel(["지웠습니다."]), store, destructive(), clock=clock)
    await haru.ask("여보세요?", customer_id="C1", conversation_id=paused.conversation_id, message_id="m2")
    await haru.approve(paused.conversation_id, "2.0")
    sessions = 0

    def twice(customer_id: str, **more: Any) -> Any:
        nonlocal sessions
        sessions += 1
        if sessions > 2:
            raise UnknownCustomer(f"There is no customer {customer_id}.")
        return haru.app.make_session(customer_id, **more)

    later = Engine(replace(haru.app, make_session=twice), model=haru.model, store=store, clock=clock)
    with pytest.raises(UnknownCustomer):
        await later.approve(paused.conversation_id, "2.1")
    run = await later.resume(paused.conversation_id)
    assert run.ticket is not None
    assert "no longer knows the customer" in run.ticket.summary
    assert run.steps == 0


async def test_a_run_on_its_way_to_a_person_gets_there_without_its_customer() -> None:
    store = MemoryStore()
    await open_run(store, ModelFailed(reason=FailureReason.EMPTY))
    run = await without_customers(engine(SMALL, ScriptedModel([]), store)).resume("c-1")
    assert run.ticket is not None
    assert run.stopped_by is not None
    assert run.stopped_by.guard == "model_failed", "that the customer is gone changes nothing of it"


async def test_without_a_state_that_opens_tickets_a_decision_is_refused_and_the_error_says_why() -> None:
    store, clock = MemoryStore(), FakeClock()
    paused = await waiting_twice(store, clock)
    bare_table = Workflow((Row(MessageReceived, "READY", "DONE", rests=True),), work={})
    later = engine(bare_table, ScriptedModel([]), store, destructive(), clock=clock)
    with pytest.raises(NoTransition, match="no longer has work for the state EXECUTE_TOOLS"):
        await later.approve(paused.conversation_id, "2.0")


@pytest.mark.parametrize("workflow", [SMALL, renamed()])
async def test_a_ticket_is_closed_whatever_the_table_says_of_it_now(workflow: Workflow) -> None:
    store = MemoryStore()
    old = engine(bare(Limits()).workflow, ScriptedModel([ModelFailed(reason="server")]), store)
    escalated = await old.ask("네?", customer_id="C1")
    assert escalated.ticket is not None
    later = engine(workflow, ScriptedModel(["네."]), store)
    closed = await later.close_ticket(escalated.ticket.ticket_id, "처리했습니다.")
    assert (closed.answer, closed.finished) == ("처리했습니다.", True)
    assert await store.tickets(open_only=True) == []
    assert await later.resume(escalated.conversation_id) == closed
    asked = await later.ask("네?", customer_id="C1", conversation_id=escalated.conversation_id)
    assert asked.finished
    assert (asked.ticket is None) == workflow.accepts(closed.state, MessageReceived)
    assert [finding.damage async for finding in verify(store)] == [None]


async def test_a_ticket_that_the_table_has_no_row_for_is_closed_and_replayed() -> None:
    store = MemoryStore()
    haru = engine(SMALL, ScriptedModel([ModelFailed(reason="server"), "네."]), store)
    escalated = await haru.ask("네?", customer_id="C1")
    assert escalated.ticket is not None
    closed = await haru.close_ticket(escalated.ticket.ticket_id, "처리했습니다.")
    assert (closed.answer, closed.state) == ("처리했습니다.", "TICKET")
    await haru.ask("네?", customer_id="C1", conversation_id=escalated.conversation_id)
    record = await store.load(escalated.conversation_id)
    assert record is not None
    assert replay(haru.app, record).identical


async def test_a_kept_message_that_has_no_place_to_begin_holds_back_no_ending() -> None:
    """The changed table asks for no approvals, so it may be one that lets no message in while a ticket is open."""
    store, clock = MemoryStore(), FakeClock()
    paused = await waiting_twice(store, clock)
    where = Where(customer_id="C1", conversation_id=paused.conversation_id)
    rows = (
        Row(MessageReceived, "DONE", "THINK"),
        *BASIC[1:],
        Row(TicketClosed, "TICKET", "DONE", rests=True),
    )
    later = engine(Workflow(rows, work=WORK, initial="DONE"), ScriptedModel(["네."]), store, clock=clock)
    kept = await later.ask("여보세요?", **where, message_id="m2")
    ended = await later.approve(paused.conversation_id, "2.0")
    assert ended.ticket is not None
    assert ended.finished
    assert await later.resume(paused.conversation_id) == ended
    again = await later.ask("여보세요?", **where, message_id="m2")
    assert (again.answer, again.reply_id) == (KOREAN.held, kept.reply_id)
    closed = await later.close_ticket(ended.ticket.ticket_id, "처리했습니다.")
    assert closed.answer == "처리했습니다."
    assert (await later.ask("여보세요?", **where, message_id="m2")).answer == "네."


async def test_a_kept_message_waits_for_the_person_also_where_the_state_of_the_pause_is_gone() -> None:
    store, clock = MemoryStore(), FakeClock()
    paused = await waiting_twice(store, clock)
    where = Where(customer_id="C1", conversation_id=paused.conversation_id)
    later = engine(renamed(), ScriptedModel(["네."]), store, clock=clock)
    async with asyncio.timeout(30):
        kept = await later.ask("여보세요?", **where, message_id="m2")
        assert await later.ask("여보세요?", **where, message_id="m2") == kept
    assert kept.answer == KOREAN.held


async def kept_by_another_table(store: Store, clock: FakeClock) -> Where:
    """Where a message was kept in a pause, as `m2`, that no row let in when the pause was over."""
    paused = await waiting_twice(store, clock)
    where = Where(customer_id="C1", conversation_id=paused.conversation_id)
    rows = (Row(MessageReceived, "DONE", "THINK"), *BASIC[1:])
    shut = engine(Workflow(rows, work=WORK, initial="DONE"), ScriptedModel([]), store, clock=clock)
    await shut.ask("여보세요?", **where, message_id="m2")
    await shut.approve(paused.conversation_id, "2.0")
    return where


async def test_a_message_that_was_kept_by_another_table_begins_when_it_is_sent_again() -> None:
    store, clock = MemoryStore(), FakeClock()
    where = await kept_by_another_table(store, clock)
    mended = engine(SMALL, ScriptedModel(["네."]), store, clock=clock)
    assert (await mended.ask("여보세요?", **where, message_id="m2")).answer == "네."
    record = await store.load(where["conversation_id"])
    assert record is not None
    assert [step.event.text for step in record.steps if isinstance(step.event, MessageReceived)] == [
        "A, B 지워 주세요",
        "여보세요?",
    ]


async def test_a_message_that_was_kept_is_taken_once_where_it_is_sent_again_twice_in_one_moment() -> None:
    store, clock = Meddled(), FakeClock()
    where = await kept_by_another_table(store, clock)
    mended = engine(SMALL, ScriptedModel(["네."]), store, clock=clock)
    store.before = lambda: mended.ask("여보세요?", **where, message_id="m2")
    assert (await mended.ask("여보세요?", **where, message_id="m2")).answer == "네."


# --------------------------------------------------------------------------- the lease, whatever the table says


async def test_a_resume_takes_the_lease_before_it_acts_also_where_the_table_has_no_rows_for_it() -> None:
    store = MemoryStore()
    await open_run(store, calls(("pay", {"what": "A"})), tools=(look, pay))
    acting, go_on = asyncio.Event(), asyncio.Event()

    @tool(read_only=False)
    async def pay_(what: str) -> str:
        """Pay."""
        acting.set()
        await go_on.wait()
        return what

    pay_.__name__ = "pay"
    first = engine(SMALL, ScriptedModel(["냈습니다."]), store, look, pay_)
    resuming = asyncio.create_task(first.resume("c-1"))
    await asyncio.wait((resuming, asyncio.create_task(acting.wait())), return_when=asyncio.FIRST_COMPLETED)
    assert not resuming.done(), await resuming
    assert (await store.conversations())[0].owner is not None
    with pytest.raises((ConversationBusy, ConversationMoved)):
        await engine(SMALL, ScriptedModel([]), store, look, pay_).resume("c-1")
    go_on.set()
    assert (await resuming).answer == "냈습니다."


async def dies(store: Store, *, times: int, workflow: Workflow = SMALL) -> None:
    """The run is taken up this often by a process that dies of it."""
    for _ in range(times):
        haru = engine(workflow, ScriptedModel([]), store, max_resumes=3)
        worker = haru._conversations.worker(await haru._conversations.load("c-1"), None)
        await worker._take_up()
        await worker._save()
        await worker._let_go()


async def test_a_run_that_kills_its_process_ends_in_a_ticket_also_where_the_table_has_no_rows_for_it() -> None:
    store = MemoryStore()
    await open_run(store, calls(("look", {"what": "A"})))
    await dies(store, times=3)
    run = await engine(SMALL, ScriptedModel([]), store, max_resumes=3).resume("c-1")
    assert run.ticket is not None
    assert run.stopped_by is not None
    assert "taken up again 3 times" in run.stopped_by.because
    assert "여러 번 중단되어" in run.ticket.summary


async def test_a_run_on_its_way_to_a_person_goes_on_however_often_it_is_taken_up() -> None:
    store = MemoryStore()
    await open_run(store, ModelFailed(reason=FailureReason.REPLAY))
    await dies(store, times=4)
    run = await engine(SMALL, ScriptedModel([]), store, max_resumes=3).resume("c-1")
    assert run.ticket is not None
    assert run.stopped_by is not None
    assert run.stopped_by.guard == "model_failed", "it was on its way before it was taken up"


async def test_where_no_state_opens_tickets_a_run_goes_on_however_often_it_is_taken_up() -> None:
    rows = (
        Row(MessageReceived, "DONE", "THINK"),
        Row(ModelAnswered, "THINK", "DONE", rests=True),
        Row(ModelFailed, "THINK", "DONE", rests=True),
    )
    workflow, store = Workflow(rows, work={"THINK": say}, initial="DONE"), MemoryStore()
    await open_run(store, workflow=workflow)
    await dies(store, times=4, workflow=workflow)
    assert (await carried_on(store, workflow=workflow, says="네.")).answer == "네."


# --------------------------------------------------------------------------- events of an app's own


async def test_an_event_of_the_apps_own_is_journaled_and_comes_back_as_what_it_is(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "haru.db")
    haru = engine(weighing(), ScriptedModel(["1.2kg입니다."]), store)
    async with haru:
        run = await haru.ask("무게는요?", customer_id="C1")
        record = await store.load(run.conversation_id)
        assert record is not None
        read = haru._conversations.rebuilt(record).steps[1].event
        assert isinstance(read, ParcelWeighed)
        assert (read.grams, read.by) == (1200, ("저울 1",))
        assert record.steps[1].written()["event"]["grams"] == 1200
        assert [finding.damage async for finding in verify(store)] == [None]

        lines = [line async for line in export(store)]
        other = MemoryStore()
        assert await import_lines(other, lines) == (1, 0)
        moved = await other.load(run.conversation_id)
        assert moved is not None
        assert haru._conversations.rebuilt(moved).steps == haru._conversations.rebuilt(record).steps


async def test_a_run_whose_own_event_is_gone_goes_to_a_person(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "haru.db")
    await open_run(store, ParcelWeighed(grams=3), workflow=weighing())
    run = await carried_on(store, look)
    assert run.ticket is not None
    assert "no longer knows the event parcel_weighed" in run.ticket.summary
    await store.aclose()


def test_the_certificate_and_the_diagram_know_an_event_of_the_apps_own() -> None:
    without = certify(SMALL).transitions.value
    assert without is not None
    assert certify(weighing()).transitions.value == without + 1
    assert "WEIGH --> THINK: parcel_weighed" in mermaid(weighing())


def test_an_event_that_a_journal_could_not_tell_from_another_is_refused_when_the_table_is_made() -> None:
    class Another(Event):
        kind: Literal["parcel_weighed"] = "parcel_weighed"

    class Ours(Event):
        kind: Literal["model_answered"] = "model_answered"

    class Nameless(Event):
        pass

    for event, why in ((Another, "share the kind 'parcel_weighed'"), (Ours, "share the kind"), (Nameless, "no kind")):
        with pytest.raises(WorkflowError, match=why):
            Workflow((Row(ParcelWeighed, "A", "A", rests=True), Row(event, "A", "A", rests=True)), work={"A": think})


@pytest.mark.parametrize("event", [{"kind": "model_answered"}, {"kind": "tools_requested", "content": 3}, {}])
def test_a_damaged_event_of_the_engines_own_is_never_read_as_an_apps(event: dict[str, Any]) -> None:
    from haru_fsm.conversation import Step

    with pytest.raises(ValueError, match="event"):
        TypeAdapter(Step).validate_python({"seq": 1, "run": 1, "event": event, "source": "A", "state": "B"})
    assert Step(seq=1, run=1, event=answer("x"), source="A", state="B").event == answer("x")
