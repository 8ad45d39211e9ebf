"""What is left of the engine when nearly everything is taken away: where its speed ends, whatever is made better.

The same events, checked and written by pydantic, the same table read by `transitions`, the same chained checksums, the
same model and tool under time-outs, and one thread that commits what has queued up. There are no guards, no history for
the model, no ledger, no leases, no arguments or results made safe; nobody could use it. It shows how much of a step is
the design itself: the events, the loop, and two threads that wake each other for each commit.
"""

from __future__ import annotations

import asyncio
import hashlib
import queue
import sqlite3
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from transitions import EventData, Machine

from bench import workload
from haru_fsm.conversation import (
    Event,
    MessageReceived,
    ModelAnswered,
    ObservationAppended,
    ResultStatus,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
)

SCHEMA = """
CREATE TABLE IF NOT EXISTS conversations (id TEXT PRIMARY KEY, seq INTEGER, state TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS steps
    (conversation TEXT, seq INTEGER, state TEXT, event TEXT, checksum BLOB, PRIMARY KEY (conversation, seq))
    WITHOUT ROWID
"""
STEP = "INSERT INTO steps VALUES (?, ?, ?, ?, ?)"
MOVED = (
    "INSERT INTO conversations VALUES (?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, state = excluded.state"
)
TIMEOUT_S = 30
ROWS = [
    ("message_received", "DONE", "AWAIT_MODEL", []),
    ("tools_requested", "AWAIT_MODEL", "ESCALATE_TICKET", ["spent"]),
    ("tools_requested", "AWAIT_MODEL", "EXECUTE_TOOLS", []),
    ("tools_executed", "EXECUTE_TOOLS", "APPEND_OBSERVATION", []),
    ("observation_appended", "APPEND_OBSERVATION", "AWAIT_MODEL", []),
    ("model_answered", "AWAIT_MODEL", "DONE", []),
]

Row = tuple[str, int, str, str, bytes]


class Cursor:
    """Where a conversation is, for as long as one event is looked up."""

    def __init__(self, state: str) -> None:
        self.state = state

    def spent(self, _: EventData) -> bool:
        """The budget of the one guarded row: never spent."""
        return False


_TABLE = Machine(
    model=None,
    states=["DONE", "AWAIT_MODEL", "EXECUTE_TOOLS", "APPEND_OBSERVATION", "ESCALATE_TICKET"],
    transitions=[
        {"trigger": kind, "source": source, "dest": dest, "conditions": conditions}
        for kind, source, dest, conditions in ROWS
    ],
    initial="DONE",
    auto_transitions=False,
    send_event=True,
)


class Skeleton:
    """Conversations in one file, WAL and synchronous=FULL. An async context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._asked: queue.SimpleQueue[tuple[list[Row], asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._writer.start()
        await self.converse("warm", 3)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._asked.put(None)
        await asyncio.to_thread(self._writer.join)

    async def converse_together(self, conversations: Iterable[int], n: int) -> None:
        """These conversations at once, in one event loop."""
        await asyncio.gather(*(self.converse(f"c{index}", n) for index in conversations))

    async def converse(self, conversation: str, n: int) -> None:
        """The whole conversation of `n` steps."""
        journal = _Journal(conversation)
        journal.note(MessageReceived(text=workload.QUESTION))
        for results in range(n):
            async with asyncio.timeout(TIMEOUT_S):
                content = await _model(results, n)
            journal.note(ToolsRequested(content=content))
            await self._commit(journal)
            began = time.monotonic()
            async with asyncio.timeout(TIMEOUT_S):
                page = await asyncio.create_task(_tool(content["parts"][1]["functionCall"]["args"]))
            result = ToolResult(position=0, status=ResultStatus.DONE, response={"result": page})
            journal.note(ToolsExecuted(results=(result,), took_ms=round((time.monotonic() - began) * 1000)))
            journal.note(ObservationAppended())
            await self._commit(journal)
        journal.note(ModelAnswered(content=await _model(n, n)))
        await self._commit(journal)

    async def _commit(self, journal: _Journal) -> None:
        done = self._loop.create_future()
        rows, journal.rows = journal.rows, []
        self._asked.put((rows, done))
        await done

    def _write(self) -> None:
        connection = sqlite3.connect(self._path, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.executescript(SCHEMA)
        while (first := self._asked.get()) is not None:
            together = [first]
            while not self._asked.empty():
                more = self._asked.get()
                assert more is not None  # nobody closes it while somebody waits
                together.append(more)
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(STEP, [row for rows, _ in together for row in rows])
            connection.executemany(MOVED, [rows[-1][:3] for rows, _ in together])
            connection.execute("COMMIT")
            self._loop.call_soon_threadsafe(_wake, [done for _, done in together])
        connection.close()


class _Journal:
    """One conversation's state, and the rows that are not written yet."""

    def __init__(self, conversation: str) -> None:
        self.rows: list[Row] = []
        self._conversation = conversation
        self._seq, self._state, self._checksum = 0, "DONE", b""

    def note(self, event: Event) -> None:
        """Advance by this event."""
        event = event.model_copy(update={"at": round(time.time(), 3)})
        cursor = Cursor(self._state)
        _TABLE.events[event.kind].trigger(cursor, event)
        self._seq, self._state = self._seq + 1, cursor.state
        text = event.model_dump_json(exclude_defaults=True)
        linked = f"{self._conversation}|{self._seq}|{self._state}|{text}".encode()
        self._checksum = hashlib.sha256(self._checksum + linked).digest()
        self.rows.append((self._conversation, self._seq, self._state, text, self._checksum))


async def _model(results: int, pages: int) -> dict[str, Any]:
    return workload.reply(results, pages)


async def _tool(args: dict[str, Any]) -> dict[str, Any]:
    return workload.page(args["page"])


def _wake(waiting: list[asyncio.Future[None]]) -> None:
    for done in waiting:
        done.set_result(None)
