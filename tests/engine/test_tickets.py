"""Law 2 at the desk: one ending, one ticket, and a number that really exists, whatever the desk does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from http.client import HTTPConnection
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest

from haru_fsm import App, Engine, Limits, Workflow, tool
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import Conversation, Event, Ticket, TicketClosed, TicketOpened
from haru_fsm.errors import ConversationBusy, ConversationMoved, NotDone, UnknownTicket
from haru_fsm.escalating import hand_over
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.notices import KOREAN
from haru_fsm.runs import Run
from haru_fsm.services import Services
from haru_fsm.session import Session
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.testing.local_http import Answer, Fault, LocalServer, Request
from haru_fsm.tickets import StoreDesk, TicketDesk, mint
from haru_fsm.toolbox.threads import SIZE, THREADS
from tests.engine.shopless import Tools, Where, bare, engine

FILE = [("create_ticket", {"summary": "환불을 원함"})]


def ticket_tool(session: Session) -> list[Callable[..., Any]]:
    @tool(read_only=False, idempotent=True)
    def create_ticket(summary: str) -> dict[str, str]:
        """Hand the case to a person."""
        assert session.desk is not None
        return {"ticket_id": session.desk.file(session, "환불", "높음", summary).ticket_id}

    return [create_ticket, *Tools().make(session)]


def desked(script: list[Any], *, store: Any = None, desk: TicketDesk | None = None, **limits: Any) -> Engine:
    app = App(bare(Limits(**limits)).workflow, ticket_tool, limits=Limits(**limits))
    clock = FakeClock()
    return Engine(app, model=ScriptedModel(script), store=store or MemoryStore(now=clock.now), desk=desk, clock=clock)


# --------------------------------------------------------------------------- a ticket that a tool has filed


async def test_a_ticket_that_a_tool_filed_is_the_runs_also_when_it_ends_in_an_answer() -> None:
    haru = desked([FILE, "접수했습니다.", "네."])
    run = await haru.ask("환불해 주세요", customer_id="C1")
    (stored,) = await haru.store.tickets()
    assert (run.state, run.answer, run.stopped_by) == ("DONE", "접수했습니다.", None)
    assert run.ticket == stored.ticket
    again = await haru.ask("고마워요", customer_id="C1", conversation_id=run.conversation_id)
    assert again.ticket is None, "the next run has made none"


async def test_a_later_run_adds_to_the_open_ticket_once_and_says_so() -> None:
    haru = desked([FILE, "접수했습니다.", [("create_ticket", {"summary": "서둘러 달라고 함"})], "추가했습니다."])
    first = await haru.ask("환불해 주세요", customer_id="C1")
    second = await haru.ask("빨리요", customer_id="C1", conversation_id=first.conversation_id)
    (stored,) = await haru.store.tickets()
    assert stored.notes == ("서둘러 달라고 함",)
    assert second.ticket == first.ticket == stored.ticket


@pytest.mark.parametrize(
    ("does", "has_it"),
    [
        ([("pay", {"what": "A"})], False),
        ([("look", {"what": "NUMBER"})], False),
        ([("pay", {"what": "NUMBER"})], True),
        ([("pay", {"what": "A"}), ("create_ticket", {"summary": "또"})], True),
    ],
)
async def test_a_later_run_has_the_open_ticket_where_an_effect_of_its_own_told_the_number(
    does: list[tuple[str, dict[str, Any]]], has_it: bool
) -> None:
    haru = desked([FILE, "접수했습니다."])
    first = await haru.ask("환불해 주세요", customer_id="C1", conversation_id="c-1")
    assert first.ticket is not None
    calls = [(name, json.loads(json.dumps(args).replace("NUMBER", first.ticket.ticket_id))) for name, args in does]
    later = Engine(haru.app, model=ScriptedModel([calls, "네."]), store=haru.store, clock=haru.clock)
    second = await later.ask("그리고요?", customer_id="C1", conversation_id="c-1")
    assert second.answer == "네."
    assert second.ticket == (first.ticket if has_it else None)


async def test_an_effect_that_did_not_happen_tells_of_no_ticket() -> None:
    def refuses(what: str) -> Any:
        raise NotDone(f"{what} is looked at by a person")

    haru = desked([FILE, "접수했습니다."])
    first = await haru.ask("환불해 주세요", customer_id="C1", conversation_id="c-1")
    assert first.ticket is not None
    app = haru.app.with_tools(Tools(pay=refuses).make)
    script = ScriptedModel([[("pay", {"what": first.ticket.ticket_id})], "네."])
    second = await Engine(app, model=script, store=haru.store).ask("내 주세요", customer_id="C1", conversation_id="c-1")
    assert (second.answer, second.ticket) == ("네.", None)


async def test_a_ticket_is_the_run_s_that_filed_it_whatever_its_tool_says_of_it() -> None:
    def silent(session: Session) -> list[Callable[..., Any]]:
        @tool(read_only=False)
        def create_ticket(summary: str) -> str:
            """Hand the case to a person."""
            assert session.desk is not None
            session.desk.file(session, "환불", "높음", summary)
            return "A person will see to it."

        return [create_ticket]

    haru = desked([FILE, "접수했습니다."])
    haru = Engine(haru.app.with_tools(silent), model=haru.model, store=haru.store, clock=haru.clock)
    run = await haru.ask("환불해 주세요", customer_id="C1")
    (stored,) = await haru.store.tickets()
    assert (run.answer, run.ticket) == ("접수했습니다.", stored.ticket)


async def test_what_a_tool_files_is_stored_as_it_can_be_written_with_its_time_and_as_a_rehearsal_s() -> None:
    clock, desk = FakeClock(now=5.0), StoreDesk(MemoryStore())
    session = Session("C1", conversation_id="c-1", run=2, clock=clock, rehearsal=True)
    filed = desk.file(session, "환불\ud800", "높음\ud800", "파손\ud800")
    assert (filed.category, filed.urgency, filed.summary) == ("환불\ufffd", "높음\ufffd", "파손\ufffd")
    assert (filed.created_at, filed.rehearsal, filed.key) == (5.0, True, "c-1/2")


def test_a_number_comes_of_its_key_alone_in_every_version() -> None:
    assert (mint("c-1/2"), mint("c-1/2", 1)) == ("HT-6980712715", "HT-2037856690")


async def test_a_run_that_ends_in_a_ticket_after_a_tool_filed_one_has_that_one(tmp_path: Path) -> None:
    haru = desked([FILE], store=SQLiteStore(tmp_path / "haru.db"))  # the script is over: the model fails
    async with haru:
        run = await haru.ask("환불해 주세요", customer_id="C1")
        (stored,) = await haru.store.tickets()
    assert run.state == "ESCALATE_TICKET"
    assert run.ticket == stored.ticket
    assert stored.ticket.summary == "환불을 원함"
    assert len(stored.notes) == 1
    assert stored.ticket.ticket_id in run.answer


class Meddled(MemoryStore):
    """Something else happens just before each write."""

    before: Callable[[Event], Awaitable[object]] | None = None

    async def append(self, conversation: Conversation, **place: Any) -> None:
        if self.before is not None:
            await self.before(conversation.steps[-1].event)
        await super().append(conversation, **place)


async def test_a_crash_after_the_tool_filed_it_loses_nothing() -> None:
    store, stopped = Meddled(), asyncio.Event()
    haru = desked([FILE, "접수했습니다."], store=store)

    async def stops(event: Event) -> None:
        if event.kind in ("tools_executed", "observation_appended"):
            stopped.set()
            await asyncio.Event().wait()

    store.before = stops
    asking = asyncio.create_task(haru.ask("환불해 주세요", customer_id="C1", conversation_id="c-1"))
    await stopped.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    store.before = None
    run = await desked(["접수했습니다."], store=store).resume("c-1")
    (stored,) = await store.tickets()
    assert (run.answer, run.ticket, stored.notes) == ("접수했습니다.", stored.ticket, ())


# --------------------------------------------------------------------------- a person's reply


async def test_a_persons_reply_is_what_the_customer_reads_under_an_id_of_its_own() -> None:
    async with engine(ScriptedModel(["네."])) as haru:
        failed = await haru.ask("안녕", customer_id="C1", message_id="m1", conversation_id="c-1")
        escalated = await haru.ask("환불은요?", customer_id="C1", message_id="m2", conversation_id="c-1")
        assert failed.ticket is None
        assert escalated.ticket is not None
        closed = await haru.close_ticket(escalated.ticket.ticket_id, "환불해 드렸습니다.")
        assert (closed.answer, closed.state, closed.finished) == ("환불해 드렸습니다.", "DONE", True)
        assert closed.reply_id != escalated.reply_id
        assert await haru.resume("c-1") == closed
        again = await haru.ask("환불은요?", customer_id="C1", message_id="m2", conversation_id="c-1")
        assert again == escalated, "the same message again is the same run, whatever a person said since"


async def test_a_message_at_the_same_moment_does_not_lose_a_persons_reply() -> None:
    store, came = Meddled(), list[Run]()
    async with engine(ScriptedModel([]), store=store) as haru:
        failed = await haru.ask("환불은요?", customer_id="C1", conversation_id="c-1")
        assert failed.ticket is not None

        async def too_late(event: Event) -> None:
            if isinstance(event, TicketClosed) and not came:
                came.append(await haru.ask("여보세요?", customer_id="C1", conversation_id="c-1"))

        store.before = too_late
        closed = await haru.close_ticket(failed.ticket.ticket_id, "환불해 드렸습니다.")
        assert (closed.answer, closed.run_id) == ("환불해 드렸습니다.", "c-1/2")
        with pytest.raises(UnknownTicket):
            await haru.close_ticket(failed.ticket.ticket_id, "또")


async def test_a_ticket_that_cannot_be_closed_for_nobody_has_moved_it_is_not_tried_for_ever() -> None:
    store = Meddled()
    async with engine(ScriptedModel([]), store=store) as haru:
        failed = await haru.ask("환불은요?", customer_id="C1", conversation_id="c-1")
        assert failed.ticket is not None

        async def refuses(_event: Event) -> None:
            raise ConversationMoved("another worker has it")

        store.before = refuses
        with pytest.raises(ConversationMoved):
            await haru.close_ticket(failed.ticket.ticket_id, "네")


# --------------------------------------------------------------------------- what the ticket says


async def test_what_was_not_run_is_not_told_as_tried() -> None:
    script = [[("look", {"what": "A"})], [("pay", {"what": "B"}), ("look", {"what": "C"})]]
    run = await engine(ScriptedModel(script), max_steps=2).ask("B 내 주세요", customer_id="C1")
    assert run.ticket is not None
    lines = dict(line.split(": ", 1) for line in run.ticket.summary.splitlines())
    assert lines["시도한 일"] == 'look({"what": "A"})'
    assert lines["요청되었으나 실행하지 않은 일"] == 'pay({"what": "B"}); look({"what": "C"})'


# --------------------------------------------------------------------------- a desk over HTTP


class Office:
    """A ticket desk over HTTP, with numbers of its own: one ticket per key. `faults` say how it answers, in order."""

    def __init__(self, *faults: Fault | int | None) -> None:
        self.tickets: dict[str, dict[str, Any]] = {}
        self.asked = 0
        self._faults = list(faults)

    async def answer(self, request: Request) -> Answer:
        self.asked += 1
        wanted = json.loads(request.body)
        fault = self._faults.pop(0) if self._faults else None
        if fault != 503:
            number = f"DESK-{len(self.tickets) + 1}"
            kept = self.tickets.setdefault(wanted["key"], {**wanted, "ticket_id": number, "all": []})
            kept["all"].append(wanted["summary"])
        if isinstance(fault, int):
            return Answer(status=fault)
        body = json.dumps({"ticket_id": self.tickets[wanted["key"]]["ticket_id"]}).encode()
        return Answer(headers={"Content-Type": "application/json"}, pieces=(body,), fault=fault)


class HttpDesk:
    """A client of the office, as a shop would write it: blocking, with the standard library."""

    def __init__(self, url: str) -> None:
        self._address = url.removeprefix("http://")

    def open(self, ticket: Ticket) -> Ticket:
        with closing(HTTPConnection(self._address, timeout=30)) as connection:
            connection.request("POST", "/tickets", ticket.model_dump_json().encode())
            answered = connection.getresponse()
            if answered.status != 200:
                raise OSError(f"the desk says {answered.status}")
            return ticket.model_copy(update=json.load(answered))


FAULTS: dict[str, tuple[Fault | int | None, ...]] = {
    "well": (),
    "closes after storing": (Fault.CLOSE,),
    "resets after storing": (Fault.RESET, Fault.RESET),
    "cuts its answer off": (Fault.TRUNCATE,),
    "500 after storing": (500,),
    "503 before storing": (503, 503),
    "hangs after storing": (Fault.HANG,),
}


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
async def test_a_desk_that_fails_after_storing_has_one_ticket_and_the_customer_reads_its_number(
    faults: tuple[Fault | int | None, ...],
) -> None:
    office = Office(*faults)
    with LocalServer(office.answer) as server:
        haru = desked([], desk=HttpDesk(server.base_url), tool_timeout_s=0.5)
        run = await haru.ask("도와주세요", customer_id="C1")
    assert run.ticket is not None
    assert list(office.tickets) == [run.run_id]
    assert run.ticket.ticket_id == office.tickets[run.run_id]["ticket_id"] == "DESK-1"
    assert "DESK-1" in run.answer
    assert [stored.ticket for stored in await haru.store.tickets()] == [run.ticket]
    assert office.asked == len(faults) + 1


async def test_while_the_desk_is_down_no_number_is_told_and_the_next_process_asks_under_the_same_key() -> None:
    office = Office(*(500,) * 3)
    with LocalServer(office.answer) as server:
        haru = desked([], desk=HttpDesk(server.base_url))
        waiting = await haru.ask("도와주세요", customer_id="C1")
        assert (waiting.finished, waiting.ticket, waiting.answer) == (False, None, KOREAN.holding)
        run = await haru.resume(waiting.conversation_id)
    assert run.ticket is not None
    assert run.ticket.ticket_id == "DESK-1"
    assert list(office.tickets) == [run.run_id]


class Down:
    """A desk that is out of reach until it is said to be there."""

    def __init__(self) -> None:
        self.there = False

    def open(self, ticket: Ticket) -> Ticket:
        if not self.there:
            raise OSError("out of reach")
        return ticket


async def test_while_the_desk_is_down_nobody_waits_for_it_and_who_comes_next_is_told() -> None:
    desk = Down()
    haru = desked([], desk=desk)
    where = Where(customer_id="C1", conversation_id="c-1")
    waiting = await haru.ask("하나", **where, message_id="m1")
    async with asyncio.timeout(30):
        again = await haru.ask("하나", **where, message_id="m1")
        assert (again.finished, again.answer, again.run_id) == (False, KOREAN.holding, waiting.run_id)
        assert again.reply_id == waiting.reply_id
        with pytest.raises(ConversationBusy, match="ticket desk"):
            await haru.ask("둘", **where, message_id="m2")
        record = await haru.store.load("c-1")
        assert record is not None
        assert [step.event.kind for step in record.steps[2:]] == ["resumed", "resumed"], "one for each who came"
        assert record.summary.owner is None, "nobody has to wait for the lease of who could not file it"
        desk.there = True
        assert (await haru.ask("둘", **where, message_id="m2")).run_id == "c-1/2"
        ended = await haru.ask("하나", **where, message_id="m1")
        assert ended.ticket is not None
        assert ended.reply_id != waiting.reply_id, "a channel must not drop the number for the notice before it"


async def test_the_notice_of_a_run_that_waits_for_the_desk_is_not_told_for_another_message() -> None:
    desk = Down()
    haru = desked([], desk=desk)
    where = Where(customer_id="C1", conversation_id="c-1")
    desk.there = True
    ended = await haru.ask("하나", **where, message_id="m1")
    desk.there = False
    await haru.ask("둘", **where, message_id="m2")
    async with asyncio.timeout(30):
        with pytest.raises(ConversationBusy):
            await haru.ask("셋", **where, message_id="m3")
        assert await haru.ask("하나", **where, message_id="m1") == ended


async def test_whoever_runs_the_service_is_told_that_the_desk_is_down(caplog: pytest.LogCaptureFixture) -> None:
    await desked([], desk=Down()).ask("도와주세요", customer_id="C1", conversation_id="c-1")
    (record,) = [each for each in caplog.records if each.name == "haru_fsm.worker"]
    assert record.levelname == "WARNING"
    assert "c-1: the ticket desk did not take the ticket (OSError: out of reach)" in record.getMessage()


async def test_a_message_that_is_kept_stays_so_while_the_desk_is_down() -> None:
    def wiping(_session: Session) -> list[Callable[..., Any]]:
        @tool(read_only=False, approval=True)
        def wipe(what: str) -> str:
            """Wipe something out."""
            return what

        return [wipe]

    haru, desk = desked([[("wipe", {"what": "A"})]]), Down()
    haru = Engine(haru.app.with_tools(wiping), model=haru.model, store=haru.store, desk=desk, clock=haru.clock)
    where = Where(customer_id="C1", conversation_id="c-1")
    await haru.ask("하나", **where, message_id="m1")
    kept = await haru.ask("둘", **where, message_id="m2")
    assert (await haru.deny("c-1", "2.0")).answer == KOREAN.holding
    async with asyncio.timeout(30):
        again = await haru.ask("둘", **where, message_id="m2")
        assert (again.answer, again.reply_id) == (KOREAN.held, kept.reply_id)
        desk.there = True
        assert (await haru.ask("둘", **where, message_id="m2")).run_id == "c-1/2"


class Brief:
    """A desk that keeps the first letters of a summary, as help desks do with a subject."""

    def open(self, ticket: Ticket) -> Ticket:
        return ticket.model_copy(update={"summary": ticket.summary[:10]})


async def test_a_new_ticket_is_told_as_new_whatever_the_desk_makes_of_its_summary() -> None:
    haru = desked([], desk=Brief())
    run = await haru.ask("도와주세요", customer_id="C1")
    (stored,) = await haru.store.tickets()
    assert run.answer == KOREAN.ticket(stored.ticket)
    assert "도와주세요" in stored.ticket.summary
    assert stored.notes == ()


async def test_a_later_run_adds_to_the_ticket_at_the_desk() -> None:
    office = Office()
    with LocalServer(office.answer) as server:
        haru = desked([], desk=HttpDesk(server.base_url))
        first = await haru.ask("도와주세요", customer_id="C1")
        second = await haru.ask("여보세요?", customer_id="C1", conversation_id=first.conversation_id)
    assert second.ticket == first.ticket
    assert list(office.tickets) == [first.run_id]
    assert "여보세요?" in office.tickets[first.run_id]["all"][1]
    (stored,) = await haru.store.tickets()
    assert "여보세요?" in stored.notes[0]


def case(ticket: Ticket, *, added: bool = False) -> str:
    return f"case {ticket.ticket_id}" + (", again" if added else "")


def to_a_person(conversation: Conversation, services: Services) -> TicketOpened | Awaitable[TicketOpened]:
    return hand_over(conversation, services, category="help", urgency="low", words=case)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["in the store", "elsewhere"])
async def test_a_table_of_one_s_own_hands_over_in_its_own_words_at_any_desk(elsewhere: bool) -> None:
    haru, office = bare(Limits()).workflow, Office()
    workflow = Workflow(haru.rows, work={**haru.work, "ESCALATE_TICKET": to_a_person}, initial=haru.initial)
    app = App(workflow, Tools().make)
    with LocalServer(office.answer) as server:
        desk = HttpDesk(server.base_url) if elsewhere else None
        engine = Engine(app, model=ScriptedModel([]), store=MemoryStore(), desk=desk)
        first = await engine.ask("도와주세요", customer_id="C1")
        second = await engine.ask("여보세요?", customer_id="C1", conversation_id=first.conversation_id)
    assert first.ticket is not None
    assert (first.ticket.category, first.ticket.urgency) == ("help", "low")
    assert first.answer == f"case {first.ticket.ticket_id}"
    assert second.answer == f"case {first.ticket.ticket_id}, again"
    assert len(office.tickets) == elsewhere
    (stored,) = await engine.store.tickets()
    assert "여보세요?" in stored.notes[0]


async def test_words_that_forget_the_number_get_it() -> None:
    def forgetful(_ticket: Ticket, *, added: bool = False) -> str:
        return "다시 연락드리겠습니다." if added else "곧 연락드리겠습니다."

    def work(conversation: Conversation, services: Services) -> TicketOpened | Awaitable[TicketOpened]:
        return hand_over(conversation, services, category="help", urgency="low", words=forgetful)

    haru = bare(Limits()).workflow
    workflow = Workflow(haru.rows, work={**haru.work, "ESCALATE_TICKET": work}, initial=haru.initial)
    async with Engine(App(workflow, Tools().make), model=ScriptedModel([]), store=MemoryStore()) as engine:
        first = await engine.ask("도와주세요", customer_id="C1")
        second = await engine.ask("여보세요?", customer_id="C1", conversation_id=first.conversation_id)
    assert first.ticket is not None
    assert first.answer == f"곧 연락드리겠습니다. ({first.ticket.ticket_id})"
    assert second.answer == f"다시 연락드리겠습니다. ({first.ticket.ticket_id})"


@pytest.mark.parametrize("ends", [["접수했습니다."], []], ids=["in an answer", "in a ticket"])
async def test_a_tool_files_at_the_same_desk_as_the_engine(ends: list[str]) -> None:
    office = Office()
    with LocalServer(office.answer) as server:
        haru = desked([FILE, *ends], desk=HttpDesk(server.base_url))
        run = await haru.ask("환불해 주세요", customer_id="C1")
    assert run.finished
    assert run.ticket is not None
    assert list(office.tickets) == [run.run_id]
    assert [stored.ticket.ticket_id for stored in await haru.store.tickets()] == ["DESK-1"]
    assert run.ticket.ticket_id == "DESK-1"


class Stuck:
    """A blocking desk that has stored the ticket and then never comes back, the first time."""

    def __init__(self) -> None:
        self.filed: list[str] = []
        self.let_go = threading.Event()

    def open(self, ticket: Ticket) -> Ticket:
        self.filed.append(ticket.key)
        if len(self.filed) == 1:
            self.let_go.wait(60)
        return ticket


async def test_a_desk_that_never_comes_back_is_given_up_and_asked_again() -> None:
    desk = Stuck()
    async with asyncio.timeout(30):
        run = await desked([], desk=desk, tool_timeout_s=0.1).ask("도와주세요", customer_id="C1")
    desk.let_go.set()
    assert run.ticket is not None
    assert desk.filed == [run.run_id, run.run_id]


class Odd:
    """A desk that answers beside the point."""

    def __init__(self, answers: Callable[[Ticket], Any]) -> None:
        self._answers = answers

    async def open(self, ticket: Ticket) -> Any:
        return self._answers(ticket)


@pytest.mark.parametrize(
    "answers",
    [
        lambda ticket: None,
        lambda ticket: "DESK-9",
        lambda ticket: ticket.model_copy(update={"key": "of/another"}),
        lambda ticket: ticket.model_copy(update={"ticket_id": " "}),
    ],
    ids=["nothing", "a text", "another's ticket", "no number"],
)
async def test_an_answer_beside_the_point_is_no_ticket(answers: Callable[[Ticket], Any]) -> None:
    haru = desked([], desk=Odd(answers))
    run = await haru.ask("도와주세요", customer_id="C1")
    assert (run.finished, run.ticket, run.answer) == (False, None, KOREAN.holding)


async def test_a_desk_that_hangs_as_often_as_there_are_threads_leaves_tools_theirs() -> None:
    let_go, served = threading.Event(), threading.Event()

    class Hanging:
        def open(self, ticket: Ticket) -> Ticket:
            let_go.wait(60)
            return ticket

    ticket = Ticket(
        ticket_id="HT-1", key="c-1/1", conversation_id="c-1", customer_id="C1",
        category="환불", urgency="높음", summary="파손", created_at=5.0,
    )  # fmt: skip
    desks = [StoreDesk(MemoryStore(), elsewhere=Hanging(), time_s=0.01) for _ in range(SIZE)]
    try:
        answers = [desk.open(ticket) for desk in desks]
        given_up = await asyncio.gather(*(each for each in answers if isawaitable(each)), return_exceptions=True)
        THREADS.submit(served.set)
        assert [type(each) for each in given_up] == [TimeoutError] * SIZE
        assert served.wait(10)
    finally:
        let_go.set()


async def test_a_desk_may_be_a_plain_function_that_gives_something_to_wait_for() -> None:
    class Later:
        def open(self, ticket: Ticket) -> Awaitable[Ticket]:
            async def filed() -> Ticket:
                return ticket.model_copy(update={"ticket_id": "DESK-1"})

            return filed()

    run = await desked([], desk=Later()).ask("도와주세요", customer_id="C1")
    assert run.ticket is not None
    assert run.ticket.ticket_id == "DESK-1"


async def test_an_asynchronous_desk_serves_a_plain_tool_and_is_refused_in_the_event_loop() -> None:
    class Later:
        async def open(self, ticket: Ticket) -> Ticket:
            await asyncio.sleep(0)
            return ticket.model_copy(update={"ticket_id": "DESK-1"})

    run: Run = await desked([FILE, "접수했습니다."], desk=Later()).ask("환불해 주세요", customer_id="C1")
    assert run.ticket is not None
    assert run.ticket.ticket_id == "DESK-1"

    def in_the_loop(session: Session) -> list[Callable[..., Any]]:
        @tool(read_only=False, idempotent=True)
        async def create_ticket(summary: str) -> str:
            """Hand the case to a person, in the event loop."""
            assert session.desk is not None
            assert threading.current_thread() is threading.main_thread()
            return session.desk.file(session, "환불", "높음", summary).ticket_id

        return [create_ticket]

    haru = desked([FILE, "다시 시도하겠습니다."], desk=Later())
    haru = Engine(haru.app.with_tools(in_the_loop), model=haru.model, store=haru.store, desk=Later(), clock=haru.clock)
    run = await haru.ask("환불해 주세요", customer_id="C1")
    assert (run.answer, run.ticket) == ("다시 시도하겠습니다.", None)
