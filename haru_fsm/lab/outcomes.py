"""What came of an experiment: counts with Wilson intervals, what would have been saved, and pairs.

What a rule did before its first nudge or at it is a fact. Everything after a nudge is a bound, for the recorded model
had not read it: so are the stops that came after one, and what they saved and destroyed.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

from haru_fsm.conversation import ModelEvent
from haru_fsm.lab.judging import Judgement, Kind
from haru_fsm.lab.loops import Loop, goes_on, true_loops
from haru_fsm.lab.recordings import Recording, Turn
from haru_fsm.lab.shares import Clustered, Share

CHARS_PER_TOKEN = 4
"""Where nobody recorded tokens, they are estimated from the characters of what the model wrote and read."""


@dataclass(frozen=True)
class Case:
    """A recording with all that is known of it before any rule is asked."""

    recording: Recording
    counts: bool = True
    """Its success says whether a stop would have destroyed something."""

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Its true loops."""
        return true_loops(self.recording)

    @cached_property
    def costs(self) -> tuple[tuple[int, ...], ...]:
        """Tokens of each turn of each run: recorded, or estimated from its own words and results."""
        return tuple(
            tuple(_tokens(turn.asked.event) or _estimated(turn) for turn in turns) for turns in self.recording.runs
        )


@dataclass(frozen=True)
class Outcome:
    """One rule on all cases. What is saved is an upper bound, and so are stops that came after a nudge."""

    name: str
    family: str
    successes_stopped: Share
    successes_nudged: Share
    failures_stopped: Share
    failures_nudged: Share
    loops_on_time: Share
    """True loops that were nudged or stopped at the latest at their third turn."""
    loops_stopped: Share
    """True loops whose run was stopped at all."""
    loops_ended: Share
    """Of the loops that went on for three more turns after their nudge: stopped by then."""
    steps_saved: Share
    tokens_saved: Share
    stops_that_are_facts: Share
    loops_stopped_after: float | None = None
    """Turns from the third one of a loop to its stop, the median of those that were stopped; below 0: before it."""
    destroyed: frozenset[int] = field(default=frozenset(), repr=False)
    """Which cases' successes it stopped, for pairs."""

    def against(self, other: Outcome) -> tuple[int, int, float]:
        """Successes that only this one destroyed, that only the other did, and McNemar's exact p (two-sided)."""
        mine, theirs = len(self.destroyed - other.destroyed), len(other.destroyed - self.destroyed)
        n, k = mine + theirs, min(mine, theirs)
        tail = sum(math.comb(n, i) for i in range(k + 1)) / 2**n
        return mine, theirs, min(1.0, 2 * tail) if n else 1.0

    def row(self) -> dict[str, str | int | float | None]:
        """The figures, flat, for CSV."""
        cells: dict[str, str | int | float | None] = {"rule": self.name, "family": self.family}
        for name, value in vars(self).items():
            if isinstance(value, Share):
                low, high = value.interval
                cells |= {f"{name}_count": value.count, f"{name}_of": value.of}
                cells |= {f"{name}_low": round(low, 6), f"{name}_high": round(high, 6)}
        return {**cells, "loops_stopped_after": self.loops_stopped_after}


@dataclass
class Tally:
    """The figures of one rule as they grow, case by case: no recording is kept."""

    name: str
    family: str
    _counts: Counter[str] = field(default_factory=Counter)
    _delays: Counter[int] = field(default_factory=Counter)
    _steps: Clustered = field(default_factory=Clustered)
    _tokens: Clustered = field(default_factory=Clustered)
    _destroyed: set[int] = field(default_factory=set)

    def add(self, case: Case, judgement: Judgement) -> None:
        """One more case, and what the rule makes of it."""
        if case.recording.success is False:
            self._count("failures", stopped=judgement.stopped, nudged=judgement.nudged)
        if case.recording.success and case.counts:
            if judgement.stopped:
                self._destroyed.add(self._counts["successes"])
            self._count("successes", stopped=judgement.stopped, nudged=judgement.nudged)
        stops = [mark for mark in judgement.marks if mark.kind is Kind.STOP]
        self._counts["stops"] += len(stops)
        self._counts["stops_facts"] += sum(judgement.first(mark.run) == mark.turn for mark in stops)
        for loop in case.loops:
            self._loop(case, loop, judgement)
        steps, tokens = _saved(case, judgement)
        self._steps.add(steps, case.recording.turns)
        self._tokens.add(tokens, sum(map(sum, case.costs)))

    def outcome(self) -> Outcome:
        """The figures by now."""
        return Outcome(
            self.name,
            self.family,
            successes_stopped=self._share("successes", "stopped"),
            successes_nudged=self._share("successes", "nudged"),
            failures_stopped=self._share("failures", "stopped"),
            failures_nudged=self._share("failures", "nudged"),
            loops_on_time=self._share("loops", "on_time"),
            loops_stopped=self._share("loops", "stopped"),
            loops_ended=self._share("loops_going_on", "ended"),
            steps_saved=self._steps.share,
            tokens_saved=self._tokens.share,
            stops_that_are_facts=self._share("stops", "facts"),
            loops_stopped_after=median(self._delays.elements()) if self._delays else None,
            destroyed=frozenset(self._destroyed),
        )

    def _loop(self, case: Case, loop: Loop, judgement: Judgement) -> None:
        stop = judgement.first(loop.run, Kind.STOP)
        self._count("loops", on_time=_on_time(loop, judgement), stopped=stop is not None)
        if stop is not None:
            self._delays[stop - loop.third] += 1
        told = _goes_on(case, loop, judgement)
        if told is not None:
            self._count("loops_going_on", ended=stop is not None and stop <= told + 3)

    def _count(self, what: str, **which: bool) -> None:
        self._counts[what] += 1
        for name, held in which.items():
            self._counts[f"{what}_{name}"] += held

    def _share(self, what: str, which: str) -> Share:
        return Share(self._counts[f"{what}_{which}"], self._counts[what])


def _on_time(loop: Loop, judgement: Judgement) -> bool:
    first = judgement.first(loop.run)
    return first is not None and first <= loop.third


def _goes_on(case: Case, loop: Loop, judgement: Judgement) -> int | None:
    """The turn at which this loop was nudged, if it goes on for three more turns after it."""
    turns = [mark.turn for mark in judgement.marks if mark.run == loop.run]
    return next((turn for turn in turns if goes_on(case.recording, loop, turn)), None)


def _saved(case: Case, judgement: Judgement) -> tuple[int, int]:
    """Turns and tokens after the stop of each run; the turn that was stopped has been paid for."""
    steps = tokens = 0
    for run, costs in enumerate(case.costs):
        stop = judgement.first(run, Kind.STOP)
        if stop is not None:
            steps, tokens = steps + len(costs) - stop - 1, tokens + sum(costs[stop + 1 :])
    return steps, tokens


def _tokens(event: object) -> int:
    return event.usage.total if isinstance(event, ModelEvent) else 0


def _estimated(turn: Turn) -> int:
    return max(1, turn.chars // CHARS_PER_TOKEN)
