"""The written form of a step, and the chain of checksums that holds a journal together.

A step is stored as its columns and two pieces of JSON: the event, and what the row added (rest, trip, answer). The
source state is not stored, for it is where the step before led. A result whose outcome stands in the ledger is stored
without its response; reading puts it back, so nothing is kept twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from haru_fsm.conversation import (
    AnyEvent,
    ResultsEvent,
    Step,
    Ticket,
    TicketClosed,
    TicketOpened,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
)
from haru_fsm.errors import JournalDamaged
from haru_fsm.stores import LedgerEntry

_EVENTS: TypeAdapter[tuple[AnyEvent, ...]] = TypeAdapter(tuple[AnyEvent, ...])
_EVENT_AND_PLACE = {"seq", "run", "event", "source", "state"}
_NOTED = {"event": {"results": {"__all__": {"response": True}}}}


@dataclass(frozen=True, slots=True)
class Line:
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
        more = ""
        if not step.model_fields_set <= _EVENT_AND_PLACE:
            more = step.model_dump_json(exclude=_EVENT_AND_PLACE, exclude_unset=True)
        check = checksum(check, step.seq, step.run, step.state, more, event)
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
    text = "\x1f".join(map(str, fields))
    return hashlib.blake2b(before + text.encode("utf-8", "surrogatepass"), digest_size=12).digest()


def read(
    conversation_id: str, initial: str, begins: bytes, lines: Iterable[Line], ledger: Mapping[str, LedgerEntry]
) -> tuple[Step, ...]:
    """The steps of these lines, whose chain begins with `begins` (`seed`; in databases of format 1, with nothing).

    Raises JournalDamaged where a checksum, a number or a piece of JSON does not fit.
    """
    lines, check = tuple(lines), begins
    if lines and lines[0].check == checksum(b"", *_fields(lines[0])):
        check = b""
    for number, line in enumerate(lines, 1):
        expected = checksum(check, *_fields(line))
        if line.seq != number or line.check != expected:
            raise damaged(conversation_id, f"step {line.seq} does not fit its checksum or its number")
        check = line.check
    try:
        # One call for all of them: a call for each would cost more than the reading itself.
        events = _EVENTS.validate_json(f"[{','.join(line.event for line in lines)}]")
        sources = [initial, *(line.state for line in lines)]
        steps = tuple(map(_step, lines, events, sources))
    except ValidationError as error:
        raise damaged(conversation_id, f"a step cannot be read ({error.errors()[0]['msg']})") from error
    return tuple(_with_outcomes(conversation_id, steps, ledger))


def _fields(line: Line) -> tuple[object, ...]:
    return line.seq, line.run, line.state, line.more, line.event


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
    more = from_json(line.more) if line.more else {}
    return Step(seq=line.seq, run=line.run, event=event, source=source, state=line.state, **more)


def _with_outcomes(conversation_id: str, steps: tuple[Step, ...], ledger: Mapping[str, LedgerEntry]) -> Iterator[Step]:
    requested = 0
    for step in steps:
        if isinstance(step.event, ToolsRequested):
            requested = step.seq
        if isinstance(step.event, ResultsEvent) and any(result.noted for result in step.event.results):
            results = tuple(_filled(conversation_id, result, requested, ledger) for result in step.event.results)
            yield step.model_copy(update={"event": step.event.model_copy(update={"results": results})})
        else:
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
