"""Recorded conversations as journals, whoever recorded them. A recording is made into events once and judged often."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from haru_fsm.conversation import (
    Event,
    MessageReceived,
    ModelAnswered,
    ObservationAppended,
    Step,
    TicketClosed,
    ToolsExecuted,
    ToolsRequested,
)
from haru_fsm.guards.folds import Folds, Memos


@dataclass(frozen=True)
class Turn:
    """A reply with calls, and what they brought: the journal's lines of one step."""

    asked: Step
    brought: tuple[Step, ...]

    @cached_property
    def run(self) -> tuple[Step, ...]:
        """Its lines where the calls are run, as it was recorded."""
        return (self.asked, *self.brought)

    @cached_property
    def refused(self) -> tuple[Step, ...]:
        """Its lines where a rule refuses the calls."""
        assert isinstance(self.asked.event, ToolsRequested)
        refusals = dict.fromkeys(range(len(self.asked.event.calls)), "")
        event = ObservationAppended(refusals=refusals)
        return (self.asked, self.asked._replace(event=event, asked=()))

    @property
    def chars(self) -> int:
        """Characters that the model wrote and read in this turn."""
        read = (
            str(r.response)
            for step in self.brought
            if isinstance(step.event, ToolsExecuted)
            for r in step.event.results
        )
        assert isinstance(self.asked.event, ToolsRequested)
        return len(str(self.asked.event.content)) + sum(map(len, read))


@dataclass(frozen=True)
class Recording:
    """One conversation. `success` is what whoever recorded it said of it, or None; `facts` are the other labels.

    Its calls are made comparable at once, and not when the first rule looks at them.
    """

    steps: tuple[Step, ...]
    success: bool | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for step in self.steps:
            if isinstance(step.event, ToolsRequested):
                _ = step.event.meant

    @cached_property
    def runs(self) -> tuple[tuple[Turn, ...], ...]:
        """The turns of each run: what lies between two messages of the customer."""
        runs: dict[int, list[tuple[Step, list[Step]]]] = {}
        for step in self.steps:
            turns = runs.setdefault(step.run, [])
            kind = type(step.event)
            if kind is ToolsRequested:
                turns.append((step, []))
            elif turns and (kind is ToolsExecuted or kind is ObservationAppended):
                turns[-1][1].append(step)
        return tuple(tuple(Turn(asked, tuple(brought)) for asked, brought in turns) for turns in runs.values())

    @property
    def turns(self) -> int:
        """Replies with calls, in all runs."""
        return sum(map(len, self.runs))

    def folded(self, folds: Folds) -> tuple[tuple[Memos, ...], ...]:
        """The memos before each turn of each run, as it was recorded. Folded once for all tables that fold alike."""
        known = self._folded.get(folds.keys)
        if known is None:
            known = self._folded[folds.keys] = tuple(self._fold(folds))
        return known

    @cached_property
    def _folded(self) -> dict[Hashable, tuple[tuple[Memos, ...], ...]]:
        return {}

    def _fold(self, folds: Folds) -> Iterator[tuple[Memos, ...]]:
        memos = folds.initial()
        for turns in self.runs:
            found = [folds.begun(memos)]
            found.extend(memos := folds.along(found[-1], turn.run) for turn in turns)
            yield tuple(found[:-1])


def from_steps(steps: Sequence[Step]) -> Recording:
    """A conversation of our own. It succeeded where its last run ended in an answer; a ticket is no success."""
    ended = bool(steps) and steps[-1].rests
    success = isinstance(steps[-1].event, ModelAnswered | TicketClosed) if ended else None
    return Recording(tuple(step._replace(asked=(), trip=None, answer=None) for step in steps), success)


def in_order(events: Iterable[Event]) -> Iterator[Step]:
    """The events as a journal; each message begins a run."""
    run = 0
    for seq, event in enumerate(events, 1):
        run += isinstance(event, MessageReceived)
        yield Step(seq=seq, run=max(1, run), event=event, source="", state="", rests=isinstance(event, ModelAnswered))
