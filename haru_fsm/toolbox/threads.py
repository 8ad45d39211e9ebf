"""Threads for tools that block: a bounded number of them, and none that the end of the process waits for.

`concurrent.futures` joins its threads when the interpreter ends, so one tool that never returns keeps the process
alive for ever. These threads are daemons. A thread whose call was given up is no longer counted among the useful
ones, and another takes its place, up to a second bound: a carrier that hangs fifty times must not stop the shop.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from enum import Enum, auto
from queue import SimpleQueue

SIZE = 50
"""Calls that may run at the same time."""
_STUCK_PER_USEFUL = 3


class _State(Enum):
    WAITING = auto()
    RUNNING = auto()
    GIVEN_UP = auto()
    OVER = auto()


class Job:
    """One call that waits for a thread or has one."""

    __slots__ = ("state", "work")

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.state = _State.WAITING


class Threads:
    """A pool of daemon threads, started as they are needed. `size`: useful ones, `most`: stuck ones included."""

    def __init__(self, size: int = SIZE, most: int | None = None) -> None:
        self._size = size
        self._most = size * (1 + _STUCK_PER_USEFUL) if most is None else most
        self.forget()

    def forget(self) -> None:
        """Begin anew, in a forked process to which no thread came along."""
        self._lock = threading.Lock()
        self._waiting: SimpleQueue[Job] = SimpleQueue()
        self._threads = 0
        self._stuck = 0
        self._wanted = 0

    def submit(self, work: Callable[[], None]) -> Job:
        """Have `work` done in a thread as soon as one is free; it must not raise. RuntimeError: no thread is left."""
        job = Job(work)
        with self._lock:
            self._wanted += 1
            try:
                self._grow()
            except RuntimeError:
                if self._threads == self._stuck:
                    self._wanted -= 1
                    raise
        self._waiting.put(job)
        return job

    def take_back(self, job: Job) -> bool:
        """Have this job never begin; False: it has begun, or is over."""
        with self._lock:
            if job.state is not _State.WAITING:
                return False
            job.state = _State.GIVEN_UP
            self._wanted -= 1
            return True

    def give_up(self, job: Job) -> bool:
        """Wait for this job no longer. True: it had not begun, and now never will."""
        with self._lock:
            begun = job.state is not _State.WAITING
            if job.state in (_State.WAITING, _State.RUNNING):
                self._wanted -= 1
                self._stuck += begun
                job.state = _State.GIVEN_UP
                # Where the machine has no more threads, those that are there go on.
                with contextlib.suppress(RuntimeError):
                    self._grow()
        return not begun

    def _grow(self) -> None:
        if self._threads - self._stuck < min(self._size, self._wanted) and self._threads < self._most:
            threading.Thread(target=self._serve, daemon=True, name="haru-tool").start()
            self._threads += 1

    def _serve(self) -> None:
        while True:
            job = self._waiting.get()
            if not self._begin(job):
                continue
            try:
                job.work()
            finally:
                job.work = _nothing  # what it holds may be large, and this loop keeps the job until the next one
                retire = self._end(job)
            if retire:
                return

    def _begin(self, job: Job) -> bool:
        with self._lock:
            if job.state is _State.GIVEN_UP:
                return False
            job.state = _State.RUNNING
            return True

    def _end(self, job: Job) -> bool:
        """True where this thread has become one too many."""
        with self._lock:
            if job.state is _State.GIVEN_UP:
                self._stuck -= 1
            else:
                self._wanted -= 1
            job.state = _State.OVER
            retire = self._threads - self._stuck > self._size
            self._threads -= retire
            return retire


def _nothing() -> None:
    """No work."""


THREADS = Threads()
"""The pool that all tools of a process share."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=THREADS.forget)
