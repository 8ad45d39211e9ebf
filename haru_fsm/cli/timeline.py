"""A journal as a table for people: what happened, where it led, what it cost, and which guard tripped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from haru_fsm.cli.narration import VERBS, decision_line, resumed_under, trip_line
from haru_fsm.cli.output import printable, when
from haru_fsm.conversation import (
    KINDS,
    ApprovalDecided,
    ApprovalRequested,
    Compaction,
    Event,
    HistoryAdopted,
    MessageHeld,
    MessageReceived,
    ModelAnswered,
    ModelEvent,
    ModelFailed,
    ObservationAppended,
    Resumed,
    Step,
    TicketClosed,
    TicketOpened,
    ToolCall,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
    Usage,
)
from haru_fsm.ticket_summary import shorten

TEXT_CHARS = 2_000
RESULT_CHARS = 200


def table(*columns: str, right: Iterable[str] = (), prose: Iterable[str] = ()) -> Table:
    """An empty table in the style of all of ours; `right` names columns of figures, `prose` those that may wrap."""
    made = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        justify: Literal["right", "left"] = "right" if column in right else "left"
        made.add_column(column, justify=justify, overflow="fold", no_wrap=column not in prose)
    return made


def row(made: Table, *cells: object) -> None:
    """Add a row of plain texts: what stands in them is never markup."""
    made.add_row(*(cell if isinstance(cell, Text) else Text(printable(str(cell))) for cell in cells))


def timeline(steps: Iterable[Step]) -> Table:
    """The steps of a conversation, in order. Without a column of costs where none is known."""
    steps = tuple(steps)
    costs = ("cost",) if any(map(cost, steps)) else ()
    figures = ("seq", "run", "tokens", *costs, "ms")
    columns = ("seq", "run", "event → state", "tokens", *costs, "ms", "what happened")
    made = table(*columns, right=figures, prose=("what happened",))
    run, calls = 0, tuple[ToolCall, ...]()
    for step in steps:
        if step.run != run and run:
            made.add_section()
        run = step.run
        if isinstance(step.event, ToolsRequested):
            calls = step.event.calls
        spent = (tokens(step), *([cost(step)] if costs else []))
        row(made, step.seq, step.run, _place(step), *spent, step.event.took_ms or "", _happened(step, calls))
    return made


def _place(step: Step) -> str:
    return f"{step.event.kind}\n→ {step.state}{' (rests)' if step.rests else ''}"


def tokens(step: Step) -> str:
    """The tokens of a step, marked with ~ where no provider counted them; empty where there are none."""
    return figure(step.event.usage) if isinstance(step.event, ModelEvent) else ""


def cost(step: Step) -> str:
    """What a step cost; empty where that is not known."""
    return money(step.event.usage.cost_usd) if isinstance(step.event, ModelEvent) else ""


def figure(usage: Usage) -> str:
    """How many tokens, for people."""
    return f"{'~' if usage.estimated else ''}{usage.total:,}"


def parts(usage: Usage) -> str:
    """Of what kinds the tokens are, for people; empty where there are none."""
    kinds = ("prompt", "cached", "thoughts", "tool", "answer")
    return ", ".join(f"{kind} {count:,}" for kind in kinds if (count := getattr(usage, kind)))


def money(usd: float | None) -> str:
    """US dollars, to a hundredth of a cent, and as fine as it takes where that would be nothing."""
    if usd is None:
        return ""
    return f"${usd:,.4f}" if usd >= 0.01 or not usd else f"${usd:.2g}" if usd < 1e-6 else f"${usd:.6f}"


def _happened(step: Step, calls: tuple[ToolCall, ...]) -> Text:
    lines = Text("\n").join(Text(printable(line)) for line in _lines(step, calls))
    if step.trip is not None:
        lines.append("\n" if lines else "")
        lines.append(printable(trip_line(step.trip, step.answer)), style="yellow")
    return lines


def _lines(step: Step, calls: tuple[ToolCall, ...]) -> Iterator[str]:
    match step.event:
        case MessageReceived(text=text) | MessageHeld(text=text):
            yield cut(text)
        case ToolsRequested() as event:
            yield from [cut(event.text)] if event.text else []
            yield from (as_written(call) for call in event.calls)
        case ToolsExecuted(results=results):
            yield from (line for result in results for line in _result(calls[result.position], result))
        case ModelAnswered() as event:
            yield cut(event.text)
        case ModelFailed(reason=reason, detail=detail):
            yield f"{reason} {detail}".rstrip()
        case ObservationAppended(refusals=refusals):
            yield from (f"refused {calls[position].name}: {why}" for position, why in refusals.items())
        case TicketOpened(ticket=ticket, added=added, notice=notice):
            yield f"{'added to ' if added else ''}{ticket.ticket_id} ({ticket.category}, {ticket.urgency})"
            yield notice
        case TicketClosed(ticket_id=ticket_id, reply=reply):
            yield f"{ticket_id}: {cut(reply)}"
        case Resumed(worker=worker, definition=definition, begun=begun):
            yield worker
            yield from resumed_under(definition, begun)
        case HistoryAdopted(contents=contents, repairs=repairs):
            yield f"{len(contents)} contents of another loop"
            yield from (f"  repaired: {repair}" for repair in repairs)
        case event if event.kind not in KINDS:
            yield shorten(as_text(event.model_dump(mode="json", exclude={"kind", "at", "took_ms"})), TEXT_CHARS)
    yield from _approvals(step.event)
    if isinstance(step.event, ModelEvent):
        yield from _troubles(step.event)


def _approvals(event: Event) -> Iterator[str]:
    match event:
        case ApprovalRequested(waiting=waiting):
            yield from (f"waits: call {each.call} {each.tool}({as_text(each.args)})" for each in waiting)
        case ApprovalDecided():
            yield decision_line(event)


def _troubles(event: ModelEvent) -> Iterator[str]:
    if event.compaction is not None:
        yield from _compacted(event.compaction)
    if event.requests > 1:
        yield f"{event.requests} requests"
    for incident in event.incidents:
        yield f"unusable: {incident.reason} {shorten(incident.detail, RESULT_CHARS)}".rstrip()


def _compacted(compaction: Compaction) -> Iterator[str]:
    """What was cut before the request, up to which step, and who wrote what stands there now."""
    writer = "a summary by the model" if compaction.by == "model" else "a digest"
    gone = compaction.digested - sum(position < compaction.digested for position in compaction.kept)
    replaced = f"; {gone} contents became {writer}" if compaction.record else ""
    why = " after a refusal" if compaction.refused is not None else ""
    where = f" up to step {compaction.seq}" if compaction.seq else ""
    sizes = f"{compaction.before:,} → {compaction.after:,} bytes"
    yield f"compacted{why}{where}: {sizes}, results shortened{replaced}"
    if compaction.failed:
        yield f"  no summary by the model: {compaction.failed}"


def _result(call: ToolCall, result: ToolResult) -> Iterator[str]:
    said: Any = result.response.get("error", result.response.get("result"))
    word = f"{VERBS[result.status].lower()}: " if result.status in VERBS else ""
    word = "repeated, not run: " if result.repeated else word
    took = f" ({result.took_ms:,} ms)" if result.took_ms else ""
    yield f"{call.name} → {word}{shorten(as_text(said), RESULT_CHARS)}{took}"
    yield from (f"  repaired: {repair}" for repair in result.repairs)
    if "note" in result.response:
        yield f"  note: {result.response['note']}"


def as_written(call: ToolCall) -> str:
    """A call with its arguments as JSON."""
    return f"{call.name}({shorten(as_text(call.args), TEXT_CHARS)})"


def as_text(value: Any) -> str:
    """A JSON value on one line; a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def cut(text: str) -> str:
    """A text with its line breaks, up to a length that a person reads."""
    return text if len(text) <= TEXT_CHARS else text[: TEXT_CHARS - 1] + "…"


def began(steps: Iterable[Step]) -> str:
    """When the conversation began, for people."""
    return next((when(step.event.at) for step in steps), "")
