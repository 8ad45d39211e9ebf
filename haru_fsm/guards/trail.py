"""The trail of a run: what was tried and what it brought, folded once for all the loop detectors that judge it.

Results are kept as they stand in the journal and compared only when a call repeats, so a step that brings something
new costs next to nothing. Refusals are no observations, and notes are the engine's own words.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from haru_fsm.conversation import (
    JSON,
    Event,
    ObservationAppended,
    ResultStatus,
    Step,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
)
from haru_fsm.guards.guard import Guard

GENERATION = 32
"""Distinct calls at which a new generation begins; two are kept. Bounds the cost per step."""
REPLIES = 8
"""Replies with calls that are remembered with their words."""

TRAIL_EVENTS: tuple[type[Event], ...] = (ToolsRequested, ToolsExecuted, ObservationAppended)
"""The events that leave a trail."""


class Brought(NamedTuple):
    """What a call has brought the last time, and how often in a row it has brought just that."""

    response: JSON
    times: int


class Trail(NamedTuple):
    """What is known of the run so far. Never changed in place."""

    pending: ToolsRequested | None = None
    """The calls that wait for their results."""
    known: Mapping[Hashable, Brought] = MappingProxyType({})
    """The calls that were tried lately."""
    older: Mapping[Hashable, Brought] = MappingProxyType({})
    """The generation of calls before. Nothing is taken out of either: copying a dictionary with gaps is slow."""
    told: frozenset[Hashable] = frozenset()
    """The effects of which the ledger has told the model that they are done."""
    failed: int = 0
    """Replies in a row that brought nothing but failures."""
    replies: tuple[ToolsRequested, ...] = ()
    """The last replies with calls, the latest at the end."""

    def fold(self, step: Step) -> Trail:
        """The trail after one more step."""
        event = step.event
        if type(event) is ToolsRequested:
            return Trail(event, self.known, self.older, self.told, self.failed, (*self.replies[1 - REPLIES :], event))
        if type(event) is ToolsExecuted:
            return self._learn(event.results)
        if type(event) is ObservationAppended and event.refusals and self.failed:
            # It was failing, and asked for more of the same.
            return self._replace(failed=self.failed + 1)
        return self

    def repeats(self, calls: Iterable[Hashable]) -> int:
        """How often in a row each of these calls has brought the same, at the least; 0 where one is new."""
        least = None
        for call in calls:
            known = self.known.get(call) or self.older.get(call)
            if known is None:
                return 0
            least = known.times if least is None else min(least, known.times)
        return least or 0

    def _learn(self, results: tuple[ToolResult, ...]) -> Trail:
        asked = self.pending.meant if self.pending is not None else ()
        known, told, failing = dict(self.known), self.told, bool(results)
        for result in results:
            failing = failing and result.status is ResultStatus.FAILED
            if result.position < len(asked):
                call = asked[result.position]
                known[call] = _brought(known.get(call) or self.older.get(call), result)
                told = told | {call} if result.repeated else told
        known, older = (known, self.older) if len(known) < GENERATION else ({}, known)
        return Trail(None, known, older, told, self.failed + 1 if failing else 0, self.replies)


def _brought(last: Brought | None, result: ToolResult) -> Brought:
    """What is known of a call after one more result. Polling is asking again on purpose, and never counts."""
    if result.polling:
        return Brought(result.response, 0)
    again = last is not None and same_observation(last.response, result.response)
    return Brought(result.response, last.times + 1 if last is not None and again else 1)


def same_observation(one: JSON, other: JSON) -> bool:
    """Whether the model learns the same from both."""
    return one == other or _unnoted(one) == _unnoted(other)


def _unnoted(response: JSON) -> JSON:
    return {key: value for key, value in response.items() if key != "note"} if "note" in response else response


@dataclass(frozen=True)
class OfTrail(Guard):
    """A guard that judges replies with calls by the trail before them. It promises nothing."""

    judges = (ToolsRequested,)
    folds = TRAIL_EVENTS

    @property
    def limit(self) -> int | None:
        return None

    @property
    def fold_key(self) -> Hashable:
        # All kinds share one fold; a subclass with one of its own does not.
        return type(self).fold, type(self).initial, self.scope

    def initial(self) -> Trail:
        return Trail()

    def fold(self, memo: Trail, step: Step) -> Trail:
        return memo.fold(step)
