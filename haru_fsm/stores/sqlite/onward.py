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
from itertools import chain, repeat
from typing import Any

from haru_fsm.conversation import Event, TicketClosed, TicketOpened, ToolsExecuted
from haru_fsm.stores.sqlite.writing import STEPS, Append, Head, rows_of

AVAILABLE = sqlite3.sqlite_version_info >= (3, 33)
"""UPDATE ... FROM. Before that each append is written by itself."""
GO_ON = """
    UPDATE conversations SET
        state = to_state, seq = to_seq, run = to_run, head = to_head, updated_at = at, lease_until = until
    FROM (
        SELECT column1 AS its_number, column2 AS its_seq, column3 AS its_head, column4 AS its_owner,
            column5 AS to_state, column6 AS to_seq, column7 AS to_run, column8 AS to_head,
            column9 AS at, column10 AS until
        FROM (VALUES {})
    )
    WHERE number = its_number AND seq = its_seq AND head = its_head AND owner = its_owner
"""


@dataclass(frozen=True, slots=True)
class Onward:
    """An append that can be written together with others. Called, it is written by itself like any other."""

    alone: Append
    head: Head
    """Where the conversation will stand."""
    move: tuple[Any, ...]
    """Where it stands and who works on it; where it goes, when, and until when they hold it: the columns of GO_ON."""
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
    stood = (before.number, before.seq, before.check, lease.owner)
    move = (*stood, after.state, head.seq, after.run, head.check, lease.now, lease.until)
    return Onward(append, head, move, rows)


def _files(event: Event) -> bool:
    match event:
        case ToolsExecuted(ticket=ticket):
            return ticket is not None
        case TicketOpened() | TicketClosed():
            return True
        case _:
            return False


def go_on(connection: sqlite3.Connection, appends: Sequence[Onward]) -> bool:
    """Write them all; False where one of them is not where it believes: nothing of them may be committed then."""
    moves = [append.move for append in appends]
    moved = connection.execute(GO_ON.format(_places(moves)), tuple(chain(*moves))).rowcount
    rows = [row for append in appends for row in append.rows]
    if moved != len(moves):
        return False
    if rows:
        connection.execute(f"{STEPS} VALUES {_places(rows)}", tuple(chain(*rows)))
    return True


def _places(rows: Sequence[Sequence[object]]) -> str:
    one = f"({', '.join(repeat('?', len(rows[0])))})"
    return ", ".join(repeat(one, len(rows)))
