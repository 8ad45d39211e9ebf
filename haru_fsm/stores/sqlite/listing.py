"""Lists of conversations and tickets: each question in words that an index can answer.

SQLite plans a statement before it sees its values. A condition that a value may switch off (`:whose IS NULL OR ...`)
has it read the whole table every time; so what is not asked for does not stand in the statement.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from haru_fsm.stores import StoredTicket, Summary
from haru_fsm.stores.sqlite.reading import SUMMARY, stored, summary_of

UNFINISHED = "resting != 1"
IN_DOUBT = "EXISTS (SELECT 1 FROM calls AS k WHERE k.conversation = c.number AND outcome IS NULL)"
OF_CUSTOMER = "customer_id = :customer"
OF_CONVERSATION = "conversation_id = :conversation"
OPEN = "closed_at IS NULL"


def conversations(
    connection: sqlite3.Connection, *, unfinished: bool, in_doubt: bool, customer_id: str | None, limit: int | None
) -> list[Summary]:
    """As `Store.conversations`."""
    asked = {UNFINISHED: unfinished, IN_DOUBT: in_doubt, OF_CUSTOMER: customer_id is not None}
    rows = connection.execute(
        f"SELECT {SUMMARY} FROM conversations AS c{_where(asked)} ORDER BY updated_at DESC, number DESC LIMIT :most",
        {"customer": customer_id, "most": _most(limit)},
    )
    return [summary_of(row) for row in rows]


def tickets(
    connection: sqlite3.Connection, *, conversation_id: str | None, open_only: bool, limit: int | None
) -> list[StoredTicket]:
    """As `Store.tickets`; without those that cannot be read."""
    asked = {OF_CONVERSATION: conversation_id is not None, OPEN: open_only}
    rows = connection.execute(
        f"SELECT ticket, notes, reply, closed_at FROM tickets{_where(asked)} "
        "ORDER BY created_at DESC, rowid DESC LIMIT :most",
        {"conversation": conversation_id, "most": _most(limit)},
    )
    return [ticket for row in rows if (ticket := stored(row)) is not None]


def _where(asked: Mapping[str, bool]) -> str:
    """The conditions that are asked for, as they stand in a statement."""
    conditions = [condition for condition, is_asked in asked.items() if is_asked]
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _most(limit: int | None) -> int:
    return -1 if limit is None else limit
