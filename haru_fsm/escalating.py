"""Handing a run over to a person: the work of the state in which a ticket is opened, whatever a table calls it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from haru_fsm.conversation import Conversation, Ticket, TicketOpened
from haru_fsm.services import Services
from haru_fsm.tickets import draft


class Words(Protocol):
    """What the customer reads of a ticket. `added`: the conversation had it already."""

    def __call__(self, ticket: Ticket, /, *, added: bool = False) -> str: ...


def hand_over(
    conversation: Conversation, services: Services, *, category: str, urgency: str, words: Words | None = None
) -> TicketOpened | Awaitable[TicketOpened]:
    """Open a ticket with the question, what was tried and found, and why it stopped; or add to the open one.

    With the store's own desk this touches nothing outside, so ticket, step and state change are committed together. A
    desk elsewhere is waited for. `words` are what the customer reads, by default the app's notices; where they do not
    name the ticket's number, it is put behind them. Raises DeskUnavailable where the desk goes on failing.
    """
    wanted = draft(
        conversation, category=category, urgency=urgency, at=services.clock.now(), rehearsal=services.rehearsal
    )
    filed = services.open_ticket(wanted)
    words = words or services.notices.ticket
    return _opened(wanted, filed, words) if isinstance(filed, Ticket) else _when_filed(wanted, filed, words)


async def _when_filed(wanted: Ticket, filed: Awaitable[Ticket], words: Words) -> TicketOpened:
    return _opened(wanted, await filed, words)


def _opened(wanted: Ticket, filed: Ticket, words: Words) -> TicketOpened:
    """The event that tells the number; where the ticket was open already, with what this run adds to it."""
    if filed.key == wanted.key and filed.summary == wanted.summary:
        return TicketOpened(ticket=filed, notice=_with_number(words(filed), filed))
    told = _with_number(words(filed, added=True), filed)
    return TicketOpened(ticket=filed, notice=told, added=True, note=wanted.summary)


def _with_number(said: str, ticket: Ticket) -> str:
    return said if ticket.ticket_id in said else f"{said} ({ticket.ticket_id})"
