"""One piece of work on one conversation: under one lease, from an event to rest.

    while not conversation.resting:
        event = work[conversation.state](conversation, services)
        conversation = workflow.advance(conversation, event)
        await store.append(conversation)

All that is decided is made durable before anything else happens: before work that acts on the world, and before anybody
is told. Work that touches nothing outside is committed together with the step before it. Whoever loses a race
(ConversationMoved) drops what it has and never overwrites.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from haru_fsm import leases
from haru_fsm.conversation import (
    ApprovalDecided,
    Conversation,
    Event,
    MessageHeld,
    MessageReceived,
    Resumed,
    Step,
    TicketClosed,
    ToolsExecuted,
    held_messages,
)
from haru_fsm.definition import carried, misfit
from haru_fsm.equipping import Parts, equipped
from haru_fsm.errors import (
    ConversationMoved,
    DeskUnavailable,
    FormatTooNew,
    HaruError,
    JournalDamaged,
    StoreError,
    UnknownCustomer,
)
from haru_fsm.given_events import no_event
from haru_fsm.ledger import doubts
from haru_fsm.machine import CHANGED
from haru_fsm.resuming import taken_up
from haru_fsm.runs import Piece, Run, run_of
from haru_fsm.services import Services
from haru_fsm.stores import Record

APPEND_ATTEMPTS = 3
APPEND_PAUSE_S = 0.1
log = logging.getLogger(__name__)

Watcher = Callable[[Step | Piece], None]
E = TypeVar("E", bound=Event)


class Worker:
    """One piece of work on one conversation, under one lease."""

    def __init__(self, parts: Parts, conversation: Conversation, record: Record | None, watch: Watcher | None) -> None:
        self._parts = parts
        self._conversation = conversation
        self._record = record
        self._watch = watch
        self._saved = conversation.seq
        """The last step that is durable."""
        self._ended: Conversation | None = None
        """Where the run has ended, or paused, before a kept message begins the next one."""
        self._over = record.summary.owner if record is not None else None
        """Whose void claim the first append replaces."""
        self._owner = leases.take()
        self._services: Services | None = None

    async def begin(self, message: MessageReceived) -> Run:
        """Take the message, and drive its run to its ending."""
        return await self._working(lambda: self._receive(message))

    async def resume(self) -> Run:
        """Journal that the run is taken up again, and drive it to its ending."""
        return await self._working(self._take_up)

    async def take(self, *events: Event) -> Run:
        """Take events from outside that lead to rest, or on to more work.

        Where the app was changed meanwhile, a decision about a run that no longer fits takes it to a person, and a
        ticket is closed whatever the table says.
        """

        async def take() -> None:
            for event in events:
                if isinstance(event, ApprovalDecided) and (why := await self._unfit_for(event)) is not None:
                    return self._strand(event, f"the app was changed while the run waited: {why}")
                if isinstance(event, TicketClosed) and not self._accepts(event):
                    self._hold(event)
                else:
                    self._advance(event)

        return await self._working(take)

    async def hold(self, message: MessageHeld) -> None:
        """Keep a message that came in a pause, for the next run. Raises ConversationMoved where it certainly was not
        kept."""

        async def hold() -> None:
            self._hold(message)

        before = self._conversation.seq
        try:
            await self._working(hold)
        except ConversationMoved:
            now = await self._parts.store.load(self._conversation.conversation_id)
            if now is None or now.steps[before : before + 1] != self._conversation.steps[before:]:
                raise

    def _hold(self, event: Event) -> None:
        self._conversation = self._parts.app.workflow.hold(self._conversation, self._stamped(event))

    def _accepts(self, event: Event) -> bool:
        return self._parts.app.workflow.accepts(self._conversation.state, type(event))

    async def _changed(self) -> tuple[str, str | None]:
        """The digest of the definition where the run carries another one, else ''; and why the run cannot go on under
        it, or None."""
        conversation, app = self._conversation, self._parts.app
        services = await self._equipped(conversation.run)
        if services.gone:
            return "", _gone(services) if conversation.state not in app.workflow.opens_tickets else None
        digest, before = app.definition(services.tools), carried(conversation)
        changed = before not in ("", digest)
        why = misfit(conversation, app.workflow, services.tools, services.ledger.entries, changed=changed)
        return digest if changed else "", why

    async def _unfit_for(self, decision: ApprovalDecided) -> str | None:
        """Why the run cannot go on with this decision, or None."""
        _, why = await self._changed()
        if why is None and not self._accepts(decision):
            return f"it no longer has a row for {decision.kind} in the state {self._conversation.state}"
        return why

    async def _working(self, first: Callable[[], Awaitable[None]]) -> Run:
        """Do the first thing, then drive the run to rest. Whatever happens, the lease is given back."""
        try:
            await first()
            await self._drive()
        except DeskUnavailable as error:
            # The run waits in its state; the customer reads that a number will follow, and none that is made up.
            log.warning("%s", error)
            await self._let_go()
        except BaseException:
            await self._let_go()
            raise
        finally:
            leases.give_back(self._owner)
        return run_of(self._ended or self._conversation, self._parts.app.notices)

    async def _let_go(self) -> None:
        """Whatever went wrong, the next worker need not wait for this one's lease to run out."""
        with suppress(HaruError):
            await asyncio.shield(self._parts.store.release(self._conversation.conversation_id, self._owner))

    async def _drive(self) -> None:
        """Drive this run to rest, and after it the runs that kept messages begin. Every certified workflow comes to
        rest."""
        await self._drive_to_rest()
        self._ended = self._conversation
        while (message := self._kept_message()) is not None:
            # Committed together with the ending of the run before it: a kept message is never left behind.
            self._services = None
            await self._receive(message)
            await self._save()
            self._record, self._services = await self._parts.store.load(self._conversation.conversation_id), None
            await self._drive_to_rest()
        await self._save()

    def _kept_message(self) -> MessageReceived | None:
        """The message that begins the next run, where the last one has ended.

        It stays kept where the table lets no message in: it must not hold back the ending before it.
        """
        conversation = self._conversation
        if conversation.paused or not self._parts.app.workflow.lets_in(conversation.state):
            return None
        held = held_messages(conversation.steps)
        if not held:
            return None
        seq, message = held[0]
        return MessageReceived(text=message.text, message_id=message.message_id, held=seq)

    async def _drive_to_rest(self) -> None:
        workflow, clock = self._parts.app.workflow, self._parts.clock
        while not self._conversation.resting:
            services = await self._equipped(self._conversation.run)
            if services.gone and self._conversation.state not in workflow.opens_tickets:
                raise UnknownCustomer(services.gone)  # just now; whoever takes it up hands it over
            began = clock.monotonic()
            work = workflow.work[self._conversation.state]
            outcome = work(self._conversation, services)
            event = await self._act(outcome) if inspect.isawaitable(outcome) else outcome
            if not isinstance(event, Event):
                raise no_event(self._conversation.state, event)
            self._advance(event, took_ms=round((clock.monotonic() - began) * 1000))

    async def _act(self, outcome: Awaitable[Event]) -> Event:
        """Work that acts on the world: what was decided before is made durable first."""
        try:
            await self._save()
        except BaseException:
            if inspect.iscoroutine(outcome):
                outcome.close()
            raise
        return await outcome

    def _advance(self, event: Event, took_ms: int = 0) -> None:
        event = self._stamped(event, took_ms)
        if isinstance(event, ToolsExecuted) and self._services is not None:
            ticket = self._services.filed(self._conversation, event)
            event = event.model_copy(update={"ticket": ticket}) if ticket is not None else event
        self._conversation = self._parts.app.workflow.advance(self._conversation, event)

    def _stamped(self, event: E, took_ms: int = 0) -> E:
        stamp: dict[str, object] = {"at": round(self._parts.clock.now(), 3)}
        if took_ms:
            stamp["took_ms"] = took_ms
        return event.model_copy(update=stamp)

    async def _receive(self, message: MessageReceived) -> None:
        """A new run, which carries the digest of what it begins under."""
        services = await self._equipped(self._conversation.run + 1)
        message = message.model_copy(update={"definition": self._parts.app.definition(services.tools)})
        if services.gone:  # whoever asks now is known; who has asked in a pause, and was promised an answer, may not be
            self._strand(message, _gone(services))
        elif self._conversation.state in self._parts.app.workflow.states:
            self._advance(message)
        else:
            self._strand(message, f"it no longer has the state {self._conversation.state}")

    async def _take_up(self) -> None:
        """Journal that the run is taken up again. This also takes the lease, whatever the table says of `resumed`."""
        conversation, app = self._conversation, self._parts.app
        digest, why = await self._changed()
        services = await self._equipped(conversation.run)
        facts: dict[str, object] = {"worker": f"{leases.this_host()}:{os.getpid()}"}
        facts |= {"definition": digest} if digest else {}
        begun = tuple(entry.call for entry in doubts(services.ledger.entries.values(), run=conversation.run))
        facts |= {"begun": begun} if begun else {}
        event = Resumed.model_validate(facts)
        if why is not None:
            self._strand(event, f"the app was changed while the run was open: {why}")
        else:
            limit = app.limits.max_resumes
            self._conversation = taken_up(app.workflow, conversation, self._stamped(event), max_resumes=limit)

    def _strand(self, event: Event, because: str) -> None:
        """A run that does not fit the changed app goes to a person."""
        workflow = self._parts.app.workflow
        self._conversation = workflow.strand(self._conversation, self._stamped(event), CHANGED, because)

    async def _save(self) -> None:
        """Make everything durable that was decided since the last time, in one append; then show it."""
        conversation = self._conversation
        if conversation.seq == self._saved:
            return
        await self._append(conversation)
        new = conversation.steps[-(conversation.seq - self._saved) :]
        self._saved, self._over = conversation.seq, None
        if self._watch is not None:
            for step in new:
                self._watch(step)

    async def _append(self, conversation: Conversation) -> None:
        """One append; a store that fails is asked again a few times. What was stored after all shows as moved."""
        attempt = 0
        while True:
            try:
                return await self._parts.store.append(
                    conversation,
                    expected_seq=self._saved,
                    owner=self._owner,
                    over=self._over,
                    lease_s=self._parts.app.limits.lease_s,
                )
            except (ConversationMoved, JournalDamaged, FormatTooNew):
                raise
            except StoreError:
                attempt += 1
                if attempt == APPEND_ATTEMPTS:
                    raise
                await self._parts.clock.sleep(APPEND_PAUSE_S * attempt)

    async def _equipped(self, run: int) -> Services:
        """What the work of this run may use; made once, for tools are worth making once."""
        if self._services is None:
            watch = self._watch
            on_text = (lambda text: watch(Piece(text))) if watch is not None else None
            self._services = await equipped(self._parts, self._conversation, self._record, run, on_text)
        return self._services


def _gone(services: Services) -> str:
    return f"it no longer knows the customer ({services.gone})"
