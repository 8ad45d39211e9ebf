"""Who comes to a conversation meets what is there: another customer's, a run, a decision of somebody else's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from haru_fsm import Engine, Run, tool
from haru_fsm.arrivals import MESSAGE_CHARS
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import ApprovalDecided, ApprovalRequested, Conversation, Event, MessageHeld, ResultStatus
from haru_fsm.errors import (
    ConversationBusy,
    ConversationMoved,
    SettingsError,
    StoreError,
    UnknownCall,
    UnknownConversation,
    UnknownTicket,
)
from haru_fsm.ids import conversation_id_for
from haru_fsm.models import ModelOutcome, ModelRequest
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.notices import KOREAN
from haru_fsm.stores import Outcome
from haru_fsm.stores.memory import MemoryStore
from tests.engine.shopless import Meddled, Tools, Where, broken, engine, record_of

OURS = Where(customer_id="C1", conversation_id="c-1")
THEIRS = Where(customer_id="C2", conversation_id="c-1")

SAME_ID = [
    [("C1", "m-1170131"), ("C2", "m-1790486")],
    [("C2", "m-2024494"), ("C2", "m-2450832")],
]
"""First messages whose conversations get one id by chance: of a million there are, more likely than not, two."""


class Wiping(Tools):
    """The three small tools, and one that waits for approval."""

    def make(self, session: Any) -> list[Callable[..., Any]]:
        @tool(read_only=False, approval=True)
        def wipe(what: str) -> Any:
            """Wipe something out."""
            return self._do("wipe", what, {"wiped": what})

        return [*super().make(session), wipe]


WIPE = [("wipe", {"what": "A"})]


# --------------------------------------------------------------------------- a message


@pytest.mark.parametrize("script", [["네."], [WIPE], []], ids=["answered", "paused", "escalated"])
async def test_nobody_gets_into_another_customer_s_conversation(script: list[Any]) -> None:
    async with engine(ScriptedModel(script), tools=Wiping()) as haru:
        await haru.ask("제 주소는 서울입니다.", **OURS, message_id="m1")
        before = await record_of(haru, "c-1")
        for message_id in ("m1", "m2", None):
            with pytest.raises(UnknownConversation):
                await haru.ask("제 주소가 뭐였죠?", **THEIRS, message_id=message_id)
        assert await record_of(haru, "c-1") == before


async def test_a_message_has_as_many_characters_as_are_taken_and_no_more() -> None:
    async with engine(ScriptedModel(["네."])) as haru:
        with pytest.raises(SettingsError, match="20,001 characters"):
            await haru.ask("가" * (MESSAGE_CHARS + 1), **OURS)
        assert await haru.store.conversations() == []
        assert (await haru.ask("가" * MESSAGE_CHARS, **OURS)).answer == "네."


@pytest.mark.parametrize("message_id", [None, "m1"])
async def test_the_same_message_twice_at_once_is_one_run_where_it_has_an_id(message_id: str | None) -> None:
    store, tools = Meddled(), Tools()
    async with engine(ScriptedModel([[("pay", {"what": "A"})], "냈습니다."]), tools=tools, store=store) as haru:
        first: list[Run] = []

        async def same() -> None:
            first.append(await haru.ask("내 주세요", **OURS, message_id=message_id))

        store.before = same
        if message_id is None:
            with pytest.raises(ConversationMoved):
                await haru.ask("내 주세요", **OURS)
        else:
            assert [await haru.ask("내 주세요", **OURS, message_id=message_id)] == first
        assert [run.answer for run in first] == ["냈습니다."]
        assert tools.runs == {"pay(A)": 1}


async def test_the_same_message_again_while_its_run_goes_on_waits_for_that_run() -> None:
    again: list[asyncio.Task[Run]] = []

    class Meanwhile(ScriptedModel):
        async def respond(self, request: ModelRequest) -> ModelOutcome:
            again.append(asyncio.create_task(haru.ask("안녕하세요", **OURS, message_id="m1")))
            await asyncio.sleep(0)
            with pytest.raises(ConversationBusy):
                await haru.ask("저기요", **OURS, message_id="m2")
            return await super().respond(request)

    async with engine(Meanwhile(["네."])) as haru:
        run = await haru.ask("안녕하세요", **OURS, message_id="m1")
        assert [await each for each in again] == [run]


@pytest.mark.parametrize("message_id", [None, "m1"])
async def test_a_message_that_cannot_be_kept_is_told_so(message_id: str | None) -> None:
    class Full(MemoryStore):
        async def append(self, conversation: Conversation, **place: Any) -> None:
            if isinstance(conversation.steps[-1].event, MessageHeld):
                raise StoreError("The disk is full.")
            await super().append(conversation, **place)

    haru, _ = await paused(Full())
    async with asyncio.timeout(30):
        with pytest.raises(StoreError, match="full"):
            await haru.ask("그리고요?", **OURS, message_id=message_id)


@pytest.mark.parametrize("message_id", [None, "m1"])
async def test_a_message_that_cannot_begin_its_run_is_told_so(message_id: str | None) -> None:
    class Full(MemoryStore):
        async def append(self, conversation: Conversation, **place: Any) -> None:
            await asyncio.sleep(0)
            raise StoreError("The disk is full.")

    async with asyncio.timeout(30):
        with pytest.raises(StoreError, match="full"):
            await engine(ScriptedModel(["네."]), store=Full()).ask("안녕하세요", **OURS, message_id=message_id)


# --------------------------------------------------------------------------- a call that waits


async def paused(store: MemoryStore, *after: str) -> tuple[Engine, FakeClock]:
    clock = FakeClock()
    haru = engine(ScriptedModel([WIPE, *after]), tools=Wiping(), store=store, clock=clock, approval_ttl_s=60)
    assert (await haru.ask("지워 주세요", **OURS)).waiting
    return haru, clock


async def decisions_of(haru: Engine) -> list[ApprovalDecided]:
    events: list[Event] = [step.event for step in (await record_of(haru, "c-1")).steps]
    return [event for event in events if isinstance(event, ApprovalDecided)]


async def test_a_decision_that_meets_a_message_counts_all_the_same() -> None:
    store = Meddled()
    haru, _ = await paused(store, "지웠습니다.", "둘째 답")
    store.before = lambda: haru.ask("그리고요?", **OURS)
    assert (await haru.approve("c-1", "2.0")).answer == "지웠습니다."
    assert [decided.approved for decided in await decisions_of(haru)] == [True]


async def test_a_decision_that_meets_another_one_is_told_so() -> None:
    store = Meddled()
    haru, _ = await paused(store, "지우지 않았습니다.")
    store.before = lambda: haru.deny("c-1", "2.0")
    with pytest.raises(ConversationMoved, match="somebody else decided"):
        await haru.approve("c-1", "2.0")
    assert [decided.approved for decided in await decisions_of(haru)] == [False]


async def test_who_names_no_waiting_call_is_told_what_became_of_it_and_what_waits() -> None:
    haru = engine(ScriptedModel([WIPE * 2, "네."]), tools=Wiping())
    await haru.ask("지워 주세요", **OURS)
    with pytest.raises(UnknownCall, match=r"No call 9\.9 waits for approval\. Waiting: 2\.0, 2\.1\."):
        await haru.approve("c-1", "9.9")
    await haru.deny("c-1", "2.1", by="kim")
    with pytest.raises(UnknownCall, match=r"Call 2\.1 was denied by kim\. Waiting: 2\.0\."):
        await haru.approve("c-1", "2.1")
    await haru.approve("c-1", "2.0", by="lee")
    with pytest.raises(UnknownCall, match=r"Call 2\.0 was approved by lee\. No call waits now\."):
        await haru.deny("c-1", "2.0")


async def test_a_decision_about_a_run_that_was_left_before_its_pause_brings_it_there_first() -> None:
    class Dies(MemoryStore):
        async def append(self, conversation: Conversation, **place: Any) -> None:
            if isinstance(conversation.steps[-1].event, ApprovalRequested) and place["expected_seq"] == 2:
                raise RuntimeError("the process is gone")
            await super().append(conversation, **place)

    haru = engine(ScriptedModel([WIPE, "지웠습니다."]), tools=Wiping(), store=Dies())
    with pytest.raises(RuntimeError):
        await haru.ask("지워 주세요", **OURS)
    assert (await haru.approve("c-1", "2.0")).answer == "지웠습니다."
    assert (await record_of(haru, "c-1")).summary.resting


@pytest.mark.parametrize("comes", ["a message", "a decision"])
async def test_time_that_is_up_for_two_who_look_at_once_is_one_denial(comes: str) -> None:
    store = Meddled()
    haru, clock = await paused(store, "지우지 못했습니다.", "둘째 답")
    clock.advance(60)
    store.before = lambda: haru.resume("c-1")
    if comes == "a message":
        assert (await haru.ask("그리고요?", **OURS)).answer == "둘째 답"
    else:
        with pytest.raises(UnknownCall, match="time was up"):
            await haru.approve("c-1", "2.0")
    assert [decided.expired for decided in await decisions_of(haru)] == [True]


# --------------------------------------------------------------------------- a call in doubt


async def test_how_a_call_ended_is_said_once_and_only_of_one_in_doubt() -> None:
    clock = FakeClock()
    model = ScriptedModel([[("pay", {"what": "A"}), ("look", {"what": "A"})]])
    async with engine(model, tools=Tools(pay=broken), clock=clock) as haru:
        await haru.ask("내 주세요", **OURS)
        done, not_done = (Outcome(status=status, response={}) for status in (ResultStatus.DONE, ResultStatus.NOT_DONE))
        for unknown in ("2.1", "9.9"):
            with pytest.raises(UnknownCall, match=unknown):
                await haru.settle("c-1", unknown, done)
        settled = await haru.settle("c-1", "2.0", done)
        assert settled.at == round(clock.now(), 3)
        with pytest.raises(UnknownCall, match="known already"):
            await haru.settle("c-1", "2.0", not_done)
        assert (await record_of(haru, "c-1")).ledger["2.0"].outcome == settled


async def test_when_a_person_knows_since_when_that_is_kept() -> None:
    async with engine(ScriptedModel([[("pay", {"what": "A"})]]), tools=Tools(pay=broken)) as haru:
        await haru.ask("내 주세요", **OURS)
        known = Outcome(status=ResultStatus.DONE, response={}, at=5.0)
        assert await haru.settle("c-1", "2.0", known) == known


# --------------------------------------------------------------------------- a ticket


async def escalated(haru: Engine, customer: str, conversation: str) -> str:
    run = await haru.ask("도와주세요", customer_id=customer, conversation_id=conversation)
    assert run.ticket is not None
    return run.ticket.ticket_id


async def test_a_reply_reaches_the_customer_whose_ticket_it_is() -> None:
    async with engine(ScriptedModel([])) as haru:
        tickets = {name: await escalated(haru, name, f"c-{name}") for name in ("C1", "C2", "C3")}
        closed = await haru.close_ticket(tickets["C2"], "  해결했습니다.\n")
        assert (closed.conversation_id, closed.answer) == ("c-C2", "해결했습니다.")
        still_open = {stored.ticket.ticket_id for stored in await haru.store.tickets(open_only=True)}
        assert still_open == {tickets["C1"], tickets["C3"]}
        with pytest.raises(UnknownTicket):
            await haru.close_ticket(tickets["C2"], "또")


async def test_a_ticket_stays_open_while_a_run_of_its_conversation_goes_on() -> None:
    class Meanwhile(ScriptedModel):
        async def respond(self, request: ModelRequest) -> ModelOutcome:
            with pytest.raises(ConversationBusy):
                await haru.close_ticket(ticket, "해결했습니다.")
            return await super().respond(request)

    store = MemoryStore()
    ticket = await escalated(engine(ScriptedModel([]), store=store), "C1", "c-1")
    haru = engine(Meanwhile(["네."]), store=store)
    assert (await haru.ask("아직인가요?", **OURS)).answer == "네."
    assert len(await store.tickets(open_only=True)) == 1


async def test_the_same_trouble_again_is_told_as_added_to_the_ticket() -> None:
    async with engine(ScriptedModel([])) as haru:
        first, second = [await haru.ask("도와주세요", **OURS) for _ in range(2)]
        assert first.ticket is not None
        assert first.answer == KOREAN.ticket(first.ticket)
        assert second.answer == KOREAN.ticket(first.ticket, added=True)


@pytest.mark.parametrize("pair", SAME_ID, ids=["of two customers", "of one customer"])
async def test_first_messages_whose_ids_come_out_the_same_begin_a_conversation_each(
    pair: list[tuple[str, str]],
) -> None:
    assert len({conversation_id_for(*each) for each in pair}) == 1
    async with engine(ScriptedModel(["하나.", "둘."])) as haru:
        runs = [await haru.ask("안녕하세요", customer_id=customer, message_id=message) for customer, message in pair]
        assert [run.answer for run in runs] == ["하나.", "둘."]
        assert len({run.conversation_id for run in runs}) == 2
        again = [await haru.ask("안녕하세요", customer_id=customer, message_id=message) for customer, message in pair]
        assert again == runs


@pytest.mark.parametrize("pair", SAME_ID, ids=["of two customers", "of one customer"])
async def test_they_may_come_in_the_same_moment(pair: list[tuple[str, str]]) -> None:
    async with engine(ScriptedModel(["네."] * 2)) as haru:
        asked = (haru.ask("안녕하세요", customer_id=customer, message_id=message) for customer, message in pair * 2)
        runs = await asyncio.gather(*asked)
        assert len({run.conversation_id for run in runs}) == 2
        assert isinstance(haru.model, ScriptedModel)
        assert len(haru.model.requests) == 2
