"""An export is imported whole, tickets and what was added to them included, or is said not to have been."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from haru_fsm.conversation import (
    Conversation,
    Event,
    ModelFailed,
    ObservationAppended,
    Ticket,
    TicketClosed,
    TicketOpened,
    ToolsExecuted,
)
from haru_fsm.errors import ConversationMoved, SettingsError, StoreError
from haru_fsm.models.scripted import answer, calls
from haru_fsm.stores import Store, StoredTicket
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.transfer import export, import_lines, verify
from haru_fsm.transfer.importing import TOGETHER
from haru_fsm.transfer.lines import sealed
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
