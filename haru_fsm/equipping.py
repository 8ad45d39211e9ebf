"""What the work of a run may use, put together: tools bound to the customer, the ledger, the desk, the limits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from haru_fsm.app import App
from haru_fsm.clock import Clock
from haru_fsm.conversation import Conversation
from haru_fsm.errors import JournalDamaged, UnknownCustomer
from haru_fsm.late import LateWrites
from haru_fsm.ledger import Ledger, inherited
from haru_fsm.models import Model
from haru_fsm.services import Services
from haru_fsm.stores import LedgerEntry, Record, Store
from haru_fsm.tickets import StoreDesk, TicketDesk
from haru_fsm.toolbox import Toolbox


@dataclass(frozen=True, slots=True)
class Parts:
    """What an engine works with, shared by all its work."""

    app: App
    model: Model
    store: Store
    clock: Clock
    desk: TicketDesk | None = None
    """Where tickets are filed; None: in the store."""
    late: LateWrites = field(default_factory=LateWrites)
    """Writes of outcomes that came after their call was given up."""


async def equipped(
    parts: Parts, conversation: Conversation, record: Record | None, run: int, on_text: Callable[[str], None] | None
) -> Services:
    """The services for one run of this conversation. `record` is what is stored of it; None where nothing is, yet.

    Where the app no longer knows the customer, they say so (`gone`) and have no tools.
    """
    before = await _done_before(parts.store, conversation.parent)
    # A rehearsal files its tickets in the store, marked as such, and never with somebody else's desk.
    desk = StoreDesk(
        parts.store,
        record.open_ticket if record is not None else None,
        elsewhere=None if conversation.rehearsal else parts.desk,
        time_s=parts.app.limits.tool_timeout_s,
    )
    try:
        tools, gone = tools_for(parts.app, conversation, run, desk=desk, clock=parts.clock), ""
    except UnknownCustomer as error:
        tools, gone = Toolbox([], parts.app.limits), str(error)
    return Services(
        model=parts.model,
        tools=tools,
        gone=gone,
        ledger=Ledger(
            parts.store,
            conversation.conversation_id,
            dict(record.ledger) if record is not None else {},
            parts.late,
            inherited(conversation.steps, before),
        ),
        desk=desk,
        clock=parts.clock,
        limits=parts.app.limits,
        system_prompt=parts.app.system_prompt,
        notices=parts.app.notices,
        rehearsal=conversation.rehearsal,
        rehearsed=before,
        on_text=on_text,
    )


def tools_for(app: App, conversation: Conversation, run: int, *, desk: StoreDesk, clock: Clock) -> Toolbox:
    """The app's tools for a session of the conversation's customer. Raises UnknownCustomer."""
    session = app.session(
        conversation.customer_id,
        conversation_id=conversation.conversation_id,
        run=run,
        desk=desk,
        clock=clock,
        rehearsal=conversation.rehearsal,
    )
    return app.toolbox(session)


async def _done_before(store: Store, parent: str | None) -> tuple[LedgerEntry, ...]:
    """What the conversations have done that a fork comes from, the nearest first.

    One that is gone or damaged tells no more, and does not hold up the fork.
    """
    line: dict[str, Record] = {}
    with suppress(JournalDamaged):
        while parent is not None and parent not in line and (record := await store.load(parent)):
            line[parent] = record
            parent = record.summary.parent
    return tuple(entry for record in line.values() for entry in record.ledger.values())
