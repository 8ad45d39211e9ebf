"""Processes for the kill driver, each forked from one that has imported everything: an import costs more than a case.

They are real processes: what kills one kills nothing else. All that come from one server have the seed of its hashes;
whoever wants to see that nothing hangs on the order of a set uses two.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from tempfile import TemporaryFile
from threading import Lock
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

TIMEOUT_S = 120
"""Seconds after which a process that has not ended is killed, and has failed."""


class Ended(NamedTuple):
    """How a process has ended, and what it wrote. A negative code is the number of the signal that killed it."""

    code: int
    said: str
    complained: str

    @property
    def complaint(self) -> str:
        """Why it has failed; empty for one that has not, or was killed as it should be."""
        if self.code == -signal.SIGALRM:
            return f"it had not ended after {TIMEOUT_S} seconds"
        return (self.complained.strip().splitlines() or ["it said nothing"])[-1] if self.code > 0 else ""


class ForkServer:
    """A process that runs `module` (whose main is `serve`), and through it one process for each task, in turn."""

    def __init__(self, module: str) -> None:
        pipe, own = subprocess.PIPE, {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
        # A group of its own: Ctrl-C is for whoever has begun all this, who then ends the server with what it works on.
        self._server = subprocess.Popen(
            [sys.executable, "-m", module], stdin=pipe, stdout=pipe, text=True, env=own, process_group=0
        )
        self._turn = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._server.poll() is None:
            os.killpg(self._server.pid, signal.SIGKILL)
        self._server.communicate()

    def run(self, task: dict[str, Any]) -> Ended:
        """Do the task in a process of its own, and wait for its end. Raises OSError where the server has gone away."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with self._turn:
            print(json.dumps(task), file=self._server.stdin, flush=True)
            told = self._server.stdout.readline()
        if not told:
            raise BrokenPipeError("The server of processes has gone away.")
        return Ended(*json.loads(told))


def serve(tasks: Iterable[str], work: Callable[[dict[str, Any]], Any]) -> None:
    """Fork a process for each task, a line of JSON each, and tell how it has ended.

    It works on the task and prints what comes of it as JSON.
    """
    for line in tasks:
        with TemporaryFile() as said, TemporaryFile() as complained:
            child = os.fork()
            if not child:
                _become(said, complained)
                print(json.dumps(work(json.loads(line))))
                return
            _, status = os.waitpid(child, 0)
            ended = Ended(os.waitstatus_to_exitcode(status), _text(said), _text(complained))
        print(json.dumps(ended), flush=True)


def _become(said: IO[bytes], complained: IO[bytes]) -> None:
    """Be the child: with files for what it writes, nothing to read, and an end whatever happens."""
    signal.alarm(TIMEOUT_S)
    with open(os.devnull, "rb") as nothing:
        for file, descriptor in ((nothing, 0), (said, 1), (complained, 2)):
            os.dup2(file.fileno(), descriptor)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
