"""Conversations into a database, with their tickets and their ledgers, whole or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from pydantic import TypeAdapter, ValidationError

from haru_fsm.conversation import (
    Conversation,
    Step,
    Ticket,
    TicketClosed,
    TicketOpened,
    ToolsExecuted,
    self_contained,
)
from haru_fsm.errors import ConversationMoved, SettingsError, StoreError
from haru_fsm.ids import checked
from haru_fsm.stores import LedgerEntry, Outcome, Record, Started, Store
from haru_fsm.transfer.lines import contents

TOGETHER = 64
"""Conversations that are stored at the same time: alone, each would wait for the disk several times."""
_STEPS = TypeAdapter(tuple[Step, ...])


async def import_lines(
    store: Store, lines: Iterable[str], *, progress: Callable[[int, int], None] | None = None
) -> tuple[int, int]:
    """Store the conversations of an export: how many were new, and how many were there already (and left as they are).

    The lines are read twice, and never kept: first to see that nothing is missing, then to store them. What can be read
    once only is kept in memory. `progress` is told how many are done, of how many. Raises SettingsError when the file
    is none, is cut off or was changed; then nothing of it has been stored.
    """
    lines = list(lines) if isinstance(lines, Iterator) else lines
    count = sum(1 for _ in contents(lines))
    found = contents(lines)
    new = 0
    for first in range(0, count, TOGETHER):
        if progress is not None:
            progress(first, count)
        readable = [_read(content) for content in islice(found, TOGETHER)]
        stored = await asyncio.gather(*(_store(store, each) for each in readable), return_exceptions=True)
        for one in stored:
            if isinstance(one, BaseException):
                raise one
            new += one
    return new, count - new


@dataclass(frozen=True, slots=True)
class _Exported:
    """One conversation of an export."""

    conversation: Conversation
    ledger: list[LedgerEntry]
    tickets: _Tickets


def _read(content: dict[str, Any]) -> _Exported:
    """Raises SettingsError for what is no conversation."""
    try:
        steps = tuple(map(self_contained, _STEPS.validate_python(content["steps"])))
        ledger = [_entry(entry) for entry in content["ledger"]]
        tickets = _Tickets.of(content, steps)
        conversation = Conversation(
            conversation_id=checked("conversation's id", content["conversation_id"]),
            customer_id=checked("customer's number", content["customer_id"]),
            state=steps[-1].state,
            resting=steps[-1].rests,
            steps=steps,
            parent=content["parent"],
            rehearsal=content["rehearsal"],
        )
    except (ValidationError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise SettingsError(
            f"Conversation {content.get('conversation_id')} of the export cannot be read: {_what(error)}. "
            "It was not stored, nor what comes after it."
        ) from error
    return _Exported(conversation, ledger, tickets)


async def _store(store: Store, exported: _Exported) -> bool:
    """Whether it was new."""
    conversation, ledger, tickets = exported.conversation, exported.ledger, exported.tickets
    steps = conversation.steps
    known = await store.load(conversation.conversation_id)
    new = known is None or not known.steps
    if new:
        try:
            await _add(store, conversation, ledger, tickets, known)
        except ConversationMoved:
            known, new = await store.load(conversation.conversation_id), False
            if known is None or not _same(known.steps, steps):
                raise StoreError(
                    f"Conversation {conversation.conversation_id} of the export was not stored: something else was "
                    "written under its id, or for its tickets, at the same time. Import again."
                ) from None
    if new or (known is not None and _same(known.steps, steps)):
        tickets.file_rest(store)
    return new


def _what(error: Exception) -> str:
    """What is wrong with a conversation, in few words."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"it lacks {error}" if isinstance(error, KeyError) else f"{type(error).__name__}: {error}"


async def _add(
    store: Store, conversation: Conversation, ledger: list[LedgerEntry], tickets: _Tickets, known: Record | None
) -> None:
    """Raises ConversationMoved where somebody else has written it meanwhile."""
    begun = replace(conversation, state=conversation.steps[0].source, resting=True, steps=())
    began, moved = (_told_at(step) for step in (conversation.steps[0], conversation.steps[-1]))
    if known is None:
        await store.append(begun, expected_seq=0, owner=None, over=None, lease_s=0, at=began)
    tickets.file_first(store)
    # The ledger first: a run that can be taken up must never be there without its claims, at no instant.
    for entry in ledger:
        for what in (entry.started, entry.outcome):
            if what is not None:
                await store.note(conversation.conversation_id, entry.call, what)
    await store.append(conversation, expected_seq=0, owner=None, over=None, lease_s=0, at=moved)


def _told_at(step: Step) -> float | None:
    """When a step was, as far as its journal says."""
    return step.event.at or None


def _same(stored: tuple[Step, ...], steps: tuple[Step, ...]) -> bool:
    return tuple(map(self_contained, stored)) == steps


@dataclass(frozen=True, slots=True)
class _Tickets:
    """What an export says of tickets beside the journal, whose steps file their own: oldest first."""

    untold: tuple[Ticket, ...]
    """Filed by tools, and no step tells of it."""
    notes: tuple[Ticket, ...]
    """Tickets once more, each with words that were added to it in place of its summary."""
    alone: bool
    """The journal opens none, so that an open one may be there before it."""
    closed: frozenset[str]

    @staticmethod
    def of(content: dict[str, Any], steps: tuple[Step, ...]) -> _Tickets:
        tickets = [Ticket.model_validate(ticket) for ticket in reversed(content["tickets"])]
        events = [step.event for step in steps if isinstance(step.event, TicketOpened | ToolsExecuted)]
        told = {event.ticket.ticket_id for event in events if event.ticket is not None}
        notes = content.get("notes", {})
        return _Tickets(
            tuple(ticket for ticket in tickets if ticket.ticket_id not in told),
            tuple(
                ticket.model_copy(update={"summary": str(note)})
                for ticket in tickets
                for note in notes.get(ticket.ticket_id, ())
            ),
            not told,
            frozenset(step.event.ticket_id for step in steps if isinstance(step.event, TicketClosed)),
        )

    def file_first(self, store: Store) -> None:
        """File what a step closes, or what a run that is taken up at once has to find."""
        for ticket in self.untold:
            if self.alone or ticket.ticket_id in self.closed:
                _file(store, ticket)

    def file_rest(self, store: Store) -> None:
        """File what could not be there before the journal had closed another; what is there stays as it is."""
        for ticket in self.untold:
            _file(store, ticket)
        for ticket in self.notes:
            store.file_ticket(ticket)


def _file(store: Store, ticket: Ticket) -> None:
    filed = store.file_ticket(ticket)
    if filed.ticket_id != ticket.ticket_id:
        raise StoreError(
            f"Ticket {ticket.ticket_id} of the export could not be filed: {filed.ticket_id} is there in its place. "
            "Import into another database."
        )


def _entry(entry: dict[str, Any]) -> LedgerEntry:
    return LedgerEntry(
        entry["call"],
        Started.model_validate(entry["started"]) if entry["started"] is not None else None,
        Outcome.model_validate(entry["outcome"]) if entry["outcome"] is not None else None,
    )
