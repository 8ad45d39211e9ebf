"""The conversations of a store: where each stands, who may work on it now, and how it is taken up again.

Here it is decided whose turn it is: whether a run is going on and with whom, and whether its worker is still there. The
work itself is done in `worker.py`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from haru_fsm import leases
from haru_fsm.approvals import expired
from haru_fsm.conversation import Conversation, awaited
from haru_fsm.equipping import Parts
from haru_fsm.errors import ConversationBusy, ConversationMoved
from haru_fsm.runs import Run, kept, run_of
from haru_fsm.stores import Record, known
from haru_fsm.worker import Watcher, Worker

FOLLOW_S = (0.02, 0.5)
"""Seconds between looks at a run that another worker has: the first pause, and the longest."""
RENEWAL_S = 5.0
"""Seconds in which a living worker has surely renewed its lease, however much the machine has to do."""


@dataclass(frozen=True, slots=True)
class Conversations:
    """The conversations that an engine's parts reach."""

    parts: Parts

    async def load(self, conversation_id: str) -> Record:
        """The conversation as it is stored. Raises UnknownConversation, SettingsError (no id), JournalDamaged."""
        return await known(self.parts.store, conversation_id)

    def rebuilt(self, record: Record) -> Conversation:
        """The conversation that a record's steps make under this app."""
        summary, workflow = record.summary, self.parts.app.workflow
        begun = workflow.begin(
            summary.conversation_id, summary.customer_id, parent=summary.parent, rehearsal=summary.rehearsal
        )
        return workflow.replay(begun, record.steps)

    def worker(self, record: Record, watch: Watcher | None) -> Worker:
        """A worker for a conversation that is stored."""
        return Worker(self.parts, self.rebuilt(record), record, watch)

    def newcomer(self, conversation_id: str, customer_id: str, watch: Watcher | None) -> Worker:
        """A worker for a conversation that begins now."""
        return Worker(self.parts, self.parts.app.workflow.begin(conversation_id, customer_id), None, watch)

    # -- whose turn it is

    def is_void(self, record: Record) -> bool:
        """Nobody works on it: its last worker is gone, or has not been heard of for too long."""
        return leases.is_void(record.summary.owner, record.summary.lease_until, self.parts.clock.now())

    def is_late(self, record: Record) -> bool:
        """It waits for an approval whose time is over."""
        return record.summary.paused and bool(expired(awaited(record.steps), self.parts.clock.now()))

    def run_of(self, record: Record, number: int | None = None) -> Run:
        """The run of this number, or the last one, as its customer reads it."""
        return run_of(self.rebuilt(record), self.parts.app.notices, number)

    def kept(self, record: Record, message_id: str | None) -> Run:
        """The run that waits, as whoever wrote in its pause reads it."""
        return kept(self.rebuilt(record), self.parts.app.notices, message_id)

    async def expire(self, record: Record, watch: Watcher | None) -> Run:
        """Deny the calls that nobody has decided about in time, and go on from there. Raises ConversationMoved."""
        denials = expired(awaited(record.steps), self.parts.clock.now())
        return await self.worker(record, watch).take(*denials)

    async def resume(self, conversation_id: str, watch: Watcher | None) -> Run:
        """Carry an unfinished run on to its ending; what rests is returned as it is.

        Raises UnknownConversation, ConversationBusy, ConversationMoved, JournalDamaged, StoreError.
        """
        record = await self.load(conversation_id)
        if self.is_late(record):
            return await self.expire(record, watch)
        if record.summary.resting:
            return self.run_of(record)
        if not await self._is_abandoned(record):
            raise ConversationBusy(
                f"Conversation {conversation_id}: another worker has it ({leases.told(record.summary.owner or '')}). "
                "Nothing was changed."
            )
        return await self.worker(record, watch).resume()

    async def _is_abandoned(self, record: Record) -> bool:
        """Nobody works on it. A lease of a living process of this host may have run out in a moment, where the clock
        was put right or the machine has slept: then it is renewed in the next one, unless that process hangs."""
        if not self.is_void(record):
            return False
        if not leases.lives(record.summary.owner or ""):
            return True
        await self.parts.clock.sleep(RENEWAL_S)
        now = await self.load(record.summary.conversation_id)
        return now.summary.lease_until == record.summary.lease_until

    async def at_rest(self, conversation_id: str, watch: Watcher | None) -> Record:
        """The conversation, after what a dead process has left unfinished. Raises ConversationBusy."""
        record = await self.load(conversation_id)
        if record.summary.resting:
            return record
        await self.resume(conversation_id, watch)
        return await self.load(conversation_id)

    async def follow(self, conversation_id: str, watch: Watcher | None) -> Record | None:
        """Wait until the run that another worker has is over, or take it over where that worker is gone.

        Where it cannot be finished now, for the ticket desk is down, the conversation as it was left.
        """
        pause, longest = FOLLOW_S
        while True:
            record = await self.load(conversation_id)
            if record.summary.resting:
                return None
            if self.is_void(record):
                with suppress(ConversationMoved, ConversationBusy):
                    run = await self.resume(conversation_id, watch)
                    if not (run.finished or run.waiting):
                        return await self.load(conversation_id)
            await self.parts.clock.sleep(pause)
            pause = min(longest, pause * 1.5)
