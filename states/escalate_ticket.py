"""ESCALATE_TICKET: a person takes over, and the customer is told the number."""

from __future__ import annotations

from collections.abc import Awaitable

from haru_fsm.conversation import Conversation, Ticket, TicketOpened
from haru_fsm.services import Services
from haru_fsm.tickets import draft, notice

CATEGORY = "기타"
URGENCY = "보통"


def escalate_ticket(conversation: Conversation, services: Services) -> TicketOpened | Awaitable[TicketOpened]:
    """Open a ticket with the question, what was tried and found, and why it stopped; or add to the open one.

    With the store's own desk this touches nothing outside, so ticket, step and state change are committed together.
    """
    wanted = draft(
        conversation, category=CATEGORY, urgency=URGENCY, at=services.clock.now(), rehearsal=services.rehearsal
    )
    filed = services.open_ticket(wanted)
    return opened(wanted, filed) if isinstance(filed, Ticket) else _when_filed(wanted, filed)


async def _when_filed(wanted: Ticket, filed: Awaitable[Ticket]) -> TicketOpened:
    return opened(wanted, await filed)


def opened(wanted: Ticket, filed: Ticket) -> TicketOpened:
    """The event that tells the number; where the ticket was open already, with what this run adds to it."""
    if filed.key == wanted.key and filed.summary == wanted.summary:
        return TicketOpened(ticket=filed, notice=notice(filed))
    return TicketOpened(ticket=filed, notice=notice(filed, added=True), added=True, note=wanted.summary)
