"""How conversations and tickets come out of the tables: whole and as their checksums say, or not at all."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from haru_fsm.conversation import Step, Ticket
from haru_fsm.stores import LedgerEntry, Outcome, Record, Started, StoredTicket, Summary
from haru_fsm.stores.journal import Line, checksum, damaged, open_tickets, read, seed
from haru_fsm.stores.sqlite.faults import is_damage
from haru_fsm.stores.sqlite.writing import PAUSED

T = TypeVar("T")
SUMMARY = ", ".join(field.name for field in dataclasses.fields(Summary) if field.name != "paused")
"""The columns of a Summary, in the order of `summary_of`."""


def lenient(connection: sqlite3.Connection, job: Callable[[sqlite3.Connection], T]) -> T:
    """A list, in which one damaged text must not keep anybody from reading the others."""
    try:
        return job(connection)
    except sqlite3.OperationalError as error:
        if not is_damage(error):
            raise
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        try:
            return job(connection)
        finally:
            connection.text_factory = str


def summary_of(row: Sequence[Any]) -> Summary:
    """A line of the list of conversations, from the columns of SUMMARY."""
    values = dict(zip(SUMMARY.split(", "), row, strict=True))
    rest = values["resting"]
    return Summary(
        **{**values, "resting": bool(rest), "paused": rest == PAUSED, "rehearsal": bool(values["rehearsal"])}
    )


def stored(row: Sequence[Any]) -> StoredTicket | None:
    """A ticket with what has become of it; None for one that cannot be read (`haru verify` names it)."""
    ticket, notes, reply, closed_at = row
    try:
        return StoredTicket(Ticket.model_validate_json(ticket), tuple(map(str, json.loads(notes))), reply, closed_at)
    except (ValueError, TypeError):
        return None


def load(connection: sqlite3.Connection, conversation_id: str) -> Record | None:
    """The whole conversation, or None. Raises JournalDamaged where anything of it is not as its checksums say."""
    row = connection.execute(
        f"SELECT {SUMMARY}, number, initial, head FROM conversations WHERE conversation_id = ?",
        (conversation_id,),
    ).fetchone()
    if row is None:
        _not_by_its_twin(connection, conversation_id)
        return None
    *columns, number, initial, head = row
    summary = summary_of(columns)
    if summary.conversation_id != conversation_id:
        raise damaged(conversation_id, "its row bears another id")
    ledger = _ledger(connection, conversation_id, number)
    rows = connection.execute(
        "SELECT seq, run, state, more, event, checksum FROM steps WHERE conversation = ? ORDER BY seq", (number,)
    ).fetchall()
    lines = tuple(map(Line._make, rows))
    begins = seed(conversation_id, summary.customer_id, initial, summary.parent, summary.rehearsal)
    steps = read(conversation_id, initial, begins, lines, ledger)
    last = lines[-1] if lines else None
    place = (last.seq, last.state, last.run, last.check, steps[-1].rests) if last else (0, initial, 0, begins, True)
    if place != (summary.seq, summary.state, summary.run, head, summary.resting):
        raise damaged(conversation_id, "its journal does not end where the conversation stands")
    return Record(summary, steps, ledger, _open_ticket(connection, conversation_id, steps))


def _not_by_its_twin(connection: sqlite3.Connection, conversation_id: str) -> None:
    """Raise JournalDamaged where one index has lost a conversation and the other has it: it must not be begun anew."""
    twin = "SELECT 1 FROM conversations INDEXED BY twins WHERE conversation_id = ?"
    if connection.execute(twin, (conversation_id,)).fetchone():
        raise damaged(conversation_id, "the index of conversations has lost it")


def _open_ticket(connection: sqlite3.Connection, conversation_id: str, steps: Sequence[Step]) -> Ticket | None:
    """The open ticket, if there is one. Raises JournalDamaged where the journal tells of another."""
    rows = connection.execute(
        "SELECT ticket FROM tickets WHERE conversation_id = ? AND closed_at IS NULL ORDER BY rowid DESC",
        (conversation_id,),
    ).fetchall()
    try:
        tickets = [Ticket.model_validate_json(text) for (text,) in rows]
    except ValueError as error:
        raise damaged(conversation_id, "its ticket cannot be read") from error
    if any(ticket not in tickets for ticket in open_tickets(conversation_id, steps).values()):
        raise damaged(conversation_id, "its ticket is not the one that was opened")
    return tickets[0] if tickets else None


def _ledger(connection: sqlite3.Connection, conversation_id: str, number: int) -> dict[str, LedgerEntry]:
    entries = {}
    for call, started, outcome, check in connection.execute(
        "SELECT call, started, outcome, checksum FROM calls WHERE conversation = ?", (number,)
    ):
        if check != checksum(b"", number, call, started, outcome):
            raise damaged(conversation_id, f"the ledger's entry {call} does not fit its checksum")
        try:
            entries[call] = LedgerEntry(
                call,
                Started.model_validate_json(started) if started is not None else None,
                Outcome.model_validate_json(outcome) if outcome is not None else None,
            )
        except ValueError as error:
            raise damaged(conversation_id, f"the ledger's entry {call} cannot be read") from error
    return entries
