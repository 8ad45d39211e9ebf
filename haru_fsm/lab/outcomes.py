"""What came of an experiment: counts with Wilson intervals, what would have been saved, and pairs.

What a rule did before its first nudge or at it is a fact. Everything after a nudge is a bound, for the recorded model
had not read it: so are the stops that came after one, and what they saved and destroyed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property

from haru_fsm.conversation import ModelEvent
from haru_fsm.lab.judging import Judgement, Kind
from haru_fsm.lab.loops import Loop, goes_on, true_loops
from haru_fsm.lab.recordings import Recording, Turn

CHARS_PER_TOKEN = 4
"""Where nobody recorded tokens, they are estimated from the characters of what the model wrote and read."""


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    count: int
    of: int

    @property
    def share(self) -> float:
        """Between 0 and 1; 0 of 0 is 0."""
        return self.count / self.of if self.of else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of 95 % (E. B. Wilson, 1927)."""
        if not self.of:
            return 0.0, 1.0
        z, n, p = 1.959964, self.of, self.share
        middle, spread = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, (middle - spread) / (1 + z * z / n)), min(1.0, (middle + spread) / (1 + z * z / n))

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.count}/{self.of} = {self.share:.1%} [{low:.1%}, {high:.1%}]"


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
    loops_ended: Share
    """Of the loops that went on for three more turns after their nudge: stopped by then."""
    steps_saved: Share
    tokens_saved: Share
    stops_that_are_facts: Share
    destroyed: frozenset[int] = field(default=frozenset(), repr=False)
    """Which cases' successes it stopped, for pairs."""

    def against(self, other: Outcome) -> tuple[int, int, float]:
        """Successes that only this one destroyed, that only the other did, and McNemar's exact p (two-sided)."""
        mine, theirs = len(self.destroyed - other.destroyed), len(other.destroyed - self.destroyed)
        n, k = mine + theirs, min(mine, theirs)
        tail = sum(math.comb(n, i) for i in range(k + 1)) / 2**n
        return mine, theirs, min(1.0, 2 * tail) if n else 1.0

    def row(self) -> dict[str, str | int | float]:
        """The figures, flat, for CSV."""
        cells: dict[str, str | int | float] = {"rule": self.name, "family": self.family}
        for name, value in vars(self).items():
            if isinstance(value, Share):
                low, high = value.interval
                cells |= {f"{name}_{key}": figure for key, figure in asdict(value).items()}
                cells |= {f"{name}_low": round(low, 6), f"{name}_high": round(high, 6)}
        return cells


def outcome(name: str, family: str, cases: Sequence[Case], judgements: Sequence[Judgement]) -> Outcome:
    """The figures of one rule; `judgements` in the order of `cases`."""
    pairs = list(zip(cases, judgements, strict=True))
    good = [(place, j) for place, (case, j) in enumerate(pairs) if case.counts and case.recording.success]
    bad = [j for case, j in pairs if case.recording.success is False]
    loops = [(case, loop, j) for case, j in pairs for loop in case.loops]
    went_on = [(case, loop, j, told) for case, loop, j in loops if (told := _goes_on(case, loop, j)) is not None]
    stops = [(j, mark) for _, j in pairs for mark in j.marks if mark.kind is Kind.STOP]
    saved = [_saved(case, j) for case, j in pairs]
    return Outcome(
        name,
        family,
        successes_stopped=Share(sum(j.stopped for _, j in good), len(good)),
        successes_nudged=Share(sum(j.nudged for _, j in good), len(good)),
        failures_stopped=Share(sum(j.stopped for j in bad), len(bad)),
        failures_nudged=Share(sum(j.nudged for j in bad), len(bad)),
        loops_on_time=Share(sum(_on_time(loop, j) for _, loop, j in loops), len(loops)),
        loops_ended=Share(sum(_ended(loop, j, told) for _, loop, j, told in went_on), len(went_on)),
        steps_saved=Share(sum(steps for steps, _ in saved), sum(case.recording.turns for case in cases)),
        tokens_saved=Share(sum(tokens for _, tokens in saved), sum(sum(map(sum, case.costs)) for case in cases)),
        stops_that_are_facts=Share(sum(j.first(mark.run) == mark.turn for j, mark in stops), len(stops)),
        destroyed=frozenset(place for place, j in good if j.stopped),
    )


def _on_time(loop: Loop, judgement: Judgement) -> bool:
    first = judgement.first(loop.run)
    return first is not None and first <= loop.third


def _goes_on(case: Case, loop: Loop, judgement: Judgement) -> int | None:
    """The turn at which this loop was nudged, if it goes on for three more turns after it."""
    turns = [mark.turn for mark in judgement.marks if mark.run == loop.run]
    return next((turn for turn in turns if goes_on(case.recording, loop, turn)), None)


def _ended(loop: Loop, judgement: Judgement, told: int) -> bool:
    stop = judgement.first(loop.run, Kind.STOP)
    return stop is not None and stop <= told + 3


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
