"""The written form of a step, and the chain of checksums that holds a journal together.

A step is stored as its columns and two pieces of JSON: the event, and what the row added (rest, trip, answer). The
source state is not stored, for it is where the step before led. A result whose outcome stands in the ledger is stored
without its response; reading puts it back, so nothing is kept twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import to_json

from haru_fsm.conversation import (
    Answer,
    AnyEvent,
    ResultsEvent,
    Step,
    Ticket,
    TicketClosed,
    TicketOpened,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
    Trip,
)
from haru_fsm.errors import JournalDamaged
from haru_fsm.stores import LedgerEntry

_EVENTS: TypeAdapter[tuple[AnyEvent, ...]] = TypeAdapter(tuple[AnyEvent, ...])


class _Notes(BaseModel):
    """What a row added to its event. A note that only a newer version knows stays in the database."""

    rests: bool = False
    trip: Trip | None = None
    answer: Answer | None = None
    asked: tuple[str, ...] = ()


NO_NOTES = _Notes()


class Line(NamedTuple):
    """One stored step. `check` covers everything before it as well."""

    seq: int
    run: int
    state: str
    more: str
    event: str
    check: bytes


def write(steps: Iterable[Step], check: bytes) -> Iterator[Line]:
    """The lines of these steps; `check` is the checksum of the line before them (empty for the first)."""
    for step in steps:
        event = _event_json(step)
        more = to_json(notes).decode() if (notes := step.notes()) else ""
        check = _link(check, step.seq, step.run, step.state, more, event)
        yield Line(step.seq, step.run, step.state, more, event, check)


def _event_json(step: Step) -> str:
    event = step.event
    if isinstance(event, ResultsEvent) and any(result.noted for result in event.results):
        event = event.model_copy(update={"results": tuple(_bare(result) for result in event.results)})
    return event.model_dump_json(exclude_unset=True)


def _bare(result: ToolResult) -> ToolResult:
    if not result.noted:
        return result
    return ToolResult.model_construct(
        _fields_set=result.model_fields_set - {"response"}, **{**dict(result), "response": {}}
    )


def seed(conversation_id: str, customer_id: str, initial: str, parent: str | None, rehearsal: bool) -> bytes:
    """Where the chain begins: whose conversation it is, and of what kind, is part of all that follows."""
    return checksum(b"", conversation_id, customer_id, initial, parent, int(rehearsal))


def checksum(before: bytes, *fields: object) -> bytes:
    """12 bytes over the checksum before and these fields."""
    return _digest(before, "\x1f".join(map(str, fields)))


def _link(before: bytes, seq: int, run: int, state: str, more: str, event: str) -> bytes:
    """The checksum of a line. Written out, for there is one for each step that is read or written."""
    return _digest(before, f"{seq}\x1f{run}\x1f{state}\x1f{more}\x1f{event}")


def _digest(before: bytes, text: str) -> bytes:
    return hashlib.blake2b(before + text.encode("utf-8", "surrogatepass"), digest_size=12).digest()


def read(
    conversation_id: str, initial: str, begins: bytes, lines: Sequence[Line], ledger: Mapping[str, LedgerEntry]
) -> tuple[Step, ...]:
    """The steps of these lines, whose chain begins with `begins` (`seed`; in databases of format 1, with nothing).

    Raises JournalDamaged where a checksum, a number or a piece of JSON does not fit.
    """
    check = begins
    if lines and lines[0].check == _link(b"", *lines[0][:-1]):
        check = b""
    for number, (seq, run, state, more, event, found) in enumerate(lines, 1):
        check = _link(check, seq, run, state, more, event)
        if seq != number or check != found:
            raise damaged(conversation_id, f"step {seq} does not fit its checksum or its number")
    try:
        # One call for all of them: a call for each would cost more than the reading itself.
        events = _EVENTS.validate_json(f"[{','.join(line.event for line in lines)}]")
        sources = [initial, *(line.state for line in lines)]
        steps = tuple(map(_step, lines, events, sources))
    except ValidationError as error:
        raise damaged(conversation_id, f"a step cannot be read ({error.errors()[0]['msg']})") from error
    if len(events) != len(lines):
        raise damaged(conversation_id, "a step holds more than one event")
    return tuple(_with_outcomes(conversation_id, steps, ledger))


def open_tickets(conversation_id: str, steps: Iterable[Step]) -> dict[str, Ticket]:
    """The tickets that a journal says are open, by number. A fork's journal also tells those of its parent."""
    found: dict[str, Ticket] = {}
    for step in steps:
        event = step.event
        if isinstance(event, TicketOpened | ToolsExecuted) and event.ticket is not None:
            found[event.ticket.ticket_id] = event.ticket
        elif isinstance(event, TicketClosed):
            found.pop(event.ticket_id, None)
    return {number: ticket for number, ticket in found.items() if ticket.conversation_id == conversation_id}


def _step(line: Line, event: AnyEvent, source: str) -> Step:
    notes = _Notes.model_validate_json(line.more) if line.more else NO_NOTES
    place = (line.seq, line.run, event, source, line.state)
    return Step(*place, notes.rests, notes.trip, notes.answer, notes.asked)


def _with_outcomes(conversation_id: str, steps: tuple[Step, ...], ledger: Mapping[str, LedgerEntry]) -> Iterator[Step]:
    requested = 0
    for step in steps:
        event = step.event
        if isinstance(event, ToolsRequested):
            requested = step.seq
        elif isinstance(event, ResultsEvent) and any(result.noted for result in event.results):
            results = tuple(_filled(conversation_id, result, requested, ledger) for result in event.results)
            yield step._replace(event=event.model_copy(update={"results": results}))
            continue
        yield step


def _filled(conversation_id: str, result: ToolResult, requested: int, ledger: Mapping[str, LedgerEntry]) -> ToolResult:
    if not result.noted:
        return result
    entry = ledger.get(f"{requested}.{result.position}")
    if entry is None or entry.outcome is None:
        raise damaged(conversation_id, f"the ledger has lost the outcome of call {requested}.{result.position}")
    return result.model_copy(update={"response": entry.outcome.response})


def damaged(conversation_id: str, what: str) -> JournalDamaged:
    """The error for a journal that must not be used."""
    return JournalDamaged(
        f"Conversation {conversation_id}: {what}. It is set aside and nothing of it is used; the others are not "
        "touched. Restore the database from a backup, or look with `haru verify`."
    )
