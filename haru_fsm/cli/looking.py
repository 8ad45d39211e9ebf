"""`haru list`, `haru show`: looking at what is stored. Needs no model and no sound app."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from haru_fsm.cli import exits, options
from haru_fsm.cli.output import now, say, say_json, show, tell, when
from haru_fsm.cli.wiring import Given, known, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from haru_fsm.conversation import Step
    from haru_fsm.stores import Record, StoredTicket, Summary

T = TypeVar("T")
Unfinished = Annotated[bool, typer.Option("--unfinished", help="Only runs that have not come to an ending.")]
InDoubt = Annotated[
    bool,
    typer.Option("--in-doubt", help="Only with a call of which nobody knows how it ended, or whether it has yet."),
]
AtMost = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="At most so many, the latest first.")]


def list_(
    customer: options.MaybeCustomer = None,
    unfinished: Unfinished = False,
    in_doubt: InDoubt = False,
    limit: AtMost = 100,
    app: options.AppFolder = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> int:
    """The conversations there are, the latest first."""
    asked = {"customer_id": customer, "unfinished": unfinished, "in_doubt": in_doubt}
    found = first_of(run(_conversations(Given(app, db), limit + 1, asked)), limit)
    if as_json:
        say_json([asdict(summary) for summary in found])
    elif found:
        show_conversations(found)
    else:
        say(f"No {'unfinished ' if unfinished else ''}conversations{' with anything in doubt' if in_doubt else ''}.")
    return exits.OK


async def _conversations(given: Given, limit: int, asked: dict[str, Any]) -> Sequence[Summary]:
    async with given.store() as store:
        return await store.conversations(limit=limit, **asked)


def first_of(found: Sequence[T], limit: int) -> Sequence[T]:
    """The first of a list that was asked for one more: that there are others is said beside it."""
    if len(found) > limit:
        tell(f"haru: there are more; these are the latest {limit:,}. Ask for more with --limit.")
    return found[:limit]


def show_conversations(found: Sequence[Summary]) -> None:
    """A table of conversations."""
    from haru_fsm.cli.timeline import row, table

    made = table("conversation", "customer", "state", "runs", "steps", "last moved", right=("runs", "steps"))
    for one in found:
        notes = [] if one.resting else ["unfinished"]
        notes += ["waits for approval"] if one.paused else []
        notes += ["rehearsal"] if one.rehearsal else []
        state = f"{one.state} ({', '.join(notes)})" if notes else one.state
        row(made, one.conversation_id, one.customer_id, state, one.run, one.seq, when(one.updated_at))
    show(made)


# --------------------------------------------------------------------------- one conversation


def show_(
    conversation_id: options.ConversationId,
    app: options.AppFolder = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> int:
    """One conversation's timeline.

    Each step with its event, state, tokens, time, guard, calls and results. With --json: its facts, its steps
    as they are journaled, and its tickets.
    """
    record, tickets = run(_record(Given(app, db), conversation_id))
    if as_json:
        say_json(as_object(record, tickets))
    else:
        show_record(record, tickets, Given(app, db))
    return exits.OK


async def _record(given: Given, conversation_id: str) -> tuple[Record, Sequence[StoredTicket]]:
    async with given.store() as store:
        return await known(store, conversation_id), await store.tickets(conversation_id=conversation_id)


def as_object(record: Record, tickets: Sequence[StoredTicket]) -> dict[str, Any]:
    """Everything stored of a conversation, as JSON."""
    from haru_fsm.cli.ticketing import ticket_object
    from haru_fsm.conversation import awaited
    from haru_fsm.ledger import doubts

    return {
        **asdict(record.summary),
        "steps": [step.written(whole=True) for step in record.steps],
        "waiting": [call.model_dump(mode="json") for call in awaited(record.steps)],
        "in_doubt": [entry.call for entry in doubts(record.ledger.values())],
        "tickets": [ticket_object(stored) for stored in tickets],
    }


def show_record(record: Record, tickets: Sequence[StoredTicket], given: Given) -> None:
    """A conversation for people."""
    from haru_fsm.cli.asking import what_waits
    from haru_fsm.cli.timeline import began, timeline
    from haru_fsm.conversation import awaited
    from haru_fsm.ledger import doubts

    one = record.summary
    state = "waits for approval" if one.paused else "at rest" if one.resting else "unfinished"
    say(f"conversation {one.conversation_id} · customer {one.customer_id} · began {began(record.steps)}")
    if one.parent is not None:
        say(f"forked from {one.parent}{', a rehearsal' if one.rehearsal else ''}")
    show(timeline(record.steps))
    for entry in doubts(record.ledger.values()):
        say(f"in doubt: call {entry.call} {entry.started.name if entry.started else ''}")
    for line in what_waits(awaited(record.steps), one.conversation_id, given):
        say(line)
    for stored in tickets:
        closed = f"answered: {stored.reply}" if stored.closed_at is not None else "open"
        say(f"ticket {stored.ticket.ticket_id} ({stored.ticket.category}, {stored.ticket.urgency}): {closed}")
    if not one.resting:
        say(_whose(one, given))
    say(f"{one.state}, {state} · {_sums(record.steps)}")


def _whose(one: Summary, given: Given) -> str:
    """Who works on a run that is under way, or how to carry it on."""
    from haru_fsm import leases

    if leases.is_void(one.owner, one.lease_until, now()):
        return f"nobody works on it: {given.command('resume', one.conversation_id)}"
    who = leases.told(one.owner or "")
    return f"{who} works on it; others may from {when(one.lease_until)}, if it is not heard of before"


def _sums(steps: Sequence[Step]) -> str:
    from haru_fsm.cli.timeline import figure, money, parts
    from haru_fsm.conversation import ModelEvent, Usage

    usage = Usage()
    for step in steps:
        usage = usage + step.event.usage if isinstance(step.event, ModelEvent) else usage
    took = sum(step.event.took_ms for step in steps)
    kinds = f" ({parts(usage)})" if usage.total else ""
    cost = f" · {money(usage.cost_usd)}" if usage.cost_usd is not None else ""
    return f"{figure(usage)} tokens{kinds}{cost} · {took:,} ms of work"
