"""Whether the file that was opened is still the one at its path.

A process goes on writing to the file that it has opened, wherever that is now. Where somebody has put another one in
its place, or taken it away, all that it commits would be gone with it, and nobody would know. So it commits no more.
"""

from __future__ import annotations

import os
from pathlib import Path

from haru_fsm.errors import StoreError


class Whereabouts:
    """Where a database is that a connection has just opened. The file itself is not touched: to close it would drop
    SQLite's locks."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened = os.stat(path)

    def wrong(self) -> StoreError | None:
        """What is wrong with it, if another file is there now, or none."""
        try:
            if os.path.samestat(os.stat(self._path), self._opened):
                return None
            what = "another file was put in its place"
        except OSError:
            what = "it was taken away"
        return StoreError(
            f"The database {self._path} is no longer the one that was opened: {what}. Nothing was written. Stop every "
            "worker, put the right file there (without the -wal and -shm of another beside it), and start them again."
        )
