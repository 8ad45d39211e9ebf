"""Lists and pruning: the same of every store; of SQLite's also that no list reads more than it needs."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from haru_fsm.conversation import ModelFailed, ResultStatus, TicketOpened
from haru_fsm.models.scripted import answer
from haru_fsm.stores import Outcome, Started, Store
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.stores.sqlite import SQLiteStore, listing
from haru_fsm.stores.sqlite.opening import LOG_BYTES, PAGE_BYTES, opened
from haru_fsm.stores.sqlite.pruning import TOGETHER
from haru_fsm.stores.sqlite.writing import PAUSED
from tests.tables import SMALL, a_ticket, received

STARTED = Started(run=1, name="pay", digest="d")
NOT_DONE = Outcome(status=ResultStatus.NOT_DONE, response={"error": "A person says: not done."})


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "haru.db")
    yield made
    await made.aclose()


async def answered(store: Store, conversation_id: str, *, at: float | None = None) -> None:
    ended = SMALL.advance(received(conversation_id), answer("배송중입니다."))
    await store.append(ended, expected_seq=0, owner=None, over=None, lease_s=15, at=at)


async def listed(store: Store, **asked: Any) -> list[str]:
    return [summary.conversation_id for summary in await store.conversations(**asked)]


async def test_what_is_in_doubt_is_found_until_it_is_settled(store: Store) -> None:
    for name in ("c-1", "c-2"):
        await answered(store, name)
    await store.note("c-1", "2.0", STARTED)
    await store.note("c-2", "2.0", STARTED)
    await store.note("c-2", "2.0", NOT_DONE)
    assert await listed(store, in_doubt=True) == ["c-1"]
    assert await listed(store, in_doubt=True, unfinished=True) == []
    assert await listed(store, in_doubt=True, customer_id="C999") == []
    await store.note("c-1", "2.0", NOT_DONE)
    assert await listed(store, in_doubt=True) == []


async def test_a_call_that_only_reads_is_never_in_doubt(store: Store) -> None:
    await answered(store, "c-1")
    await store.note("c-1", "2.0", NOT_DONE)
    assert await listed(store, in_doubt=True) == []


async def test_of_tickets_the_latest_may_be_enough(store: Store) -> None:
    for number in range(3):
        name = f"c-{number}"
        ticket = a_ticket(name, f"{name}/1", f"HT-000000000{number}").model_copy(update={"created_at": float(number)})
        failed = SMALL.advance(received(name), ModelFailed(reason="empty"))
        opened_one = SMALL.advance(failed, TicketOpened(ticket=ticket, notice=""))
        await store.append(opened_one, expected_seq=0, owner=None, over=None, lease_s=15)
    found = await store.tickets(limit=2)
    assert [stored.ticket.conversation_id for stored in found] == ["c-2", "c-1"]
    assert [stored.ticket.conversation_id for stored in await store.tickets(conversation_id="c-0")] == ["c-0"]


async def test_all_that_rested_long_is_forgotten_however_many_there_are(store: Store) -> None:
    for number in range(2 * TOGETHER + 1):
        await answered(store, f"c-{number}", at=100.0)
    await answered(store, "c-new", at=300.0)
    await answered(store, "c-doubt", at=100.0)
    await store.note("c-doubt", "2.0", STARTED)
    await store.append(received("c-open"), expected_seq=0, owner=None, over=None, lease_s=15, at=100.0)
    assert await store.prune(200.0) == 2 * TOGETHER + 1
    assert sorted(await listed(store)) == ["c-doubt", "c-new", "c-open"]
    assert await store.prune(200.0) == 0


async def test_who_writes_meanwhile_waits_for_some_and_not_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SQLiteStore(tmp_path / "haru.db")
    for number in range(TOGETHER + 1):
        await answered(store, f"c-{number}", at=100.0)
    counts: list[int] = []
    run = store._writer.run

    async def counted(job: Any) -> Any:
        numbers = await run(job)
        counts.append(len(numbers))
        return numbers

    monkeypatch.setattr(store._writer, "run", counted)
    assert await store.prune(200.0) == TOGETHER + 1
    await store.aclose()
    assert counts == [TOGETHER, 1]


# --------------------------------------------------------------------------- what SQLite reads for it


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(opened(tmp_path / "haru.db", 1.0)) as made:
        yield made


EARLIER = (
    "DROP INDEX open_tickets; DROP INDEX twins; DROP INDEX unfinished;"
    "CREATE INDEX unfinished ON conversations (resting) WHERE resting = 0;"
)
"""What earlier versions had not, or otherwise."""
INDEXES = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY name"


def earlier(path: Path) -> list[tuple[str, str]]:
    """A database as an earlier version has made it; the indexes that it should have."""
    with closing(opened(path, 1.0)) as made:
        whole = made.execute(INDEXES).fetchall()
        made.executescript(EARLIER)
        assert made.execute(INDEXES).fetchall() != whole
    return whole


async def test_a_database_of_an_earlier_version_gets_the_indexes_of_this_one(tmp_path: Path) -> None:
    whole = earlier(tmp_path / "haru.db")
    store = SQLiteStore(tmp_path / "haru.db")
    assert await store.load("c-1") is None, "the index of twins is asked for by its name"
    await answered(store, "c-1")
    await store.aclose()
    with closing(opened(tmp_path / "haru.db", 1.0)) as connection:
        assert connection.execute(INDEXES).fetchall() == whole


async def test_who_cannot_make_an_index_now_does_without_and_the_next_one_makes_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = earlier(tmp_path / "haru.db")
    with closing(sqlite3.connect(tmp_path / "haru.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with closing(opened(tmp_path / "haru.db", 0.0)) as connection:
            assert listing.conversations(connection, **{**NO_CONVERSATIONS, "unfinished": True}) == []
            assert connection.execute(INDEXES).fetchall() != whole
        assert "could not be made anew now" in caplog.text
        other.execute("ROLLBACK")
    with closing(opened(tmp_path / "haru.db", 0.0)) as connection:
        assert connection.execute(INDEXES).fetchall() == whole


async def test_of_a_damaged_database_of_an_earlier_version_what_is_whole_can_be_looked_at(tmp_path: Path) -> None:
    """What lies beside the damage: to make an index reads all of its table."""
    path = tmp_path / "haru.db"
    store = SQLiteStore(path)
    await answered(store, "c-1")
    await store.aclose()
    with closing(sqlite3.connect(path, isolation_level=None)) as by_hand:
        by_hand.execute("DROP INDEX open_tickets")
        (root,) = by_hand.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'tickets'").fetchone()
        by_hand.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    pages = bytearray(path.read_bytes())
    pages[(root - 1) * PAGE_BYTES] = 0xFF
    path.write_bytes(pages)
    store = SQLiteStore(path)
    assert [each.conversation_id for each in await store.conversations()] == ["c-1"]
    await store.aclose()


def test_two_processes_may_make_them_at_once(tmp_path: Path) -> None:
    whole = earlier(tmp_path / "haru.db")
    with ThreadPoolExecutor(8) as threads:
        for connection in threads.map(lambda _: opened(tmp_path / "haru.db", 5.0), range(8)):
            with closing(connection):
                assert connection.execute(INDEXES).fetchall() == whole


def plans(connection: sqlite3.Connection) -> list[str]:
    """Keeps, from here on, how SQLite goes about each SELECT."""
    found: list[str] = []

    def told(statement: str) -> None:
        if statement.startswith("SELECT"):
            connection.set_trace_callback(None)
            found.extend(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}"))
            connection.set_trace_callback(told)

    connection.set_trace_callback(told)
    return found


NO_CONVERSATIONS: dict[str, Any] = {"unfinished": False, "in_doubt": False, "customer_id": None, "limit": None}
NO_TICKETS: dict[str, Any] = {"conversation_id": None, "open_only": False, "limit": None}


@pytest.mark.parametrize(
    ("asked", "index"),
    [({"conversation_id": "c-1"}, "conversation_tickets"), ({"open_only": True}, "open_tickets")],
)
def test_tickets_are_found_by_an_index(connection: sqlite3.Connection, asked: dict[str, Any], index: str) -> None:
    """`haru export` asks for those of each conversation: reading all of them each time would make it quadratic."""
    found = plans(connection)
    listing.tickets(connection, **{**NO_TICKETS, **asked})
    assert any(index in step for step in found), found


def test_what_is_unfinished_is_found_by_an_index(connection: sqlite3.Connection) -> None:
    """Every worker asks for it every minute."""
    found = plans(connection)
    listing.conversations(connection, **{**NO_CONVERSATIONS, "unfinished": True})
    assert "unfinished" in found[0], found


def test_what_is_in_doubt_is_looked_up_in_the_ledger(connection: sqlite3.Connection) -> None:
    found = plans(connection)
    listing.conversations(connection, **{**NO_CONVERSATIONS, "in_doubt": True})
    assert any("ledger" in step for step in found), found


def test_a_paused_run_is_in_the_index_of_what_is_unfinished(connection: sqlite3.Connection) -> None:
    [condition] = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'unfinished'").fetchone()
    assert connection.execute(f"SELECT {PAUSED} != 1").fetchone() == (1,)
    assert str(condition).endswith(f"WHERE {listing.UNFINISHED}")


def test_a_log_that_has_grown_gets_smaller_again(connection: sqlite3.Connection) -> None:
    """Once a reader that had stayed for long is gone; else it would fill the disk for as long as anybody is there."""
    assert connection.execute("PRAGMA journal_size_limit").fetchone() == (LOG_BYTES,)
