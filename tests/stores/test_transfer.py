"""An export is imported whole, tickets and what was added to them included, or is said not to have been."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from haru_fsm.conversation import (
    Conversation,
    Event,
    MessageReceived,
    ModelFailed,
    ObservationAppended,
    ResultStatus,
    Ticket,
    TicketClosed,
    TicketOpened,
    ToolsExecuted,
)
from haru_fsm.errors import (
    ConversationMoved,
    FormatTooNew,
    JournalDamaged,
    SettingsError,
    StoreError,
    UnknownConversation,
)
from haru_fsm.models.scripted import answer, calls
from haru_fsm.stores import FORMAT, Outcome, Record, Started, Store, StoredTicket
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.transfer import export, import_lines, verify
from haru_fsm.transfer.importing import TOGETHER
from haru_fsm.transfer.lines import KIND, contents, foot, sealed
from tests.tables import SMALL, a_ticket, received

FIRST = a_ticket()
SECOND = a_ticket(key="c-1/2", ticket_id="HT-0000000002")
Story = list[tuple[Ticket | None, tuple[Event, ...]]]
"""Tickets that tools filed, each with the events after it."""


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "new.db")
    yield made
    await made.aclose()


async def exported(parts: Story) -> tuple[MemoryStore, list[str]]:
    """A store in which this happened, a ticket that a tool filed before the events after it; and its export."""
    old, conversation = MemoryStore(), received()
    await moved(old, conversation, 0)
    for ticket, events in parts:
        if ticket is not None:
            old.file_ticket(ticket)
        for event in events:
            before, conversation = conversation.seq, SMALL.advance(conversation, event)
            await moved(old, conversation, before)
    return old, [line async for line in export(old)]


async def moved(store: Store, conversation: Conversation, before: int) -> None:
    await store.append(conversation, expected_seq=before, owner=None, over=None, lease_s=0)


def opened(ticket: Ticket) -> tuple[Event, ...]:
    return ModelFailed(reason="empty"), TicketOpened(ticket=ticket, notice=ticket.ticket_id)


def by_tool(ticket: Ticket) -> tuple[Event, ...]:
    executed = ToolsExecuted(results=(), ticket=ticket)
    return calls(("create_ticket", {})), executed, ObservationAppended(), answer("접수했습니다.")


def closed(ticket: Ticket) -> tuple[Event, ...]:
    again = received().steps[0].event
    return TicketClosed(ticket_id=ticket.ticket_id, reply="처리했습니다.", at=9.0), again


STORIES: dict[str, Story] = {
    "one after the other": [(None, (*opened(FIRST), *closed(FIRST), *opened(SECOND)))],
    "a tool's, then one of the engine": [(FIRST, (*by_tool(FIRST), *closed(FIRST), *opened(SECOND)))],
    "a tool's, then a tool's": [(FIRST, (*by_tool(FIRST), *closed(FIRST))), (SECOND, by_tool(SECOND))],
    "one of the engine, then a tool's": [(None, (*opened(FIRST), *closed(FIRST))), (SECOND, by_tool(SECOND))],
    "one that no step tells of": [(FIRST, ())],
    "one that only its closing tells of, then one of the engine": [
        (FIRST, (answer("네."), *closed(FIRST), *opened(SECOND)))
    ],
    "one of the engine, then one that no step tells of": [(None, (*opened(FIRST), *closed(FIRST))), (SECOND, ())],
}


@pytest.mark.parametrize("story", STORIES)
async def test_a_conversation_comes_with_all_its_tickets(store: Store, story: str) -> None:
    old, lines = await exported(STORIES[story])
    assert await import_lines(store, lines) == (1, 0)
    was, now = await old.load("c-1"), await store.load("c-1")
    assert was is not None
    assert now is not None
    assert (now.steps, now.open_ticket) == (was.steps, was.open_ticket)
    assert by_number(await store.tickets()) == by_number(await old.tickets())
    assert await import_lines(store, lines) == (0, 1)
    assert by_number(await store.tickets()) == by_number(await old.tickets())


def by_number(tickets: Iterable[StoredTicket]) -> list[StoredTicket]:
    return sorted(tickets, key=lambda stored: stored.ticket.ticket_id)


async def test_what_a_tool_added_to_a_ticket_comes_too(store: Store) -> None:
    old, _ = await exported(STORIES["one after the other"])
    for words in ("하나 더", "둘 더"):
        old.file_ticket(SECOND.model_copy(update={"key": "c-1/3", "summary": words}))
    await import_lines(store, [line async for line in export(old)])
    assert by_number(await store.tickets()) == by_number(await old.tickets())
    assert by_number(await store.tickets())[1].notes == ("하나 더", "둘 더")


class Raced(MemoryStore):
    """Another process moves the conversation right before the import's own append."""

    def __init__(self, first: Conversation | None) -> None:
        super().__init__()
        self.first = first

    async def append(self, conversation: Conversation, **more: Any) -> None:
        if conversation.seq:
            await super().append(self.first or conversation, **more)
        await super().append(conversation, **more)


async def test_many_are_stored_and_none_beside_one_that_cannot_be_read(store: Store) -> None:
    old = MemoryStore()
    for number in range(TOGETHER + 3):
        await moved(old, received(conversation_id=f"c-{number:03}"), 0)
    lines = [line async for line in export(old)]
    content = json.loads(lines[2])["content"]
    torn = [*lines[:2], sealed({**content, "steps": []}), *lines[3:]]
    with pytest.raises(SettingsError, match=r"cannot be read: IndexError.* not stored, nor what comes after it"):
        await import_lines(store, torn)
    assert await store.conversations() == []
    assert await import_lines(store, lines) == (TOGETHER + 3, 0)
    assert await import_lines(store, lines) == (0, TOGETHER + 3)
    new = [await store.load(one.conversation_id) for one in await old.conversations()]
    assert all(one is not None and len(one.steps) == 1 for one in new)


async def test_of_two_imports_at_once_the_second_finds_it_there() -> None:
    _, lines = await exported(STORIES["one after the other"])
    assert await import_lines(Raced(None), lines) == (0, 1)


async def test_another_conversation_under_the_same_id_is_no_import() -> None:
    _, lines = await exported(STORIES["one after the other"])
    with pytest.raises(StoreError, match=r"c-1 .*was not stored"):
        await import_lines(Raced(received(text="다른 질문")), lines)


async def test_an_append_of_several_tickets_that_fails_files_none(store: Store) -> None:
    """The second is opened while the first is open: no engine writes that."""
    conversation = received()
    for event in (*opened(FIRST), received().steps[0].event, *opened(SECOND)):
        conversation = SMALL.advance(conversation, event)
    with pytest.raises(ConversationMoved):
        await moved(store, conversation, 0)
    assert await store.tickets() == []


async def test_whoever_watches_is_told_how_many_are_done(store: Store) -> None:
    told: list[tuple[int, int]] = []

    def progress(done: int, of: int) -> None:
        told.append((done, of))

    old, _ = await exported([(None, opened(FIRST))])
    lines = [line async for line in export(old, progress=progress)]
    await import_lines(store, lines, progress=progress)
    assert [finding.damage async for finding in verify(store, progress=progress)] == [None]
    assert told == [(0, 1)] * 3


class Lines(list[str]):
    """Lines that know how often they were read."""

    readings = 0

    def __iter__(self) -> Iterator[str]:
        self.readings += 1
        return super().__iter__()


async def test_lines_are_read_twice_and_not_kept(store: Store) -> None:
    """An export of a gigabyte needs none of memory; what comes once only is kept all the same."""
    _, lines = await exported([(None, opened(FIRST))])
    given = Lines(lines)
    assert await import_lines(store, given) == (1, 0)
    assert given.readings == 2
    assert await import_lines(store, iter(lines)) == (0, 1)


async def test_all_that_is_stored_of_a_conversation_comes_with_it(store: Store) -> None:
    old, asked = MemoryStore(), SMALL.begin("c-2", "C003", parent="c-1", rehearsal=True)
    asked = SMALL.advance(asked, MessageReceived(text="결제해 주세요", at=1.5))
    await moved(old, asked, 0)
    await moved(
        old, SMALL.advance(asked, calls(("pay", {}), ("pay", {}), ("pay", {})).model_copy(update={"at": 2.5})), 1
    )
    begun = Started(run=1, name="pay", digest="x", at=2.0)
    known = Outcome(status=ResultStatus.DONE, response={"result": "냈습니다"}, at=3.0)
    for call, notes in {"2.0": (begun, known), "2.1": (begun,), "2.2": (known,)}.items():
        for note in notes:
            await old.note("c-2", call, note)
    assert await import_lines(store, [line async for line in export(old)]) == (1, 0)
    was, now = await old.load("c-2"), await store.load("c-2")
    assert was is not None
    assert now is not None
    assert (now.steps, now.ledger) == (was.steps, was.ledger)
    there = now.summary
    assert (there.parent, there.rehearsal, there.state, there.resting) == ("c-1", True, "ACT", False)
    assert (there.created_at, there.updated_at) == (1.5, 2.5)


async def test_an_open_run_is_not_taken_up_before_its_claims_have_come() -> None:
    class Stopping(MemoryStore):
        async def note(self, *args: Any) -> bool:
            raise StoreError("the process is stopped here")

    old, new = MemoryStore(), Stopping()
    await moved(old, received(), 0)
    await old.note("c-1", "2.0", Started(run=1, name="pay", digest="x"))
    with pytest.raises(StoreError, match="stopped here"):
        await import_lines(new, [line async for line in export(old)])
    record = await new.load("c-1")
    assert record is not None
    assert (record.steps, record.summary.resting) == ((), True)


async def test_an_import_that_was_stopped_before_its_last_ticket_files_it_when_it_comes_again() -> None:
    class Stopped(MemoryStore):
        there = False

        def file_ticket(self, ticket: Ticket) -> Ticket:
            if not self.there:
                raise StoreError("the process is stopped here")
            return super().file_ticket(ticket)

    old, lines = await exported(STORIES["one of the engine, then one that no step tells of"])
    new = Stopped()
    with pytest.raises(StoreError, match="stopped here"):
        await import_lines(new, lines)
    new.there = True
    assert await import_lines(new, lines) == (0, 1)
    assert by_number(await new.tickets()) == by_number(await old.tickets())


# --------------------------------------------------------------------------- what is no export


async def three() -> list[str]:
    """The lines of an export of three conversations."""
    old = MemoryStore()
    for number in range(3):
        await moved(old, received(conversation_id=f"c-{number}"), 0)
    return [line async for line in export(old)]


MANGLED: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "nothing": (lambda lines: [], "no export"),
    "without its first line": (lambda lines: lines[1:], "no export"),
    "a first line of something else": (lambda lines: [sealed({"kind": "x", "format": 1}), *lines[1:]], "no export"),
    "a first line that is no object": (lambda lines: ["[]", *lines[1:]], "no export"),
    "a first line of a newer version": (lambda lines: [sealed({"kind": KIND, "format": FORMAT + 1}), *lines[1:]], "newer"),
    "without its last line": (lambda lines: lines[:-1], "not whole"),
    "without a line": (lambda lines: [*lines[:2], *lines[3:]], "not whole"),
    "a line twice": (lambda lines: [*lines[:2], *lines[1:]], "not whole"),
    "a line behind the last one": (lambda lines: [*lines, lines[1]], "not whole"),
    "a last line of another": (lambda lines: [*lines[:-1], foot(2)], "not whole"),
    "a last line that counts what is not there": (lambda lines: [*lines[:2], *lines[3:-1], lines[-1]], "not whole"),
    "half a line": (lambda lines: [*lines[:2], lines[2][:90], *lines[3:]], "Line 3 .* cannot be read"),
    "a line that is no object": (lambda lines: [*lines[:2], "[]", *lines[3:]], "Line 3 .* cannot be read"),
    "a line without a content": (lambda lines: [*lines[:2], '{"digest": "x"}', *lines[3:]], "Line 3 .* cannot be read"),
    "a line that was edited": (
        lambda lines: [*lines[:2], lines[2].replace("C003", "C004"), *lines[3:]], "Line 3 .* was changed",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mangled", MANGLED)
async def test_of_what_is_no_whole_export_nothing_is_stored(mangled: str) -> None:
    mangle, why = MANGLED[mangled]
    new = MemoryStore()
    with pytest.raises(FormatTooNew if why == "newer" else SettingsError, match=why):
        await import_lines(new, mangle(await three()))
    assert await new.conversations() == []


@pytest.mark.parametrize(
    ("torn", "why"),
    [
        ({"steps": [{"seq": "x"}]}, r"0\.\S+: "),
        ({"steps": None}, "tuple"),
        ({"steps": []}, "IndexError"),
        ({"ledger": [{"call": "2.0"}]}, "it lacks 'started'"),
        ({"ledger": [3]}, "TypeError"),
        ({"ledger": [{"call": "2.0", "started": {"name": 3}, "outcome": None}]}, "run: "),
        ({"tickets": [{"ticket_id": "HT-1"}]}, "key: "),
        ({"notes": [1]}, "AttributeError"),
        ({"conversation_id": " "}, "conversation's id"),
        ({"customer_id": ""}, "customer's number"),
    ],
    ids=str,
)
async def test_a_conversation_that_cannot_be_read_is_told_with_what_is_wrong(torn: dict[str, Any], why: str) -> None:
    new, lines = MemoryStore(), await three()
    content = json.loads(lines[1])["content"]
    content["tickets"] = [a_ticket("c-0").model_dump(mode="json")]
    with pytest.raises(SettingsError, match=why):
        await import_lines(new, [lines[0], sealed({**content, **torn}), *lines[2:]])
    assert await new.conversations() == []


async def test_what_is_there_under_the_same_id_stays_and_gets_no_ticket_of_the_export(store: Store) -> None:
    _, lines = await exported(STORIES["one that no step tells of"])
    await moved(store, received(text="다른 질문"), 0)
    assert await import_lines(store, lines) == (0, 1)
    assert await store.tickets() == []


async def test_a_ticket_whose_number_is_taken_is_not_filed_under_another(store: Store) -> None:
    _, lines = await exported(STORIES["one that no step tells of"])
    store.file_ticket(FIRST.model_copy(update={"key": "c-9/1", "conversation_id": "c-9"}))
    with pytest.raises(StoreError, match="HT-0000000001 of the export could not be filed"):
        await import_lines(store, lines)


# --------------------------------------------------------------------------- which are exported


class Damaged(MemoryStore):
    """The second conversation cannot be read."""

    error: StoreError | None = JournalDamaged("torn")

    async def load(self, conversation_id: str) -> Record | None:
        if conversation_id == "c-1":
            if self.error is None:
                return None
            raise self.error
        return await super().load(conversation_id)


def ids_of(lines: Iterable[str]) -> list[str]:
    return [content["conversation_id"] for content in contents(lines)]


@pytest.mark.parametrize("error", [JournalDamaged("torn"), FormatTooNew("newer"), None], ids=repr)
async def test_what_cannot_be_read_is_told_and_left_out(error: StoreError | None) -> None:
    old, unread = Damaged(), list[str]()
    for number in range(3):
        await moved(old, received(conversation_id=f"c-{number}"), 0)
    old.error = error
    lines = [line async for line in export(old, on_unread=lambda each: unread.append(str(each)))]
    assert ids_of(lines) == ["c-0", "c-2"]
    assert unread == ["Conversation c-1 is there and cannot be found by its id." if error is None else str(error)]
    with pytest.raises(JournalDamaged if error is None else type(error)):
        [line async for line in export(old)]


@pytest.mark.parametrize("error", [StoreError("torn"), None], ids=repr)
async def test_what_is_damaged_is_found_and_the_rest_is_looked_at(error: StoreError | None) -> None:
    class Faulty(Damaged):
        async def faults(self) -> list[str]:
            return ["its index is torn"]

    old = Faulty()
    for number in range(3):
        await moved(old, received(conversation_id=f"c-{number}"), 0)
    old.error = error
    why = "Conversation c-1 is there and cannot be found by its id." if error is None else "torn"
    found = {finding.conversation_id: finding.damage async for finding in verify(old)}
    assert found == {"c-0": None, "c-1": why, "c-2": None, "": "its index is torn"}


async def test_a_store_that_fails_ends_an_export() -> None:
    old, unread = Damaged(), list[StoreError]()
    await moved(old, received(conversation_id="c-1"), 0)
    old.error = StoreError("the disk is gone")
    with pytest.raises(StoreError, match="gone"):
        [line async for line in export(old, on_unread=unread.append)]
    assert unread == []


async def test_conversations_are_exported_in_order_and_each_with_its_own_tickets(store: Store) -> None:
    for number in range(3):
        await moved(store, received(conversation_id=f"c-{number}"), 0)
        store.file_ticket(a_ticket(f"c-{number}", f"c-{number}/1", f"HT-000000000{number}"))
    all_lines = [line async for line in export(store)]
    assert ids_of(all_lines) == ["c-0", "c-1", "c-2"], "the oldest first"
    named = [line async for line in export(store, ["c-2", "c-0", "c-2"])]
    assert ids_of(named) == ["c-2", "c-0"]
    for content in contents(all_lines):
        (ticket,) = content["tickets"]
        assert ticket["conversation_id"] == content["conversation_id"]
        assert content["notes"] == {}
    with pytest.raises(UnknownConversation, match="no conversation c-8"):
        [line async for line in export(store, ["c-0", "c-8", "c-7"])]
    with pytest.raises(SettingsError):
        [line async for line in export(store, [" "])]


async def test_a_line_is_the_same_in_every_version() -> None:
    """Else an export of an earlier version could not be read by a later one."""
    assert sealed({"b": "가", "a": [1, None]}) == (
        '{"digest": "f437251fb528f3a44a06279fcbb2fe8b", "content": {"b":"가","a":[1,null]}}'
    )
