"""The loop of `haru chat`: read a line, take it to its ending, say what came of it, whatever happens in between."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from haru_fsm.cli import exits
from haru_fsm.cli.approving import user
from haru_fsm.cli.asking import narrated, one_waits
from haru_fsm.cli.output import complain, read_line, say, tell
from haru_fsm.cli.wiring import Given, known
from haru_fsm.engine import Engine
from haru_fsm.errors import HaruError, UnknownConversation
from haru_fsm.ids import new_conversation_id
from haru_fsm.runs import Run

PROMPT = "> "
LEAVE = "/quit"
APPROVE, DENY = "/approve", "/deny"
"""A person decides from here: `/approve CALL`, `/deny CALL REASON`."""
COMMANDS = f"{LEAVE}, {APPROVE} CALL, {DENY} CALL REASON"
INTERRUPTED = "Stopped. Your next message carries this run on first."


@dataclass
class Chat:
    """One conversation with one customer, over one engine."""

    given: Given
    customer: str
    engine: Engine
    closing: AsyncExitStack
    conversation: str

    @classmethod
    async def begin(cls, given: Given, customer: str, conversation: str | None) -> Chat:
        """Open the engine. Raises UnknownCustomer and UnknownConversation before a word is said."""
        closing = AsyncExitStack()
        async with AsyncExitStack() as opening:
            engine = await opening.enter_async_context(given.engine())
            engine.app.session(customer)
            if conversation is not None:
                record = await known(engine.store, conversation)
                if record.summary.customer_id != customer:
                    raise UnknownConversation(f"There is no conversation {conversation} of customer {customer}.")
            closing = opening.pop_all()
        return cls(given, customer, engine, closing, conversation or new_conversation_id())

    def talk(self, runner: asyncio.Runner) -> int:
        """Until the customer leaves. The event loop stands still while we wait for a line."""
        with suppress(ImportError):
            import readline  # noqa: F401 - importing it gives `input` its line editing
        tell(f"conversation {self.conversation} with {self.customer} · {LEAVE} leaves")
        try:
            while (text := self._line()) is not None:
                if text.startswith("/") and text.partition(" ")[0] not in (APPROVE, DENY):
                    complain(
                        f"There is no command {text[:40]}. Commands: {COMMANDS}. A message begins without a slash."
                    )
                elif text:
                    self._turn(runner, text)
        finally:
            runner.run(self.closing.aclose())
        tell(self.given.where_to_look(self.conversation))
        return exits.OK

    def _line(self) -> str | None:
        """The next message, without blanks around it; None for the end."""
        try:
            text = read_line(PROMPT).strip()
        except KeyboardInterrupt:
            say()
            return ""
        except EOFError:
            say()
            return None
        return None if text == LEAVE else text

    def _turn(self, runner: asyncio.Runner, text: str) -> None:
        try:
            ended = runner.run(self._ask(text))
        except KeyboardInterrupt:
            say()
            tell(INTERRUPTED)
        except HaruError as error:
            complain(str(error))
        else:
            say(ended.answer)
            for call in ended.waiting:
                tell(f"{one_waits(call)}\n  {APPROVE} {call.call}\n  {DENY} {call.call} REASON")

    async def _ask(self, text: str) -> Run:
        word, _, rest = text.partition(" ")
        if word in (APPROVE, DENY):
            return await self._decide(word == APPROVE, *rest.strip().partition(" ")[::2])
        record = await self.engine.store.load(self.conversation)
        with narrated(say, record.steps if record is not None else ()) as watch:
            return await self.engine.ask(
                text, customer_id=self.customer, conversation_id=self.conversation, watch=watch
            )

    async def _decide(self, approved: bool, call: str, reason: str) -> Run:
        """Decide about a waiting call. What the customer reads last may answer a message that came in the pause."""
        record = await known(self.engine.store, self.conversation)
        with narrated(say, record.steps) as watch:
            if approved:
                ended = await self.engine.approve(self.conversation, call, by=user(), watch=watch)
            else:
                ended = await self.engine.deny(self.conversation, call, reason=reason, by=user(), watch=watch)
        last = await self.engine.resume(self.conversation)
        if last.run_id != ended.run_id:
            say(ended.answer)
        return last
