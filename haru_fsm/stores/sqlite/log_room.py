"""Room in the write-ahead log, made before the commits that need it.

A commit that makes the log longer costs more than one trip to the disk: the file system has to write down the new
length as well, in a journal of its own, behind everybody else's. One that writes over what is there costs one. SQLite
lengthens its log frame by frame; so when a commit of ours has come to its end, the next one puts zeros behind it first.

This changes nothing that SQLite reads. What lies behind the last frame is at any time what an earlier turn of the log
has left there, and recovery stops at the first frame that does not bear the salt of this turn. Room is made under the
write lock only, so that nobody else is writing to the log, or cutting it off. That lock is the log's that was opened
with it: where somebody has put another database in the place of ours meanwhile, its log is left alone.
"""

from __future__ import annotations

import os
from io import FileIO
from pathlib import Path

from haru_fsm.stores.sqlite.opening import PAGE_BYTES

FRAME_BYTES = 24 + PAGE_BYTES
MOST_ROOM_BYTES = 1 << 20
"""The log is made twice as long, but by no more than this: some forty commits of a conversation that is alone."""


class LogRoom:
    """The room behind the log that a connection to this database has just opened.

    A matter of speed alone: where it cannot be made, commits make it.
    """

    def __init__(self, path: Path) -> None:
        self._log = f"{os.path.realpath(path)}-wal"
        self._length = 0
        self._used_up = False
        self._opened = os.stat(self._log) if os.path.exists(self._log) else None

    def make(self) -> None:
        """Under the write lock, before anything is written: make room where the last commit found none."""
        if not self._used_up:
            return
        self._used_up = False
        try:
            with open(self._log, "r+b", buffering=0) as log:
                self._lengthen(log)
        except OSError:
            return  # no log, no space or no right to it

    def _lengthen(self, log: FileIO) -> None:
        if self._opened is None or not os.path.samestat(os.fstat(log.fileno()), self._opened):
            return
        self._length = log.seek(0, os.SEEK_END)
        log.seek(max(0, self._length - FRAME_BYTES))
        if any(log.read()):  # else there is room since that commit: another process has made it, or a commit has failed
            self._length += log.write(bytes(min(self._length, MOST_ROOM_BYTES)))

    def look(self) -> None:
        """After a commit: has the log become longer? Then all room is used up."""
        try:
            before, self._length = self._length, os.path.getsize(self._log)
        except OSError:
            return
        self._used_up = self._length > before
