"""A table's guards on a recording, without a model: what would they have done, and when?

Only the rows that are asked when the model wants tools are judged, as the machine reads them: a row with an answer
that leads on (a nudge) refuses the calls, any other guarded row stops the run, and the unguarded one runs them.

The first nudge or stop is a fact. What comes after a nudge is a bound: the recorded model had not read it, and went on
as if nobody had spoken. So a loop that the recording shows to go on is the stubborn model, the worst that can come.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

from haru_fsm.conversation import ObservationAppended, Step, ToolsRequested, Trip
from haru_fsm.guards.budgets import Deadline
from haru_fsm.guards.folds import Folds
from haru_fsm.guards.guard import AllOf, AnyOf, Guard, atoms
from haru_fsm.guards.trail import OfTrail
from haru_fsm.guards.verdicts import Verdict, verdict
from haru_fsm.lab.recordings import Recording, Turn
from haru_fsm.machine import Row, Workflow


class Kind(StrEnum):
    """What a rule does with a reply."""

    NUDGE = "nudge"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Mark:
    """A rule has tripped: in which run, at which turn of it (both from 0), and why."""

    run: int
    turn: int
    kind: Kind
    trip: Trip | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one rule makes of one recording."""

    marks: tuple[Mark, ...]

    @property
    def nudged(self) -> bool:
        """Whether it spoke, or stopped the run at once."""
        return bool(self.marks)

    @property
    def stopped(self) -> bool:
        """Whether a run was stopped."""
        return any(mark.kind is Kind.STOP for mark in self.marks)

    def first(self, run: int, kind: Kind | None = None) -> int | None:
        """The turn of a run at which it first did this; None: anything."""
        return next((m.turn for m in self.marks if m.run == run and kind in (None, m.kind)), None)


class Rule(Protocol):
    """What can be compared: a table's guards, or a classic rule."""

    def judge(self, recording: Recording) -> Judgement:
        """All its marks, in order; the last of a run is the stop, if there is one."""
        ...


@dataclass(frozen=True, slots=True)
class _Asked:
    """A row that is asked about a reply with calls."""

    holds: Verdict | None
    kind: Kind | None


class Table:
    """The guards of a workflow's table as a rule; `without` names classes of guards that are left out of it."""

    def __init__(self, workflow: Workflow, without: Collection[str] = ()) -> None:
        rows = [row for row in map(partial(_left, without=without), _rows(workflow)) if row is not None]
        self.folds = Folds([guard for row in rows for guard in atoms(row.when)])
        self._quiet = not any(_heeds_observations(guard) for guard in self.folds.guards)
        self._asked = tuple(
            _Asked(verdict(row.when, self.folds.places) if row.when else None, _kind(row)) for row in rows
        )

    def judge(self, recording: Recording) -> Judgement:
        """All marks, run by run."""
        memos: Sequence[Any] = self.folds.initial()
        marks: list[Mark] = []
        before = 0
        for number, turns in enumerate(recording.runs):
            for place, turn in enumerate(turns):
                memos, mark = self._turn(memos, turn, before)
                before = turn.asked.run
                if mark is not None:
                    marks.append(Mark(number, place, *mark))
                    if mark[0] is Kind.STOP:
                        break
        return Judgement(tuple(marks))

    def _turn(self, memos: Sequence[Any], turn: Turn, before: int) -> tuple[Sequence[Any], tuple[Kind, Trip] | None]:
        after, step, asked = self.folds.after, turn.asked, list[str]()
        if step.run != before:  # what belongs to a run begins with it, and is judged fresh
            memos = self.folds.begun(memos)
        for row in self._asked:
            trip = row.holds(memos, step.event, asked) if row.holds is not None else None
            if row.holds is None or trip is not None:
                break
        step = step._replace(asked=tuple(asked)) if asked else step
        memos = after(memos, step, step.run)
        if trip is None:
            for each in turn.results if self._quiet else turn.brought:
                memos = after(memos, each, step.run)
            return memos, None
        kind = row.kind or Kind.STOP
        return after(memos, _refused(step), step.run), (kind, trip)


def _rows(workflow: Workflow) -> tuple[Row, ...]:
    """The rows that are asked about a reply with calls, in the state whose work gives it."""
    state = next(state for state, events in workflow.gives.items() if ToolsRequested in events)
    return workflow.rows_for(state, ToolsRequested)


def _left(row: Row, without: Collection[str]) -> Row | None:
    """The row without these guards; None where its condition can then never hold."""
    if row.when is None or not without:
        return row
    when = _spared(row.when, without)
    return dataclasses.replace(row, when=when) if when is not None else None


def _spared(guard: Guard, without: Collection[str]) -> Guard | None:
    match guard:
        case AnyOf(guards=parts):
            left = [part for part in (_spared(part, without) for part in parts) if part is not None]
            return AnyOf(*left) if left else None
        case AllOf(guards=parts):
            left = [part for part in (_spared(part, without) for part in parts) if part is not None]
            return AllOf(*left) if len(left) == len(parts) else None
    return None if type(guard).__name__ in without else guard


def _kind(row: Row) -> Kind | None:
    if row.when is None:
        return None
    return Kind.NUDGE if row.answer is not None else Kind.STOP


def _heeds_observations(guard: Guard) -> bool:
    """Whether an observation that refuses nothing can change this guard's memo; a recorded one takes no time."""
    return not isinstance(guard, OfTrail | Deadline) and (
        guard.folds is None or issubclass(ObservationAppended, guard.folds)
    )


def _refused(step: Step) -> Step:
    assert isinstance(step.event, ToolsRequested)
    refusals = dict.fromkeys(range(len(step.event.meant)), "")
    return step._replace(event=ObservationAppended(refusals=refusals), asked=())


def judged(rule: Rule, recordings: Iterable[Recording]) -> list[Judgement]:
    """The rule on each recording."""
    return [rule.judge(recording) for recording in recordings]
