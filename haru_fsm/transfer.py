"""Moving conversations between databases, and looking whether a database is whole.

An export is JSON Lines: a head line, one line per conversation, a foot line with their number. Each line carries a
digest of itself, so a file that was cut off or edited is refused before anything of it is stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from haru_fsm.conversation import Conversation, Step, Ticket, self_contained
from haru_fsm.errors import ConversationMoved, FormatTooNew, SettingsError, StoreError, UnknownConversation
from haru_fsm.ids import checked
from haru_fsm.stores import FORMAT, LedgerEntry, Outcome, Record, Started, Store

KIND = "haru_fsm export"
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


async def export(store: Store, conversation_ids: Iterable[str] | None = None) -> AsyncIterator[str]:
    """The lines of an export: of these conversations, or of all that rest and those that are under way.

    Raises UnknownConversation, JournalDamaged.
    """
    if conversation_ids is None:
        conversation_ids = [summary.conversation_id for summary in reversed(await store.conversations())]
    yield _line({"kind": KIND, "format": FORMAT})
    count = 0
    for conversation_id in conversation_ids:
        record = await store.load(checked("conversation's id", conversation_id))
        if record is None:
            raise UnknownConversation(f"There is no conversation {conversation_id}. `haru list` shows those there are.")
        tickets = await store.tickets(conversation_id=conversation_id)
        yield _line(_written(record, [stored.ticket for stored in tickets]))
        count += 1
    yield _line({"end": count})


def _written(record: Record, tickets: list[Ticket]) -> dict[str, Any]:
    summary = record.summary
    return {
        "conversation_id": summary.conversation_id,
        "customer_id": summary.customer_id,
        "parent": summary.parent,
        "rehearsal": summary.rehearsal,
        "steps": [step.model_dump(mode="json", exclude_unset=True) for step in record.steps],
        "ledger": [
            {
                "call": entry.call,
                "started": entry.started.model_dump(mode="json", exclude_unset=True) if entry.started else None,
                "outcome": entry.outcome.model_dump(mode="json", exclude_unset=True) if entry.outcome else None,
            }
            for entry in record.ledger.values()
        ],
        "tickets": [ticket.model_dump(mode="json") for ticket in tickets],
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
    for content in contents:
        new += await _store(store, content)
    return new, len(contents) - new


def _checked(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    number, end = 0, None
    for number, line in enumerate(lines, 1):
        content = _content(line, number)
        if number == 1:
            if content.get("kind") != KIND:
                raise SettingsError("This is no export of haru_fsm: its first line does not say so.")
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
        raise SettingsError(f"Line {number} of the export cannot be read: {error}. Nothing was stored.") from error
    if not whole:
        raise SettingsError(f"Line {number} of the export does not fit its digest: it was changed. Nothing was stored.")
    return content


async def _store(store: Store, content: dict[str, Any]) -> bool:
    try:
        steps = tuple(map(self_contained, _STEPS.validate_python(content["steps"])))
        ledger = [_entry(entry) for entry in content["ledger"]]
        tickets = [Ticket.model_validate(ticket) for ticket in content["tickets"]]
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
            f"Conversation {content.get('conversation_id')} of the export cannot be read: {error!r}. "
            "It was not stored, nor what comes after it."
        ) from error
    known = await store.load(conversation.conversation_id)
    if known is not None and known.steps:
        return False
    for ticket in tickets:
        store.file_ticket(ticket)
    begun = replace(conversation, state=steps[0].source, resting=True, steps=())
    try:
        if known is None:
            await store.append(begun, expected_seq=0, owner=None, over=None, lease_s=0)
        # The ledger first: a run that can be taken up must never be there without its claims, at no instant.
        for entry in ledger:
            for what in (entry.started, entry.outcome):
                if what is not None:
                    await store.note(conversation.conversation_id, entry.call, what)
        await store.append(conversation, expected_seq=0, owner=None, over=None, lease_s=0)
    except ConversationMoved:
        return False
    return True


def _entry(entry: dict[str, Any]) -> LedgerEntry:
    return LedgerEntry(
        entry["call"],
        Started.model_validate(entry["started"]) if entry["started"] is not None else None,
        Outcome.model_validate(entry["outcome"]) if entry["outcome"] is not None else None,
    )
