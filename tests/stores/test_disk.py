"""A write that fails is tried again within bounds, and then nothing half done is left and somebody is told what to do."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from haru_fsm.errors import StoreError
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.stores.sqlite import SQLiteStore
from tests.engine.shopless import Tools, engine
from tests.tables import received, stepped

ROOT = Path(__file__).parents[2]


def cramped(*words: str, how: str, folder: Path) -> dict[str, Any]:
    """What the process told that had no room."""
    done = subprocess.run(
        [*words, sys.executable, "-m", "tests.stores.cramped", str(folder), how],
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def small_disk(folder: Path) -> list[str]:
    """The words before a command that gives it a disk of 3 MB at this folder, where the system lets us have one."""
    return mounted(f"mount -t tmpfs -o size=3m none '{folder}'")


def mounted(mount: str) -> list[str]:
    """The words before a command that lets it see what is mounted like this."""
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*words, mount], check=False, capture_output=True).returncode:
        pytest.skip("this system lets nobody mount a disk in a namespace of its own")
    return [*words, f'{mount} && exec "$@"', "sh"]


def went_on_as_if_nothing_had_happened(told: dict[str, Any]) -> None:
    assert (told["answer"], told["paid"]) == ("끝났습니다.", 1)
    assert told["seqs"] == list(range(1, len(told["seqs"]) + 1))
    assert told["before"][-1] == "tools_requested", "the result that found no room is not there in part"
    assert "haru resume --all" in told["error"]


def test_a_full_disk_is_called_one_and_the_run_goes_on_when_there_is_room(tmp_path: Path) -> None:
    told = cramped(*small_disk(tmp_path), how="full", folder=tmp_path)
    assert "The disk is full" in told["error"]
    went_on_as_if_nothing_had_happened(told)


async def test_from_a_read_only_disk_nobody_can_look_and_is_told_how_to(tmp_path: Path) -> None:
    """In place, SQLite could only be told that nobody writes, and cannot see whether that is so."""
    store = SQLiteStore(tmp_path / "disk" / "haru.db")
    await store.append(received(), expected_seq=0, owner=None, over=None, lease_s=15)
    await store.aclose()
    disk = mounted(f"mount --bind '{tmp_path}/disk' '{tmp_path}/disk' && mount -o remount,ro,bind '{tmp_path}/disk'")
    look = [sys.executable, "-m", "haru_fsm", "list", "--app", str(ROOT), "--db"]
    copy = [*disk, "sh", "-c", f"cp '{tmp_path}/disk/haru.db' '{tmp_path}' && exec \"$@\"", "sh"]
    refused, copied = (
        subprocess.run([*words, f"sqlite:///{path}"], capture_output=True, text=True, timeout=120, check=False)
        for words, path in (
            ([*disk, *look], tmp_path / "disk" / "haru.db"),
            ([*copy, *look], tmp_path / "haru.db"),
        )
    )
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "From a read-only disk, copy the file to another place and look there." in refused.stderr
    assert (copied.returncode, copied.stderr) == (0, "")


def test_a_limit_on_file_sizes_is_an_error_of_the_disk(tmp_path: Path) -> None:
    told = cramped(how="limit", folder=tmp_path)
    assert "disk I/O error" in told["error"]
    went_on_as_if_nothing_had_happened(told)


async def test_a_database_that_another_process_holds_is_waited_for_and_then_told(tmp_path: Path) -> None:
    tools = Tools()
    store = SQLiteStore(tmp_path / "haru.db", busy_timeout_s=0.01)
    async with engine(ScriptedModel([[("pay", {"what": "A"})], "네."]), tools=tools, store=store) as haru:
        await haru.adopt([{"role": "user", "parts": [{"text": "내 주세요"}]}], customer_id="C1", conversation_id="c-1")
        with closing(sqlite3.connect(tmp_path / "haru.db", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(StoreError, match="Another process holds the database"):
                await haru.resume("c-1")
            other.execute("ROLLBACK")
        assert tools.runs.total() == 0
        assert (await haru.resume("c-1")).answer == "네."
        assert tools.runs["pay(A)"] == 1


def test_a_new_database_may_be_opened_by_many_in_the_same_moment(tmp_path: Path) -> None:
    """SQLite does not wait where two switch a new file to WAL at once; before the store did, 1 opening in 30 failed."""
    together, rounds = 6, 20
    said: list[Exception] = []

    def open_one(path: Path, barrier: threading.Barrier) -> None:
        async def look() -> None:
            store = SQLiteStore(path)
            barrier.wait()
            try:
                await store.load("c-1")
            except StoreError as error:
                said.append(error)
            await store.aclose()

        asyncio.run(look())

    for number in range(rounds):
        barrier = threading.Barrier(together)
        threads = [
            threading.Thread(target=open_one, args=(tmp_path / f"{number}.db", barrier)) for _ in range(together)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert said == []


@pytest.mark.parametrize("owner", [None, "me"])
async def test_only_a_conversation_that_is_worked_on_is_kept_in_mind(tmp_path: Path, owner: str | None) -> None:
    """One that is stored to be carried on elsewhere (adopted, imported) must cost no memory for ever."""
    store = SQLiteStore(tmp_path / "haru.db")
    try:
        await store.append(received(), expected_seq=0, owner=owner, over=None, lease_s=15)
        assert set(store._heads) == ({"c-1"} if owner else set())
        await store.append(stepped(received(), "x"), expected_seq=1, owner=owner, over=None, lease_s=15)
    finally:
        await store.aclose()
