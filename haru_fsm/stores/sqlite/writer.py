"""One thread that writes to one SQLite file, and commits together what has come in together.

Alone, a write costs its fsync. Two hundred conversations share one: while a commit is on its way to the disk, the next
writes gather, and go in the next transaction. Each write has a savepoint of its own, so one that fails takes nothing of
its neighbours with it. Nobody is told of success before the commit is on the disk.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from haru_fsm.errors import HaruError, StoreError
from haru_fsm.foreign import in_words
from haru_fsm.stores.sqlite.faults import FAILURES, translated

Job = Callable[[sqlite3.Connection], Any]

BATCH = 256
ATTEMPTS = 5
"""How often a transaction that the disk or a lock refused is tried again, with growing pauses (about 1.5 s in all,
beside SQLite's own wait for locks)."""
PASSING = ("locked", "busy", "disk i/o error", "interrupted")


@dataclass(slots=True)
class _Write:
    job: Job
    waiter: asyncio.Future[Any] | Future[Any]
    loop: asyncio.AbstractEventLoop | None
    value: Any = None
    error: BaseException | None = field(default=None)

    def deliver(self) -> None:
        if self.waiter.cancelled() or self.waiter.done():
            return
        if self.error is None:
            self.waiter.set_result(self.value)
        else:
            self.waiter.set_exception(self.error)


class Writer:
    """The thread. `idle` is called with the connection every `idle_s` seconds at most, for renewing leases."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], idle: Job, idle_s: float) -> None:
        self._connect = connect
        self._idle = idle
        self.idle_s = idle_s
        self._queue: SimpleQueue[_Write | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    async def write(self, job: Job) -> Any:
        """Run a job in the next transaction; return its value when that is committed."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Any] = loop.create_future()
        self._put(_Write(job, waiter, loop))
        return await waiter

    def write_blocking(self, job: Job, timeout_s: float = 30.0) -> Any:
        """The same for a caller without an event loop."""
        waiter: Future[Any] = Future()
        self._put(_Write(job, waiter, None))
        return waiter.result(timeout_s)

    def _put(self, write: _Write) -> None:
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="haru-writer", daemon=True)
                    self._thread.start()
        self._queue.put(write)

    def stop(self) -> None:
        """Finish what is queued and end the thread."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    # -- in the thread

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        renewed = time.monotonic()
        while True:
            batch, stopping = self._gather()
            try:
                connection = connection or self._connect()
            except (sqlite3.Error, HaruError, OSError) as error:
                for write in batch:
                    write.error = error if isinstance(error, HaruError) else StoreError(in_words(error))
            else:
                if batch:
                    self._commit(connection, batch)
                if time.monotonic() - renewed >= self.idle_s:
                    renewed = time.monotonic()
                    self._renew(connection)
            _deliver(batch)
            if stopping:
                if connection is not None:
                    connection.close()
                return

    def _gather(self) -> tuple[list[_Write], bool]:
        batch: list[_Write] = []
        try:
            first = self._queue.get(timeout=self.idle_s)
            while first is not None:
                batch.append(first)
                if len(batch) >= BATCH:
                    return batch, False
                first = self._queue.get_nowait()
        except Empty:
            return batch, False
        return batch, True

    def _renew(self, connection: sqlite3.Connection) -> None:
        try:
            self._idle(connection)
        except sqlite3.Error:
            # A renewal that fails is tried again in a moment; the owner's next commit finds out if it was too late.
            connection.rollback() if connection.in_transaction else None

    def _commit(self, connection: sqlite3.Connection, batch: list[_Write]) -> None:
        for attempt in range(ATTEMPTS):
            try:
                self._transaction(connection, batch)
                return
            except FAILURES as error:
                _roll_back(connection)
                passing = any(word in str(error).lower() for word in PASSING)
                if not passing or attempt == ATTEMPTS - 1:
                    for write in batch:
                        write.error = translated(error)
                    return
                time.sleep(0.05 * 2**attempt)

    def _transaction(self, connection: sqlite3.Connection, batch: list[_Write]) -> None:
        """All of them at once; where one fails, once more with each in a savepoint of its own."""
        connection.execute("BEGIN IMMEDIATE")
        for write in batch:
            _do(connection, write)
            if write.error is not None:
                connection.execute("ROLLBACK")
                return self._one_by_one(connection, batch) if len(batch) > 1 else None
        connection.execute("COMMIT")

    def _one_by_one(self, connection: sqlite3.Connection, batch: list[_Write]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for write in batch:
            connection.execute("SAVEPOINT one")
            _do(connection, write)
            if write.error is not None:
                connection.execute("ROLLBACK TO one")
            connection.execute("RELEASE one")
        connection.execute("COMMIT")


def _do(connection: sqlite3.Connection, write: _Write) -> None:
    """Run a job. What the database itself cannot do now is raised: it concerns the whole transaction."""
    try:
        write.value, write.error = write.job(connection), None
    except sqlite3.OperationalError:
        raise
    except Exception as error:
        write.error = translated(error) if isinstance(error, FAILURES) else error


def _roll_back(connection: sqlite3.Connection) -> None:
    try:
        connection.rollback()
    except sqlite3.Error:
        # Some errors (a full disk) have rolled back already.
        return


def _deliver(batch: list[_Write]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[_Write]] = defaultdict(list)
    for write in batch:
        if write.loop is None:
            write.deliver()
        else:
            by_loop[write.loop].append(write)
    for loop, writes in by_loop.items():
        try:
            loop.call_soon_threadsafe(_deliver_all, writes)
        except RuntimeError:
            # The loop is closed: nobody waits any more. What was committed stays.
            continue


def _deliver_all(writes: list[_Write]) -> None:
    for write in writes:
        write.deliver()
