"""The kill driver: a scenario is killed once at every point where that could matter, resumed, and judged.

A scenario runs in a child process. First undisturbed, to count its durable writes and effects; then once for each
point, with SIGKILL there; then a second kill during the recovery; then it is resumed to its end, and once more in a
process with other hashes. Each case has a copy of the app: what its tools write is its own world, and nobody else's.
`judge` looks only at what is stored and at the log of effects, so other sources of events can use the same judgements.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from haru_fsm.app import load_app
from haru_fsm.certificate import certify
from haru_fsm.contents import History
from haru_fsm.conversation import ApprovalDecided, MessageReceived, Step
from haru_fsm.errors import AppError
from haru_fsm.limits import Limits
from haru_fsm.stores import Record, StoredTicket
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.testing.child import CONVERSATION
from haru_fsm.testing.comparing import difference, plain
from haru_fsm.testing.copies import copy_app
from haru_fsm.testing.crashes import CrashPoint
from haru_fsm.testing.driving import Performance
from haru_fsm.testing.forkserver import ForkServer
from haru_fsm.testing.judgements import BUDGETS, ENDS, ONE_ENDING, VALID, WHOLE
from haru_fsm.testing.judgements import judge as judge_all
from haru_fsm.testing.judging_effects import doubtful
from haru_fsm.testing.plays import Play
from haru_fsm.testing.strict import check_contents

PROPERTIES = (
    "the journal is a prefix and goes on",
    "each effect once, or in doubt",
    "exactly one ending",
    "the history is valid",
    "a message and an approval are consumed once",
    "two recoveries agree",
)
STORED = (ENDS, ONE_ENDING, VALID, WHOLE, BUDGETS)
"""The judgements of all sources of events that need no more than what is stored."""
TOGETHER = 2
"""Cases that are worked on at the same time; each has one process of its own at a time."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Messages of one customer to an app, and the model that answers ("offline", or lines for a scripted one).

    Whatever waits for a person's approval on the way is approved.
    """

    app: Path
    customer: str
    messages: tuple[str, ...]
    model: str | tuple[Any, ...] = "offline"
    limits: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one case: the points at which it was killed, and what each broken property says."""

    points: tuple[CrashPoint, ...]
    broken: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The case in words."""
        return ", then ".join(map(str, self.points))


@dataclass(frozen=True, slots=True)
class End:
    """How a case stands at its end: what is stored, and what took place."""

    record: Record | None
    effects: Counter[str]
    tickets: tuple[StoredTicket, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        """The journal."""
        return self.record.steps if self.record is not None else ()


def prove_kills(scenario: Scenario, *, progress: Callable[[int, int], None] | None = None) -> Iterator[Verdict]:
    """One verdict per case, shortest first. `progress` is told how many cases are done, of how many.

    Raises AppError when the scenario does not even end undisturbed.
    """
    with TemporaryDirectory(prefix="haru-kills-") as folder, ExitStack() as running:
        servers = [running.enter_context(ForkServer("haru_fsm.testing.child")) for _ in range(TOGETHER)]
        calm = _Case(scenario, servers, Path(folder) / "calm")
        told = calm.run("ask", None)
        if told is None:
            raise AppError(f"The conversation does not end even without a kill: {calm.complaint}")
        undisturbed = calm.end()
        points = list(_points(told["counts"]))
        cases: list[tuple[CrashPoint, ...]] = [(point,) for point in points]
        cases += [(point, CrashPoint("write", 1, "after")) for point in points if point.when == "after"]

        app = load_app(scenario.app, limits=Limits(**dict(scenario.limits)))
        certificate = certify(app.workflow, limits=app.limits)

        def prove(number: int) -> Verdict:
            case = _Case(
                scenario, servers[(first := number % TOGETHER) :] + servers[:first], Path(folder) / str(number)
            )
            verdict, end = _prove(case, cases[number], undisturbed)
            # What every source of events is judged by holds here too, as far as it shows in what is stored.
            play = Play(messages=scenario.messages, customer=scenario.customer, crashes=verdict.points)
            seen = Performance(app, certificate, play, record=end.record, tickets=end.tickets)
            seen.deaths = [(point, 0) for point in verdict.points]
            return Verdict(verdict.points, {**verdict.broken, **judge_all(seen, STORED)})

        with ThreadPoolExecutor(TOGETHER) as pool:
            for number, verdict in enumerate(pool.map(prove, range(len(cases))), 1):
                if progress is not None:
                    progress(number, len(cases))
                yield verdict


def _points(counts: dict[str, int]) -> Iterator[CrashPoint]:
    for number in range(1, counts["write"] + 1):
        yield CrashPoint("write", number, "after")
    for number in range(1, counts["effect"] + 1):
        yield CrashPoint("effect", number, "before")
        yield CrashPoint("effect", number, "after")


def _prove(case: _Case, points: tuple[CrashPoint, ...], undisturbed: End) -> tuple[Verdict, End]:
    for number, point in enumerate(points):
        case.run("ask" if number == 0 else "resume", point)
    before = case.end()
    twin = case.twin()
    for one in (case, twin):
        one.run("finish", None)
    end, other = case.end(), twin.end()
    broken = judge(before, end, undisturbed, expected=len(case.scenario.messages))
    if plain(end.steps) != plain(other.steps):
        broken["two recoveries agree"] = "the same crash was recovered from in two ways"
    if case.complaint:
        broken[PROPERTIES[2]] = case.complaint
    return Verdict(points, broken), end


class _Case:
    """One copy of the app, one database and one log of effects, worked on by processes of the first of the servers."""

    def __init__(
        self, scenario: Scenario, servers: Sequence[ForkServer], folder: Path, *, like: Path | None = None
    ) -> None:
        self._app = folder / "app"
        if like is None:
            copy_app(scenario.app, self._app)
        else:
            shutil.copytree(like, folder, symlinks=True)
        self.scenario = scenario
        self._servers = servers
        self._folder = folder
        self.complaint = ""

    def twin(self) -> _Case:
        """The same case once more, as it stands now, with processes of another server."""
        folder = self._folder.with_name(f"{self._folder.name}-twin")
        return _Case(self.scenario, self._servers[::-1], folder, like=self._folder)

    def run(self, do: str, crash: CrashPoint | None) -> dict[str, Any] | None:
        """A process; None when it was killed, as it should be, or failed (then there is a complaint)."""
        scenario = self.scenario
        ended = self._servers[0].run(
            {
                "app": str(self._app),
                "db": str(self._folder / "haru.db"),
                "effects": str(self._folder / "effects"),
                "customer": scenario.customer,
                "messages": [[f"m{number}", text] for number, text in enumerate(scenario.messages, 1)],
                "model": scenario.model,
                "limits": dict(scenario.limits),
                "do": do,
                "crash": [crash.place, crash.number, crash.when] if crash else None,
            }
        )
        if ended.code == 0:
            told: dict[str, Any] = json.loads(ended.said)
            if told["errors"]:
                self.complaint = told["errors"][0]
            return told
        self.complaint = ended.complaint or self.complaint
        return None

    def end(self) -> End:
        """What is stored and what took place, as it is now."""
        log = self._folder / "effects"
        effects = Counter(log.read_text().split()) if log.exists() else Counter()
        database = self._folder / "haru.db"
        record, tickets = asyncio.run(_load(database)) if database.exists() else (None, ())
        return End(record, effects, tickets)


async def _load(database: Path) -> tuple[Record | None, tuple[StoredTicket, ...]]:
    store = SQLiteStore(database)
    try:
        return await store.load(CONVERSATION), tuple(await store.tickets())
    finally:
        await store.aclose()


# --------------------------------------------------------------------------- judgements


def judge(before: End, end: End, undisturbed: End, *, expected: int) -> dict[str, str]:
    """Which properties do not hold, each with what is wrong. `expected` is how many messages were sent."""
    checks = (_prefix, _once, _endings, _valid, _consumed)
    told = {name: check(before, end, undisturbed, expected) for name, check in zip(PROPERTIES, checks, strict=False)}
    return {name: wrong for name, wrong in told.items() if wrong}


def _prefix(before: End, end: End, undisturbed: End, _expected: int) -> str:
    if end.steps[: len(before.steps)] != before.steps:
        return "what was journaled before the kill is not the beginning of the journal"
    if not doubtful(end.record) and plain(end.steps) != plain(undisturbed.steps):
        return f"the journal differs from the undisturbed one: {difference(end.steps, undisturbed.steps)}"
    return ""


def _once(_before: End, end: End, undisturbed: End, _expected: int) -> str:
    more = {name for name, times in end.effects.items() if times > undisturbed.effects[name]}
    keyed = {name for name in more if end.record and _keyed(end.record, name)}
    if more - keyed:
        return f"ran more often than undisturbed: {', '.join(sorted(more))}"
    if end.effects != undisturbed.effects and not (doubtful(end.record) or keyed):
        return f"took place {dict(end.effects)}, and undisturbed {dict(undisturbed.effects)}"
    return ""


def _keyed(record: Record, name: str) -> bool:
    """An effect whose tool accepts the call's key may be asked for again; its own store has it once."""
    return any(
        entry.started is not None and entry.started.name == name and entry.started.keyed
        for entry in record.ledger.values()
    )


def _endings(_before: End, end: End, _undisturbed: End, expected: int) -> str:
    endings = Counter(step.run for step in end.steps if step.rests and not step.pauses)
    wrong = [run for run in range(1, expected + 1) if endings[run] != 1]
    return f"run {wrong[0]} has {endings[wrong[0]]} endings" if wrong else ""


def _valid(before: End, end: End, _undisturbed: End, _expected: int) -> str:
    history = History()
    for step in end.steps:
        history = history.fold(step)
        if wrong := check_contents(list(history.request())):
            return f"after step {step.seq}: {wrong[0]}"
    return ""


def _consumed(_before: End, end: End, _undisturbed: End, expected: int) -> str:
    ids = Counter(step.event.message_id for step in end.steps if isinstance(step.event, MessageReceived))
    if ids != Counter(f"m{number}" for number in range(1, expected + 1)):
        return f"messages journaled: {dict(ids)}"
    decided = Counter(step.event.call for step in end.steps if isinstance(step.event, ApprovalDecided))
    twice = [call for call, times in decided.items() if times > 1]
    return f"decided about more than once: {', '.join(twice)}" if twice else ""
