"""Approvals under any order of deciding, expiring, resuming, writing, forking and dying.

Whatever comes in which order: each call runs at most once, only what was approved runs, with exactly the arguments that
were shown; each run has one ending; the model reads valid histories only; no message is lost.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm import Engine, tool
from haru_fsm.clock import FakeClock
from haru_fsm.contents import History
from haru_fsm.conversation import (
    ApprovalDecided,
    ApprovalRequested,
    Awaited,
    Conversation,
    MessageHeld,
    MessageReceived,
    executed,
    held_messages,
)
from haru_fsm.errors import ConversationBusy, ConversationMoved, UnknownCall
from haru_fsm.models import ModelRequest
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.stores import Outcome, Started
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.testing.strict import check_contents
from tests.engine.shopless import engine

TTL_S = 100.0


class Died(BaseException):
    """The process is gone: nothing after this is written or told."""


class Mortal(MemoryStore):
    """A store after whose n-th write the process dies."""

    writes_left: int | None = None

    def _count(self) -> None:
        if self.writes_left is not None:
            self.writes_left -= 1
            if self.writes_left < 0:
                raise Died

    async def append(self, conversation: Conversation, **place: Any) -> None:
        await super().append(conversation, **place)
        self._count()

    async def note(self, conversation_id: str, call: str, what: Started | Outcome) -> bool:
        written = await super().note(conversation_id, call, what)
        self._count()
        return written

    async def release(self, conversation_id: str, owner: str) -> None:
        """A dead process gives nothing back; the next one finds its lease void."""
        if self.writes_left is None or self.writes_left >= 0:
            await super().release(conversation_id, owner)


class Wipes:
    """Tools that keep a list of what they ran with."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, str, int]] = []

    def make(self, session: Any) -> list[Callable[..., Any]]:
        @tool(read_only=False, destructive=True, approval=True, repeatable=True)
        def wipe(what: str, times: int) -> Any:
            """Wipe something out."""
            self.ran.append((session.conversation_id, what, times))
            return {"wiped": what}

        @tool(read_only=False, repeatable=True)
        def pay(what: str) -> Any:
            """Pay."""
            self.ran.append((session.conversation_id, what, 0))
            return {"paid": what}

        @tool(read_only=True)
        def look(what: str) -> Any:
            """Look."""
            return {"status": what}

        return [wipe, pay, look]


calls = st.one_of(
    # A number as a text is repaired: what is shown and approved are the arguments after repair.
    st.tuples(
        st.just("wipe"), st.fixed_dictionaries({"what": st.sampled_from("AB"), "times": st.sampled_from([1, "2"])})
    ),
    st.tuples(st.sampled_from(["pay", "look"]), st.fixed_dictionaries({"what": st.sampled_from("AB")})),
    st.just(("wipe", {"what": "A"})),
)
replies = st.lists(st.one_of(st.just("네."), st.lists(calls, min_size=1, max_size=4)), max_size=4)
moves = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["approve", "deny"]), st.integers(0, 3)),
        st.tuples(
            st.sampled_from(["again", "wait", "resume", "all", "ask", "ask_again", "fork", "live_fork"]), st.just(0)
        ),
        st.tuples(st.just("die"), st.integers(0, 6)),
    ),
    max_size=14,
)


def scripted(script: list[Any]) -> ScriptedModel:
    """The same reply to the same history, in whichever process; an answer where the script is over."""

    def line(request: ModelRequest) -> Any:
        said = sum(content["role"] == "model" for content in request.contents)
        return script[said] if said < len(script) else "끝."

    return ScriptedModel(line)


class World:
    """One conversation, and everybody who has to do with it."""

    def __init__(self, script: list[Any]) -> None:
        self.clock, self.wipes = FakeClock(), Wipes()
        self.store, self.model = Mortal(now=self.clock.now), scripted(script)
        self.written: list[str] = []
        self.told: list[Awaited] = []
        """All that was ever shown to an approver."""
        self.conversation = "c-1"

    def haru(self) -> Engine:
        return engine(
            self.model,
            tools=self.wipes,
            store=self.store,
            clock=self.clock,
            approval_ttl_s=TTL_S,
            lease_s=1.0,
            max_resumes=50,
        )

    async def do(self, move: str, number: int) -> None:
        if move == "die":
            self.store.writes_left = number
            return
        haru = self.haru()
        try:
            await self._do(haru, move, number)
        except (ConversationBusy, ConversationMoved, UnknownCall):
            pass
        except Died:
            self.store.writes_left = None
            self.clock.advance(5)  # its lease runs out

    async def _do(self, haru: Engine, move: str, number: int) -> None:
        record = await self.store.load(self.conversation)
        waiting = await self.waiting()
        match move:
            case "approve" if waiting:
                await haru.approve(self.conversation, waiting[number % len(waiting)].call, by="kim")
            case "deny" if waiting:
                await haru.deny(self.conversation, waiting[number % len(waiting)].call, reason="안 됩니다")
            case "again":
                decided = (
                    [step.event for step in record.steps if isinstance(step.event, ApprovalDecided)] if record else []
                )
                for event in decided:
                    await haru.approve(self.conversation, event.call)
            case "wait":
                self.clock.advance(TTL_S / 2)
            case "resume" if record:
                await haru.resume(self.conversation)
            case "all":
                await haru.resume_all()
            case "ask":
                self.written.append(f"m{len(self.written)}")
                await self._ask(haru, self.written[-1])
            case "ask_again" if self.written:
                await self._ask(haru, self.written[0])
            case "fork" if record and record.steps:
                await haru.fork(self.conversation, at=len(record.steps))
            case "live_fork" if record and record.steps:
                await haru.fork(self.conversation, at=len(record.steps), live=True)

    async def _ask(self, haru: Engine, message_id: str) -> None:
        try:
            await haru.ask(message_id, customer_id="C1", conversation_id=self.conversation, message_id=message_id)
        except ConversationBusy:
            record = await self.store.load(self.conversation)
            assert record is not None
            known = [step.event for step in record.steps if isinstance(step.event, MessageReceived | MessageHeld)]
            if message_id not in [event.message_id for event in known]:
                self.written.remove(message_id)
            raise

    async def waiting(self) -> tuple[Awaited, ...]:
        record = await self.store.load(self.conversation)
        if record is None or not record.summary.paused:
            return ()
        asked = next(step.event for step in reversed(record.steps) if isinstance(step.event, ApprovalRequested))
        self.told += asked.waiting
        return asked.waiting

    async def to_the_end(self) -> None:
        """Nobody dies any more, and somebody approves whatever waits."""
        self.store.writes_left = None
        self.clock.advance(5)
        haru = self.haru()
        for message_id in self.written:
            await haru.ask(message_id, customer_id="C1", conversation_id=self.conversation, message_id=message_id)
        while waiting := await self.waiting():
            try:
                await haru.approve(self.conversation, waiting[0].call)
            except UnknownCall:
                continue
        await haru.resume_all()


@given(script=replies, told=moves)
@settings(max_examples=250, deadline=None)
def test_any_interleaving(script: list[Any], told: list[tuple[str, int]]) -> None:
    asyncio.run(_interleaved(script, told))


async def _interleaved(script: list[Any], told: list[tuple[str, int]]) -> None:
    world = World(script)
    await world.do("ask", 0)
    for move, number in told:
        await world.do(move, number)
        await world.waiting()
    await world.to_the_end()
    record = await world.store.load("c-1")
    assert record is not None
    steps = record.steps

    # Only what was approved ran, once, with exactly the arguments that were shown.
    decided: dict[str, bool] = {}
    for step in steps:
        if isinstance(step.event, ApprovalDecided):
            assert step.event.call not in decided, "one decision for each call"
            decided[step.event.call] = step.event.approved
    shown = {each.call: each for each in world.told}
    started = {call: entry.started for call, entry in record.ledger.items() if entry.started is not None}
    wiped = Counter((what, times) for conversation, what, times in world.wipes.ran if conversation == "c-1" and times)
    for call, started_as in started.items():
        assert isinstance(started_as, Started)
        assert started_as.name != "wipe" or decided[call], "it began with an approval"
    allowed = Counter((each.args["what"], each.args["times"]) for call, each in shown.items() if decided.get(call))
    assert wiped <= allowed
    done = Counter(call for call, _, result in executed(steps) if result.ran and result.effect)
    assert all(times == 1 for times in done.values())

    # What runs in a fork was approved there: nobody did.
    assert not [each for each in world.wipes.ran if each[0] != "c-1" and each[2]]

    # One ending for each run, every message in a run of its own, and nothing is left.
    endings = Counter(step.run for step in steps if step.rests and not step.pauses)
    assert endings == Counter(range(1, steps[-1].run + 1))
    received = [step.event.message_id for step in steps if isinstance(step.event, MessageReceived)]
    assert sorted(filter(None, received)) == sorted(world.written)
    assert not held_messages(steps)

    history = History()
    for step in steps:
        history = history.fold(step)
        assert check_contents(list(history.request())) == []
    for request in world.model.requests:
        assert check_contents(list(request.contents)) == []
