"""Shelves: a store that is opened again finds what the process before has written.

The driver lets processes die one after the other. Each opens the same store anew, as a real one would open its file.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from haru_fsm.stores import Store

NewStore = Callable[[], Store]
"""Makes an empty store."""
Shelf = Callable[[], Store]
"""Opens one and the same store, however often it is called."""


def shelves(where: NewStore | Path | str) -> Callable[[], Shelf]:
    """Makes empty shelves, one for each play.

    `where` is a function that makes an empty store, which is kept for as long as its shelf; or a folder for SQLite
    files, which each process opens anew.
    """
    return _files(Path(where)) if isinstance(where, Path | str) else lambda: _kept(where)


def _kept(new_store: NewStore) -> Shelf:
    store = new_store()
    return lambda: store


def _files(folder: Path) -> Callable[[], Shelf]:
    from haru_fsm.stores.sqlite import SQLiteStore

    files = (file for number in itertools.count(1) if not (file := folder / f"{number}.db").exists())

    def shelf() -> Shelf:
        file = next(files)
        return lambda: SQLiteStore(file)

    return shelf
