"""A thread that serves requests on a connection of its own: those that have come in together, together.

SQLite's calls block, so no event loop makes them. Whoever sends a request waits for it without blocking anybody, and
hears of it when all that came in together is done.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from haru_fsm.errors import HaruError, StoreError
from haru_fsm.foreign import in_words

log = logging.getLogger(__name__)

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], Any]

TOGETHER = 256
"""Requests that are served at once, at the most."""


@dataclass(slots=True)
class Request:
    """A job, and what has come of it."""

    job: Job
    waiter: asyncio.Future[Any] | Future[Any]
    loop: asyncio.AbstractEventLoop | None
    value: Any = None
    error: BaseException | None = None

    def deliver(self) -> None:
        """Tell whoever waits, if anybody still does."""
        if self.waiter.cancelled() or self.waiter.done():
            return
        if self.error is None:
            self.waiter.set_result(self.value)
        else:
            self.waiter.set_exception(self.error)


class DatabaseThread:
    """The thread. `serve` does what has come in together, and notes on each request what came of it.

    `together`: how many requests are served, and answered, at once. `idle` is called with the connection every `idle_s`
    seconds or so, whether or not there is something to do. After `stop` the next request begins a new thread.
    """

    def __init__(
        self,
        name: str,
        connect: Callable[[], sqlite3.Connection],
        serve: Callable[[sqlite3.Connection, Sequence[Request]], None],
        *,
        together: int = TOGETHER,
        idle: Job | None = None,
        idle_s: float | None = None,
    ) -> None:
        self.idle_s = idle_s
        self._name = name
        self._connect = connect
        self._serve = serve
        self._together = together
        self._idle = idle
        self._queue: SimpleQueue[Request | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    async def run(self, job: Callable[[sqlite3.Connection], T]) -> T:
        """The job's value. Raises what it raised, or StoreError."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[T] = loop.create_future()
        self._put(Request(job, waiter, loop))
        return await waiter

    def run_blocking(self, job: Callable[[sqlite3.Connection], T], timeout_s: float = 30.0) -> T:
        """The same for a caller without an event loop."""
        waiter: Future[T] = Future()
        self._put(Request(job, waiter, None))
        return waiter.result(timeout_s)

    def _put(self, request: Request) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():  # a fork leaves threads behind
                self._queue = SimpleQueue()
                self._thread = threading.Thread(target=self._run, args=(self._queue,), name=self._name, daemon=True)
                self._thread.start()
            self._queue.put(request)

    def stop(self) -> None:
        """Finish what is queued, let go of the connection and end the thread."""
        with self._lock:
            # A request that comes from here on is the next thread's, which has a queue of its own.
            thread, queue, self._thread = self._thread, self._queue, None
        if thread is not None:
            queue.put(None)
            thread.join()

    # -- in the thread

    def _run(self, queue: SimpleQueue[Request | None]) -> None:
        connection: sqlite3.Connection | None = None
        idled, stopping = time.monotonic(), False
        while not stopping:
            requests, stopping = self._gather(queue)
            try:
                connection = connection or self._connect()
                if requests:
                    self._serve(connection, requests)
            except Exception as error:  # whatever it is, nobody must wait for ever
                for request in requests:
                    request.error = error if isinstance(error, HaruError) else StoreError(in_words(error))
                # What it was in the middle of goes with it, and the next request has a new one.
                _close(connection)
                connection = None
            _deliver(requests)
            if self._idle is not None and self.idle_s is not None and time.monotonic() - idled >= self.idle_s:
                idled = time.monotonic()
                connection = connection and self._beside(self._idle, connection)
        _close(connection)

    def _beside(self, job: Job, connection: sqlite3.Connection) -> sqlite3.Connection | None:
        """Do what nobody has asked for. Where it fails, it is tried again on another connection, and nobody waits."""
        try:
            job(connection)
        except Exception:
            log.exception("%s: what it does beside its requests has failed", self._name)
            _close(connection)
            return None
        return connection

    def _gather(self, queue: SimpleQueue[Request | None]) -> tuple[list[Request], bool]:
        """What has come in, and whether to stop after it."""
        requests: list[Request] = []
        try:
            next_one = queue.get(timeout=self.idle_s)
            while next_one is not None:
                requests.append(next_one)
                if len(requests) >= self._together:
                    return requests, False
                next_one = queue.get_nowait()
        except Empty:
            return requests, False
        return requests, True


def _close(connection: sqlite3.Connection | None) -> None:
    if connection is not None:
        connection.close()


def _deliver(requests: Sequence[Request]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[Request]] = defaultdict(list)
    for request in requests:
        if request.loop is None:
            request.deliver()
        else:
            by_loop[request.loop].append(request)
    for loop, ours in by_loop.items():
        try:
            loop.call_soon_threadsafe(_deliver_all, ours)
        except RuntimeError:
            # The loop is closed: nobody waits any more. What was committed stays.
            continue


def _deliver_all(requests: Sequence[Request]) -> None:
    for request in requests:
        request.deliver()
