"""The simplest store: dictionaries. For tests, experiments and rehearsals; it forgets with its process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from haru_fsm.conversation import Conversation, Step, Ticket, TicketClosed, TicketOpened, ToolsExecuted
from haru_fsm.errors import ConversationMoved, StoreError
from haru_fsm.stores import LedgerEntry, Outcome, Record, Started, StoredTicket, Summary
from haru_fsm.tickets import mint


class MemoryStore:
    """A store without a disk. `now` gives seconds since the epoch."""

    def __init__(self, *, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._summaries: dict[str, Summary] = {}
        self._steps: dict[str, tuple[Step, ...]] = {}
        self._ledgers: dict[str, dict[str, LedgerEntry]] = {}
        self._tickets: dict[str, StoredTicket] = {}
        self._lock = threading.RLock()

    async def load(self, conversation_id: str) -> Record | None:
        with self._lock:
            if conversation_id not in self._summaries:
                return None
            return Record(
                self._summaries[conversation_id],
                self._steps[conversation_id],
                dict(self._ledgers[conversation_id]),
                self._open_ticket(conversation_id),
            )

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
        key, now = conversation.conversation_id, at if at is not None else self._now()
        with self._lock:
            before = self._summaries.get(key)
            stored = before.seq if before else 0
            if stored != expected_seq or (before and before.owner not in (None, owner, over)):
                raise ConversationMoved(
                    f"Conversation {key}: another worker has moved it or works on it (expected step {expected_seq}, "
                    f"found {stored}). Load it again."
                )
            new = tuple(step for step in conversation.steps if step.seq > expected_seq)
            self._project_all(new)
            worker = owner if not conversation.resting else None
            self._steps[key] = (*self._steps.get(key, ()), *new)
            self._ledgers.setdefault(key, {})
            self._summaries[key] = Summary(
                key,
                conversation.customer_id,
                conversation.state,
                conversation.resting,
                conversation.seq,
                conversation.run,
                before.created_at if before else now,
                now,
                worker,
                now + lease_s if worker else 0.0,
                conversation.parent,
                conversation.rehearsal,
                conversation.paused,
            )

    async def note(self, conversation_id: str, call: str, what: Started | Outcome) -> bool:
        with self._lock:
            ledger = self._ledgers.get(conversation_id)
            if ledger is None:
                raise StoreError(f"Conversation {conversation_id} is not in the store; its ledger cannot be written.")
            entry = ledger.get(call)
            if isinstance(what, Started):
                if entry is not None:
                    return False
                ledger[call] = LedgerEntry(call, started=what)
                return True
            if entry is not None and entry.outcome is not None:
                return False
            ledger[call] = replace(entry or LedgerEntry(call), outcome=what)
            return True

    async def release(self, conversation_id: str, owner: str) -> None:
        with self._lock:
            summary = self._summaries.get(conversation_id)
            if summary is not None and summary.owner == owner:
                self._summaries[conversation_id] = replace(summary, owner=None, lease_until=0.0)

    def file_ticket(self, ticket: Ticket) -> Ticket:
        with self._lock:
            filed = self._file(ticket)
            if filed.summary != ticket.summary:
                self._add_note(filed.ticket_id, ticket.summary)
            return filed

    def _file(self, ticket: Ticket) -> Ticket:
        found = self._found(ticket)
        if found is not None:
            return found
        salt = 0
        while ticket.ticket_id in self._tickets:
            salt += 1
            ticket = ticket.model_copy(update={"ticket_id": mint(ticket.key, salt)})
        self._tickets[ticket.ticket_id] = StoredTicket(ticket)
        return ticket

    def _add_note(self, ticket_id: str, note: str) -> None:
        stored = self._tickets[ticket_id]
        if note not in stored.notes:
            self._tickets[ticket_id] = replace(stored, notes=(*stored.notes, note))

    def _found(self, ticket: Ticket) -> Ticket | None:
        same = (stored.ticket for stored in self._tickets.values() if stored.ticket.key == ticket.key)
        return next(same, self._open_ticket(ticket.conversation_id) if ticket.conversation_id else None)

    def _open_ticket(self, conversation_id: str) -> Ticket | None:
        mine = [
            stored.ticket
            for stored in self._tickets.values()
            if stored.ticket.conversation_id == conversation_id and stored.closed_at is None
        ]
        return mine[-1] if mine else None

    def _check_ticket(self, step: Step) -> None:
        if isinstance(step.event, TicketOpened):
            found = self._found(step.event.ticket)
            if found is not None and found.ticket_id != step.event.ticket.ticket_id:
                raise ConversationMoved(
                    f"Conversation {found.conversation_id}: ticket {found.ticket_id} was filed for it meanwhile. "
                    "Load it again."
                )

    def _project_all(self, steps: Sequence[Step]) -> None:
        """The tickets of these steps, one step after the other, or none of them."""
        telling = [
            step for step in steps if isinstance(step.event, TicketClosed) or getattr(step.event, "ticket", None)
        ]
        before = dict(self._tickets) if telling else self._tickets
        try:
            for step in telling:
                self._check_ticket(step)
                self._project(step)
        except BaseException:
            self._tickets = before
            raise

    def _project(self, step: Step) -> None:
        match step.event:
            case ToolsExecuted(ticket=Ticket() as ticket):
                self._file(ticket)  # there since its tool ran, except in a database that it is imported into
            case TicketOpened(ticket=ticket, added=added, note=note):
                filed = self._file(ticket)
                if added:
                    self._add_note(filed.ticket_id, note)
            case TicketClosed(ticket_id=ticket_id, reply=reply, at=at):
                stored = self._tickets[ticket_id]
                if stored.closed_at is None:
                    self._tickets[ticket_id] = replace(stored, reply=reply, closed_at=at)

    async def conversations(
        self,
        *,
        unfinished: bool = False,
        in_doubt: bool = False,
        customer_id: str | None = None,
        limit: int | None = None,
    ) -> Sequence[Summary]:
        with self._lock:
            fitting = [
                summary
                for summary in reversed(self._summaries.values())
                if not (unfinished and summary.resting and not summary.paused)
                and not (in_doubt and not self._in_doubt(summary.conversation_id))
                and customer_id in (None, summary.customer_id)
            ]
        return sorted(fitting, key=lambda summary: -summary.updated_at)[:limit]

    def _in_doubt(self, conversation_id: str) -> bool:
        return any(entry.outcome is None for entry in self._ledgers[conversation_id].values())

    async def tickets(
        self, *, conversation_id: str | None = None, open_only: bool = False, limit: int | None = None
    ) -> Sequence[StoredTicket]:
        with self._lock:
            found = [
                stored
                for stored in reversed(self._tickets.values())
                if conversation_id in (None, stored.ticket.conversation_id)
                and not (open_only and stored.closed_at is not None)
            ]
        return found[:limit]

    async def prune(self, before: float) -> int:
        with self._lock:
            needed = self._needed_by_forks()
            old = [
                key
                for key, summary in self._summaries.items()
                if summary.resting
                and not summary.paused
                and summary.updated_at < before
                and self._open_ticket(key) is None
                and not self._in_doubt(key)
                and key not in needed
            ]
            for key in old:
                del self._summaries[key], self._steps[key], self._ledgers[key]
                for stored in [t for t in self._tickets.values() if t.ticket.conversation_id == key]:
                    del self._tickets[stored.ticket.ticket_id]
            return len(old)

    def _needed_by_forks(self) -> set[str]:
        """Those that forks under way come from: their ledgers say what such a run must not do again."""
        needed = set[str]()
        for summary in self._summaries.values():
            parent = summary.parent if summary.paused or not summary.resting else None
            while parent is not None and parent not in needed:
                needed.add(parent)
                parent = self._summaries[parent].parent if parent in self._summaries else None
        return needed

    async def faults(self) -> Sequence[str]:
        return ()

    async def aclose(self) -> None:
        """Nothing to let go of."""
