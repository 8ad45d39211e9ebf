"""A person has decided: about a call that waits for them, about how a call in doubt has ended, about a ticket.

What somebody decides is held against the conversation as it stands. Where the conversation has moved at the same moment
it is looked at again: then the decision still fits, or the person is told what has come in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from haru_fsm.approvals import waiting_for
from haru_fsm.conversation import ApprovalDecided, TicketClosed, awaited
from haru_fsm.conversations import Conversations
from haru_fsm.errors import ConversationBusy, ConversationMoved, SettingsError, UnknownCall, UnknownTicket
from haru_fsm.json_safe import json_safe, safe_text
from haru_fsm.runs import Run
from haru_fsm.stores import Outcome, Record
from haru_fsm.visible import is_blank
from haru_fsm.worker import Watcher


async def decide(
    conversations: Conversations, conversation_id: str, call: str, decision: Mapping[str, Any], watch: Watcher | None
) -> Run:
    """Approve or deny a waiting call, and go on with its run. `decision` holds what ApprovalDecided says of it."""
    while True:
        record = await conversations.at_rest(conversation_id, watch)
        asked = waiting_for(conversation_id, record.steps, call)
        if conversations.is_late(record):
            with suppress(ConversationMoved):
                await conversations.expire(record, watch)
            continue
        decided = ApprovalDecided(call=call, digest=asked.digest, **decision)
        worker = conversations.worker(record, watch)
        try:
            return await worker.take(decided)
        except ConversationMoved as moved:
            now = await conversations.load(conversation_id)
            if asked in awaited(now.steps):
                continue  # a message came in between; the call still waits
            raise ConversationMoved(
                f"Conversation {conversation_id}: somebody else decided about call {call}, or works on it, at the "
                "same moment. Look with `haru show`."
            ) from moved


async def settle(conversations: Conversations, conversation_id: str, call: str, outcome: Outcome) -> Outcome:
    """Write down how a call in doubt has ended, as somebody has found out. Returns what was written."""
    parts, record = conversations.parts, await conversations.load(conversation_id)
    if call not in record.ledger:
        raise UnknownCall(f"Conversation {conversation_id} has no call {call} in doubt. `haru show` lists them.")
    at = outcome.at or round(parts.clock.now(), 3)
    outcome = outcome.model_copy(update={"response": json_safe(outcome.response), "at": at})
    if not await parts.store.note(conversation_id, call, outcome):
        raise UnknownCall(f"Conversation {conversation_id}: how call {call} ended is known already. It stays so.")
    return outcome


async def close_ticket(conversations: Conversations, ticket_id: str, reply: str) -> Run:
    """Put a person's reply into the conversation of their ticket, which closes it."""
    reply = safe_text(reply).strip()
    if is_blank(reply):
        raise SettingsError("The reply is empty. Say what the customer is to read.")
    closed = TicketClosed(ticket_id=ticket_id, reply=reply)
    while True:
        record = await _with_open_ticket(conversations, ticket_id)
        try:
            return await conversations.worker(record, None).take(closed)
        except ConversationMoved:
            now = await conversations.load(record.summary.conversation_id)
            if now.summary.seq == record.summary.seq:
                raise
            # A message came at the same moment, or somebody else has closed it: looked at again, that is told.


async def _with_open_ticket(conversations: Conversations, ticket_id: str) -> Record:
    """The resting conversation of an open ticket. Raises UnknownTicket, ConversationBusy."""
    stored = await conversations.parts.store.tickets(open_only=True)
    ticket = next((one.ticket for one in stored if one.ticket.ticket_id == ticket_id), None)
    if ticket is None:
        raise UnknownTicket(f"There is no open ticket {ticket_id}. `haru tickets` lists them.")
    record = await conversations.load(ticket.conversation_id)
    if not record.summary.resting or record.summary.paused:
        raise ConversationBusy(
            f"Conversation {ticket.conversation_id}: a run is still going on. Close the ticket when it has ended."
        )
    return record
