"""The store as the engine sees it: what it writes goes to the writer's thread, what it reads comes from another one.

Reads have a connection of their own and see what was committed when they began.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from haru_fsm import leases
from haru_fsm.conversation import Conversation, Ticket
from haru_fsm.errors import SettingsError, StoreError
from haru_fsm.stores import Outcome, Record, Started, StoredTicket, Summary
from haru_fsm.stores.journal import damaged
from haru_fsm.stores.sqlite import listing
from haru_fsm.stores.sqlite.collector import collector_paused
from haru_fsm.stores.sqlite.database_thread import DatabaseThread, Request
from haru_fsm.stores.sqlite.faults import is_damage
from haru_fsm.stores.sqlite.log_room import LogRoom
from haru_fsm.stores.sqlite.onward import onward
from haru_fsm.stores.sqlite.opening import opened
from haru_fsm.stores.sqlite.pruning import TOGETHER, forget
from haru_fsm.stores.sqlite.reading import lenient, load, stored
from haru_fsm.stores.sqlite.transactions import commit, read
from haru_fsm.stores.sqlite.turns import ask_often, begin
from haru_fsm.stores.sqlite.whereabouts import Whereabouts
from haru_fsm.stores.sqlite.writing import Append, Head, Lease, add_note, file, note

BUSY_TIMEOUT_S = 5.0
RENEW_S = 2.0
ADDRESS = re.compile(r"(sqlite|memory):")
"""What HARU_DATABASE_URL takes, and would be a folder of that name here."""


class SQLiteStore:
    """A store in one file. `now` gives seconds since the epoch; it stamps rows and leases, and orders nothing.

    `busy_timeout_s`: seconds to wait, each of a few times, while another process holds the database. Raises
    SettingsError for an address in the place of a path.
    """

    def __init__(
        self, path: Path | str, *, now: Callable[[], float] = time.time, busy_timeout_s: float = BUSY_TIMEOUT_S
    ) -> None:
        if ADDRESS.match(str(path)):
            raise SettingsError(f"{str(path)!r} is an address, and SQLiteStore takes the path of a file.")
        self.path = Path(path).absolute()  # its connections are opened later, wherever the process may be by then
        self._now = now
        self._busy_timeout_s = busy_timeout_s
        self._lease_s = 15.0
        self._room: LogRoom
        self._whereabouts: Whereabouts
        self._writer = DatabaseThread(
            "haru-writer", self._open_for_writing, self._commit, idle=self._renew, idle_s=RENEW_S
        )
        self._reader = DatabaseThread("haru-reader", self._open_for_reading, read, together=1)
        self._heads: dict[str, Head] = {}
        """Where the conversations stand that this process is moving: an append need not look it up again."""

    # -- connections

    def _open(self) -> sqlite3.Connection:
        return opened(self.path, self._busy_timeout_s)

    def _open_for_writing(self) -> sqlite3.Connection:
        connection = self._open()
        ask_often(connection)
        self._room = LogRoom(self.path)
        self._whereabouts = Whereabouts(self.path)
        return connection

    def _commit(self, connection: sqlite3.Connection, requests: Sequence[Request]) -> None:
        if (wrong := self._whereabouts.wrong()) is None:
            return commit(self._room, self._busy_timeout_s, connection, requests)
        for request in requests:
            request.error = wrong
        return None

    def _open_for_reading(self) -> sqlite3.Connection:
        connection = self._open()
        connection.execute("PRAGMA query_only=1")
        return connection

    async def aclose(self) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Finish what is queued and let go of the file."""
        self._writer.stop()
        self._reader.stop()

    # -- moving a conversation

    async def append(
        self,
        conversation: Conversation,
        *,
        expected_seq: int,
        owner: str | None,
        over: str | None,
        lease_s: float,
        at: float | None = None,
    ) -> None:
        new = conversation.steps[_index(conversation, expected_seq) :]
        self._lease_s = lease_s
        # A living worker's lease must not run out between two renewals, however short it is.
        self._writer.idle_s = min(RENEW_S, max(0.05, lease_s / 4))
        now = at if at is not None else self._now()

        before = self._heads.get(conversation.conversation_id)
        if before is not None and before.seq != expected_seq:
            before = None
        job = onward(Append(conversation, new, expected_seq, Lease(owner, over, now, now + lease_s), before))
        try:
            self._heads[conversation.conversation_id] = await self._writer.run(job)
        except BaseException:
            self._heads.pop(conversation.conversation_id, None)
            raise
        if conversation.resting or owner is None:
            self._heads.pop(conversation.conversation_id, None)

    async def release(self, conversation_id: str, owner: str) -> None:
        self._heads.pop(conversation_id, None)
        await self._writer.run(
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
        try:
            begin(connection, self._busy_timeout_s)
            connection.execute(f"UPDATE conversations SET lease_until = ? WHERE owner IN ({marks})", (until, *owners))
            connection.execute("COMMIT")
        except sqlite3.Error:
            # A renewal that fails is tried again in a moment; the owner's next commit finds out if it was too late.
            if connection.in_transaction:
                connection.rollback()

    # -- the ledger

    async def note(self, conversation_id: str, call: str, what: Started | Outcome) -> bool:
        def job(connection: sqlite3.Connection) -> bool:
            row = connection.execute(
                "SELECT number FROM conversations WHERE conversation_id = ?", (conversation_id,)
            ).fetchone()
            if row is None:
                raise StoreError(f"Conversation {conversation_id} is not in the store; its ledger cannot be written.")
            return note(connection, row[0], call, what)

        return await self._writer.run(job)

    # -- tickets

    def file_ticket(self, ticket: Ticket) -> Ticket:
        def job(connection: sqlite3.Connection) -> Ticket:
            filed = file(connection, ticket)
            if filed.summary != ticket.summary:
                add_note(connection, filed.ticket_id, ticket.summary)
            return filed

        return self._writer.run_blocking(job)

    async def tickets(
        self, *, conversation_id: str | None = None, open_only: bool = False, limit: int | None = None
    ) -> Sequence[StoredTicket]:
        def job(connection: sqlite3.Connection) -> list[StoredTicket]:
            return listing.tickets(connection, conversation_id=conversation_id, open_only=open_only, limit=limit)

        return await self._reader.run(lambda connection: lenient(connection, job))

    async def prune(self, before: float) -> int:
        count, last = 0, 0
        while True:
            numbers = await self._writer.run(partial(forget, before=before, after=last))
            count += len(numbers)
            if len(numbers) < TOGETHER:
                return count
            last = numbers[-1]

    # -- reading

    async def load(self, conversation_id: str) -> Record | None:
        def job(connection: sqlite3.Connection) -> Record | None:
            try:
                with collector_paused():
                    return load(connection, conversation_id)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                raise damaged(conversation_id, str(error)) from error

        return await self._reader.run(job)

    async def faults(self) -> Sequence[str]:
        def job(connection: sqlite3.Connection) -> list[str]:
            found = [f"The database: {row[0]}" for row in connection.execute("PRAGMA integrity_check")]
            rows = connection.execute("SELECT ticket_id, ticket, notes, reply, closed_at FROM tickets").fetchall()
            unread = [f"Ticket {number} cannot be read." for number, *row in rows if stored(row) is None]
            return [fault for fault in found if fault != "The database: ok"] + unread

        return await self._reader.run(lambda connection: lenient(connection, job))

    async def conversations(
        self,
        *,
        unfinished: bool = False,
        in_doubt: bool = False,
        customer_id: str | None = None,
        limit: int | None = None,
    ) -> Sequence[Summary]:
        def job(connection: sqlite3.Connection) -> list[Summary]:
            return listing.conversations(
                connection, unfinished=unfinished, in_doubt=in_doubt, customer_id=customer_id, limit=limit
            )

        return await self._reader.run(lambda connection: lenient(connection, job))


def _index(conversation: Conversation, seq: int) -> int:
    """Where the steps after this one begin."""
    first = conversation.steps[0].seq if conversation.steps else 1
    return max(0, seq - first + 1)
