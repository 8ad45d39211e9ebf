"""A conversation, told to people: who said what, what the tools did, where the process died, and what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from haru_fsm.conversation import (
    ApprovalDecided,
    ApprovalRequested,
    MessageReceived,
    ModelAnswered,
    ModelFailed,
    ObservationAppended,
    Resumed,
    Step,
    TicketClosed,
    TicketOpened,
    ToolCall,
    ToolsExecuted,
    ToolsRequested,
)
from haru_fsm.json_safe import json_safe, safe_text
from haru_fsm.testing.driving import Performance
from haru_fsm.testing.hunting import Found

Line = tuple[str, str]
VALUE_CHARS = 160
LONGEST_PERIOD = 6


def tell(found: Found) -> str:
    """The promise, why it does not hold, and the conversation that shows it."""
    lines = collapsed(list(conversation(found.seen)))
    width = max((len(who) for who, _ in lines), default=0)
    head = f"{found.promise}: this does not hold.\n  {found.because}\n"
    body = "\n".join(f"  {who.ljust(width)}  {what}".rstrip() for who, what in lines)
    return f"{head}\nThe shortest conversation that shows it (customer {found.seen.play.customer}):\n{body}"


def conversation(seen: Performance) -> Iterator[Line]:
    """What happened, line by line."""
    steps = seen.steps
    calls: tuple[ToolCall, ...] = ()
    deaths = list(seen.deaths)
    for step in steps:
        if isinstance(step.event, Resumed) and deaths:
            yield "process", f"dies {deaths.pop(0)[0]}; another one carries on in {step.source}"
        if isinstance(step.event, ToolsRequested):
            calls = step.event.calls
        yield from _lines(step, calls)
    for point, _ in deaths:
        yield "process", f"dies {point}; another one carries on"
    if seen.broke:
        yield "engine", seen.broke


def _lines(step: Step, calls: Sequence[ToolCall]) -> Iterator[Line]:
    match step.event:
        case MessageReceived(text=text):
            yield "customer", _value(text)
        case ToolsRequested() as event:
            asked = ", ".join(f"{call.name}({_value(call.args)[1:-1]})" for call in event.calls)
            yield "model", asked + (f"  beside: {_value(event.text)}" if event.text else "")
        case ModelAnswered() as event:
            yield "model", _value(event.text) if event.text else "(no text)"
        case ModelFailed(reason=reason, detail=detail):
            yield "model", f"fails: {reason} {detail}".rstrip()
        case ToolsExecuted(results=done):
            for result in done:
                yield calls[result.position].name, f"{result.status}: {_value(result.response)}"
        case ApprovalRequested(waiting=waiting):
            yield "engine", f"asks a person about {', '.join(each.tool for each in waiting)}"
        case ApprovalDecided(approved=approved):
            yield "person", "agrees" if approved else "does not agree"
        case ObservationAppended(refusals=refusals) if refusals:
            yield "engine", "refuses the calls"
        case TicketOpened(ticket=ticket, added=added):
            yield "engine", f"{'adds to' if added else 'opens'} ticket {ticket.ticket_id}"
        case TicketClosed(ticket_id=ticket_id):
            yield "person", f"closes ticket {ticket_id}"
    if step.trip is not None and step.answer is None:
        yield "guard", f"{step.trip.guard}: {step.trip.because}"


def _value(value: object) -> str:
    """A value on one line, in the letters it is written in, and without control characters."""
    text = json.dumps(json_safe(value) if not isinstance(value, str) else safe_text(value), ensure_ascii=False)
    return text if len(text) <= VALUE_CHARS else text[: VALUE_CHARS - 1] + "…"


def collapsed(lines: Sequence[Line]) -> list[Line]:
    """Lines that come again and again are told once, with how often."""
    told: list[Line] = []
    at = 0
    while at < len(lines):
        period, times = _repetition(lines, at)
        told += lines[at : at + period]
        if times > 1:
            told.append(("", f"... {'these lines' if period > 1 else 'this line'} {times} times in all"))
        at += period * times
    return told


def _repetition(lines: Sequence[Line], at: int) -> tuple[int, int]:
    """The shortest stretch from here that comes at least three times, and how often; else one line, once."""
    for period in range(1, LONGEST_PERIOD + 1):
        unit, times = lines[at : at + period], 1
        while lines[at + period * times : at + period * (times + 1)] == unit:
            times += 1
        if times >= 3:
            return period, times
    return 1, 1
