"""What an append, a note and a ticket put into the tables: inside a transaction of the writer's, all or nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from haru_fsm.conversation import Conversation, Step, Ticket, TicketClosed, TicketOpened, ToolsExecuted
from haru_fsm.errors import ConversationMoved
from haru_fsm.stores import Outcome, Started
from haru_fsm.stores.journal import checksum, seed, write
from haru_fsm.tickets import mint

PAUSED = 2
"""In the column `resting`: 0 for a run that is under way, 1 for an ending, and this where a person has to approve."""

MOVE = (
    "UPDATE conversations SET state = ?, seq = ?, run = ?, head = ?, updated_at = ?, resting = ?, owner = ?,"
    " lease_until = ? WHERE number = ? AND seq = ? AND head = ? AND (owner IS NULL OR owner IS ? OR owner IS ?)"
)
STEPS = "INSERT INTO steps (conversation, seq, run, state, more, event, checksum)"
FILING = (ToolsExecuted, TicketOpened, TicketClosed)
"""Events that may file tickets, or close one."""


@dataclass(frozen=True, slots=True)
class Head:
    """Where a conversation stands: its number, and its last step's number and checksum."""

    number: int
    seq: int
    check: bytes


def place(connection: sqlite3.Connection, conversation: Conversation, expected_seq: int, now: float) -> Head:
    """Where the conversation stands; a new one gets its row here."""
    row = connection.execute(
        "SELECT number, seq, head FROM conversations WHERE conversation_id = ?", (conversation.conversation_id,)
    ).fetchone()
    if row is None and expected_seq == 0:
        initial = conversation.steps[0].source if conversation.steps else conversation.state
        who = (conversation.conversation_id, conversation.customer_id, initial)
        kind = (conversation.parent, conversation.rehearsal)
        begins = seed(*who, *kind)
        cursor = connection.execute(
            "INSERT INTO conversations (conversation_id, customer_id, initial, state, resting, seq, run, head,"
            " created_at, updated_at, parent, rehearsal) VALUES (?, ?, ?, ?, 1, 0, 0, ?, ?, ?, ?, ?)",
            (*who, conversation.state, begins, now, now, *kind),
        )
        return Head(int(cursor.lastrowid or 0), 0, begins)
    if row is None or row[1] != expected_seq:
        raise _moved(conversation, expected_seq)
    return Head(*row)


class Lease(NamedTuple):
    """Who works on from here, whose void claim may be replaced, and until when. `owner` None gives the lease back."""

    owner: str | None
    over: str | None
    now: float
    until: float


@dataclass(slots=True)
class Append:
    """A job for the writer: move a conversation on by its new steps, with their tickets.

    `before` is where it stands, as far as this process knows. Called, it gives where the conversation stands then, and
    raises ConversationMoved where it was not at `expected_seq`, or somebody else works on it.
    """

    conversation: Conversation
    new: Sequence[Step]
    expected_seq: int
    lease: Lease
    before: Head | None = None

    def __call__(self, connection: sqlite3.Connection) -> Head:
        before = self.before or place(connection, self.conversation, self.expected_seq, self.lease.now)
        head, rows = rows_of(self.new, before)
        self._move(connection, before, head)
        connection.executemany(f"{STEPS} VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        for step in self.new:
            if isinstance(step.event, FILING):
                _project(connection, step)
        return head

    def _move(self, connection: sqlite3.Connection, before: Head, head: Head) -> None:
        conversation, lease = self.conversation, self.lease
        # A worker may be replaced only by itself, or where it is void.
        worker = lease.owner if not conversation.resting else None
        rest = PAUSED if conversation.paused else conversation.resting
        where = (conversation.state, head.seq, conversation.run, head.check, lease.now, rest)
        mine = (worker, lease.until if worker else 0)
        stood = (before.number, before.seq, before.check)
        if not connection.execute(MOVE, (*where, *mine, *stood, lease.owner, lease.over)).rowcount:
            raise _moved(conversation, before.seq)


def rows_of(new: Sequence[Step], before: Head) -> tuple[Head, list[tuple[Any, ...]]]:
    """Where a conversation stands after these steps, and their rows in the table of steps."""
    lines = list(write(new, before.check))
    head = Head(before.number, lines[-1].seq, lines[-1].check) if lines else before
    return head, [(before.number, *line) for line in lines]


def _moved(conversation: Conversation, expected: int) -> ConversationMoved:
    return ConversationMoved(
        f"Conversation {conversation.conversation_id}: another worker has moved it from step {expected}, or works on "
        "it. Load it again."
    )


def _project(connection: sqlite3.Connection, step: Step) -> None:
    """The tickets of a step. They are written with it, or not at all."""
    match step.event:
        case ToolsExecuted(ticket=Ticket() as ticket):
            file(connection, ticket)  # there since its tool ran, except in a database that it is imported into
        case TicketOpened(ticket=ticket, added=added):
            filed = file(connection, ticket)
            if filed.ticket_id != ticket.ticket_id:
                raise ConversationMoved(
                    f"Conversation {ticket.conversation_id}: ticket {filed.ticket_id} was filed for it meanwhile. "
                    "Load it again."
                )
            if added:
                add_note(connection, ticket.ticket_id, step.event.note)
        case TicketClosed(ticket_id=ticket_id, reply=reply, at=at):
            connection.execute(
                "UPDATE tickets SET reply = ?, closed_at = ? WHERE ticket_id = ? AND closed_at IS NULL",
                (reply, at, ticket_id),
            )


def file(connection: sqlite3.Connection, ticket: Ticket) -> Ticket:
    """The ticket as it is filed: one of its key or an open one of its conversation, where there is one already."""
    found = connection.execute(
        "SELECT ticket FROM tickets WHERE key = ?"
        " OR (conversation_id = ? AND conversation_id != '' AND closed_at IS NULL) ORDER BY key = ? DESC LIMIT 1",
        (ticket.key, ticket.conversation_id, ticket.key),
    ).fetchone()
    if found:
        return Ticket.model_validate_json(found[0])
    salt = 0
    while connection.execute("SELECT 1 FROM tickets WHERE ticket_id = ?", (ticket.ticket_id,)).fetchone():
        salt += 1
        ticket = ticket.model_copy(update={"ticket_id": mint(ticket.key, salt)})
    connection.execute(
        "INSERT INTO tickets (ticket_id, key, conversation_id, created_at, ticket) VALUES (?, ?, ?, ?, ?)",
        (ticket.ticket_id, ticket.key, ticket.conversation_id, ticket.created_at, ticket.model_dump_json()),
    )
    return ticket


def add_note(connection: sqlite3.Connection, ticket_id: str, note: str) -> None:
    """Add these words to a ticket, once."""
    connection.execute(
        "UPDATE tickets SET notes = json_insert(notes, '$[#]', :note) WHERE ticket_id = :ticket "
        "AND NOT EXISTS (SELECT 1 FROM json_each(notes) WHERE value = :note)",
        {"note": note, "ticket": ticket_id},
    )


def note(connection: sqlite3.Connection, number: int, call: str, what: Started | Outcome) -> bool:
    """Write a claim or an outcome into the ledger; False where there is one already, which stays."""
    row = connection.execute(
        "SELECT started, outcome FROM calls WHERE conversation = ? AND call = ?", (number, call)
    ).fetchone()
    text = what.model_dump_json(exclude_unset=True)
    started, outcome = row or (None, None)
    if isinstance(what, Started):
        if row is not None:
            return False
        started = text
    else:
        if outcome is not None:
            return False
        outcome = text
    connection.execute(
        "INSERT INTO calls (conversation, call, started, outcome, checksum) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (conversation, call) DO UPDATE SET outcome = excluded.outcome, checksum = excluded.checksum",
        (number, call, started, outcome, checksum(b"", number, call, started, outcome)),
    )
    return True
