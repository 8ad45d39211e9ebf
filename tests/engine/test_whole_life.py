"""The whole life of conversations, in any order: writing, dying, resuming, deciding, settling, closing, forking, adopting,
pruning, moving to another database, changing the app. A rule machine on a SQLite file, with a process for each rule.

What must hold after each of them is counted here from the journal, from what the model was sent, and from what the
tools say they have done.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from haru_fsm import App, Engine, IdempotencyKey, Limits, NotDone, tool, transfer
from haru_fsm.clock import FakeClock
from haru_fsm.contents import History
from haru_fsm.conversation import (
    ApprovalDecided,
    MessageHeld,
    MessageReceived,
    ModelAnswered,
    ResultStatus,
    Step,
    TicketClosed,
    TicketOpened,
    ToolsExecuted,
    awaited,
    held_messages,
    self_contained,
)
from haru_fsm.errors import HaruError
from haru_fsm.models import ModelOutcome, ModelRequest
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.stores import Outcome, Record, StoredTicket
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.testing.crashes import Crashed, Crasher, CrashingStore, CrashPoint, Place
from haru_fsm.testing.strict import check_contents
from tests.engine.shopless import bare

TTL_S = 100.0
DAY_S = 86_400.0
TEXTS = ("주문 확인해 주세요", "환불해 주세요 🙏", "a\x00b\ud800", "언제 와요?")

names = st.sampled_from("AB")
calls = st.one_of(
    st.tuples(
        st.sampled_from(["look", "pay", "book", "wipe", "refuse", "break_off"]), names.map(lambda w: {"what": w})
    ),
    st.sampled_from([("pay", {}), ("nobody", {"x": 1}), ("wipe", {"what": 3})]),
)
replies = st.lists(
    st.one_of(
        st.sampled_from(["네.", "", "티켓 HT-0000000000 이 접수되었습니다."]),
        st.lists(calls, min_size=1, max_size=3),
    ),
    max_size=4,
)
which = st.integers(0, 50)
places: list[tuple[Place, int]] = [("write", number) for number in range(1, 7)] + [("effect", 1), ("effect", 2)]
deaths = st.none() | st.builds(
    lambda place, when: CrashPoint(place[0], place[1], when),
    st.sampled_from(places),
    st.sampled_from(["after", "before"]),
)


class World:
    """What lies outside the engine: a tool's effects, and a model that says what it was told to."""

    name = "scripted"

    def __init__(self) -> None:
        self.effects: list[tuple[str, str, str]] = []
        """(conversation, tool, key or argument) of each start of an acting tool's code."""
        self.script: list[Any] = []
        self.wrong: list[str] = []

    def make_tools(self, crasher: Crasher, without: str) -> Callable[[Any], list[Callable[..., Any]]]:
        def make(session: Any) -> list[Callable[..., Any]]:
            def acted(name: str, with_: str) -> None:
                die = crasher.reached("effect")
                die("before")
                self.effects.append((session.conversation_id, name, with_))
                die("after")

            @tool(read_only=True)
            async def look(what: str) -> Any:
                """Look something up."""
                return {"what": what}

            @tool(read_only=False)
            async def pay(what: str) -> Any:
                """Pay for something."""
                acted("pay", what)
                return {"paid": what}

            @tool(read_only=False, idempotent=True)
            async def book(what: str, key: Annotated[str, IdempotencyKey]) -> Any:
                """Book something under a key."""
                acted("book", key)
                return {"booked": what}

            @tool(read_only=False, destructive=True, approval=True)
            async def wipe(what: str) -> Any:
                """Wipe something out."""
                acted("wipe", what)
                return {"wiped": what}

            @tool(read_only=False)
            async def refuse(what: str) -> Any:
                """Never do it."""
                raise NotDone(f"{what} is sold out")

            @tool(read_only=False)
            async def break_off(what: str) -> Any:
                """Do something, and break off."""
                acted("break_off", what)
                raise RuntimeError("wires crossed")

            return [each for each in (look, pay, book, wipe, refuse, break_off) if each.__name__ != without]

        return make

    async def respond(self, request: ModelRequest) -> ModelOutcome:
        self.wrong += check_contents(list(request.contents))
        return await ScriptedModel([self.script.pop(0) if self.script else "끝."]).respond(request)


class WholeLife(RuleBasedStateMachine):
    """Every rule is a process of its own, which may die at one of its writes or effects."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="haru-life-"))
        self.path = self.folder / "haru.db"
        self.runner = asyncio.Runner()
        self.clock, self.world = FakeClock(), World()
        self.without = ""
        self.limits = Limits(approval_ttl_s=TTL_S, max_steps=5, max_resumes=3)
        self.messages: dict[str, str] = {}
        """The conversation of each message that was sent, by its id."""
        self.told: dict[str, Any] = {}
        """The ending that a message's sender was told first, by the message's id."""
        self.forgotten: set[str] = set()
        self.began: dict[str, tuple[Step, ...]] = {}
        """The journals as they were seen last."""

    def teardown(self) -> None:
        try:
            if self.path.exists():
                self.everything_can_be_finished()
                self.everything_moves_whole()
        finally:
            self.runner.close()
            shutil.rmtree(self.folder)

    # -- processes

    def process(
        self, do: Callable[[Engine], Awaitable[Any]], death: CrashPoint | None = None, script: Sequence[Any] = ()
    ) -> Any:
        """What a process came to, in which the model says this; None for a refusal in words, or a death."""
        self.world.script = list(script)

        async def live() -> Any:
            crasher = Crasher(death, in_process=True)
            store = CrashingStore(SQLiteStore(self.path, now=self.clock.now), crasher)
            base = bare(self.limits)
            app = App(
                workflow=base.workflow, make_tools=self.world.make_tools(crasher, self.without), limits=self.limits
            )
            engine = Engine(app, model=self.world, store=store, clock=self.clock)
            try:
                return await do(engine)
            except (HaruError, Crashed):
                return None
            finally:
                await store.aclose()

        return self.runner.run(live())

    def read(self, do: Callable[[SQLiteStore], Awaitable[Any]]) -> Any:
        async def look() -> Any:
            store = SQLiteStore(self.path, now=self.clock.now)
            try:
                return await do(store)
            finally:
                await store.aclose()

        return self.runner.run(look())

    def records(self) -> list[Record]:
        found: list[Record] = self.read(_all)[0]
        return found

    def one(self, number: int, among: list[Any]) -> Any:
        return among[number % len(among)] if among else None

    # -- what happens

    @rule(text=st.sampled_from(TEXTS), where=which, script=replies, death=deaths)
    def write(self, text: str, where: int, script: list[Any], death: CrashPoint | None) -> None:
        message = f"m{len(self.messages)}"
        conversation = f"c{where % 3}"
        self.messages[message] = conversation
        self._send(message, text, script, death)

    @precondition(lambda self: self.messages)
    @rule(number=which, script=replies, death=deaths)
    def write_again(self, number: int, script: list[Any], death: CrashPoint | None) -> None:
        self._send(self.one(number, list(self.messages)), TEXTS[0], script, death)

    def _send(self, message: str, text: str, script: list[Any], death: CrashPoint | None) -> None:
        conversation = self.messages[message]
        run = self.process(
            lambda engine: engine.ask(text, customer_id="C1", conversation_id=conversation, message_id=message),
            death,
            script,
        )
        if run is not None and run.finished:
            ending = (run.run_id, run.reply_id, run.answer, run.ticket)
            assert self.told.setdefault(message, ending) == ending, "the same message, the same reply"

    @precondition(lambda self: self.path.exists())
    @rule(number=which, script=replies, death=deaths)
    def resume(self, number: int, script: list[Any], death: CrashPoint | None) -> None:
        record = self.one(number, self.records())
        if record is not None:
            self.process(lambda engine: engine.resume(record.summary.conversation_id), death, script)

    @precondition(lambda self: self.path.exists())
    @rule(script=replies, death=deaths)
    def resume_all(self, script: list[Any], death: CrashPoint | None) -> None:
        self.process(lambda engine: engine.resume_all(), death, script)

    @precondition(lambda self: self.path.exists())
    @rule(number=which, yes=st.booleans(), script=replies, death=deaths)
    def decide(self, number: int, yes: bool, script: list[Any], death: CrashPoint | None) -> None:
        waiting = [
            (record.summary.conversation_id, each.call)
            for record in self.records()
            if record.summary.paused
            for each in awaited(record.steps)
        ]
        asked = self.one(number, waiting)
        if asked is not None:
            self.process(lambda engine: engine.approve(*asked) if yes else engine.deny(*asked), death, script)

    @precondition(lambda self: self.path.exists())
    @rule(number=which, done=st.booleans())
    def settle(self, number: int, done: bool) -> None:
        doubtful = [
            (record.summary.conversation_id, call)
            for record in self.records()
            for call, entry in record.ledger.items()
            if entry.started is not None and entry.outcome is None
        ]
        doubt = self.one(number, doubtful)
        if doubt is not None:
            status = ResultStatus.DONE if done else ResultStatus.NOT_DONE
            outcome = Outcome(status=status, response={"result": "looked up"}, by="person")
            conversation, call = doubt
            self.process(lambda engine: engine.settle(conversation, call, outcome))

    @precondition(lambda self: self.path.exists())
    @rule(number=which, death=deaths)
    def close_ticket(self, number: int, death: CrashPoint | None) -> None:
        tickets = self.read(lambda store: store.tickets(open_only=True))
        ticket = self.one(number, list(tickets))
        if ticket is not None:
            self.process(lambda engine: engine.close_ticket(ticket.ticket.ticket_id, "처리되었습니다."), death)

    @precondition(lambda self: self.path.exists())
    @rule(number=which, at=which, live=st.booleans(), script=replies, death=deaths)
    def fork(self, number: int, at: int, live: bool, script: list[Any], death: CrashPoint | None) -> None:
        record = self.one(number, [each for each in self.records() if len(each.steps) < 30][:4])
        if record is not None:
            at = 1 + at % len(record.steps)
            self.process(lambda engine: engine.fork(record.summary.conversation_id, at=at, live=live), death, script)

    @precondition(lambda self: self.path.exists())
    @rule(number=which, again=st.booleans(), cut=which)
    def adopt(self, number: int, again: bool, cut: int) -> None:
        """A history of our own as another loop's, cut off anywhere."""
        record = self.one(number, self.records())
        if record is not None:
            contents = self.process(lambda engine: _contents(engine, record.summary.conversation_id)) or ()
            into = "adopted" if again else None
            self.process(
                lambda engine: engine.adopt(contents[: 1 + cut], customer_id="C1", conversation_id=into),
            )

    @rule(seconds=st.sampled_from([1.0, TTL_S, 3 * DAY_S]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(without=st.sampled_from(["", "pay", "wipe", "look"]))
    def change_the_app(self, without: str) -> None:
        self.without = without

    @precondition(lambda self: self.path.exists())
    @rule()
    def prune(self) -> None:
        before = {record.summary.conversation_id: record for record in self.records()}
        self.process(lambda engine: engine.store.prune(self.clock.now() - DAY_S))
        left = {record.summary.conversation_id for record in self.records()}
        open_ = {each.ticket.conversation_id for each in self.read(lambda store: store.tickets(open_only=True))}
        for conversation, record in before.items():
            if conversation not in left:
                assert record.summary.resting
                assert not record.summary.paused
                assert conversation not in open_
                assert all(entry.outcome is not None for entry in record.ledger.values())
                self.forgotten.add(conversation)
                self.began.pop(conversation, None)
                self.told = {id_: ending for id_, ending in self.told.items() if self.messages[id_] != conversation}
                self.world.effects = [each for each in self.world.effects if each[0] != conversation]

    # -- what must hold

    @invariant()
    def the_model_reads_valid_histories(self) -> None:
        assert self.world.wrong == []

    @invariant()
    def journals_are_whole(self) -> None:
        if not self.path.exists():
            return
        records, listed = self.read(_all)
        tickets = {each.ticket.ticket_id: each for each in listed}
        open_ = Counter(each.ticket.conversation_id for each in tickets.values() if each.closed_at is None)
        assert all(times == 1 for times in open_.values()), "one open ticket for a conversation"
        for record in records:
            self._whole(record)
            self._ends_once(record.steps)
            self._messages(record)
            self._effects(record)
            for step in record.steps:
                if isinstance(step.event, TicketOpened):
                    ticket = step.event.ticket
                    assert ticket.ticket_id in step.event.notice
                    mine = ticket.conversation_id == record.summary.conversation_id
                    assert ticket.ticket_id in tickets or not mine or self.forgotten

    def _whole(self, record: Record) -> None:
        """It goes on from what it was, step by step, and stands where its last step led."""
        steps, conversation = record.steps, record.summary.conversation_id
        before = self.began.get(conversation, ())
        assert steps[: len(before)] == before, "what was journaled stays"
        self.began[conversation] = steps
        assert [step.seq for step in steps] == list(range(1, len(steps) + 1))
        assert all(later.source == earlier.state for earlier, later in itertools.pairwise(steps))
        assert (record.summary.state, record.summary.resting) == (steps[-1].state, steps[-1].rests)

    def _ends_once(self, steps: tuple[Step, ...]) -> None:
        runs = Counter(step.run for step in steps if _ends(step))
        assert all(times == 1 for times in runs.values()), runs
        last = steps[-1].run
        assert all(runs[number] for number in range(1, last)), "a run ends before the next one begins"

    def _messages(self, record: Record) -> None:
        received = Counter(step.event.message_id for step in record.steps if isinstance(step.event, MessageReceived))
        held = Counter(step.event.message_id for step in record.steps if isinstance(step.event, MessageHeld))
        assert all(times == 1 for id_, times in (*received.items(), *held.items()) if id_ is not None)
        for message in self.told:
            if self.messages[message] == record.summary.conversation_id:
                assert message in received, "an answered message is in its journal"
        # A fork asks once more what was decided in the steps that it shares: the digest is another conversation's.
        decided = Counter(
            (step.event.call, step.event.digest) for step in record.steps if isinstance(step.event, ApprovalDecided)
        )
        assert all(times == 1 for times in decided.values())

    def _effects(self, record: Record) -> None:
        mine = [each for each in self.world.effects if each[0] == record.summary.conversation_id]
        for name in ("pay", "book", "wipe", "break_off"):
            with_ = [each[2] for each in mine if each[1] == name]
            starts = len(set(with_)) if name == "book" else len(with_)
            claims = [e for e in record.ledger.values() if e.started is not None and e.started.name == name]
            assert starts <= len(claims), f"{name} was started {starts} times for {len(claims)} claims"
        approved = {
            step.event.call for step in record.steps if isinstance(step.event, ApprovalDecided) and step.event.approved
        }
        for call, entry in record.ledger.items():
            if entry.started is not None and entry.started.name == "wipe":
                assert call in approved

    # -- at the end

    def everything_can_be_finished(self) -> None:
        """Nobody dies any more: each conversation comes to rest, and a pause that nobody ends is ended by time."""
        for _ in range(6):
            self.process(lambda engine: engine.resume_all())
            self.clock.advance(TTL_S)
        self.journals_are_whole()
        self.the_model_reads_valid_histories()
        assert self.read(lambda store: store.faults()) == []
        for record in self.records():
            assert record.summary.resting, record.summary
            assert not record.summary.paused, record.summary
            assert not held_messages(record.steps), "a message that was kept has had its run"
            doubt = any(entry.outcome is None for entry in record.ledger.values())
            answered = isinstance(record.steps[-1].event, ModelAnswered)
            last = [s.event for s in record.steps if s.run == record.steps[-1].run]
            executed = [event for event in last if isinstance(event, ToolsExecuted)]
            doubted = any(r.status is ResultStatus.IN_DOUBT for event in executed for r in event.results)
            assert not (doubt and answered and doubted), "what is in doubt ends with a person"

    def everything_moves_whole(self) -> None:
        """An export of everything, in another database."""

        async def lines(store: SQLiteStore) -> list[str]:
            return [line async for line in transfer.export(store)]

        exported = self.read(lines)
        before, self.path = self.records(), self.folder / "moved.db"
        self.read(lambda store: transfer.import_lines(store, exported))
        moved = {record.summary.conversation_id: record for record in self.records()}
        assert len(moved) == len(before)
        for record in before:
            other = moved[record.summary.conversation_id]
            assert tuple(map(self_contained, other.steps)) == tuple(map(self_contained, record.steps))
            assert other.ledger.keys() == record.ledger.keys()
            assert other.open_ticket == record.open_ticket


async def _all(store: SQLiteStore) -> tuple[list[Record], Sequence[StoredTicket]]:
    """All that is stored, the oldest first."""
    found = [await store.load(each.conversation_id) for each in reversed(await store.conversations())]
    return [each for each in found if each is not None], await store.tickets()


def _ends(step: Step) -> bool:
    """A rest that is a run's own: not a pause, nor a person's reply, nor a message that was kept."""
    beside = isinstance(step.event, TicketClosed | MessageHeld)
    return bool(step.run) and step.rests and not step.pauses and not beside


async def _contents(engine: Engine, conversation_id: str) -> tuple[Any, ...]:
    """What the model has read of a conversation."""
    record = await engine.store.load(conversation_id)
    history = History()
    for step in record.steps if record is not None else ():
        history = history.fold(step)
    return history.contents


WholeLife.TestCase.settings = settings(
    max_examples=80, stateful_step_count=18, deadline=None, suppress_health_check=list(HealthCheck)
)
TestWholeLife = WholeLife.TestCase
