"""Room in the write-ahead log is made ahead, and changes nothing that anybody reads."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

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


def _lengthened(room: LogRoom, log: Path) -> None:
    """A commit that found no room."""
    room.make()
    with log.open("ab") as file:
        file.write(b"\xff" * PAGE_BYTES)
    room.look()


def _room(log: Path) -> int:
    text = log.read_bytes()
    return len(text) - len(text.rstrip(b"\0"))


def _log_file(tmp_path: Path) -> Path:
    log = tmp_path / "haru.db-wal"
    log.write_bytes(b"\xff" * PAGE_BYTES)
    return log


def test_a_commit_that_fails_again_and_again_piles_up_no_room(tmp_path: Path) -> None:
    log = _log_file(tmp_path)
    room = LogRoom(tmp_path / "haru.db")
    _lengthened(room, log)
    room.make()
    made = log.stat().st_size
    for _ in range(5):
        room.make()
    assert _room(log) == made / 2
    assert log.stat().st_size == made


def test_room_that_another_process_has_made_meanwhile_is_enough(tmp_path: Path) -> None:
    """Between a commit and the look at its log others go on: what has grown there may be room."""
    log = _log_file(tmp_path)
    rooms = [LogRoom(tmp_path / "haru.db") for _ in range(2)]
    for room in rooms:
        room.make()
    with log.open("ab") as file:
        file.write(b"\xff" * PAGE_BYTES)
    for room in rooms:
        room.look()
    rooms[0].make()
    made = log.stat().st_size
    rooms[1].make()
    assert log.stat().st_size == made


def test_the_log_of_a_database_that_was_put_in_the_place_of_ours_is_left_alone(tmp_path: Path) -> None:
    """Its writers hold another lock than ours: what they are writing must not be written over."""
    log = _log_file(tmp_path)
    room = LogRoom(tmp_path / "haru.db")
    _lengthened(room, log)
    (tmp_path / "new").write_bytes(b"\xff" * 3 * PAGE_BYTES)
    (tmp_path / "new").replace(log)
    room.make()
    assert _room(log) == 0


async def test_a_process_that_changes_its_folder_stays_with_its_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    store = SQLiteStore("haru.db")
    await _move(store, "c-1", 1)
    other = SQLiteStore(tmp_path / "other" / "haru.db")
    await _move(other, "c-2", 30)
    monkeypatch.chdir(tmp_path / "other")
    await _move(store, "c-3", 30)
    assert [one.conversation_id for one in await store.conversations()] == ["c-3", "c-1"]  # the reader opens only now
    assert [one.conversation_id for one in await other.conversations()] == ["c-2"]
    await store.aclose()
    await other.aclose()
