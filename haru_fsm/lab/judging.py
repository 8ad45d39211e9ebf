"""A table's guards on a recording, without a model: what would they have done, and when?

Only the rows that are asked when the model wants tools are judged, as the machine reads them: a row with an answer
that leads on (a nudge) refuses the calls, any other guarded row stops the run, and the unguarded one runs them.

The first nudge or stop is a fact. What comes after a nudge is a bound: the recorded model had not read it, and went on
as if nobody had spoken. So a loop that the recording shows to go on is the stubborn model, the worst that can come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import Protocol

from haru_fsm.conversation import Step, ToolsRequested, Trip
from haru_fsm.guards.folds import Folds, Memos
from haru_fsm.guards.guard import AllOf, AnyOf, Guard, atoms
from haru_fsm.guards.verdicts import verdict
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


class Guards:
    """Guarded rows as a rule: each condition with what happens where it holds, in the order in which they are asked."""

    def __init__(self, rows: Iterable[tuple[Guard, Kind]]) -> None:
        asked = tuple(rows)
        self.folds = Folds([atom for guard, _ in asked for atom in atoms(guard)])
        self._rows = tuple((verdict(guard, self.folds.places), kind) for guard, kind in asked)

    def judge(self, recording: Recording) -> Judgement:
        """All marks, run by run.

        As long as nothing has tripped, the memos are those of the recording; from then on they are folded anew.
        """
        marks, memos = list[Mark](), None
        for number, (turns, folded) in enumerate(zip(recording.runs, recording.folded(self.folds), strict=True)):
            memos = self.folds.begun(memos) if memos is not None and self.folds.lasting else None
            for place, turn in enumerate(turns):
                now = folded[place] if memos is None else memos
                mark, noted = self._asked(now, turn)
                if mark is not None:
                    marks.append(Mark(number, place, *mark))
                if mark is not None or noted or memos is not None:
                    memos = self._along(now, turn.refused if mark is not None else turn.run, noted)
                if mark is not None and mark[0] is Kind.STOP:
                    break
        return Judgement(tuple(marks))

    def _asked(self, memos: Memos, turn: Turn) -> tuple[tuple[Kind, Trip] | None, list[str]]:
        """What the first row does whose condition holds, and which counted guards let the reply pass."""
        event, noted = turn.asked.event, list[str]()
        for holds, kind in self._rows:
            trip = holds(memos, event, noted)
            if trip is not None:
                return (kind, trip), noted
        return None, noted

    def _along(self, memos: Memos, steps: tuple[Step, ...], noted: Sequence[str]) -> Memos:
        if noted:
            steps = (steps[0]._replace(asked=tuple(noted)), *steps[1:])
        return self.folds.along(memos, steps)


class Table(Guards):
    """The guards of a workflow's table as a rule; `without` names classes of guards that are left out of it."""

    def __init__(self, workflow: Workflow, without: Collection[str] = ()) -> None:
        super().__init__(
            (left, _kind(row)) for row in guarded(workflow) if (left := _left(row.when, without)) is not None
        )


def guarded(workflow: Workflow) -> Iterator[Row]:
    """The rows with a condition that are asked when the model wants tools."""
    return takewhile(lambda row: row.when is not None, _rows(workflow))


def _rows(workflow: Workflow) -> tuple[Row, ...]:
    """The rows that are asked about a reply with calls, in the state whose work gives it."""
    state = next(state for state, events in workflow.gives.items() if ToolsRequested in events)
    return workflow.rows_for(state, ToolsRequested)


def _left(guard: Guard | None, without: Collection[str]) -> Guard | None:
    """The condition without these guards; None where it can then never hold."""
    match guard:
        case None:
            return None
        case AnyOf(guards=parts):
            left = [part for part in (_left(part, without) for part in parts) if part is not None]
            return AnyOf(*left) if left else None
        case AllOf(guards=parts):
            left = [part for part in (_left(part, without) for part in parts) if part is not None]
            return AllOf(*left) if len(left) == len(parts) else None
    return None if type(guard).__name__ in without else guard


def _kind(row: Row) -> Kind:
    return Kind.NUDGE if row.answer is not None else Kind.STOP


def judged(rule: Rule, recordings: Iterable[Recording]) -> list[Judgement]:
    """The rule on each recording."""
    return [rule.judge(recording) for recording in recordings]
