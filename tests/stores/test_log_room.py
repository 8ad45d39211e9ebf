"""Room in the write-ahead log is made ahead, and changes nothing that anybody reads."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.stores.sqlite.log_room import MOST_ROOM_BYTES, LogRoom
from haru_fsm.stores.sqlite.opening import PAGE_BYTES
from tests.tables import received, stepped

RESULT = {"what": "배송중" * 300}


async def _move(store: SQLiteStore, name: str, times: int) -> list[int]:
    """Move a conversation so many times; the length of the log after each."""
    conversation = received(name)
    await store.append(conversation, expected_seq=0, owner="me", over=None, lease_s=15)
    lengths = []
    for _ in range(times):
        before, conversation = conversation.seq, stepped(conversation, RESULT)
        await store.append(conversation, expected_seq=before, owner="me", over=None, lease_s=15)
        lengths.append(_log(store.path).stat().st_size)
    return lengths


def _log(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


async def test_few_commits_make_the_log_longer(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "haru.db")
    lengths = await _move(store, "c-1", 60)
    await store.aclose()
    assert len(set(lengths)) <= 8
    assert all(later - earlier <= 2 * MOST_ROOM_BYTES for earlier, later in pairwise(lengths))


async def test_a_copy_taken_at_any_moment_is_whole(tmp_path: Path) -> None:
    """What a power cut would leave: the file and its log as they are, room and all."""
    store = SQLiteStore(tmp_path / "haru.db")
    conversation = received()
    await store.append(conversation, expected_seq=0, owner="me", over=None, lease_s=15)
    for number in range(40):
        before, conversation = conversation.seq, stepped(conversation, RESULT)
        await store.append(conversation, expected_seq=before, owner="me", over=None, lease_s=15)
        copy = tmp_path / f"copy-{number}" / "haru.db"
        copy.parent.mkdir()
        shutil.copy(store.path, copy)
        shutil.copy(_log(store.path), _log(copy))
        with closing(sqlite3.connect(copy)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert connection.execute("SELECT max(seq) FROM steps").fetchone() == (conversation.seq,)
        shutil.rmtree(copy.parent)
    await store.aclose()


async def test_a_log_that_begins_anew_is_read_to_its_own_end(tmp_path: Path) -> None:
    """After a checkpoint the log is written over from its beginning, with the last turn and room behind."""
    store = SQLiteStore(tmp_path / "haru.db")
    await _move(store, "c-1", 30)
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[0] == 0
    await _move(store, "c-2", 3)
    for name in ("a", "b"):
        shutil.copy(store.path, tmp_path / f"{name}.db")
        shutil.copy(_log(store.path), tmp_path / f"{name}.db-wal")
    other = SQLiteStore(tmp_path / "a.db")
    assert [await other.load(name) for name in ("c-1", "c-2")] == [await store.load(name) for name in ("c-1", "c-2")]
    await other.aclose()
    await store.aclose()


async def test_writers_who_take_turns_do_not_pile_up_room(tmp_path: Path) -> None:
    path = tmp_path / "haru.db"
    stores = [SQLiteStore(path) for _ in range(2)]
    for turn in range(40):
        for index, store in enumerate(stores):
            await _move(store, f"c-{index}-{turn}", 1)
    with closing(sqlite3.connect(path)) as connection:
        frames = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
    assert _log(path).stat().st_size - frames * (PAGE_BYTES + 24) < 2 * MOST_ROOM_BYTES
    written = await asyncio.gather(*(store.conversations() for store in stores))
    assert [len(each) for each in written] == [80, 80]
    assert await stores[0].faults() == []
    for store in stores:
        await store.aclose()


def test_where_there_is_no_log_nothing_is_made(tmp_path: Path) -> None:
    room = LogRoom(tmp_path / "haru.db")
    room.make()
    room.look()
    assert list(tmp_path.iterdir()) == []
