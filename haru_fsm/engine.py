"""The engine as its users see it: ask, resume, stream, fork, adopt, and what persons decide.

What becomes of a message is worked out in `arrivals.py`, what becomes of a person's decision in `decisions.py`, whose
turn it is in `conversations.py`. The work itself is done in `worker.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from types import TracebackType
from typing import Any, Self

from haru_fsm import decisions
from haru_fsm.adoption import beside_text, repaired
from haru_fsm.app import App
from haru_fsm.arrivals import Arrival, first_arrival, received
from haru_fsm.clock import Clock, SystemClock
from haru_fsm.conversation import Conversation, HistoryAdopted, Step, content_text, self_contained
from haru_fsm.conversations import Conversations
from haru_fsm.equipping import Parts
from haru_fsm.errors import ConversationBusy, ConversationMoved, HaruError, SettingsError, about
from haru_fsm.ids import checked, new_conversation_id
from haru_fsm.json_safe import safe_text
from haru_fsm.models import Model
from haru_fsm.parts_given import refuse_names, refuse_strangers
from haru_fsm.runs import Piece, Run, run_of
from haru_fsm.stores import Outcome, Store, Summary
from haru_fsm.tickets import TicketDesk
from haru_fsm.visible import is_blank
from haru_fsm.worker import Watcher

RESUME_TOGETHER = 16


class Engine:
    """Runs an app's workflow on a model and a store. Use it as an async context manager.

    `model` and `store` default to what the settings say (environment, `.env`, `haru.toml` in the app's folder).
    `desk`: where tickets are filed; by default the store itself. Raises SettingsError and ModelError for settings
    that cannot be used, and AppError for a model or a desk that is none.
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
        refuse_names(app=app, model=model, store=store, desk=desk)
        if model is None or store is None:
            from haru_fsm.settings import Settings

            settings = Settings.for_app(app)
            model = model if model is not None else settings.make_model(app)
            store = store if store is not None else settings.make_store(app.folder)
        refuse_strangers(model=model, desk=desk)
        self.app = app
        self.model: Model = model
        self.store: Store = store
        self.clock: Clock = clock if clock is not None else SystemClock()
        self._parts = Parts(self.app, self.model, self.store, self.clock, desk)
        self._conversations = Conversations(self._parts)
        self._streamed: set[asyncio.Task[Run]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Let go of the store and the model, once the runs that were streamed have ended, whoever still listens, and
        late outcomes that have arrived are written down."""
        while self._streamed:
            await asyncio.wait(self._streamed)
        await self._parts.late.aclose()
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

        The same `message_id` again, with the same `conversation_id` or again without one, gives the same run, whoever
        asks and however often. A run that a dead process has left unfinished is finished first. Where a call needs a
        person's approval, the run pauses (`run.waiting`). A message that comes in a pause is kept, and begins the next
        run when the paused one has ended.

        `watch` is a plain function: it gets each step once that is durable, and pieces of text as they are written.
        What it raises ends the call as a crash would.

        Raises SettingsError (an empty or too long message), UnknownCustomer, UnknownConversation (it is another
        customer's), ConversationBusy (a run is going on, or waits for a ticket desk that is down), ConversationMoved
        (without a `message_id`: another worker appended at the same moment), JournalDamaged, StoreError.
        """
        message = received(text, message_id)
        self.app.session(checked("customer's number", customer_id))
        if given := _given_id(conversation_id):
            return await Arrival(self._conversations, message, customer_id, given, watch).answered()
        if message_id is not None:
            return await first_arrival(self._conversations, message, customer_id, watch).answered()
        return await Arrival(
            self._conversations, message, customer_id, new_conversation_id(), watch, new=True
        ).answered()

    async def resume(self, conversation_id: str, *, watch: Watcher | None = None) -> Run:
        """Carry an unfinished run on to its ending; a conversation at rest is returned as it is.

        So is a run that waits for a person's approval, unless its time is up: then that is a denial.

        Raises UnknownConversation, ConversationBusy (another worker is alive and has it), ConversationMoved (another
        worker took it up at the same moment), JournalDamaged, StoreError.
        """
        return await self._conversations.resume(conversation_id, watch)

    async def resume_all(self, *, watch: Watcher | None = None) -> list[Run | HaruError]:
        """Carry on every unfinished run that no living worker has, and no person has to approve.

        What cannot be resumed comes back as its error, which names its conversation. An error that is none of
        haru_fsm's is raised when the others have ended.
        """
        together = asyncio.Semaphore(RESUME_TOGETHER)

        async def one(summary: Summary) -> Run | HaruError | None:
            async with together:
                try:
                    if summary.paused and not await self._is_late(summary):
                        return None
                    return await self.resume(summary.conversation_id, watch=watch)
                except (ConversationBusy, ConversationMoved):
                    return None
                except HaruError as error:
                    return about(summary.conversation_id, error)

        waiting = await self.store.conversations(unfinished=True)
        ended = await asyncio.gather(*map(one, waiting), return_exceptions=True)
        for each in ended:
            if isinstance(each, BaseException) and not isinstance(each, HaruError):
                raise each
        return [run for run in ended if isinstance(run, Run | HaruError)]

    async def stream(
        self, text: str, *, customer_id: str, conversation_id: str | None = None, message_id: str | None = None
    ) -> AsyncGenerator[Step | Piece | Run, None]:
        """Like `ask`, as it happens: each step once it is durable, pieces of text as they are written, the run last.

        Pieces are drafts (see `Piece`); what the customer is told is `answer` of the run. Whoever stops listening stops
        no run: it goes on to its ending, for a window that is closed must break off no payment. To stop one, cancel
        `ask`.
        """
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
        self._streamed.add(asking)
        asking.add_done_callback(self._streamed.discard)
        asking.add_done_callback(lambda _: seen.put_nowait(None))
        while (item := await seen.get()) is not None:
            yield item
        yield await asking

    async def close_ticket(self, ticket_id: str, reply: str) -> Run:
        """A person's reply enters the conversation and closes the ticket.

        Raises UnknownTicket (also for one that is closed already), ConversationBusy, SettingsError (an empty reply).
        """
        return await decisions.close_ticket(self._conversations, ticket_id, reply)

    # -- approvals

    async def approve(self, conversation_id: str, call: str, *, by: str = "", watch: Watcher | None = None) -> Run:
        """A person agrees to one waiting call; the run goes on with it, to its ending or its next pause.

        `call` is `seq.position` of the request, as in `run.waiting`. What is approved is exactly what waits: tool,
        arguments and declaration. `by` is noted in the journal. Raises UnknownCall (nothing waits under this name,
        or its time is up, which is a denial), ConversationBusy, ConversationMoved (somebody else was first),
        UnknownConversation, StoreError.
        """
        decision = {"approved": True, "by": safe_text(by).strip()}
        return await decisions.decide(self._conversations, conversation_id, call, decision, watch)

    async def deny(
        self, conversation_id: str, call: str, *, reason: str = "", by: str = "", watch: Watcher | None = None
    ) -> Run:
        """A person does not agree to one waiting call. The model reads that, and the reason. Raises as `approve`."""
        decision = {"approved": False, "by": safe_text(by).strip(), "reason": safe_text(reason).strip()}
        return await decisions.decide(self._conversations, conversation_id, call, decision, watch)

    # -- from persons and other loops

    async def settle(self, conversation_id: str, call: str, outcome: Outcome) -> Outcome:
        """A person says how a call that is in doubt has ended. The model reads it before its next request.

        Returns what was written down: the outcome, with the time of it where none was given.

        `call` is `seq.position` of the request. Raises UnknownCall when there is no such call, or when how it ended
        is known already: the first outcome stays.
        """
        return await decisions.settle(self._conversations, conversation_id, call, outcome)

    async def fork(self, conversation_id: str, *, at: int, live: bool = False, watch: Watcher | None = None) -> Run:
        """A new conversation that shares the first `at` steps, carried on to rest from there.

        It is a rehearsal: effects that the ledgers of those before it know are answered from there, others are refused,
        and its tickets are marked. `live` lifts this; what its run has done already in the steps that the two share is
        not done again all the same. Raises UnknownConversation, SettingsError (no such step).
        """
        record = await self._conversations.load(conversation_id)
        if not 1 <= at <= len(record.steps):
            raise SettingsError(
                f"Conversation {conversation_id} has steps 1 to {len(record.steps)}; --at {at} is none of them."
            )
        begun = self.app.workflow.begin(
            new_conversation_id(), record.summary.customer_id, parent=conversation_id, rehearsal=not live
        )
        forked = self.app.workflow.replay(begun, tuple(map(self_contained, record.steps[:at])))
        return await self._start(forked, watch)

    async def adopt(self, contents: Iterable[Any], *, customer_id: str, conversation_id: str | None = None) -> Run:
        """Take in a history that another loop has made: Gemini contents, as dictionaries or google-genai objects.

        It is repaired into a valid one. Where its last turn is the customer's, the run that answers it is left
        unfinished: `resume` finishes it. Raises SettingsError (no list of turns, or an empty one), UnknownCustomer,
        ConversationMoved (the conversation exists already).
        """
        session = self.app.session(checked("customer's number", customer_id))
        history, repairs = repaired(contents)
        if not history:
            raise SettingsError("The history is empty. Give at least one turn.")
        question = None
        if history[-1]["role"] == "user" and not is_blank(said := content_text(history[-1])):
            question = said.strip()
            history = (*history[:-1], *beside_text(history[-1]))
        begun = self.app.workflow.begin(_given_id(conversation_id) or new_conversation_id(), customer_id)
        adopted = HistoryAdopted(contents=history, repairs=repairs, at=round(self.clock.now(), 3))
        conversation = self.app.workflow.adopt(begun, adopted)
        if question:
            definition = self.app.definition(self.app.toolbox(session))
            message = received(question).model_copy(update={"definition": definition})
            conversation = self.app.workflow.advance(conversation, message)
        await self.store.append(conversation, expected_seq=0, owner=None, over=None, lease_s=0)
        return run_of(conversation, self.app.notices)

    # -- inside

    async def _is_late(self, summary: Summary) -> bool:
        return self._conversations.is_late(await self._conversations.load(summary.conversation_id))

    async def _start(self, conversation: Conversation, watch: Watcher | None) -> Run:
        """Store a conversation that was made whole, and carry it on to rest."""
        await self.store.append(conversation, expected_seq=0, owner=None, over=None, lease_s=0)
        if conversation.paused:
            # The approvals that it waits for are another conversation's: a copy asks for its own, or needs none.
            record = await self._conversations.load(conversation.conversation_id)
            return await self._conversations.worker(record, watch).resume()
        return await self.resume(conversation.conversation_id, watch=watch)


def _given_id(conversation_id: str | None) -> str | None:
    """The id that was given. Raises SettingsError for one that cannot be; '' is as good as none."""
    return checked("conversation's id", conversation_id) if conversation_id else None
