"""Writes that come in together go in one transaction, and one that fails takes nothing of its neighbours with it."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haru_fsm.conversation import Conversation, ModelFailed, TicketOpened
from haru_fsm.errors import ConversationMoved, StoreError
from haru_fsm.stores.sqlite import SQLiteStore, onward
from haru_fsm.stores.sqlite.database_thread import DatabaseThread, Request
from haru_fsm.stores.sqlite.opening import opened
from tests.tables import SMALL, a_ticket, received, stepped

FATES = st.sampled_from(["moves", "stale", "overtaken", "unspeakable", "its ticket is taken", "files a ticket"])
FAIL = {
    "stale": ConversationMoved,
    "overtaken": ConversationMoved,
    "unspeakable": StoreError,
    "its ticket is taken": ConversationMoved,
}


def _next(name: str, fate: str) -> tuple[Conversation, int]:
    """A conversation's next append, and the step that it says it goes on from."""
    first = received(name)
    if fate in ("moves", "stale", "overtaken"):
        return stepped(first, "ok"), 3 if fate == "stale" else 1
    if fate == "unspeakable":
        return replace(stepped(first, "ok"), state="half a \ud83d"), 1
    failed = SMALL.advance(first, ModelFailed(reason="empty"))
    key, number = (f"{name}/1", f"HT-{name}") if fate == "files a ticket" else ("taken/1", "HT-mine")
    return SMALL.advance(
        failed, TicketOpened(ticket=a_ticket(ticket_id=number, key=key, conversation_id=name), notice="")
    ), 1


@pytest.mark.parametrize("available", [True, False], ids=["together", "on an old SQLite"])
@given(fates=st.lists(FATES, min_size=2, max_size=12))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_write_that_fails_takes_nothing_of_its_neighbours(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, available: bool, fates: list[str]
) -> None:
    monkeypatch.setattr(onward, "AVAILABLE", available and onward.AVAILABLE)
    asyncio.run(_together(tmp_path_factory.mktemp("together") / "haru.db", fates))


async def _together(path: Path, fates: list[str]) -> None:
    store = SQLiteStore(path)
    names = [f"c-{index}" for index in range(len(fates))]
    for name in names:
        await store.append(received(name), expected_seq=0, owner="me", over=None, lease_s=15)
    store.file_ticket(a_ticket(ticket_id="HT-theirs", key="taken/1", conversation_id="elsewhere"))
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")  # whoever writes now waits, and the others gather behind
        waiting = [
            asyncio.ensure_future(store.append(moved, expected_seq=seq, owner="me", over=None, lease_s=15))
            for moved, seq in map(_next, names, fates)
        ]
        await asyncio.sleep(0)  # by then each has sent what it writes; how many the writer has taken nobody can say
        overtaken = [(name,) for name, fate in zip(names, fates, strict=True) if fate == "overtaken"]
        holder.executemany("UPDATE conversations SET owner = 'another' WHERE conversation_id = ?", overtaken)
        holder.execute("COMMIT")
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    for name, fate, outcome in zip(names, fates, outcomes, strict=True):
        record = await store.load(name)
        assert isinstance(outcome, FAIL.get(fate, type(None))), (fate, outcome)
        assert record is not None
        assert record.steps == (received(name) if fate in FAIL else _next(name, fate)[0]).steps
        assert (record.open_ticket is not None) == (fate == "files a ticket")
    assert await store.faults() == []
    await store.aclose()


@pytest.mark.skipif(not onward.AVAILABLE, reason=f"SQLite {sqlite3.sqlite_version} writes each append by itself")
async def test_workers_who_go_on_share_their_statements(tmp_path: Path) -> None:
    """Beside the transaction's own: one that moves them all, one for all their steps. Written alone they say as much."""
    names = [f"c-{index}" for index in range(200)]
    store, alone = SQLiteStore(tmp_path / "together.db"), SQLiteStore(tmp_path / "alone.db")
    for name in names:
        for each in (store, alone):
            await each.append(received(name), expected_seq=0, owner="me", over=None, lease_s=15)
    statements: list[str] = []
    await store._writer.run(lambda connection: connection.set_trace_callback(statements.append))
    going = threading.Event()
    busy = asyncio.ensure_future(store._writer.run(lambda _connection: going.wait(10)))
    while "BEGIN IMMEDIATE" not in statements:
        await asyncio.sleep(0)  # until the writer has taken that one
    moved = [stepped(received(name), "배송중 🚚") for name in names]
    writes = [store.append(one, expected_seq=1, owner="me", over=None, lease_s=15) for one in moved]
    together = asyncio.gather(*writes)
    await asyncio.sleep(0)
    going.set()
    await asyncio.gather(busy, together)
    assert [text.split()[0] for text in statements[-4:]] == ["BEGIN", "UPDATE", "INSERT", "COMMIT"]
    for conversation in moved:
        await alone.append(conversation, expected_seq=1, owner="me", over=None, lease_s=15)
    rows = "SELECT conversation, seq, run, state, more, event, checksum FROM steps ORDER BY conversation, seq"
    told = "SELECT number, state, resting, seq, run, head, owner FROM conversations ORDER BY number"
    await asyncio.gather(store.aclose(), alone.aclose())
    with closing(sqlite3.connect(store.path)) as one, closing(sqlite3.connect(alone.path)) as other:
        for query in (rows, told):
            assert one.execute(query).fetchall() == other.execute(query).fetchall()


@pytest.mark.parametrize("count", [1, 2])
def test_places_have_no_numbers(count: int) -> None:
    """Python 3.12 before 3.12.4 warns of each "?1", and where warnings are errors no append would be written."""
    places = re.findall(r"\?\d*", onward._go_on(count))
    assert places == ["?"] * (count * onward.COLUMNS)


async def test_a_reader_that_fails_takes_nothing_of_its_neighbours(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "haru.db")
    await store.append(received("c-1"), expected_seq=0, owner="me", over=None, lease_s=15)
    read = [
        store.load("c-1"),
        store._reader.run(lambda connection: connection.execute("SELECT * FROM nothing")),
        store.load("c-1"),
    ]
    first, failed, last = await asyncio.gather(*read, return_exceptions=True)
    assert isinstance(failed, StoreError)
    assert first == last
    assert first is not None
    await store.aclose()


async def test_who_comes_while_the_store_is_closed_is_served_all_the_same(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "haru.db")
    await store.append(received("c-1"), expected_seq=0, owner="me", over=None, lease_s=15)
    going = threading.Event()
    busy = asyncio.ensure_future(store._reader.run(lambda _connection: going.wait(10)))
    closing_down = asyncio.ensure_future(store.aclose())
    while store._reader._thread is not None:
        await asyncio.sleep(0)
    late = asyncio.ensure_future(store.load("c-1"))
    going.set()
    await asyncio.gather(busy, closing_down)
    assert await late is not None
    await store.aclose()


async def test_a_place_that_cannot_be_is_an_error_and_no_waiting() -> None:
    with pytest.raises(StoreError):
        await SQLiteStore("a\0b/haru.db").load("c-1")


async def test_a_reader_is_answered_when_it_has_read(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "haru.db")
    both_are_there, first_is_told = threading.Event(), threading.Event()
    before = asyncio.ensure_future(store._reader.run(lambda _connection: both_are_there.wait(10)))
    first = asyncio.ensure_future(store.load("c-1"))
    second = asyncio.ensure_future(store._reader.run(lambda _connection: first_is_told.wait(10)))
    while store._reader._queue.qsize() < 2:
        await asyncio.sleep(0)
    both_are_there.set()
    assert await before
    assert await first is None
    first_is_told.set()
    assert await second
    await store.aclose()


async def test_what_nobody_foresaw_is_told_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    def serve(connection: sqlite3.Connection, requests: Sequence[Request]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for request in requests:
            request.value = request.job(connection)
        connection.execute("COMMIT")

    def unforeseen(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (done)")
        raise LookupError("a bug")

    thread = DatabaseThread("test", lambda: opened(tmp_path / "haru.db", 5.0), serve)
    with pytest.raises(StoreError, match="a bug"):
        await thread.run(unforeseen)
    tables = await thread.run(lambda connection: connection.execute("SELECT name FROM sqlite_schema").fetchall())
    assert ("steps",) in tables
    assert ("half",) not in tables
    await asyncio.to_thread(thread.stop)


async def test_what_fails_beside_the_requests_keeps_nobody_waiting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A renewal of leases whose roll-back fails, too: the thread goes on, with another connection."""
    connections: list[sqlite3.Connection] = []

    def connect() -> sqlite3.Connection:
        connections.append(opened(tmp_path / "haru.db", 5.0))
        return connections[-1]

    def serve(connection: sqlite3.Connection, requests: Sequence[Request]) -> None:
        for request in requests:
            request.value = request.job(connection)

    def idle(connection: sqlite3.Connection) -> None:
        if connection is connections[0]:
            raise sqlite3.OperationalError("disk I/O error")

    thread = DatabaseThread("test", connect, serve, idle=idle, idle_s=0.0)
    going = threading.Event()
    first = asyncio.ensure_future(thread.run(lambda _connection: going.wait(10)))
    await asyncio.sleep(0)
    served_by = thread._thread
    last = asyncio.ensure_future(thread.run(lambda connection: connection is connections[-1]))
    await asyncio.sleep(0)
    going.set()
    assert await first
    assert await last
    assert thread._thread is served_by
    assert await thread.run(lambda _connection: len(connections) == 2)
    assert "test: what it does beside its requests has failed" in caplog.text
    await asyncio.to_thread(thread.stop)
