"""A database that is moved or replaced under a running worker: nothing is written where nobody will look for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from haru_fsm.conversation import Conversation
from haru_fsm.errors import StoreError
from haru_fsm.stores.sqlite import SQLiteStore
from tests.tables import received, stepped


async def put(store: SQLiteStore, conversation: Conversation, expected: int) -> None:
    await store.append(conversation, expected_seq=expected, owner="me", over=None, lease_s=15)


@pytest.mark.parametrize("how", ["put in its place", "taken away"])
async def test_nothing_is_written_to_a_file_that_is_not_there_any_more(tmp_path: Path, how: str) -> None:
    database = tmp_path / "haru.db"
    store, first = SQLiteStore(database), received()
    await put(store, first, 0)
    database.rename(tmp_path / "old.db")
    if how == "put in its place":
        database.write_bytes(b"")
    with pytest.raises(StoreError, match=f"no longer the one that was opened: .* was {how}"):
        await put(store, stepped(first, "ok"), 1)

    (tmp_path / "old.db").replace(database)
    await put(store, stepped(first, "ok"), 1)
    await store.aclose()
    kept = SQLiteStore(database)
    record = await kept.load("c-1")
    assert record is not None
    assert len(record.steps) == len(stepped(first, "ok").steps)
    await kept.aclose()


async def test_a_link_may_lead_to_it(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "haru.db")
    store, first = SQLiteStore(tmp_path / "link.db"), received()
    await put(store, first, 0)
    await put(store, stepped(first, "ok"), 1)
    (tmp_path / "link.db").unlink()
    (tmp_path / "link.db").symlink_to(tmp_path / "other.db")
    with pytest.raises(StoreError, match="it was taken away"):
        await put(store, received("c-2"), 0)
    await store.aclose()
