"""Tickets: cases for a person. They are drafted and numbered here, and so is the notice that tells their number.

The engine's own desk is the store: the event `ticket_opened` *is* the filing, committed together with the step that
led to it. A desk elsewhere is called before that event; it is handed a ticket with a key and must file one ticket per
key, however often it is asked. Numbers are minted here, from the key alone, so asking again mints the same number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from haru_fsm.conversation import Conversation, Resumed, Ticket
from haru_fsm.handover import summarise

if TYPE_CHECKING:
    from haru_fsm.session import Session
    from haru_fsm.stores import Store


class TicketDesk(Protocol):
    """Where a person looks for tickets. One ticket per `ticket.key`, however often it is asked; returns that one."""

    def open(self, ticket: Ticket) -> Ticket | Awaitable[Ticket]: ...


class StoreDesk:
    """The desk inside the store. Opening touches nothing: the journal's `ticket_opened` files the ticket."""

    def __init__(self, store: Store, open_ticket: Ticket | None = None) -> None:
        self._store = store
        self._open = open_ticket

    def open(self, ticket: Ticket) -> Ticket:
        """The ticket that this conversation has, or this one."""
        return self._open or ticket

    def file(self, session: Session, category: str, urgency: str, summary: str) -> Ticket:
        """File a ticket at once, for a tool that the model called. Blocking. A run that has one adds to it."""
        key = ticket_key(session.conversation_id, session.run)
        self._open = self._store.file_ticket(
            Ticket(
                ticket_id=mint(key),
                key=key,
                conversation_id=session.conversation_id,
                customer_id=session.customer_id,
                category=category,
                urgency=urgency,
                summary=summary,
                created_at=session.now(),
                rehearsal=session.rehearsal,
            )
        )
        return self._open


def local_desk(folder: Path) -> StoreDesk:
    """A desk over the database of a Haru app's `memory_store`, for tools that are used by hand."""
    from haru_fsm.stores.sqlite import SQLiteStore

    return StoreDesk(SQLiteStore(folder / "haru.db"))


def ticket_key(conversation_id: str, run: int) -> str:
    """What a ticket is opened for: one run of one conversation."""
    return f"{conversation_id}/{run}"


def mint(key: str, salt: int = 0) -> str:
    """A ticket's number: ten digits from its key, so that asking again mints the same. `salt` where one is taken."""
    digest = hashlib.blake2b(f"{key}#{salt}".encode(), digest_size=8, person=b"haru-ticket").digest()
    return f"HT-{int.from_bytes(digest) % 10**10:010d}"


# --------------------------------------------------------------------------- what a ticket says


def draft(conversation: Conversation, *, category: str, urgency: str, at: float, rehearsal: bool = False) -> Ticket:
    """The ticket for the current run: the question, what was tried, what was found, and why it stopped."""
    key = ticket_key(conversation.conversation_id, conversation.run)
    # A number that turns out to be taken fails the append; the run is resumed then, and mints another.
    resumes = sum(isinstance(step.event, Resumed) for step in conversation.run_steps)
    return Ticket(
        ticket_id=mint(key, resumes),
        key=key,
        conversation_id=conversation.conversation_id,
        customer_id=conversation.customer_id,
        category=category,
        urgency=urgency,
        summary=summarise(conversation),
        created_at=at,
        rehearsal=rehearsal,
    )


# --------------------------------------------------------------------------- what the customer reads


def notice(ticket: Ticket, *, added: bool = False) -> str:
    """The engine's own words to the customer when a person takes over. Never written by a model."""
    if added:
        return (
            f"남겨 주신 내용을 이미 접수된 상담(접수 번호 {ticket.ticket_id})에 추가했습니다. "
            "담당자가 확인한 뒤 답변드리겠습니다."
        )
    return (
        "죄송합니다. 바로 해결해 드리지 못해 상담 담당자에게 전달했습니다. "
        f"접수 번호는 {ticket.ticket_id}입니다. 담당자가 확인한 뒤 답변드리겠습니다."
    )


HOLDING_NOTICE = (
    "죄송합니다. 바로 해결해 드리지 못해 상담 담당자에게 전달하고 있습니다. "
    "접수가 끝나는 대로 접수 번호를 알려 드리겠습니다."
)
"""What the customer reads while a desk is out of reach: it names no number, because there is none yet."""


def when(at: float) -> str:
    """A time for people, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
