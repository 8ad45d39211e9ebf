"""The driver: has a play with an app, and keeps everything that anybody could have seen of it.

One process after the other: each runs the real engine until it dies at its crash point, or lives to the end. The next
one finds the same store and nothing else. The app's own table, work, guards and tools are used as they are; they are
only watched, so that a run that does not end is seen to do so, and stopped.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import functools
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any

from haru_fsm.app import App
from haru_fsm.certificate import Certificate, certify
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import (
    JSON,
    Conversation,
    Event,
    ModelAnswered,
    ModelEvent,
    ModelFailed,
    Step,
    ToolsRequested,
)
from haru_fsm.engine import Engine
from haru_fsm.errors import HaruError
from haru_fsm.machine import Work, Workflow
from haru_fsm.models import ModelOutcome, ModelRequest
from haru_fsm.own_events import typed
from haru_fsm.runs import Run
from haru_fsm.services import Services
from haru_fsm.stores import Record, Store, StoredTicket
from haru_fsm.testing.behaviours import Happened, Stage
from haru_fsm.testing.crashes import Crashed, Crasher, CrashingStore, CrashPoint, Made, crashing_tools
from haru_fsm.testing.plays import Play, Reply
from haru_fsm.testing.shelves import Shelf
from haru_fsm.toolbox.marks import marks_of

CONVERSATION = "c-attacked"
STUCK_S = 30.0
"""Seconds of real time after which a conversation that does not move is given up."""


class Overrun(BaseException):
    """A run has gone on for longer than its certificate allows. Passes through the engine, and stops it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that the model got: for which run, for which of the model's replies, and what was sent."""

    run: int
    position: int
    """How many replies the journal held before."""
    request: ModelRequest
    contents: tuple[JSON, ...]
    outcome: ModelOutcome


@dataclass(slots=True)
class Performance:
    """A play as it was had: what the customer read, what the model read, what is stored, and what took place."""

    app: App
    certificate: Certificate
    play: Play
    runs: list[Run] = field(default_factory=list)
    again: Run | None = None
    """What the last message gave when it was sent a second time."""
    record: Record | None = None
    tickets: tuple[StoredTicket, ...] = ()
    told: list[Any] = field(default_factory=list)
    """The steps that were told as durable, by all processes together."""
    requests: list[Asked] = field(default_factory=list)
    happened: list[Happened] = field(default_factory=list)
    deaths: list[tuple[CrashPoint, int]] = field(default_factory=list)
    """Where processes really died, and after which step."""
    retries: dict[str, int] = field(default_factory=dict)
    """How often the engine may repeat a call, for each tool that says so."""
    broke: str = ""
    """What stopped the driver: a run without end, or an exception out of the engine."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The stored journal; the app's own events, which a store keeps as plain ones, as what they are."""
        return typed(self.record.steps, self.app.workflow.own_events) if self.record is not None else ()

    @property
    def steps_by_run(self) -> dict[int, list[Step]]:
        """The stored journal, run by run; what belongs to none (an adopted history) is left out."""
        runs: dict[int, list[Step]] = {}
        for step in self.steps:
            if step.run:
                runs.setdefault(step.run, []).append(step)
        return runs


class Rig:
    """An app on the stand: watched, and ready for any number of plays, one at a time."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.certificate = certify(app.workflow, limits=app.limits)
        self._now: _Playing | None = None
        # Made once for all plays: to make an app is to certify it, and that takes as long as a play.
        self._watched = dataclasses.replace(app, workflow=self._watch(app.workflow), make_tools=self._tools)

    def _watch(self, workflow: Workflow) -> Workflow:
        watched = copy.copy(workflow)
        watched.work = {state: self._seen(work) for state, work in workflow.work.items()}
        return watched

    def _seen(self, work: Work) -> Work:
        @functools.wraps(work)
        def seen(conversation: Conversation, services: Services) -> Event | Awaitable[Event]:
            assert self._now is not None
            self._now.look(conversation)
            return work(conversation, services)

        return seen

    def _tools(self, session: Any) -> Made:
        assert self._now is not None
        return self._now.tools(session)

    async def perform(self, play: Play, shelf: Shelf) -> Performance:
        """Have the play, on an empty store."""
        self._now = _Playing(self, play)
        try:
            async with asyncio.timeout(STUCK_S):
                await self._now.perform(self._watched, shelf)
        except TimeoutError:
            self._now.seen.broke = f"the conversation did not come to rest within {STUCK_S:g} s"
        finally:
            await _bury()
        return self._now.seen


class _Playing:
    """One play under way: the model, the stage of the tools, and the process of the moment."""

    name = "adversary"

    def __init__(self, rig: Rig, play: Play) -> None:
        self.seen = Performance(rig.app, rig.certificate, play)
        self._play = play
        self._stage = Stage(play.behaviours, happened=self.seen.happened)
        self._clock = FakeClock()
        self._crasher = Crasher()
        self._position = self._run = self._looked = 0
        # Each resume is a step of its own, and may repeat the piece of work that was cut off.
        bound = rig.certificate.transitions.value
        self._most = int(bound if bound is not None else 10_000) + 3 * (len(play.crashes) + 1)

    # -- watching

    def look(self, conversation: Conversation) -> None:
        """A state's work begins. Raises Overrun where this run should long have ended."""
        if conversation.run != self._run:
            self._run, self._looked = conversation.run, 0
        self._looked += 1
        if self._looked > self._most:
            raise Overrun(
                f"run {self._run} went on after {self._most} pieces of work; its certificate allows "
                f"{self.seen.certificate.transitions} transitions"
            )
        events = [step.event for step in conversation.steps]
        self._position = sum(isinstance(event, ModelEvent) for event in events)
        self._stage.round = max(0, sum(isinstance(event, ToolsRequested) for event in events) - 1)

    def tools(self, session: Any) -> Made:
        """The app's tools, on the stage, in the process of the moment."""
        made = crashing_tools(self._stage.tools(self.seen.app.make_tools), self._crasher, lambda _name: None)(session)
        marks = {name: marks_of(function) for name, function in made.items()}
        self.seen.retries = {name: each.retries for name, each in marks.items() if each.retries}
        return made

    # -- the model

    async def respond(self, request: ModelRequest) -> ModelOutcome:
        """The reply for this place in the conversation, whichever process asks for it."""
        self._crasher.check()
        self._clock.advance(self._play.pace_ms / 1000)
        reply = self._within(self._reply(), request)
        self.seen.requests.append(Asked(self._run, self._position, request, tuple(request.contents), reply))
        if isinstance(reply, ModelAnswered) and request.on_text is not None:
            request.on_text(reply.text)
        return reply

    def _reply(self) -> Reply:
        replies = self._play.replies
        if not replies:
            return ModelFailed(reason="replay", detail="This model has nothing to say.")
        return replies[min(self._position, len(replies) - 1)]

    def _within(self, reply: Reply, request: ModelRequest) -> Reply:
        """Models keep to what is left; that much of their protocol no adversary breaks."""
        limits = self.seen.app.limits
        most = min(request.requests_left, 1 + limits.model_retries) + limits.http_retries
        return reply if reply.requests <= most else reply.model_copy(update={"requests": most})

    # -- the processes

    async def perform(self, app: App, open_store: Shelf) -> None:
        crashes = list(self._play.crashes)
        for number, text in enumerate(self._play.messages, 1):
            while True:
                self._crasher = Crasher(crashes.pop(0) if crashes else None, in_process=True)
                try:
                    if not await self._process(app, open_store(), number, text):
                        return await self._keep(open_store())
                    break
                except Crashed:
                    assert self._crasher.point is not None
                    self.seen.deaths.append((self._crasher.point, len(self.seen.told)))
                    await _bury()
        await self._keep(open_store())

    async def _process(self, app: App, store: Store, number: int, text: str) -> bool:
        """One process takes up what is unfinished, and the message; False where that cannot go on."""
        engine = Engine(app, model=self, store=CrashingStore(store, self._crasher), clock=self._clock)
        try:
            for ended in await engine.resume_all(watch=self.seen.told.append):
                if isinstance(ended, HaruError):
                    raise ended
            run = await self._ask(engine, number, text)
            if number == len(self._play.messages):
                self.seen.again = await self._ask(engine, number, text)
            self.seen.runs.append(run)
        except Overrun as overrun:
            self.seen.broke = str(overrun)
        except Exception as error:
            self.seen.broke = f"{type(error).__name__}: {error}"
        finally:
            # A dead process closes nothing; its file descriptors and threads go all the same.
            await (store.aclose() if self._crasher.dead else engine.aclose())
        return not self.seen.broke

    async def _ask(self, engine: Engine, number: int, text: str) -> Run:
        """One message, to its ending; a person decides about whatever waits on the way."""
        watch = self.seen.told.append
        run = await engine.ask(
            text,
            customer_id=self._play.customer,
            conversation_id=CONVERSATION,
            message_id=f"m{number}",
            watch=watch,
        )
        while run.waiting:
            decides = engine.approve if self._agrees() else engine.deny
            run = await decides(CONVERSATION, run.waiting[0].call, by="adversary", watch=watch)
        return run

    def _agrees(self) -> bool:
        decisions = self._play.decisions or (True,)
        return decisions[min(self._stage.round, len(decisions) - 1)]

    async def _keep(self, store: Store) -> None:
        try:
            self.seen.record = await store.load(CONVERSATION)
            self.seen.tickets = tuple(await store.tickets())
        except HaruError as error:
            self.seen.broke = self.seen.broke or f"{type(error).__name__}: {error}"
        finally:
            await store.aclose()


async def _bury() -> None:
    """End what a dead process had still under way."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
