"""Tickets: cases for a person. They are drafted and numbered here.

The engine's own desk is the store: the event `ticket_opened` *is* the filing, committed together with the step that
led to it. A desk elsewhere is called before that event; it is handed a ticket with a key and must file one ticket per
key, however often it is asked. Numbers are minted here, from the key alone, so asking again mints the same number.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from haru_fsm.conversation import Conversation, ResultStatus, Resumed, Ticket, ToolResult
from haru_fsm.errors import NotDone
from haru_fsm.json_safe import safe_text
from haru_fsm.ticket_summary import summarise
from haru_fsm.toolbox.threads import THREADS

if TYPE_CHECKING:
    from haru_fsm.session import Session
    from haru_fsm.stores import Store


class TicketDesk(Protocol):
    """Where a person looks for tickets. One ticket per `ticket.key`, however often it is asked; returns that one.

    It may give the ticket another number. Asked again under a key that it has, with another summary, it may add that
    to the ticket: it is what a later run of the conversation brought.
    """

    def open(self, ticket: Ticket) -> Ticket | Awaitable[Ticket]: ...


class StoreDesk:
    """The desk of one conversation: the store's own, or one elsewhere of which the store keeps a copy.

    Opening at the store's own touches nothing: the journal's `ticket_opened` files the ticket. `open_ticket` is the one
    that the conversation has already. `time_s` bounds each call of a desk elsewhere.
    """

    def __init__(
        self,
        store: Store,
        open_ticket: Ticket | None = None,
        *,
        elsewhere: TicketDesk | None = None,
        time_s: float = 10.0,
    ) -> None:
        self._store = store
        self._open = open_ticket
        self._elsewhere = elsewhere
        self._time_s = time_s
        self._loop = asyncio.get_running_loop() if elsewhere is not None else None

    def open(self, ticket: Ticket) -> Ticket | Awaitable[Ticket]:
        """The ticket that this conversation has, or this one. A desk elsewhere is asked, once; whatever it raises or
        answers beside the point comes out as an exception, and then nobody knows whether it has the ticket."""
        return self._ask(ticket) if self._elsewhere is not None else self._open or ticket

    def file(self, session: Session, category: str, urgency: str, summary: str) -> Ticket:
        """File a ticket at once, for a tool that the model called. Blocking. A run that has one adds to it.

        With an asynchronous desk elsewhere, call it from a plain function: in the event loop it raises NotDone.
        """
        key = ticket_key(session.conversation_id, session.run)
        ticket = Ticket(
            ticket_id=mint(key),
            key=key,
            conversation_id=session.conversation_id,
            customer_id=session.customer_id,
            category=safe_text(category),
            urgency=safe_text(urgency),
            summary=safe_text(summary),
            created_at=session.now(),
            rehearsal=session.rehearsal,
        )
        if self._loop is not None:
            ticket = self._ask_blocking(self._loop, ticket)
        self._open = self._store.file_ticket(ticket)
        return self._open

    def filed(self, run_key: str, results: Iterable[ToolResult]) -> Ticket | None:
        """The ticket that these calls of a run have filed or added to: an open one of this run, or one whose number
        an effect among them has told. Read from what is stored, so a crash in between loses nothing."""
        ticket = self._open
        if ticket is None:
            return None
        told = (result.response for result in results if result.effect and result.status is ResultStatus.DONE)
        return ticket if ticket.key == run_key or any(ticket.ticket_id in str(said) for said in told) else None

    def _ask_blocking(self, loop: asyncio.AbstractEventLoop, ticket: Ticket) -> Ticket:
        with suppress(RuntimeError):
            if asyncio.get_running_loop() is loop:
                raise NotDone("The desk cannot be waited for in the event loop. Make the tool a plain function.")
        return asyncio.run_coroutine_threadsafe(self._ask(ticket), loop).result()

    async def _ask(self, ticket: Ticket) -> Ticket:
        assert self._elsewhere is not None
        known = self._open
        if known is not None:
            ticket = ticket.model_copy(update={"key": known.key, "ticket_id": known.ticket_id})
        async with asyncio.timeout(self._time_s):
            filed: Any = await _called(self._elsewhere.open, ticket)
        if not isinstance(filed, Ticket) or filed.key != ticket.key or not filed.ticket_id.strip():
            raise ValueError(f"the desk was asked for the ticket of {ticket.key} and gave {filed!r}")
        # What the desk has made of the summary is its own: what was said is kept here.
        return known or filed.model_copy(update={"summary": ticket.summary})


async def _called(open_: Callable[[Ticket], Any], ticket: Ticket) -> Any:
    """What a desk answers. One that blocks does so in a thread that nobody's exit waits for."""
    if inspect.iscoroutinefunction(open_):
        return await open_(ticket)
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[Any] = loop.create_future()

    def tell(answer: Any, error: BaseException | None) -> None:
        if not answered.done():
            answered.set_result(answer) if error is None else answered.set_exception(error)

    def work() -> None:
        answer, error = None, None
        try:
            answer = open_(ticket)
        except Exception as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, answer, error)

    job = THREADS.submit(work)
    try:
        answer = await answered
    except asyncio.CancelledError:
        THREADS.give_up(job)
        raise
    return await answer if inspect.isawaitable(answer) else answer


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
