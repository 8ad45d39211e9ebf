"""A customer's message arrives: is it new, what does it find, and what becomes of it?

it began a run already               that run, finished first where it was left unfinished
a run is still going on              refused, unless its worker is gone: then it is finished first
it came in a pause, and was kept     a notice, until its own run has begun
the run waits for a person           kept for the next run
anything else                        it begins a run
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from haru_fsm.conversation import MessageHeld, MessageReceived, is_held
from haru_fsm.conversations import Conversations
from haru_fsm.errors import ConversationBusy, ConversationMoved, SettingsError, UnknownConversation
from haru_fsm.ids import checked, conversation_id_for
from haru_fsm.json_safe import safe_text
from haru_fsm.runs import Run
from haru_fsm.stores import Record
from haru_fsm.visible import is_blank
from haru_fsm.worker import Watcher

MESSAGE_CHARS = 20_000
"""Characters that one message of a customer may have."""


def received(text: str, message_id: str | None = None) -> MessageReceived:
    """What a customer has written, as the journal keeps it.

    Raises SettingsError for what is no text, shows nothing or is too long, and for an id that cannot be one.
    """
    if not isinstance(text, str):
        raise SettingsError(f"The message is of type {type(text).__name__}, which is no text. Give it as a str.")
    text = safe_text(text)
    if is_blank(text):
        raise SettingsError("The message is empty. Say what the customer wrote.")
    if len(text) > MESSAGE_CHARS:
        raise SettingsError(
            f"The message has {len(text):,} characters; at most {MESSAGE_CHARS:,} are taken. Shorten it."
        )
    if message_id is not None:
        checked("message's id", message_id)
    return MessageReceived(text=text, message_id=message_id)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message of one customer, for one conversation, which need not be there yet, or is `new`."""

    conversations: Conversations
    message: MessageReceived
    customer_id: str
    conversation_id: str
    watch: Watcher | None = None
    new: bool = False
    """Its conversation has an id that was made up for it, so nobody need look for it."""
    salt: int | None = None
    """Its conversation has an id that was made of its own, so often anew since another one had it already."""

    async def answered(self) -> Run:
        """The run that this message comes to. What moves meanwhile is looked at again."""
        while True:
            record = None if self.new else await self.conversations.parts.store.load(self.conversation_id)
            run = await (self._begun() if record is None else self._met(record))
            if run is not None:
                return run

    async def _met(self, record: Record) -> Run | None:
        """What the message comes to in a conversation that is there; None where that has to be looked at again."""
        if self.salt is not None and not self._has_begun(record):
            return await first_arrival(
                self.conversations, self.message, self.customer_id, self.watch, self.salt + 1
            ).answered()
        if record.summary.customer_id != self.customer_id:
            raise UnknownConversation(
                f"There is no conversation {self.conversation_id} of customer {self.customer_id}."
            )
        known = run_with(record, self.message.message_id)
        if not record.summary.resting:
            return await self._finished_first(record, known)
        if self.conversations.is_late(record):
            with suppress(ConversationMoved):
                await self.conversations.expire(record, self.watch)
            return None
        if known is not None:
            return self.conversations.run_of(record, known)
        if is_held(record.steps, self.message.message_id):
            return await self._kept(record)
        if record.summary.paused:
            return await self._held(record)
        return await self._begun(record)

    def _has_begun(self, record: Record) -> bool:
        """Whether it was this message that the conversation began with."""
        first = record.steps[0].event
        same = isinstance(first, MessageReceived) and first.message_id == self.message.message_id
        return same and record.summary.customer_id == self.customer_id

    async def _begun(self, record: Record | None = None) -> Run | None:
        """The run that the message begins; None where somebody else has begun one with it in this very moment."""
        if record is None:
            worker = self.conversations.newcomer(self.conversation_id, self.customer_id, self.watch)
        else:
            worker = self.conversations.worker(record, self.watch)
        try:
            return await worker.begin(self.message)
        except ConversationMoved:
            if self.message.message_id is None:
                raise
            return None

    # -- a run is going on

    async def _finished_first(self, record: Record, known: int | None) -> Run | None:
        """Wait for a run that is this message's own or whose worker is gone, and then look again."""
        if known != record.summary.run and not self.conversations.is_void(record):
            raise ConversationBusy(
                f"Conversation {self.conversation_id}: a run is still going on. Wait for it, or ask again with the "
                "same message_id later; nothing was changed."
            )
        left = await self.conversations.follow(self.conversation_id, self.watch)
        return None if left is None else self._unfinished(left)

    def _unfinished(self, left: Record) -> Run:
        """What a message gets where the last run waits for a desk that is down. Raises ConversationBusy."""
        known = run_with(left, self.message.message_id)
        if known is not None:
            return self.conversations.run_of(left, known)
        if is_held(left.steps, self.message.message_id):
            return self.conversations.kept(left, self.message.message_id)
        raise ConversationBusy(
            f"Conversation {self.conversation_id}: its last run waits for the ticket desk, which could not "
            "be reached. This message was not taken; send it again later."
        )

    # -- a run waits for a person

    async def _held(self, record: Record) -> Run | None:
        """Keep the message for the next run; None where the pause ended in this very moment."""
        held = MessageHeld(text=self.message.text, message_id=self.message.message_id)
        try:
            await self.conversations.worker(record, self.watch).hold(held)
        except ConversationMoved:
            return None
        now = await self.conversations.load(self.conversation_id)
        return self.conversations.kept(now, self.message.message_id)

    async def _kept(self, record: Record) -> Run | None:
        """The message was kept in a pause, and has begun no run yet."""
        if record.summary.paused or not self.conversations.parts.app.workflow.lets_in(record.summary.state):
            return self.conversations.kept(record, self.message.message_id)
        with suppress(ConversationMoved):
            # The app had no place for it where the run has ended, and has one now.
            await self.conversations.worker(record, self.watch).take()
        return None


def first_arrival(
    conversations: Conversations, message: MessageReceived, customer_id: str, watch: Watcher | None, salt: int = 0
) -> Arrival:
    """A message with an id, for the conversation that it begins."""
    conversation_id = conversation_id_for(customer_id, message.message_id or "", salt)
    return Arrival(conversations, message, customer_id, conversation_id, watch, salt=salt)


def run_with(record: Record, message_id: str | None) -> int | None:
    """The run that this message began, or None."""
    if message_id is None:
        return None
    for step in record.steps:
        if isinstance(step.event, MessageReceived) and step.event.message_id == message_id:
            return step.run
    return None
