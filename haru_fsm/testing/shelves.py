"""Where stores stand: what one process has written, the next one finds when it opens the store again."""

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
    """Empty shelves, one after the other: for stores that are made by a function, or for SQLite files in a folder.

    A store of a function's is kept for as long as its shelf; a file is opened anew by each process.
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
