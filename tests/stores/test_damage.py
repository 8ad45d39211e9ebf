"""Damage is told, never guessed: whatever happens to a database's bytes, nothing corrupt is read, and nothing is new."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm.errors import HaruError, JournalDamaged, StoreError
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.runs import Run
from haru_fsm.stores import Record, StoredTicket
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.transfer import verify
from tests.engine.shopless import Tools, engine

IDS = tuple(f"c-{number}" for number in range(6))
QUESTION = [{"role": "user", "parts": [{"text": "A 결제해 주세요"}]}]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Record], list[StoredTicket]]:
    """A real database: answers, effects, tickets, and a run that is still open; and what is in it."""
    path = tmp_path_factory.mktemp("original") / "haru.db"
    return path, *asyncio.run(_filled(path))


async def _filled(path: Path) -> tuple[dict[str, Record], list[StoredTicket]]:
    def said(request: Any) -> Any:
        text = str(request.contents)
        if "실패" in text:
            raise_line: Any = [("look", {"what": "x"})] * 9
            return raise_line
        return "냈습니다." if "functionResponse" in text else [("pay", {"what": "A"}), ("look", {"what": "나" * 2_000})]

    async with engine(ScriptedModel(said), tools=Tools(), store=SQLiteStore(path), max_tool_calls=5) as haru:
        for number, conversation_id in enumerate(IDS[:-1]):
            text = "실패하는 일" if number % 2 else "A 결제해 주세요"
            await haru.ask(text, customer_id=f"C{number}", conversation_id=conversation_id, message_id="m1")
        await haru.adopt(QUESTION, customer_id="C9", conversation_id=IDS[-1])
        records = {each: await haru.store.load(each) for each in IDS}
        tickets = list(await haru.store.tickets())
    assert tickets
    assert not path.with_name("haru.db-wal").exists(), "all of it is in the one file"
    return {name: record for name, record in records.items() if record is not None}, tickets


Bytes = Callable[[bytearray], None]


def _flip(bit: int) -> Bytes:
    def flip(raw: bytearray) -> None:
        raw[bit // 8 % len(raw)] ^= 1 << bit % 8

    return flip


def _overwrite(offset: int, with_: bytes) -> Bytes:
    def overwrite(raw: bytearray) -> None:
        start = offset % len(raw)
        raw[start : start + len(with_)] = with_[: len(raw) - start]

    return overwrite


def _truncate(offset: int) -> Bytes:
    def truncate(raw: bytearray) -> None:
        del raw[1 + offset % len(raw) :]

    return truncate


offsets = st.integers(0, 2**32)
harms = st.one_of(
    offsets.map(_flip),
    offsets.map(_flip),
    st.builds(_overwrite, offsets, st.sampled_from([bytes(64), b"\xff" * 64, b"C1", b"\x00", bytes(4096)])),
    offsets.map(_truncate),
)


@given(harm=harms, again=st.lists(harms, max_size=2))
@settings(max_examples=150, deadline=None)
def test_whatever_happens_to_its_bytes_a_conversation_is_as_it_was_or_is_said_to_be_damaged(
    original: tuple[Path, dict[str, Record], list[StoredTicket]],
    tmp_path_factory: pytest.TempPathFactory,
    harm: Bytes,
    again: list[Bytes],
) -> None:
    path, records, _ = original
    raw = bytearray(path.read_bytes())
    for each in (harm, *again):
        each(raw)
    copy = tmp_path_factory.mktemp("copy") / "haru.db"
    copy.write_bytes(raw)
    asyncio.run(_as_it_was_or_damaged(copy, records))
    shutil.rmtree(copy.parent)


async def _as_it_was_or_damaged(path: Path, records: dict[str, Record]) -> None:
    store = SQLiteStore(path, busy_timeout_s=0.1)
    try:
        for name, was in records.items():
            try:
                record = await store.load(name)
            except StoreError:
                continue
            assert record is not None, f"{name} is read as new"
            assert record.steps == was.steps
            assert record.ledger.items() <= was.ledger.items(), "what the ledger says is what it said"
            assert (record.summary.customer_id, record.summary.resting) == (
                was.summary.customer_id,
                was.summary.resting,
            )
        try:
            found = [finding async for finding in verify(store)]
        except StoreError:
            return
        assert all(isinstance(finding.damage, str | None) for finding in found)
    finally:
        await store.aclose()


# --------------------------------------------------------------------------- by hand

EDITS = {
    "a step is changed": "UPDATE steps SET event = replace(event, '결제', '환불') WHERE conversation = 1 AND seq = 1",
    "a step is gone": "DELETE FROM steps WHERE conversation = 1 AND seq = 3",
    "the last steps are gone": "DELETE FROM steps WHERE conversation = 1 AND seq >= 3",
    "all steps are gone": "DELETE FROM steps WHERE conversation = 1",
    "steps change places": "UPDATE steps SET seq = 100 - seq WHERE conversation = 1 AND seq IN (2, 3)",
    "a step of another": "UPDATE steps SET event = (SELECT event FROM steps WHERE conversation = 2 AND seq = 1) "
    "WHERE conversation = 1 AND seq = 1",
    "the state": "UPDATE conversations SET state = 'AWAIT_MODEL' WHERE number = 1",
    "the rest": "UPDATE conversations SET resting = 0 WHERE number = 1",
    "the customer": "UPDATE conversations SET customer_id = 'C4' WHERE number = 1",
    "a rehearsal": "UPDATE conversations SET rehearsal = 1 WHERE number = 1",
    "where it begins": "UPDATE conversations SET initial = 'ESCALATE_TICKET' WHERE number = 1",
    "an outcome": "UPDATE calls SET outcome = replace(outcome, 'done', 'not_done') WHERE conversation = 1",
    "an outcome that is referred to": "DELETE FROM calls WHERE conversation = 1",
    "no JSON": "UPDATE steps SET event = '{' WHERE conversation = 1 AND seq = 2",
    "no text": "UPDATE steps SET event = CAST(x'ff00fe' AS TEXT) WHERE conversation = 1 AND seq = 2",
    "a number for a text": "UPDATE steps SET more = 3, state = 4 WHERE conversation = 1 AND seq = 2",
    "nothing for a head": "UPDATE conversations SET head = NULL WHERE number = 1".replace("NULL", "x''"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
async def test_a_hand_edited_conversation_is_set_aside_whole_and_the_others_go_on(
    original: tuple[Path, dict[str, Record], list[StoredTicket]], tmp_path: Path, edit: str
) -> None:
    path, records, _ = original
    copy = Path(shutil.copy(path, tmp_path / "haru.db"))
    with closing(sqlite3.connect(copy)) as connection, connection:
        assert connection.execute(edit).rowcount > 0
    async with engine(ScriptedModel(["네."]), store=SQLiteStore(copy)) as haru:
        with pytest.raises(JournalDamaged, match="c-0"):
            await haru.store.load("c-0")
        with pytest.raises(JournalDamaged, match="set aside"):
            await haru.ask("다시요", customer_id="C0", conversation_id="c-0")
        for name in IDS[1:]:
            assert await haru.store.load(name) == records[name]
        ended = await haru.resume_all()
        assert [run.conversation_id for run in ended if isinstance(run, Run)] == [IDS[-1]]
        assert all(isinstance(run, Run | HaruError) for run in ended)
        damaged = {finding.conversation_id for finding in [each async for each in verify(haru.store)] if finding.damage}
        assert damaged == {"c-0"}


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE tickets SET ticket = replace(ticket, 'HT-', 'HX-')",
        "UPDATE tickets SET ticket = '{'",
        "UPDATE tickets SET closed_at = 1.0",
        "DELETE FROM tickets",
    ],
)
async def test_a_ticket_that_is_not_the_one_that_was_told_is_damage(
    original: tuple[Path, dict[str, Record], list[StoredTicket]], tmp_path: Path, edit: str
) -> None:
    path, records, tickets = original
    copy = Path(shutil.copy(path, tmp_path / "haru.db"))
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute(edit)
    store = SQLiteStore(copy)
    of_tickets = {stored.ticket.conversation_id for stored in tickets}
    for name, record in records.items():
        if name in of_tickets:
            with pytest.raises(JournalDamaged, match="ticket"):
                await store.load(name)
        else:
            assert await store.load(name) == record
    assert isinstance(await store.tickets(), list)
    await store.aclose()


async def test_a_conversation_that_the_index_has_lost_is_not_new(
    original: tuple[Path, dict[str, Record], list[StoredTicket]], tmp_path: Path
) -> None:
    path, _, _ = original
    raw = path.read_bytes()
    harmed = 0
    for place in _places(raw, b"\x03\x13" + b"\x01" + b"c-2") + _places(raw, b"c-2"):
        copy = tmp_path / f"at-{place}.db"
        copy.write_bytes(raw[:place] + raw[place:].replace(b"c-2", b"c-Z", 1))
        store = SQLiteStore(copy)
        try:
            record = await store.load("c-2")
            assert record is not None
        except StoreError:
            harmed += 1
        assert any(finding.damage for finding in [each async for each in verify(store)])
        await store.aclose()
    assert harmed


async def test_a_schema_that_is_no_text_is_told_as_damage_to_readers_and_writers(
    original: tuple[Path, dict[str, Record], list[StoredTicket]], tmp_path: Path
) -> None:
    """SQLite quotes the damaged bytes in its message, which Python then cannot read."""
    path, _, _ = original
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"CREATE TABLE conversations") + len("CREATE ")] = 0xA0
    copy = tmp_path / "haru.db"
    copy.write_bytes(raw)
    store = SQLiteStore(copy)
    try:
        with pytest.raises(StoreError, match="damaged"):
            await store.load("c-0")
        with pytest.raises(StoreError, match="damaged"):
            await asyncio.wait_for(store.release("c-0", "me"), timeout=30)
    finally:
        await store.aclose()


def _places(raw: bytes, word: bytes) -> list[int]:
    found, place = [], raw.find(word)
    while place >= 0:
        found.append(place)
        place = raw.find(word, place + 1)
    return found


async def test_a_database_of_format_1_is_read_and_goes_on(
    original: tuple[Path, dict[str, Record], list[StoredTicket]], tmp_path: Path
) -> None:
    """Chains of format 1 begin with nothing, and there is one index only."""
    from haru_fsm.stores.journal import checksum

    path, records, _ = original
    copy = Path(shutil.copy(path, tmp_path / "haru.db"))
    with closing(sqlite3.connect(copy)) as connection, connection:
        for (number,) in connection.execute("SELECT number FROM conversations").fetchall():
            check = b""
            rows = connection.execute(
                "SELECT seq, run, state, more, event FROM steps WHERE conversation = ? ORDER BY seq", (number,)
            ).fetchall()
            for row in rows:
                check = checksum(check, *row)
                where = "WHERE conversation = ? AND seq = ?"
                connection.execute(f"UPDATE steps SET checksum = ? {where}", (check, number, row[0]))
            connection.execute("UPDATE conversations SET head = ? WHERE number = ?", (check, number))
        connection.execute("DROP INDEX twins")
        connection.execute("PRAGMA user_version = 1")
    async with engine(ScriptedModel(["네."]), store=SQLiteStore(copy)) as haru:
        for name, record in records.items():
            assert await haru.store.load(name) == record
        run = await haru.ask("하나 더요", customer_id="C0", conversation_id="c-0")
        assert run.answer == "네."
        assert not [finding for finding in [each async for each in verify(haru.store)] if finding.damage]
