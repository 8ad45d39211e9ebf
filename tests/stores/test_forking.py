"""A process that is forked from one with an open store is told so; it neither waits for ever nor loses what it writes."""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import warnings
from collections.abc import Callable
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import pytest

from haru_fsm.errors import StoreError
from haru_fsm.stores.sqlite import SQLiteStore
from tests.tables import received

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nothing forks there")


def in_a_fork(what: Callable[[], str]) -> str:
    """What the forked process comes to, within some seconds."""
    forks = multiprocessing.get_context("fork")
    told: SimpleQueue[str] = forks.SimpleQueue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12 on Python says itself that this is unwise
        child = forks.Process(target=lambda: told.put(what()))
        child.start()
    child.join(20)
    hung = child.is_alive()
    child.kill()
    assert not hung, "the forked process waits for ever"
    return told.get()


async def written(store: SQLiteStore, name: str) -> str:
    """What became of a conversation that is written to this store."""
    try:
        await store.append(received(name), expected_seq=0, owner=None, over=None, lease_s=15)
    except StoreError as refused:
        return str(refused)
    finally:
        await store.aclose()
    return "written"


@pytest.mark.parametrize("whose", ["the parent's", "its own"])
def test_a_store_that_was_open_at_the_fork_is_refused(tmp_path: Path, whose: str) -> None:
    store = SQLiteStore(tmp_path / "haru.db")
    asyncio.run(store.append(received("c-parent"), expected_seq=0, owner=None, over=None, lease_s=15))

    def child() -> str:
        return asyncio.run(written(store if whose == "the parent's" else SQLiteStore(tmp_path / "haru.db"), "c-child"))

    told = in_a_fork(child)
    assert "was open when this process was forked" in told
    assert "spawn" in told
    assert asyncio.run(written(store, "c-later")) == "written"


def test_what_was_closed_before_the_fork_is_as_good_as_new(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "haru.db")
    assert asyncio.run(written(store, "c-parent")) == "written"
    assert in_a_fork(lambda: asyncio.run(written(store, "c-child"))) == "written"
    assert in_a_fork(lambda: asyncio.run(written(SQLiteStore(tmp_path / "haru.db"), "c-other"))) == "written"
    names = {summary.conversation_id for summary in asyncio.run(store.conversations())}
    store.close()
    assert names == {"c-parent", "c-child", "c-other"}
