"""The shell around the heart: do the state's work, advance, save; ask, resume, stream.

    while not conversation.resting:
        event = work[conversation.state](conversation, services)
        conversation = workflow.advance(conversation, event)
        await store.append(conversation)

All that is decided is made durable before anything else happens: before work that acts on the world, and before anybody
is told. Work that touches nothing outside is committed together with the step before it.

One piece of work holds one lease. Whoever loses a race (ConversationMoved) drops what it has and never overwrites.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from haru_fsm import leases
from haru_fsm.adoption import repaired
from haru_fsm.app import App
from haru_fsm.clock import Clock, SystemClock
from haru_fsm.conversation import (
    Conversation,
    Event,
    HistoryAdopted,
    MessageReceived,
    Resumed,
    Step,
    TicketClosed,
    content_text,
    self_contained,
)
from haru_fsm.errors import (
    ConversationBusy,
    ConversationMoved,
    DeskUnavailable,
    FormatTooNew,
    HaruError,
    JournalDamaged,
    SettingsError,
    StoreError,
    UnknownCall,
    UnknownConversation,
    UnknownTicket,
)
from haru_fsm.execution import Ledger
from haru_fsm.json_safe import safe_text
from haru_fsm.models import Model
from haru_fsm.runs import Piece, Run, run_of
from haru_fsm.services import Services
from haru_fsm.stores import LedgerEntry, Outcome, Record, Store
from haru_fsm.tickets import StoreDesk, TicketDesk

MESSAGE_CHARS = 20_000
"""Characters that one message of a customer may have."""
FOLLOW_S = (0.02, 0.5)
"""Seconds between looks at a run that another worker has: the first pause, and the longest."""
RESUME_TOGETHER = 16
APPEND_ATTEMPTS = 3
APPEND_PAUSE_S = 0.1

Watcher = Callable[[Step | Piece], None]


class Engine:
    """Runs an app's workflow on a model and a store. Use it as an async context manager.

    `model` and `store` default to what the settings say (environment, `.env`, `haru.toml` in the app's folder).
    `desk`: where tickets are filed; by default the store itself. Raises SettingsError and ModelError for settings
    that cannot be used.
    """

    def __init__(
        self,
        app: App,
        *,
        model: Model | None = None,
        store: Store | None = None,
        desk: TicketDesk | None = None,
        clock: Clock | None = None,
    ) -> None:
        if model is None or store is None:
            from haru_fsm.settings import Settings

            settings = Settings.for_app(app)
            model = model if model is not None else settings.make_model(app)
            store = store if store is not None else settings.make_store(app)
        self.app = app
        self.model: Model = model
        self.store: Store = store
        self.clock: Clock = clock if clock is not None else SystemClock()
        self._desk = desk
        self._late: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Write down late outcomes that have arrived, then let go of the store and the model."""
        if self._late:
            await asyncio.wait(self._late)
        await self.store.aclose()
        close = getattr(self.model, "aclose", None)
        if close is not None:
            await close()

    # -- from outside

    async def ask(
        self,
        text: str,
        *,
        customer_id: str,
        conversation_id: str | None = None,
        message_id: str | None = None,
        watch: Watcher | None = None,
    ) -> Run:
        """One message of a customer, taken to its ending: an answer, or a ticket whose number is told.

        The same `message_id` again gives the same run, whoever asks and however often. A run that a dead process has
        left unfinished is finished first.

        Raises SettingsError (an empty or too long message), UnknownCustomer, UnknownConversation (it is another
        customer's), ConversationBusy (a run is going on), StoreError.
        """
        message = self._message(text, message_id)
        self.app.session(customer_id)
        conversation_id = conversation_id or _conversation_for(customer_id, message_id)
        while True:
            record = await self.store.load(conversation_id)
            if record is not None and record.summary.customer_id != customer_id:
                raise UnknownConversation(f"There is no conversation {conversation_id} of customer {customer_id}.")
            known = _run_with(record, message_id)
            if record is not None and not record.summary.resting:
                if known == record.summary.run or self._void(record):
                    await self._follow(conversation_id, watch)
                    continue
                raise ConversationBusy(
                    f"Conversation {conversation_id}: a run is still going on. Wait for it, or ask again with the same "
                    "message_id later; nothing was changed."
                )
            if record is not None and known is not None:
                return run_of(self._rebuilt(record), known)
            worker = self._worker(record, conversation_id, customer_id, watch)
            try:
                return await worker.begin(message)
            except ConversationMoved:
                if message_id is None:
                    raise
                # Another worker has begun in this very moment; if it is the same message, its run is ours.

    async def resume(self, conversation_id: str, *, watch: Watcher | None = None) -> Run:
        """Carry an unfinished run on to its ending; a conversation at rest is returned as it is.

        Raises UnknownConversation, ConversationBusy (another worker is alive and has it), JournalDamaged, StoreError.
        """
        record = await self._load(conversation_id)
        if record.summary.resting:
            return run_of(self._rebuilt(record))
        if not self._void(record):
            raise ConversationBusy(
                f"Conversation {conversation_id}: another worker has it ({record.summary.owner}). Nothing was changed."
            )
        worker = self._worker(record, conversation_id, record.summary.customer_id, watch)
        return await worker.resume()

    async def resume_all(self, *, watch: Watcher | None = None) -> list[Run | HaruError]:
        """Carry on every unfinished run that no living worker has. What cannot be resumed comes back as its error."""
        together = asyncio.Semaphore(RESUME_TOGETHER)

        async def one(conversation_id: str) -> Run | HaruError | None:
            async with together:
                try:
                    return await self.resume(conversation_id, watch=watch)
                except (ConversationBusy, ConversationMoved):
                    return None
                except HaruError as error:
                    return error

        waiting = await self.store.conversations(unfinished=True)
        ended = await asyncio.gather(*(one(summary.conversation_id) for summary in waiting))
        return [run for run in ended if run is not None]

    async def stream(
        self, text: str, *, customer_id: str, conversation_id: str | None = None, message_id: str | None = None
    ) -> AsyncIterator[Step | Piece | Run]:
        """Like `ask`, as it happens: each step once it is durable, pieces of text as they are written, the run last."""
        seen: asyncio.Queue[Step | Piece | None] = asyncio.Queue()
        asking = asyncio.create_task(
            self.ask(
                text,
                customer_id=customer_id,
                conversation_id=conversation_id,
                message_id=message_id,
                watch=seen.put_nowait,
            )
        )
        asking.add_done_callback(lambda _: seen.put_nowait(None))
        try:
            while (item := await seen.get()) is not None:
                yield item
            yield await asking
        finally:
            if not asking.done():
                asking.cancel()
                with suppress(asyncio.CancelledError):
                    await asking

    async def close_ticket(self, ticket_id: str, reply: str) -> Run:
        """A person's reply enters the conversation and closes the ticket.

        Raises UnknownTicket (also for one that is closed already), ConversationBusy, SettingsError (an empty reply).
        """
        reply = safe_text(reply).strip()
        if not reply:
            raise SettingsError("The reply is empty. Say what the customer is to read.")
        stored = await self.store.tickets(open_only=True)
        ticket = next((one.ticket for one in stored if one.ticket.ticket_id == ticket_id), None)
        if ticket is None:
            raise UnknownTicket(f"There is no open ticket {ticket_id}. `haru tickets` lists them.")
        record = await self._load(ticket.conversation_id)
        if not record.summary.resting:
            raise ConversationBusy(
                f"Conversation {ticket.conversation_id}: a run is still going on. Close the ticket when it has ended."
            )
        worker = self._worker(record, ticket.conversation_id, ticket.customer_id, None)
        return await worker.take(TicketClosed(ticket_id=ticket_id, reply=reply))

    async def settle(self, conversation_id: str, call: str, outcome: Outcome) -> None:
        """A person says how a call that is in doubt has ended. The model reads it before its next request.

        `call` is `seq.position` of the request. Raises UnknownCall when there is no such call, or when how it ended
        is known already: the first outcome stays.
        """
        record = await self._load(conversation_id)
        entry = record.ledger.get(call)
        if entry is None or entry.started is None:
            raise UnknownCall(f"Conversation {conversation_id} has no call {call} in doubt. `haru show` lists them.")
        if not await self.store.note(conversation_id, call, outcome):
            raise UnknownCall(f"Conversation {conversation_id}: how call {call} ended is known already. It stays so.")

    async def fork(self, conversation_id: str, *, at: int, live: bool = False, watch: Watcher | None = None) -> Run:
        """A new conversation that shares the first `at` steps, carried on to rest from there.

        It is a rehearsal: effects that the parent's ledger knows are answered from it, others are refused, and its
        tickets are marked. `live` lifts this. Raises UnknownConversation, SettingsError (no such step).
        """
        record = await self._load(conversation_id)
        if not 1 <= at <= len(record.steps):
            raise SettingsError(
                f"Conversation {conversation_id} has steps 1 to {len(record.steps)}; --at {at} is none of them."
            )
        begun = self.app.workflow.begin(
            f"c-{secrets.token_hex(5)}", record.summary.customer_id, parent=conversation_id, rehearsal=not live
        )
        forked = self.app.workflow.replay(begun, tuple(map(self_contained, record.steps[:at])))
        return await self._start(forked, watch)

    async def adopt(self, contents: Iterable[Any], *, customer_id: str, conversation_id: str | None = None) -> Run:
        """Take in a history that another loop has made: Gemini contents, as dictionaries or google-genai objects.

        It is repaired into a valid one. Where its last turn is the customer's, the run that answers it is left
        unfinished: `resume` finishes it. Raises SettingsError (an empty history), UnknownCustomer, ConversationMoved
        (the conversation exists already).
        """
        self.app.session(customer_id)
        history, repairs = repaired(contents)
        if not history:
            raise SettingsError("The history is empty. Give at least one turn.")
        question = None
        if history[-1]["role"] == "user" and (question := content_text(history[-1]).strip()):
            history = history[:-1]
        begun = self.app.workflow.begin(conversation_id or f"c-{secrets.token_hex(5)}", customer_id)
        adopted = HistoryAdopted(contents=history, repairs=repairs, at=round(self.clock.now(), 3))
        conversation = self.app.workflow.adopt(begun, adopted)
        if question:
            conversation = self.app.workflow.advance(conversation, self._message(question, None))
        await self.store.append(conversation, expected_seq=0, owner=None, over=None, lease_s=0)
        return run_of(conversation)

    # -- inside

    async def _start(self, conversation: Conversation, watch: Watcher | None) -> Run:
        """Store a conversation that was made whole, and carry it on to rest."""
        await self.store.append(conversation, expected_seq=0, owner=None, over=None, lease_s=0)
        return await self.resume(conversation.conversation_id, watch=watch)

    def _message(self, text: str, message_id: str | None) -> MessageReceived:
        text = safe_text(text)
        if not text.strip():
            raise SettingsError("The message is empty. Say what the customer wrote.")
        if len(text) > MESSAGE_CHARS:
            raise SettingsError(
                f"The message has {len(text):,} characters; at most {MESSAGE_CHARS:,} are taken. Shorten it."
            )
        return MessageReceived(text=text, message_id=message_id, definition=self.app.definition)

    async def _load(self, conversation_id: str) -> Record:
        record = await self.store.load(conversation_id)
        if record is None:
            raise UnknownConversation(f"There is no conversation {conversation_id}. `haru list` shows those there are.")
        return record

    def _rebuilt(self, record: Record) -> Conversation:
        summary = record.summary
        begun = self.app.workflow.begin(
            summary.conversation_id, summary.customer_id, parent=summary.parent, rehearsal=summary.rehearsal
        )
        return self.app.workflow.replay(begun, record.steps)

    def _void(self, record: Record) -> bool:
        return leases.is_void(record.summary.owner, record.summary.lease_until, self.clock.now())

    async def _follow(self, conversation_id: str, watch: Watcher | None) -> None:
        """Wait until the run that another worker has is over, or take it over where that worker is gone."""
        pause, longest = FOLLOW_S
        while True:
            record = await self._load(conversation_id)
            if record.summary.resting:
                return
            if self._void(record):
                with suppress(ConversationMoved, ConversationBusy):
                    await self.resume(conversation_id, watch=watch)
            await self.clock.sleep(pause)
            pause = min(longest, pause * 1.5)

    def _worker(self, record: Record | None, conversation_id: str, customer_id: str, watch: Watcher | None) -> _Worker:
        if record is None:
            return _Worker(self, self.app.workflow.begin(conversation_id, customer_id), None, watch)
        return _Worker(self, self._rebuilt(record), record, watch)


class _Worker:
    """One piece of work on one conversation, under one lease."""

    def __init__(
        self, engine: Engine, conversation: Conversation, record: Record | None, watch: Watcher | None
    ) -> None:
        self._engine = engine
        self._conversation = conversation
        self._record = record
        self._watch = watch
        self._saved = conversation.seq
        self._over = record.summary.owner if record is not None else None
        self._owner = leases.take()

    async def begin(self, message: MessageReceived) -> Run:
        """Take the message, and drive its run to its ending."""
        return await self._working(lambda: self._advance(message))

    async def resume(self) -> Run:
        """Journal that the run is taken up again, and drive it to its ending."""
        return await self._working(self._take_up)

    async def take(self, event: Event) -> Run:
        """Take an event from outside that leads to rest, or on to more work."""
        return await self._working(lambda: self._advance(event))

    async def _working(self, first: Callable[[], None]) -> Run:
        try:
            first()
            await self._drive()
        except DeskUnavailable:
            # The run waits in its state; the customer reads that a number will follow, and none that is made up.
            await self._let_go()
        except BaseException:
            await self._let_go()
            raise
        finally:
            leases.give_back(self._owner)
        return run_of(self._conversation)

    async def _let_go(self) -> None:
        """Whatever went wrong, the next worker need not wait for this one's lease to run out."""
        with suppress(HaruError):
            await asyncio.shield(self._engine.store.release(self._conversation.conversation_id, self._owner))

    async def _drive(self) -> None:
        """The heart. Ends at rest, which every certified workflow comes to."""
        workflow, clock = self._engine.app.workflow, self._engine.clock
        services: Services | None = None
        while not self._conversation.resting:
            services = services or await self._services()
            began = clock.monotonic()
            work = workflow.work[self._conversation.state]
            outcome = work(self._conversation, services)
            event = await self._act(outcome) if inspect.isawaitable(outcome) else outcome
            self._advance(event, took_ms=round((clock.monotonic() - began) * 1000))
        await self._save()
        if services is not None:
            self._engine._late |= services.ledger.late

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
        stamp: dict[str, object] = {"at": round(self._engine.clock.now(), 3)}
        if took_ms:
            stamp["took_ms"] = took_ms
        event = event.model_copy(update=stamp)
        self._conversation = self._engine.app.workflow.advance(self._conversation, event)

    def _take_up(self) -> None:
        workflow, state = self._engine.app.workflow, self._conversation.state
        event = Resumed(worker=f"{leases.this_host()}:{os.getpid()}", at=round(self._engine.clock.now(), 3))
        if state in workflow.work and workflow.accepts(state, Resumed):
            self._conversation = workflow.advance(self._conversation, event)
        elif state not in workflow.work:
            because = f"the app was changed while the run was open: it no longer has work for the state {state}"
            self._conversation = workflow.strand(self._conversation, event, because)

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
                return await self._engine.store.append(
                    conversation,
                    expected_seq=self._saved,
                    owner=self._owner,
                    over=self._over,
                    lease_s=self._engine.app.limits.lease_s,
                )
            except (ConversationMoved, JournalDamaged, FormatTooNew):
                raise
            except StoreError:
                attempt += 1
                if attempt == APPEND_ATTEMPTS:
                    raise
                await self._engine.clock.sleep(APPEND_PAUSE_S * attempt)

    async def _services(self) -> Services:
        engine, record = self._engine, self._record
        conversation = self._conversation
        known: tuple[LedgerEntry, ...] = ()
        if conversation.rehearsal and conversation.parent is not None:
            parent = await engine.store.load(conversation.parent)
            known = tuple(parent.ledger.values()) if parent is not None else ()
        store_desk = StoreDesk(engine.store, record.open_ticket if record is not None else None)
        session = engine.app.session(
            conversation.customer_id,
            conversation_id=conversation.conversation_id,
            run=conversation.run,
            desk=store_desk,
            clock=engine.clock,
            rehearsal=conversation.rehearsal,
        )
        watch = self._watch
        return Services(
            model=engine.model,
            tools=engine.app.toolbox(session),
            ledger=Ledger(
                engine.store,
                conversation.conversation_id,
                dict(record.ledger) if record is not None else {},
                engine.clock,
            ),
            desk=engine._desk if engine._desk is not None else store_desk,
            clock=engine.clock,
            limits=engine.app.limits,
            system_prompt=engine.app.system_prompt,
            rehearsal=conversation.rehearsal,
            rehearsed=known,
            on_text=(lambda text: watch(Piece(text))) if watch is not None else None,
        )


def _conversation_for(customer_id: str, message_id: str | None) -> str:
    """A new conversation's id. The same first message twice, at the same instant, must come to the same one."""
    if message_id is None:
        return f"c-{secrets.token_hex(5)}"
    return "c-" + hashlib.blake2b(f"{customer_id}\x1f{message_id}".encode(), digest_size=5).hexdigest()


def _run_with(record: Record | None, message_id: str | None) -> int | None:
    """The run that this message began, or None."""
    if record is None or message_id is None:
        return None
    for step in record.steps:
        if isinstance(step.event, MessageReceived) and step.event.message_id == message_id:
            return step.run
    return None
