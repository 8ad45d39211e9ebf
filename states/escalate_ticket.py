"""ESCALATE_TICKET: a person takes over, and the customer is told the number."""

from __future__ import annotations

from collections.abc import Awaitable

from haru_fsm.conversation import Conversation, TicketOpened
from haru_fsm.escalating import hand_over
from haru_fsm.services import Services

CATEGORY = "기타"
URGENCY = "보통"


def escalate_ticket(conversation: Conversation, services: Services) -> TicketOpened | Awaitable[TicketOpened]:
    """Open a ticket with the question, what was tried and found, and why it stopped; or add to the open one."""
    return hand_over(conversation, services, category=CATEGORY, urgency=URGENCY)
