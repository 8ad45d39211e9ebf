"""Appends of workers who go on, which most are: all that have come in together, in two statements.

Each statement lets go of Python's global lock and has to get it back from threads that have work to do, which takes up
to 5 ms, and meanwhile no other process may write. So the rows are made before the transaction begins, and a hundred
appends cross that line as often as one. No index but the journal's own is written either: a worker who goes on changes
neither whose the conversation is nor whether it rests.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, repeat
from typing import Any

from haru_fsm.conversation import Event
from haru_fsm.stores.sqlite.writing import FILING, STEPS, Append, Head, rows_of

AVAILABLE = sqlite3.sqlite_version_info >= (3, 33)
"""UPDATE ... FROM. Before that each append is written by itself."""
COLUMNS = 10
"""Of `Onward.move`, in their order."""
GO_ON = (
    "UPDATE conversations SET state = {}, seq = {}, run = {}, head = {}, updated_at = {}, lease_until = {}{rows}"
    " WHERE number = {} AND seq = {} AND head = {} AND owner = {}"
)


@dataclass(slots=True)
class Onward:
    """An append that can be written together with others. Called, it is written by itself like any other."""

    alone: Append
    head: Head
    """Where the conversation will stand."""
    move: tuple[Any, ...]
    """State, seq, run, head, time and end of the lease as they will be; number, seq, head and owner as they have to."""
    rows: Sequence[tuple[Any, ...]]

    def __call__(self, connection: sqlite3.Connection) -> Head:
        return self.alone(connection)


def onward(append: Append) -> Append | Onward:
    """The append, with all made ready where the same worker goes on and files nothing."""
    before, lease, after = append.before, append.lease, append.conversation
    if not AVAILABLE or before is None or lease.owner is None or after.resting:
        return append
    if any(_files(step.event) for step in append.new):
        return append
    head, rows = rows_of(append.new, before)
    goes = (after.state, head.seq, after.run, head.check, lease.now, lease.until)
    move = (*goes, before.number, before.seq, before.check, lease.owner)
    return Onward(append, head, move, rows)


def _files(event: Event) -> bool:
    # What came of tools may have a ticket; the other kinds always have one, or close it.
    return _may_file(type(event)) and getattr(event, "ticket", True) is not None


@cache
def _may_file(kind: type[Event]) -> bool:
    return issubclass(kind, FILING)


def go_on(connection: sqlite3.Connection, appends: Sequence[Onward]) -> bool:
    """Write them all; False where one of them is not where it believes: nothing of them may be committed then."""
    moves = [append.move for append in appends]
    if connection.execute(_go_on(len(moves)), tuple(chain(*moves))).rowcount != len(moves):
        return False
    rows = [row for append in appends for row in append.rows]
    if rows:
        connection.execute(_insert(len(rows)), tuple(chain(*rows)))
    return True


@lru_cache
def _go_on(count: int) -> str:
    if count == 1:  # the other form makes a table of its one row first, which takes as long as the writing
        return GO_ON.format(*repeat("?", COLUMNS), rows="")
    names = (f"column{number}" for number in range(1, COLUMNS + 1))
    return GO_ON.format(*names, rows=f" FROM (VALUES {_places(count, COLUMNS)})")


@lru_cache
def _insert(count: int) -> str:
    return f"{STEPS} VALUES {_places(count, 7)}"


def _places(rows: int, columns: int) -> str:
    row = f"({', '.join(repeat('?', columns))})"
    return ", ".join(repeat(row, rows))
