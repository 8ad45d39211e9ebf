"""How each case is played. Most are one conversation in one process; the others are here by name."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

from haru_fsm.clock import SystemClock
from haru_fsm.errors import ConversationBusy, ConversationMoved, HaruError, StoreError
from haru_fsm.runs import Run
from haru_fsm.session import Session
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.testing.crashes import CrashPoint
from haru_fsm.testing.fake_gemini import FakeGemini
from tests.field.desks import DeskInAFile, DeskThatIsDown, FaultyStore
from tests.field.playing import CUSTOMER, Played, Stage, played, talk

Play = Callable[[Stage, FakeGemini], Awaitable[Played]]

SAVED_MESSAGE, SAVED_REPLY, SAVED_RESULTS = 1, 2, 3
"""Writes of a run's first step with read-only tools."""
SAVED_TICKET = 3
"""The same of a run whose first request fails: the message, the failure, and the number that the desk gave."""


async def straight(stage: Stage, gemini: FakeGemini, **limits: Any) -> Played:
    """One process, all messages in turn; a history that another loop had made is adopted first."""
    began = time.monotonic()
    async with stage.engine(**limits) as engine:
        history = stage.case.script.get("preloaded_history")
        adopted = await engine.adopt(history, customer_id=CUSTOMER) if history else None
        runs = await talk(engine, stage.case, adopted.conversation_id if adopted else None)
    return await played(stage, gemini, runs, began)


async def killed(stage: Stage, gemini: FakeGemini, point: CrashPoint) -> Played:
    """A process is killed at this point, and this one carries on."""
    began = time.monotonic()
    await stage.child("ask", crash=point)
    async with stage.engine() as engine:
        runs = await engine.resume_all()
    return await played(stage, gemini, _all_ended(runs), began)


def _all_ended(ended: list[Run | HaruError]) -> list[Run]:
    assert all(isinstance(run, Run) for run in ended), ended
    return [run for run in ended if isinstance(run, Run)]


async def delivered_twice(stage: Stage, gemini: FakeGemini) -> Played:
    """The process dies after the answer was durable; the channel asks again, twice."""
    began = time.monotonic()
    await stage.child("ask", crash=CrashPoint("write", SAVED_REPLY, "after"))
    async with stage.engine() as engine:
        nothing = await engine.resume_all()
        runs = [*await talk(engine, stage.case), *await talk(engine, stage.case)]
        resumed = await engine.resume(runs[0].conversation_id)
    return await played(stage, gemini, [*runs, resumed], began, unfinished=nothing)


async def torn(stage: Stage, gemini: FakeGemini, percent: int) -> Played:
    """The power fails within the write of the model's reply: only so many per cent of its bytes are there."""
    began = time.monotonic()
    other = [{"role": "user", "parts": [{"text": "다른 대화"}]}, {"role": "model", "parts": [{"text": "네."}]}]
    async with stage.engine() as engine:
        neighbour = await engine.adopt(other, customer_id=CUSTOMER)
        untouched = await engine.store.load(neighbour.conversation_id)
    await stage.child("ask", crash=CrashPoint("write", SAVED_REPLY, "after"))
    log = stage.database.with_name("haru.db-wal")
    before, after = int((stage.folder / "sizes").read_text().split()[-1]), log.stat().st_size
    assert after > before
    with log.open("r+b") as file:
        file.truncate(before + max(1, (after - before) * percent // 100))
    async with stage.engine() as engine:
        runs = _all_ended(await engine.resume_all())
        neighbours = (untouched, await engine.store.load(neighbour.conversation_id))
    return await played(stage, gemini, runs, began, neighbours=neighbours)


async def five_at_once(stage: Stage, gemini: FakeGemini) -> Played:
    """Several conversations whose tools block their threads, and a heartbeat on the loop.

    A thread beside it has a heart as well: when both stand still, it is the machine that is busy.
    """
    count = stage.case.script["concurrent"]["conversations"]
    beats, beats_beside = [time.monotonic()], [time.monotonic()]
    ended = threading.Event()

    async def heart() -> None:
        while True:
            await asyncio.sleep(0.01)
            beats.append(time.monotonic())

    def heart_beside() -> None:
        while not ended.wait(0.01):
            beats_beside.append(time.monotonic())

    async with stage.engine() as engine:
        beating, beside = asyncio.create_task(heart()), asyncio.create_task(asyncio.to_thread(heart_beside))
        began = time.monotonic()
        talks = await asyncio.gather(*(_talk_alone(engine, stage, number) for number in range(count)))
        all_s = time.monotonic() - began
        beating.cancel()
        ended.set()
        await beside
    runs = [run for runs in talks for run in runs]
    stalled = _longest_gap(beats) - _longest_gap(beats_beside)
    return await played(stage, gemini, runs, began, stalled_s=stalled, all_s=all_s, times=count)


def _longest_gap(beats: Sequence[float]) -> float:
    return max(later - earlier for earlier, later in pairwise(beats))


async def _talk_alone(engine: Any, stage: Stage, number: int) -> list[Run]:
    return await talk(engine, stage.case, f"c-{number}")


async def another_worker_looks(stage: Stage, gemini: FakeGemini) -> Played:
    """A process runs a tool for longer than its lease lasts; this one tries to take the conversation over."""
    began = time.monotonic()
    refused = 0
    working = asyncio.create_task(stage.child("ask", conversation_id="c-report"))
    async with stage.engine(clock=SystemClock()) as engine:
        while not working.done():
            if stage.log.read("begun") and not stage.log.read("done"):
                try:
                    await engine.resume("c-report")
                except (ConversationBusy, ConversationMoved):
                    refused += 1
            await asyncio.sleep(0.1)
        told = await working
        after = await engine.resume("c-report")
    assert told is not None
    assert told["runs"] == [after.model_dump(mode="json")]
    return await played(stage, gemini, [after], began, refused=refused)


async def two_workers(stage: Stage, gemini: FakeGemini) -> Played:
    """Two engines with their own connections resume one unfinished conversation in the same moment."""
    began = time.monotonic()
    question = [{"role": "user", "parts": [{"text": stage.case.messages[0]["text"]}]}]
    async with stage.engine() as one, stage.engine() as other:
        open_run = await one.adopt(question, customer_id=CUSTOMER)
        conversation_id = open_run.conversation_id
        ends = await asyncio.gather(one.resume(conversation_id), other.resume(conversation_id), return_exceptions=True)
    runs = [end for end in ends if isinstance(end, Run)]
    losers = [end for end in ends if not isinstance(end, Run)]
    return await played(stage, gemini, runs, began, delivered=len(runs), losers=losers)


class FrozenClock(SystemClock):
    """Wall time stands still, and then goes back; the monotonic clock is the real one."""

    def __init__(self) -> None:
        self.looks = 0

    def now(self) -> float:
        self.looks += 1
        return 1_785_000_000.0 - (3600.0 if self.looks > 4 else 0.0)


async def frozen(stage: Stage, gemini: FakeGemini) -> Played:
    """All in one conversation, under a wall clock that cannot be relied on."""
    began = time.monotonic()
    clock = FrozenClock()
    async with stage.engine(clock=clock, store=SQLiteStore(stage.database, now=clock.now)) as engine:
        runs = await talk(engine, stage.case)
    return await played(stage, gemini, runs, began, looks=clock.looks)


async def outlasting(stage: Stage, gemini: FakeGemini) -> Played:
    """The engine lives on until the thread that was given up has come to its end."""
    began = time.monotonic()
    async with stage.engine() as engine:
        runs = await talk(engine, stage.case)
        while not stage.log.read("done"):
            assert time.monotonic() - began < 10, "the tool never ended"
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)
    return await played(stage, gemini, runs, began)


async def measured(stage: Stage, gemini: FakeGemini) -> Played:
    """Every turn is timed, and the bytes on disk are read after 50 turns and at the end."""
    began = time.monotonic()
    runs: list[Run] = []
    took_s: list[float] = []
    sizes: list[int] = []
    async with stage.engine() as engine:
        for message in stage.case.messages:
            start = time.thread_time()  # of this thread: other work on the machine, and the fake model, do not count
            run = await engine.ask(
                message["text"],
                customer_id=CUSTOMER,
                conversation_id=runs[0].conversation_id if runs else None,
                message_id=message["message_id"],
            )
            took_s.append(time.thread_time() - start)
            runs.append(run)
            if len(runs) in (50, 200):
                sizes.append(await _size_of_a_copy(stage))
    return await played(stage, gemini, runs, began, took_s=took_s, sizes=sizes)


async def _size_of_a_copy(stage: Stage) -> int:
    """Bytes that the database has once its write-ahead log is folded in."""
    copies = stage.folder / "copies"
    copies.mkdir(exist_ok=True)
    for file in stage.folder.glob("haru.db*"):
        shutil.copy(file, copies / file.name)
    copy = SQLiteStore(copies / "haru.db")
    await copy.conversations()
    await copy.aclose()
    size = (copies / "haru.db").stat().st_size
    shutil.rmtree(copies)
    return size


async def of_an_old_schema(stage: Stage, gemini: FakeGemini) -> Played:
    """A checkpoint of another loop comes in by its history; its open question is answered by `resume`."""
    began = time.monotonic()
    checkpoint = stage.case.script["preloaded_checkpoint"]
    async with stage.engine() as engine:
        adopted = await engine.adopt(checkpoint["history"], customer_id=CUSTOMER)
        assert (adopted.finished, adopted.state) == (False, checkpoint["state"])
        run = await engine.resume(adopted.conversation_id)
    return await played(stage, gemini, [run], began)


async def desk_times_out(stage: Stage, gemini: FakeGemini) -> Played:
    """The desk stores the ticket and times out; it is asked again under the same key, and there is one ticket."""
    began = time.monotonic()
    desk = DeskInAFile(stage.folder)
    async with stage.engine(desk=desk) as engine:
        run = (await talk(engine, stage.case))[-1]
    return await played(stage, gemini, [run], began, desk=desk.tickets())


async def desk_asked_by_the_next(stage: Stage, gemini: FakeGemini) -> Played:
    """The desk has the ticket, and the process is killed before it writes the number down: the next one asks again."""
    began = time.monotonic()
    desk = DeskInAFile(stage.folder)
    await stage.child("ask", crash=CrashPoint("write", SAVED_TICKET, "before"))
    filed = desk.tickets()
    async with stage.engine(desk=desk) as engine:
        runs = _all_ended(await engine.resume_all())
    assert desk.tickets() == filed
    return await played(stage, gemini, runs, began, desk=filed)


async def desk_down(stage: Stage, gemini: FakeGemini) -> Played:
    """The desk stays down for a while; the customer waits without a made-up number."""
    began = time.monotonic()
    desk = DeskThatIsDown()
    async with stage.engine(desk=desk) as engine:
        waiting = (await talk(engine, stage.case))[-1]
        desk.down = False
        run = await engine.resume(waiting.conversation_id)
    filed = {key: ticket.model_dump_json() for key, ticket in desk.filed.items()}
    return await played(stage, gemini, [run], began, waiting=waiting, desk=filed)


async def with_a_store_that_fails(stage: Stage, gemini: FakeGemini) -> Played:
    """One append fails; whoever asked reads an error or not, and `resume` goes on from the last that was written."""
    began = time.monotonic()
    fault = stage.case.script["store_faults"][0]
    store = FaultyStore(stage.store(), fault["nth"])
    conversation_id = "c-faulty"
    async with stage.engine(store=store) as engine:
        try:
            await talk(engine, stage.case, conversation_id)
        except StoreError as error:
            raised: StoreError | None = error
        else:
            raised = None
        run = await engine.resume(conversation_id)
    return await played(stage, gemini, [run], began, raised=raised, appends=store.appends)


@dataclass(frozen=True, kw_only=True)
class Recorded(Session):
    """A customer's record whose fields are called like what state machine libraries put into their models."""

    trigger: str
    state: str
    finish: str
    to_DONE: str


async def with_a_record(stage: Stage, gemini: FakeGemini) -> Played:
    """The session carries such a record; what rests is resumed."""
    began = time.monotonic()
    record = dict(stage.case.script["customer_record"])
    sessions: list[Recorded] = []

    made: Callable[..., Recorded] = partial(Recorded, **record)

    def begin(*args: Any, **facts: Any) -> Session:
        sessions.append(made(*args, **facts))
        return sessions[-1]

    async with stage.engine() as engine:
        engine.app = replace(engine.app, make_session=begin)
        runs = await talk(engine, stage.case)
        before = await engine.store.load(runs[0].conversation_id)
        again = await engine.resume(runs[0].conversation_id)
        after = await engine.store.load(runs[0].conversation_id)
    kept = [{name: getattr(session, name) for name in record} for session in sessions]
    return await played(stage, gemini, [*runs, again], began, kept=kept, record=record, journals=(before, after))


PLAYS: dict[str, dict[str, Play]] = {
    "F020": {f"keeping-{recent}": partial(straight, context_window_contents=recent) for recent in range(1, 8)},
    "F094": {
        "": straight,
        **{f"keeping-{recent}": partial(straight, keep_recent_contents=recent) for recent in (1, 2)},
    },
    "F096": {"": straight, "keeping-1": partial(straight, keep_recent_contents=1)},
    "F025": {"killed": partial(killed, point=CrashPoint("write", SAVED_RESULTS, "after"))},
    "F061": {"outlasting": outlasting},
    "F062": {"five": five_at_once},
    "F077": {"killed": partial(killed, point=CrashPoint("write", SAVED_REPLY, "after"))},
    "F079": {"two-processes": another_worker_looks},
    "F081": {"two-workers": two_workers},
    "F083": {"frozen": frozen},
    "F084": {"killed": delivered_twice},
    "F085": {f"torn-at-{percent}": partial(torn, percent=percent) for percent in (1, 50, 99)},
    "F088": {"measured": measured},
    "F092": {"adopted": of_an_old_schema},
    "F104": {"timeout": desk_times_out, "killed": desk_asked_by_the_next, "down": desk_down},
    "F107": {"store-fails": with_a_store_that_fails},
    "F109": {"with-a-record": with_a_record},
}
