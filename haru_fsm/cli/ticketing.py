"""`haru tickets`, `haru ticket close`: cases that wait for a person."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haru_fsm.cli import exits, options
from haru_fsm.cli.looking import first_of
from haru_fsm.cli.output import say, say_json, show, when
from haru_fsm.cli.wiring import Given, run, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from haru_fsm.runs import Run
    from haru_fsm.stores import StoredTicket

OnlyOpen = Annotated[bool, typer.Option("--open", help="Only those that nobody has answered yet.")]
AtMost = Annotated[
    int | None, typer.Option("--limit", min=1, metavar="N", help="At most so many, the latest first. Default: all.")
]
TicketId = Annotated[str, typer.Argument(metavar="TICKET", help="The ticket's number; `haru tickets` lists them.")]
Reply = Annotated[str, typer.Option("--reply", metavar="TEXT", help="What the customer reads; `-` reads it.")]


def tickets(
    only_open: OnlyOpen = False,
    conversation: options.OfConversation = None,
    limit: AtMost = None,
    app: options.AppFolder = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> int:
    """The tickets there are, the latest first."""
    found = run(_tickets(Given(app, db), conversation, only_open, limit and limit + 1))
    found = first_of(found, limit) if limit is not None else found
    if as_json:
        say_json([ticket_object(stored) for stored in found])
    elif found:
        show_tickets(found)
    else:
        say("No tickets.")
    return exits.OK


async def _tickets(
    given: Given, conversation: str | None, only_open: bool, limit: int | None
) -> Sequence[StoredTicket]:
    async with given.store() as store:
        return await store.tickets(conversation_id=conversation, open_only=only_open, limit=limit)


def ticket_object(stored: StoredTicket) -> dict[str, Any]:
    """A ticket with what has become of it, as JSON."""
    became = {"notes": list(stored.notes), "reply": stored.reply, "closed_at": stored.closed_at}
    return {**stored.ticket.model_dump(mode="json"), **became}


def show_tickets(found: Sequence[StoredTicket]) -> None:
    """A table of tickets."""
    from haru_fsm.cli.timeline import row, table

    made = table("ticket\nconversation", "case\ncustomer", "opened", "summary", prose=("summary",))
    for stored in found:
        ticket = stored.ticket
        case = f"{ticket.category}, {ticket.urgency}{', rehearsal' if ticket.rehearsal else ''}"
        texts = [ticket.summary, *(f"added: {note}" for note in stored.notes)]
        if stored.closed_at is not None:
            texts.append(f"answered {when(stored.closed_at)}: {stored.reply}")
        both = (f"{ticket.ticket_id}\n{ticket.conversation_id}", f"{case}\n{ticket.customer_id}")
        row(made, *both, when(ticket.created_at), "\n".join(texts))
    show(made)


def close(
    ticket_id: TicketId,
    reply: Reply,
    app: options.AppFolder = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> int:
    """A person's reply enters the conversation, and the ticket is closed.

    The reply is part of what the model reads when the customer writes again. With --json: the run it belongs to.
    """
    given = Given(app, db)  # closing asks no model: any will do
    ended = run(_close(given, ticket_id, text_of(reply)))
    if as_json:
        say_json(ended.model_dump(mode="json"))
    else:
        say(f"ticket {ticket_id} is closed · conversation {ended.conversation_id} · {ended.state}")
        say(given.where_to_look(ended.conversation_id))
    return exits.of_run(ended)


async def _close(given: Given, ticket_id: str, reply: str) -> Run:
    async with replace(given, model="offline").engine() as engine:
        return await engine.close_ticket(ticket_id, reply)
