"""The hunt: plays by the hundred against an app, until one breaks a promise; then the shortest that still does.

Hypothesis draws and shrinks the plays, the driver has them, the judgements judge. The same seed gives the same plays.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from haru_fsm.app import App, load_app
from haru_fsm.conversation import JSON
from haru_fsm.limits import Limits
from haru_fsm.models.cassette import RecordingModel
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.testing.behaviours import Does
from haru_fsm.testing.comparing import CARRIED_ON, carried_on
from haru_fsm.testing.copies import clean
from haru_fsm.testing.crashes import Crashed
from haru_fsm.testing.driving import CONVERSATION, Performance, Rig
from haru_fsm.testing.judgements import PROMISES, judge
from haru_fsm.testing.plays import Belongings, Finding, Play, written
from haru_fsm.testing.shelves import NewStore, shelves

Subject = App | Callable[[Limits], App] | Path | str
"""An app, a function that makes it under given limits, or its folder."""
T = TypeVar("T")

LOG = logging.getLogger("haru_fsm")
FICKLE = "not each time: something outlives a conversation, such as a global, a cache or a file; see `reset`"
ALL_PROMISES = (*PROMISES, CARRIED_ON)


@dataclass(frozen=True, slots=True)
class Found:
    """A promise that does not hold, and the conversation that shows it."""

    promise: str
    because: str
    seen: Performance
    given: Belongings | None = None
    """What was stated of customers, where the promise is about them."""

    @property
    def finding(self) -> Finding:
        """The same, to be kept in a file."""
        return Finding(promise=self.promise, because=self.because, play=self.seen.play, given=self.given)

    def keep(self, folder: Path) -> Path:
        """Write it into a folder, and beside it what the model was asked and said, as a cassette; returns the file."""
        file = self.finding.save(folder)
        cassette = file.with_suffix(".jsonl")
        cassette.unlink(missing_ok=True)
        recorder = RecordingModel(ScriptedModel([asked.outcome for asked in self.seen.requests]), cassette)
        for asked in self.seen.requests:
            run_here(recorder.respond(asked.request))
        return file


@dataclass(slots=True)
class Coverage:
    """What a hunt has been through."""

    plays: int = 0
    transitions: int = 0
    crashes: int = 0
    endings: Counter[str] = field(default_factory=Counter)
    rows: set[tuple[str, str, str]] = field(default_factory=set)
    """(state, event, next state) that were seen."""
    stopped_by: Counter[str] = field(default_factory=Counter)

    def add(self, seen: Performance) -> None:
        """Count one more play."""
        self.plays += 1
        self.crashes += len(seen.deaths)
        for step in seen.steps:
            self.transitions += 1
            self.rows.add((step.source, step.event.kind, step.state))
            if step.rests:
                self.endings[step.event.kind] += 1
            if step.trip is not None:
                self.stopped_by[step.trip.guard.partition("(")[0]] += 1

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"{self.plays:,} conversations, {self.transitions:,} transitions, {self.crashes:,} crashes"
        yield "endings: " + (", ".join(f"{times:,} {kind}" for kind, times in self.endings.most_common()) or "none")
        tripped = ", ".join(f"{times:,} {name}" for name, times in self.stopped_by.most_common())
        yield f"guards that tripped: {tripped or 'none'}"
        yield f"ways through the table: {len(self.rows)}"

    def as_json(self) -> JSON:
        """For programs."""
        return {
            "conversations": self.plays,
            "transitions": self.transitions,
            "crashes": self.crashes,
            "endings": dict(self.endings),
            "guards": dict(self.stopped_by),
            "ways": sorted(" ".join(way) for way in self.rows),
        }


def run_here(work: Coroutine[Any, Any, T], run: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run) -> T:
    """Run a coroutine to its end, also where an event loop is running: then in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run, work).result()


class _NotOfPlays(logging.Filter):
    """What the engine logs of a play is part of the attack, and nobody can settle its calls."""

    def filter(self, record: logging.LogRecord) -> bool:
        return CONVERSATION not in record.getMessage()


def _of_the_living(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A process that died had writes under way that nobody waits for any more: they end as they must."""
    if not isinstance(context.get("exception"), Crashed):
        loop.default_exception_handler(context)


class Ground:
    """An app, ready to be attacked; with its own event loop. Use it as a context manager.

    `store` makes an empty store, or is a folder for SQLite files (see `shelves`). `reset` puts back whatever
    the tools have changed; it is called before each play.
    """

    def __init__(
        self,
        subject: Subject,
        store: NewStore | Path | str = MemoryStore,
        reset: Callable[[], object] | None = None,
        coverage: Coverage | None = None,
    ) -> None:
        self._subject = subject
        self._shelves = shelves(store)
        self._reset = reset
        self._rigs: dict[str, Rig] = {}
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_of_the_living)
        self._quiet = _NotOfPlays()
        self.coverage = coverage if coverage is not None else Coverage()

    def __enter__(self) -> Self:
        LOG.addFilter(self._quiet)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        LOG.removeFilter(self._quiet)
        self._run(self._loop.shutdown_default_executor())
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it in the ground's own loop; from inside another one, in a thread."""
        return run_here(work, self._loop.run_until_complete)

    @property
    def app(self) -> App:
        """The app under its own limits."""
        return self._rig(Play()).app

    def _rig(self, play: Play) -> Rig:
        key = str(sorted(play.limits.items()))
        if key not in self._rigs:
            self._rigs[key] = Rig(self._made(play))
        return self._rigs[key]

    def _made(self, play: Play) -> App:
        subject = self._subject
        if isinstance(subject, App):
            return subject
        limits = Limits(**play.limits) if play.limits else None
        if callable(subject):
            return subject(limits or Limits())
        return load_app(subject, limits=limits)

    def reset(self) -> None:
        """Put the tools' world back to where it was."""
        clean(self.app.folder)
        if self._reset is not None:
            self._reset()

    def perform(self, play: Play) -> Performance:
        """Have a play."""
        self.reset()
        seen = self._run(self._rig(play).perform(play, self._shelves()))
        self.coverage.add(seen)
        return seen

    def judged(self, play: Play, promises: Iterable[str]) -> Found | None:
        """Have a play, and judge it; the first promise that is broken, or None."""
        wanted = tuple(promises)
        seen = self.perform(play)
        for promise, because in judge(seen, (name for name in wanted if name != CARRIED_ON)).items():
            return Found(promise, because, seen)
        if CARRIED_ON in wanted and seen.deaths and not _untimely(play):
            calm = self.perform(play.model_copy(update={"crashes": ()}))
            for because in carried_on(seen, calm):
                return Found(CARRIED_ON, because, seen)
        return None


def _untimely(play: Play) -> bool:
    """When an outcome comes late, it is open what has happened by then."""
    return any(each.does is Does.LATE for script in play.behaviours.values() for each in script)


class _Broken(Exception):
    def __init__(self, found: Found) -> None:
        super().__init__(found.because)
        self.found = found


def hunt(
    ground: Ground,
    plays: st.SearchStrategy[Play],
    judged: Callable[[Play], Found | None],
    *,
    examples: int,
    seed: int | None = None,
    on_play: Callable[[], None] = lambda: None,
) -> Found | None:
    """Up to `examples` plays; the shortest that breaks a promise, or None. Without a seed always the same plays."""
    last: list[Found] = []

    def attack(play: Play) -> None:
        on_play()
        found = judged(play)
        if found is not None:
            last.append(found)
            raise _Broken(found)

    test = hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=seed is None,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
    )(hypothesis.given(plays)(attack))
    if seed is not None:
        test = hypothesis.seed(seed)(test)
    try:
        test()
    except _Broken as broken:
        return broken.found
    except Flaky:
        # It was seen, and does not come again each time (threads, late outcomes, tools that remember).
        found = min(last, key=lambda found: len(written(found.seen.play)))
        return replace(found, because=f"{found.because} ({FICKLE})")
    return None
