"""The SQLite store: one file on a local disk, WAL, synchronous=FULL, one writer thread.

Reads have a connection of their own and see what was committed when they began. The disk must be a local POSIX one:
SQLite's locks do not hold over a network.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from haru_fsm import leases
from haru_fsm.conversation import Conversation, Step, Ticket, TicketClosed, TicketOpened, ToolsExecuted
from haru_fsm.errors import ConversationMoved, FormatTooNew, StoreError
from haru_fsm.stores import FORMAT, LedgerEntry, Outcome, Record, Started, StoredTicket, Summary
from haru_fsm.stores.garbage import uncollected
from haru_fsm.stores.journal import Line, checksum, damaged, open_tickets, read, seed, write
from haru_fsm.stores.writer import FAILURES, Writer, is_damage, translated
from haru_fsm.tickets import mint

T = TypeVar("T")
APPLICATION_ID = 0x48415255  # "HARU"
BUSY_TIMEOUT_S = 5.0
RENEW_S = 2.0
HEADER_BYTES = 512
"""What any database has at least."""
PAGE_BYTES = 8192
"""A page holds several steps. With SQLite's 4,096 a step of two kilobytes leaves a third of it empty."""
PAUSED = 2
"""In the column `resting`: 0 for a run that is under way, 1 for an ending, and this where a person has to approve."""
SUMMARY = ", ".join(field.name for field in dataclasses.fields(Summary) if field.name != "paused")
PRUNABLE = (
    "resting = 1 AND updated_at < ? "
    "AND NOT EXISTS "
    "(SELECT 1 FROM tickets AS t WHERE t.conversation_id = c.conversation_id AND t.closed_at IS NULL) "
    "AND NOT EXISTS (SELECT 1 FROM calls AS k WHERE k.conversation = c.number AND outcome IS NULL)"
)


class SQLiteStore:
    """A store in one file. `now` gives seconds since the epoch; it stamps rows and leases, and orders nothing.

    `busy_timeout_s`: seconds to wait, each of a few times, while another process holds the database.
    """

    def __init__(
        self, path: Path | str, *, now: Callable[[], float] = time.time, busy_timeout_s: float = BUSY_TIMEOUT_S
    ) -> None:
        self.path = Path(path)
        self._now = now
        self._busy_timeout_s = busy_timeout_s
        self._lease_s = 15.0
        self._writer = Writer(self._open_for_writing, self._renew, RENEW_S)
        self._readers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="haru-reader")
        self._local = threading.local()
        self._heads: dict[str, _Head] = {}
        """Where the conversations stand that this process is moving: an append need not look it up again."""

    # -- connections

    def _connect(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists() and 0 < self.path.stat().st_size < HEADER_BYTES:
                # SQLite would take such a file for an empty database, and begin anew over what is left of ours.
                raise StoreError(f"{self.path} has been cut off: it is damaged. Restore it from a backup.")
            connection = sqlite3.connect(
                self.path, timeout=self._busy_timeout_s, isolation_level=None, check_same_thread=False
            )
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"The database {self.path} cannot be opened: {error}. Check that its folder exists and may be written."
            ) from error
        return connection

    def _open_for_writing(self) -> sqlite3.Connection:
        connection = self._connect()
        try:
            self._prepare(connection)
        except FAILURES as error:
            connection.close()
            raise translated(error) from error
        except StoreError:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if tables and application != APPLICATION_ID:
            raise StoreError(
                f"{self.path} is a database of another program. Give another file with --db sqlite:///FILE."
            )
        if version > FORMAT:
            raise FormatTooNew(
                f"{self.path} has format {version}, and this haru_fsm knows formats up to {FORMAT}. Update haru_fsm."
            )
        connection.execute(f"PRAGMA page_size={PAGE_BYTES}")  # of a new file; an old one keeps its own
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        if version < FORMAT:
            schema = files("haru_fsm.stores").joinpath("schema.sql").read_text("utf-8")
            marks = f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={FORMAT};"
            connection.executescript(f"BEGIN IMMEDIATE; {schema} {marks} COMMIT;")

    async def _read(self, job: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._reading, job)

    def _reading(self, job: Callable[[sqlite3.Connection], T]) -> T:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        try:
            if connection is None:
                connection = self._local.connection = self._open_for_reading()
            connection.execute("BEGIN")
            try:
                return job(connection)
            finally:
                connection.execute("ROLLBACK")
        except FAILURES as error:
            raise translated(error) from error

    def _open_for_reading(self) -> sqlite3.Connection:
        connection = self._open_for_writing()
        connection.execute("PRAGMA query_only=1")
        return connection

    async def aclose(self) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Finish what is queued and let go of the file."""
        self._writer.stop()
        if self._readers is not None:
            self._readers.submit(self._close_reader).result()
            self._readers.shutdown()
            self._readers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="haru-reader")

    def _close_reader(self) -> None:
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    # -- moving a conversation

    async def append(
        self, conversation: Conversation, *, expected_seq: int, owner: str | None, over: str | None, lease_s: float
    ) -> None:
        new = conversation.steps[_index(conversation, expected_seq) :]
        self._lease_s = lease_s
        # A living worker's lease must not run out between two renewals, however short it is.
        self._writer.idle_s = min(RENEW_S, max(0.05, lease_s / 4))
        now = self._now()

        def job(connection: sqlite3.Connection) -> _Head:
            before = self._heads.get(conversation.conversation_id)
            if before is None or before.seq != expected_seq:
                before = _place(connection, conversation, expected_seq, now)
            number = before.number
            lines = list(write(new, before.check))
            head = _Head(number, conversation.seq, lines[-1].check if lines else before.check)
            _move(connection, conversation, before, head, _Lease(owner, over, now, now + lease_s))
            connection.executemany(
                "INSERT INTO steps (conversation, seq, run, state, more, event, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(number, *line) for line in lines],
            )
            for step in new:
                _project(connection, step)
            return head

        try:
            self._heads[conversation.conversation_id] = await self._writer.write(job)
        except BaseException:
            self._heads.pop(conversation.conversation_id, None)
            raise
        if conversation.resting or owner is None:
            self._heads.pop(conversation.conversation_id, None)

    async def release(self, conversation_id: str, owner: str) -> None:
        self._heads.pop(conversation_id, None)
        await self._writer.write(
            lambda connection: (
                connection.execute(
                    "UPDATE conversations SET owner = NULL, lease_until = 0 WHERE conversation_id = ? AND owner = ?",
                    (conversation_id, owner),
                ).rowcount
            )
        )

    def _renew(self, connection: sqlite3.Connection) -> None:
        owners = leases.held()
        if not owners:
            return
        until = self._now() + self._lease_s
        marks = ",".join("?" * len(owners))
        connection.execute(
            f"UPDATE conversations SET lease_until = ? WHERE owner IN ({marks})",
            (until, *owners),
        )

    # -- the ledger

    async def note(self, conversation_id: str, call: str, what: Started | Outcome) -> bool:
        def job(connection: sqlite3.Connection) -> bool:
            row = connection.execute(
                "SELECT number FROM conversations WHERE conversation_id = ?", (conversation_id,)
            ).fetchone()
            if row is None:
                raise StoreError(f"Conversation {conversation_id} is not in the store; its ledger cannot be written.")
            return _note(connection, row[0], call, what)

        return bool(await self._writer.write(job))

    # -- tickets

    def file_ticket(self, ticket: Ticket) -> Ticket:
        def job(connection: sqlite3.Connection) -> Ticket:
            filed = _file(connection, ticket)
            if filed.summary != ticket.summary:
                _add_note(connection, filed.ticket_id, ticket.summary)
            return filed

        filed: Ticket = self._writer.write_blocking(job)
        return filed

    async def tickets(self, *, conversation_id: str | None = None, open_only: bool = False) -> Sequence[StoredTicket]:
        def job(connection: sqlite3.Connection) -> list[StoredTicket]:
            rows = connection.execute(
                "SELECT ticket, notes, reply, closed_at FROM tickets WHERE (?1 IS NULL OR conversation_id = ?1) "
                "AND (NOT ?2 OR closed_at IS NULL) ORDER BY created_at DESC, rowid DESC",
                (conversation_id, open_only),
            ).fetchall()
            return [ticket for row in rows if (ticket := _stored(row)) is not None]

        return await self._read(lambda connection: _lenient(connection, job))

    async def prune(self, before: float) -> int:
        def job(connection: sqlite3.Connection) -> int:
            rows = connection.execute(
                f"SELECT number, conversation_id FROM conversations AS c WHERE {PRUNABLE}", (before,)
            ).fetchall()
            for number, conversation_id in rows:
                connection.execute("DELETE FROM steps WHERE conversation = ?", (number,))
                connection.execute("DELETE FROM calls WHERE conversation = ?", (number,))
                connection.execute("DELETE FROM tickets WHERE conversation_id = ?", (conversation_id,))
                connection.execute("DELETE FROM conversations WHERE number = ?", (number,))
            return len(rows)

        return int(await self._writer.write(job))

    # -- reading

    async def load(self, conversation_id: str) -> Record | None:
        def job(connection: sqlite3.Connection) -> Record | None:
            try:
                with uncollected():
                    return _load(connection, conversation_id)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                raise damaged(conversation_id, str(error)) from error

        return await self._read(job)

    async def faults(self) -> Sequence[str]:
        def job(connection: sqlite3.Connection) -> list[str]:
            found = [f"The database: {row[0]}" for row in connection.execute("PRAGMA integrity_check")]
            rows = connection.execute("SELECT ticket_id, ticket, notes, reply, closed_at FROM tickets").fetchall()
            unread = [f"Ticket {number} cannot be read." for number, *row in rows if _stored(row) is None]
            return [fault for fault in found if fault != "The database: ok"] + unread

        return await self._read(lambda connection: _lenient(connection, job))

    async def conversations(
        self, *, unfinished: bool = False, customer_id: str | None = None, limit: int | None = None
    ) -> Sequence[Summary]:
        def job(connection: sqlite3.Connection) -> list[Summary]:
            rows = connection.execute(
                f"SELECT {SUMMARY} FROM conversations WHERE (NOT ?1 OR resting != 1) "
                "AND (?2 IS NULL OR customer_id = ?2) ORDER BY updated_at DESC, number DESC LIMIT ?3",
                (unfinished, customer_id, -1 if limit is None else limit),
            ).fetchall()
            return [_summary(row) for row in rows]

        return await self._read(lambda connection: _lenient(connection, job))


def _lenient(connection: sqlite3.Connection, job: Callable[[sqlite3.Connection], T]) -> T:
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


def _stored(row: Sequence[Any]) -> StoredTicket | None:
    """A ticket with what has become of it; None for one that cannot be read (`haru verify` names it)."""
    ticket, notes, reply, closed_at = row
    try:
        return StoredTicket(Ticket.model_validate_json(ticket), tuple(map(str, json.loads(notes))), reply, closed_at)
    except (ValueError, TypeError):
        return None


def _index(conversation: Conversation, seq: int) -> int:
    """Where the steps after this one begin."""
    first = conversation.steps[0].seq if conversation.steps else 1
    return max(0, seq - first + 1)


def _summary(row: Sequence[Any]) -> Summary:
    values = dict(zip(SUMMARY.split(", "), row, strict=True))
    rest = values["resting"]
    return Summary(
        **{**values, "resting": bool(rest), "paused": rest == PAUSED, "rehearsal": bool(values["rehearsal"])}
    )


@dataclass(frozen=True, slots=True)
class _Head:
    """Where a conversation stands: its number, and its last step's number and checksum."""

    number: int
    seq: int
    check: bytes


def _place(connection: sqlite3.Connection, conversation: Conversation, expected_seq: int, now: float) -> _Head:
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
        return _Head(int(cursor.lastrowid or 0), 0, begins)
    if row is None or row[1] != expected_seq:
        raise _moved(conversation, expected_seq)
    return _Head(*row)


@dataclass(frozen=True, slots=True)
class _Lease:
    """Who works on from here, whose void claim may be replaced, and until when. `owner` None gives the lease back."""

    owner: str | None
    over: str | None
    now: float
    until: float


def _move(
    connection: sqlite3.Connection,
    conversation: Conversation,
    before: _Head,
    head: _Head,
    lease: _Lease,
) -> None:
    # A worker may be replaced only by itself, or where it is void.
    worker = lease.owner if not conversation.resting else None
    moved = connection.execute(
        "UPDATE conversations SET state = ?, resting = ?, seq = ?, run = ?, head = ?, updated_at = ?, owner = ?,"
        " lease_until = ? WHERE number = ? AND seq = ? AND head = ? AND (owner IS NULL OR owner IS ? OR owner IS ?)",
        (
            *(conversation.state, PAUSED if conversation.paused else conversation.resting, head.seq),
            *(conversation.run, head.check, lease.now),
            *(worker, lease.until if worker else 0),
            *(before.number, before.seq, before.check, lease.owner, lease.over),
        ),
    ).rowcount
    if not moved:
        raise _moved(conversation, before.seq)


def _moved(conversation: Conversation, expected: int) -> ConversationMoved:
    return ConversationMoved(
        f"Conversation {conversation.conversation_id}: another worker has moved it from step {expected}, or works on "
        "it. Load it again."
    )


def _project(connection: sqlite3.Connection, step: Step) -> None:
    """The tickets of a step. They are written with it, or not at all."""
    match step.event:
        case ToolsExecuted(ticket=Ticket() as ticket):
            _file(connection, ticket)  # there since its tool ran, except in a database that it is imported into
        case TicketOpened(ticket=ticket, added=added, notice=_):
            filed = _file(connection, ticket)
            if filed.ticket_id != ticket.ticket_id:
                raise ConversationMoved(
                    f"Conversation {ticket.conversation_id}: ticket {filed.ticket_id} was filed for it meanwhile. "
                    "Load it again."
                )
            if added:
                _add_note(connection, ticket.ticket_id, step.event.note)
        case TicketClosed(ticket_id=ticket_id, reply=reply, at=at):
            connection.execute(
                "UPDATE tickets SET reply = ?, closed_at = ? WHERE ticket_id = ? AND closed_at IS NULL",
                (reply, at, ticket_id),
            )


def _file(connection: sqlite3.Connection, ticket: Ticket) -> Ticket:
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


def _add_note(connection: sqlite3.Connection, ticket_id: str, note: str) -> None:
    connection.execute(
        "UPDATE tickets SET notes = json_insert(notes, '$[#]', ?1) WHERE ticket_id = ?2 "
        "AND NOT EXISTS (SELECT 1 FROM json_each(notes) WHERE value = ?1)",
        (note, ticket_id),
    )


def _note(connection: sqlite3.Connection, number: int, call: str, what: Started | Outcome) -> bool:
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


def _load(connection: sqlite3.Connection, conversation_id: str) -> Record | None:
    row = connection.execute(
        f"SELECT {SUMMARY}, number, initial, head FROM conversations WHERE conversation_id = ?",
        (conversation_id,),
    ).fetchone()
    if row is None:
        _not_by_its_twin(connection, conversation_id)
        return None
    *columns, number, initial, head = row
    summary = _summary(columns)
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
    """Raise JournalDamaged where a conversation is not found one way, and is the other: it is not new."""
    twin = "SELECT 1 FROM conversations INDEXED BY twins WHERE conversation_id = ?"
    if connection.execute(twin, (conversation_id,)).fetchone():
        raise damaged(conversation_id, "the index of conversations has lost it")


def _open_ticket(connection: sqlite3.Connection, conversation_id: str, steps: Sequence[Step]) -> Ticket | None:
    """The ticket that is open, which must be as the journal says where it says something."""
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
