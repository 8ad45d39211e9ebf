"""No restart, no compaction and no fork reopens a budget: each shipped guard in the engine, on a real SQLite file.

One play is had four times: undisturbed; with processes that die and others that carry on; with a history that is
compacted before every request; and as a fork that goes on from some step. The guard says the same in all of them, and
what it promises is kept in each.
"""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm import App, Engine, Limits, Row, Workflow, guards, tool
from haru_fsm.conversation import (
    ApprovalRequested,
    Event,
    ModelAnswered,
    ModelEvent,
    ObservationAppended,
    ResultsEvent,
    Resumed,
    Step,
    ToolsRequested,
    Usage,
)
from haru_fsm.guards import Guard
from haru_fsm.guards.guard import AllOf, AnyOf, Not
from haru_fsm.models import ModelOutcome, ModelRequest
from haru_fsm.models.scripted import answer, calls
from haru_fsm.stores import Store
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.testing.comparing import difference
from haru_fsm.testing.crashes import CrashPoint
from haru_fsm.testing.driving import CONVERSATION, Performance, Rig
from haru_fsm.testing.judging_effects import doubtful
from haru_fsm.testing.plays import Play
from tests.engine.shopless import Tools, bare, broken


class Asked(NamedTuple):
    """A guard, the event that it judges here, and the limits that let it come to that."""

    guard: Guard
    event: type[Event] = ToolsRequested
    limits: dict[str, Any] = {}


LAST_WORD = {"final_answer_without_tools": True, "max_steps": 3}
CASES = (
    *map(Asked, (guards.StepBudget(5), guards.ToolCallBudget(5), guards.TokenBudget(50), guards.CostBudget(0.05))),
    *map(Asked, (guards.Deadline(2.0), guards.Nudged(2), guards.LastWord(3), guards.RepeatedCall(3))),
    *map(Asked, (guards.RepeatedEffect(), guards.CallCycle(), guards.NoProgress(2, 2), guards.FailingCalls(3))),
    *map(Asked, (guards.UnusableCalls(2), guards.SimilarThoughts())),
    Asked(guards.NudgedInVain(1), limits={"loop_repeats": 2}),
    Asked(guards.LastWordGiven(), ObservationAppended, LAST_WORD),
    Asked(guards.ApprovalBudget(2), ApprovalRequested),
    Asked(guards.ResumeBudget(5), Resumed),
    Asked(guards.InDoubt(), ModelAnswered),
    Asked(guards.UnfoundedTicketClaim(), ModelAnswered),
)


def test_every_shipped_guard_is_among_them() -> None:
    shipped = {kind for name in guards.__all__ if isinstance(kind := getattr(guards, name), type)}
    assert {type(case.guard) for case in CASES} == shipped - {Guard, AnyOf, AllOf, Not}


# --------------------------------------------------------------------------- the play

looked = st.builds(lambda what: ("look", {"what": what}), st.sampled_from(["A", "A", "B", "broken"]))
wanted = st.one_of(
    looked,
    looked,
    st.sampled_from([("book", {"what": "A"}), ("pay", {"what": "A"}), ("wipe", {"what": "A"})]),
    st.sampled_from([("nothing_like_it", {}), ("look", {}), ("book", {"what": "broken"})]),
)
replies = st.builds(
    lambda found, text, tokens: calls(*found, text=text, usage=Usage(prompt=tokens, cost_usd=tokens / 1000)),
    st.lists(wanted, min_size=1, max_size=2),
    st.sampled_from(["", "주문을 다시 확인하겠습니다", "배송 상태를 봅니다"]),
    st.integers(0, 20),
)
answers = st.sampled_from(["네.", "티켓 HT-9999999999를 접수했습니다."]).map(answer)
scripts = st.builds(
    lambda few, times, end: (*few * times, end) * 2,
    st.lists(replies, min_size=1, max_size=3),
    st.integers(1, 4),
    answers,
)
deaths = st.lists(
    st.builds(CrashPoint, st.just("write"), st.sampled_from([1, 2, 3, 99]), st.sampled_from(["before", "after"])),
    max_size=6,
)
"""A process whose 99th write never comes lives, and the next message has one that may die."""
plays = st.builds(
    Play,
    messages=st.sampled_from([("하나",), ("하나", "둘")]),
    replies=scripts,
    pace_ms=st.sampled_from([0, 300]),
    decisions=st.sampled_from([(True,), (False, True)]),
)


class Shop(Tools):
    """The small tools, one of which waits for a person."""

    def make(self, session: Any) -> list[Any]:
        @tool(read_only=False, approval=True)
        def wipe(what: str) -> dict[str, str]:
            """Wipe something out."""
            return {"wiped": what}

        return [*super().make(session), wipe]


def behaved(what: str) -> Any:
    """A page that is long enough to be cut; or a failure, which of a tool with an effect leaves a doubt."""
    return broken(what) if what == "broken" else {"what": what, "text": "Picked up by the carrier. " * 60}


@cache
def rig(case_number: int, scope: str, *, compacts: bool = False) -> Rig:
    """The default table with the guard before all its rows, where it does not ask it already, on a stand."""
    case = CASES[case_number]
    more: dict[str, Any] = {"compact_at_tokens": 1, "keep_recent_contents": 2} if compacts else {}
    chosen = {"max_steps": 30, "max_tool_calls": 60, "max_resumes": 15, "max_approvals": 50, "loop_repeats": 20}
    limits = Limits(**{**chosen, **case.limits, **more})
    table = bare(limits).workflow
    sources = tuple(dict.fromkeys(source for row in table.rows if row.event is case.event for source in row.sources))
    guard = scoped(case.guard, scope)
    first = [Row(case.event, sources, "ESCALATE_TICKET", when=guard)] if guard not in table.guards else []
    workflow = Workflow([*first, *table.rows], work=table.work, initial=table.initial)
    shop = Shop(look=behaved, book=behaved)
    return Rig(App(workflow=workflow, make_tools=shop.make, system_prompt="하루", limits=limits))


def scoped(guard: Guard, scope: Any) -> Guard:
    return guard if isinstance(guard, guards.UnfoundedTicketClaim) else dataclasses.replace(guard, scope=scope)


class Continuing:
    """The play's model for a fork: what it says depends on how many replies the copy's journal holds."""

    name = "continuing"

    def __init__(self, play: Play, store: Store) -> None:
        self._play, self._store = play, store

    async def respond(self, request: ModelRequest) -> ModelOutcome:
        [copy] = [one for one in await self._store.conversations() if one.conversation_id != CONVERSATION]
        record = await self._store.load(copy.conversation_id)
        assert record is not None
        said = sum(isinstance(step.event, ModelEvent) for step in record.steps)
        return self._play.replies[min(said, len(self._play.replies) - 1)]


async def forked(stand: Rig, play: Play, file: Path, at: int) -> tuple[Step, ...]:
    """The journal of a copy that goes on from this step."""
    store = SQLiteStore(file)
    async with Engine(stand.app, model=Continuing(play, store), store=store) as haru:
        run = await haru.fork(CONVERSATION, at=at, live=True)
        while run.waiting:
            run = await haru.approve(run.conversation_id, run.waiting[0].call)
        record = await haru.store.load(run.conversation_id)
    assert record is not None
    return record.steps


# --------------------------------------------------------------------------- what must hold


def told(steps: Sequence[Step]) -> list[Any]:
    """What happened and which guards tripped, by how much; resumptions left out."""
    return [
        (step.run, step.event.kind, step.state, step.trip and (step.trip.guard, step.trip.figure, step.trip.because))
        for step in steps
        if not isinstance(step.event, Resumed)
    ]


def acts(steps: Sequence[Step]) -> bool:
    """Whether some call has gone through the effect ledger."""
    return any(isinstance(s.event, ResultsEvent) and any(result.effect for result in s.event.results) for s in steps)


def kept(case: Asked, guard: Guard, steps: Sequence[Step]) -> None:
    """What the guard promises holds in this journal, and once it has tripped it trips again at whatever comes.

    It let no more pass than its limit; visits are counted with the one that is judged, so the last of them trips.
    """
    if guard.limit is None:
        return
    memo, passed, run, spent = guard.initial(), 0, 0, False
    for step in steps:
        if guard.scope == "run" and step.run != run:
            memo, passed, run, spent = guard.initial(), 0, step.run, False
        if isinstance(step.event, case.event):
            trip = guard.judge(memo, step.event)
            assert trip is not None or not spent, "a spent budget was opened again"
            spent = trip is not None
            assert not spent or step.state == "ESCALATE_TICKET", "what the table was told is what its journal tells"
            passed += not spent
            assert passed <= guard.limit - bool(guard.counts)
        memo = guard.fold(memo, step)


@pytest.mark.parametrize("scope", ["run", "conversation"])
@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.guard.name for case in CASES])
@given(play=plays, died=deaths, place=st.floats(0, 1))
@settings(max_examples=5, deadline=None)
def test_nothing_reopens_a_budget(number: int, scope: str, play: Play, died: list[CrashPoint], place: float) -> None:
    case, stand = CASES[number], rig(number, scope)
    guard = scoped(case.guard, scope)
    with tempfile.TemporaryDirectory() as folder:
        calm = perform(stand, play, Path(folder) / "calm.db")
        disturbed = perform(stand, play.model_copy(update={"crashes": tuple(died)}), Path(folder) / "disturbed.db")
        for seen in (calm, disturbed):
            kept(case, guard, seen.steps)
        if case.event is not Resumed and not doubtful(calm.record) and not doubtful(disturbed.record):
            assert told(disturbed.steps) == told(calm.steps)
            assert difference(disturbed.steps, calm.steps) == ""
        at = 1 + round(place * (len(calm.steps) - 1))
        copy = asyncio.run(forked(stand, play, Path(folder) / "calm.db", at))
    kept(case, guard, copy)
    # A copy that acts anew is not answered from the first one's ledger, and its model takes no time.
    if case.event is not Resumed and not acts(calm.steps) and case.guard.measures != "seconds":
        assert told(copy) == told(calm.steps)[: len(told(copy))]
    compacted = perform(rig(number, scope, compacts=True), play, None)
    kept(case, guard, compacted.steps)
    assert told(compacted.steps) == told(calm.steps)


def perform(stand: Rig, play: Play, file: Path | None) -> Performance:
    """The play, had on a file, or where it dies nowhere, in memory."""
    store = MemoryStore()
    seen = asyncio.run(stand.perform(play, lambda: store if file is None else SQLiteStore(file)))
    assert not seen.broke
    return seen


def test_five_stays_five_over_any_number_of_restarts() -> None:
    """A process that dies at every write: the run is taken up five times, and given up then."""
    number = next(n for n, case in enumerate(CASES) if isinstance(case.guard, guards.ResumeBudget))
    crashes = (CrashPoint("write", 1, "after"), *[CrashPoint("write", 2, "before")] * 12)
    play = Play(replies=(calls(("look", {"what": "A"})), answer("네.")), crashes=crashes)
    with tempfile.TemporaryDirectory() as folder:
        seen = perform(rig(number, "run"), play, Path(folder) / "haru.db")
    resumed = [step for step in seen.steps if isinstance(step.event, Resumed)]
    assert [step.state for step in resumed].count("ESCALATE_TICKET") == 1
    assert len(resumed) - 1 == 5
    assert seen.runs[-1].stopped_by is not None
    assert seen.runs[-1].stopped_by.guard == "ResumeBudget(5)"


def test_what_a_conversation_has_spent_in_earlier_runs_is_known_after_a_restart_in_a_later_one() -> None:
    number = next(n for n, case in enumerate(CASES) if isinstance(case.guard, guards.ToolCallBudget))
    look = [calls(("look", {"what": what})) for what in "ABCDEF"]
    crashes = (CrashPoint("write", 99, "after"), CrashPoint("write", 4, "after"))
    play = Play(messages=("하나", "둘"), replies=(*look[:3], answer("네."), *look[3:], answer("네.")), crashes=crashes)
    with tempfile.TemporaryDirectory() as folder:
        seen = perform(rig(number, "conversation"), play, Path(folder) / "haru.db")
    assert len(seen.deaths) == 1
    assert any(isinstance(step.event, Resumed) and step.run == 2 for step in seen.steps)
    assert seen.runs[-1].stopped_by is not None
    assert seen.runs[-1].stopped_by.figure == 6
