"""Moving conversations between databases, and looking whether a database is whole.

An export is JSON Lines: a head line, one line per conversation, a foot line with their number. Each line carries a
digest of itself, so a file that was cut off or edited is refused before anything of it is stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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
from haru_fsm.errors import (
    ConversationMoved,
    FormatTooNew,
    JournalDamaged,
    SettingsError,
    StoreError,
    UnknownConversation,
)
from haru_fsm.ids import checked
from haru_fsm.stores import FORMAT, LedgerEntry, Outcome, Record, Started, Store, StoredTicket

KIND = "haru_fsm export"
NO_EXPORT = "This is no export of haru_fsm: its first line does not say so. Give a file that `haru export` has written."
TOGETHER = 64
"""Conversations that are stored at the same time: alone, each would wait for the disk several times."""
_STEPS = TypeAdapter(tuple[Step, ...])


@dataclass(frozen=True, slots=True)
class Finding:
    """What `verify` says of one conversation, or of the database itself (no id): whole, or what is wrong with it."""

    conversation_id: str
    damage: str | None = None


async def verify(store: Store) -> AsyncIterator[Finding]:
    """Read every journal and ledger of a store against their checksums, and the database itself. Nothing is changed."""
    for summary in await store.conversations():
        damage = None
        try:
            if await store.load(summary.conversation_id) is None:
                damage = f"Conversation {summary.conversation_id} is there and cannot be found by its id."
        except StoreError as error:
            damage = str(error)
        yield Finding(summary.conversation_id, damage)
    for fault in await store.faults():
        yield Finding("", fault)


# --------------------------------------------------------------------------- out


async def export(
    store: Store,
    conversation_ids: Iterable[str] | None = None,
    *,
    on_unread: Callable[[StoreError], None] | None = None,
) -> AsyncIterator[str]:
    """The lines of an export: of these conversations, or of all that rest and those that are under way.

    Raises UnknownConversation before the first line. A conversation that is damaged, or written by a newer haru_fsm, is
    handed to `on_unread` and left out; where nobody listens it raises JournalDamaged or FormatTooNew.
    """
    wanted = await _wanted(store, conversation_ids)
    yield _line({"kind": KIND, "format": FORMAT})
    count = 0
    for conversation_id in wanted:
        try:
            record = await _found(store, conversation_id)
        except (JournalDamaged, FormatTooNew) as error:
            if on_unread is None:
                raise
            on_unread(error)
            continue
        yield _line(_written(record, await store.tickets(conversation_id=conversation_id)))
        count += 1
    yield _line({"end": count})


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


def _line(content: dict[str, Any]) -> str:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return json.dumps({"digest": _digest(text)})[:-1] + f', "content": {text}}}'


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8"), digest_size=16).hexdigest()


# --------------------------------------------------------------------------- in


async def import_lines(store: Store, lines: Iterable[str]) -> tuple[int, int]:
    """Store the conversations of an export: how many were new, and how many were there already (and left as they are).

    Raises SettingsError when the file is none, is cut off or was changed; then nothing of it has been stored.
    """
    contents = list(_checked(lines))
    new = 0
    for first in range(0, len(contents), TOGETHER):
        readable = [_read(content) for content in contents[first : first + TOGETHER]]
        stored = await asyncio.gather(*(_store(store, each) for each in readable), return_exceptions=True)
        for one in stored:
            if isinstance(one, BaseException):
                raise one
            new += one
    return new, len(contents) - new


def _checked(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    number, end = 0, None
    for number, line in enumerate(lines, 1):
        content = _content(line, number)
        if number == 1:
            if content.get("kind") != KIND:
                raise SettingsError(NO_EXPORT)
            if content.get("format", 0) > FORMAT:
                raise FormatTooNew(
                    f"The export has format {content['format']}, newer than this haru_fsm knows. Update it."
                )
        elif "end" in content:
            end = (content["end"], number - 2)
        else:
            yield content
    if end is None or end[0] != end[1] or number != end[1] + 2:
        raise SettingsError("The export is not whole: its last line is missing, or lines are. Nothing was stored.")


def _content(line: str, number: int) -> dict[str, Any]:
    try:
        wrapped = json.loads(line)
        content: dict[str, Any] = wrapped["content"]
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        whole = wrapped["digest"] == _digest(text)
    except (ValueError, KeyError, TypeError) as error:
        if number == 1:
            raise SettingsError(NO_EXPORT) from error
        raise SettingsError(
            f"Line {number} of the export cannot be read: it was cut off or changed. Nothing was stored."
        ) from error
    if not whole:
        raise SettingsError(f"Line {number} of the export does not fit its digest: it was changed. Nothing was stored.")
    return content


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
