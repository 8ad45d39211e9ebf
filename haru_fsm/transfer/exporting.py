"""Conversations out of a database, as lines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

from haru_fsm.errors import FormatTooNew, JournalDamaged, StoreError, UnknownConversation
from haru_fsm.ids import checked
from haru_fsm.stores import Record, Store, StoredTicket
from haru_fsm.transfer import lines


async def export(
    store: Store,
    conversation_ids: Iterable[str] | None = None,
    *,
    on_unread: Callable[[StoreError], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> AsyncIterator[str]:
    """The lines of an export: of these conversations, or of all that rest and those that are under way.

    Raises UnknownConversation before the first line. A conversation that is damaged, or written by a newer haru_fsm, is
    handed to `on_unread` and left out; where nobody listens it raises JournalDamaged or FormatTooNew.
    """
    wanted = await _wanted(store, conversation_ids)
    yield lines.head()
    count = 0
    for done, conversation_id in enumerate(wanted):
        if progress is not None:
            progress(done, len(wanted))
        try:
            record = await _found(store, conversation_id)
        except (JournalDamaged, FormatTooNew) as error:
            if on_unread is None:
                raise
            on_unread(error)
            continue
        yield lines.sealed(_written(record, await store.tickets(conversation_id=conversation_id)))
        count += 1
    yield lines.foot(count)


async def _wanted(store: Store, conversation_ids: Iterable[str] | None) -> list[str]:
    """Which, each once; the oldest first where nobody says which."""
    known = [summary.conversation_id for summary in reversed(await store.conversations())]
    if conversation_ids is None:
        return known
    wanted = list(dict.fromkeys(checked("conversation's id", each) for each in conversation_ids))
    if unknown := sorted(set(wanted).difference(known), key=wanted.index):
        raise UnknownConversation(f"There is no conversation {unknown[0]}. `haru list` shows those there are.")
    return wanted


async def _found(store: Store, conversation_id: str) -> Record:
    record = await store.load(conversation_id)
    if record is None:  # listed, and not there: pruned a moment ago, or lost
        raise JournalDamaged(f"Conversation {conversation_id} is there and cannot be found by its id.")
    return record


def _written(record: Record, tickets: Sequence[StoredTicket]) -> dict[str, Any]:
    summary = record.summary
    return {
        "conversation_id": summary.conversation_id,
        "customer_id": summary.customer_id,
        "parent": summary.parent,
        "rehearsal": summary.rehearsal,
        "steps": [step.written() for step in record.steps],
        "ledger": [
            {
                "call": entry.call,
                "started": entry.started.model_dump(mode="json", exclude_unset=True) if entry.started else None,
                "outcome": entry.outcome.model_dump(mode="json", exclude_unset=True) if entry.outcome else None,
            }
            for entry in record.ledger.values()
        ],
        "tickets": [stored.ticket.model_dump(mode="json") for stored in tickets],
        "notes": {stored.ticket.ticket_id: stored.notes for stored in tickets if stored.notes},
    }
