"""What a fork must not take along: SQLite's connections.

A forked process inherits what SQLite believes of the files that its parent has open, that it holds locks on them among
other things, and none of the locks. So nobody sees a connection of the child's to such a file, not even a new one: the
parent throws away the log that the child still writes to, and what the child has committed is gone. It is told instead.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any
from weakref import WeakSet

from haru_fsm.errors import StoreError

_open: WeakSet[Connection] = WeakSet()
_inherited: list[Connection] = []
"""What was open in the process that this one was forked from. Kept, for SQLite would tidy up behind the last one."""


class Connection(sqlite3.Connection):
    """A connection that is known as long as somebody holds it, which its thread does until it has closed it."""

    def __init__(self, path: Path, **how: Any) -> None:
        super().__init__(path, **how)
        self.file = os.path.realpath(path)
        _open.add(self)


def refuse_inherited(path: Path) -> None:
    """Raises StoreError for a file that was open when this process was forked."""
    if os.path.realpath(path) in [connection.file for connection in _inherited]:
        raise StoreError(
            f"The database {path} was open when this process was forked, and what it wrote there could be lost. "
            "Open the engine after the fork, in each worker, or start workers with `spawn`."
        )


def _in_child() -> None:
    _inherited.extend(_open)
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
