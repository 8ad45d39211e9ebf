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
from haru_fsm.meaning import alike

GENERATION = 32
"""Distinct calls at which a new generation begins; two are kept. Bounds the cost per step."""
REPLIES = 12
"""Replies with calls that are remembered as they were: what they said, asked and brought."""

NEARLY = 0.85
"""Share of common words above which two calls are nearly the same; that of the classic rule for thoughts."""

TRAIL_EVENTS: tuple[type[Event], ...] = (ToolsRequested, ToolsExecuted, ObservationAppended)
"""The events that leave a trail."""


class Brought(NamedTuple):
    """What a call has brought the last time, and how often in a row it has brought just that."""

    response: JSON
    times: int


REFUSED = Brought({}, 0)
"""Of a call that was only ever refused."""


class Exchange(NamedTuple):
    """A reply with calls and their results; none where they were refused, or are not there yet."""

    asked: ToolsRequested
    results: tuple[ToolResult, ...] = ()

    def brought_the_same(self, other: Exchange) -> bool:
        """Whether both brought the same observations; a refusal contradicts nothing."""
        return not self.results or not other.results or same_observations(self.results, other.results)


class Trail(NamedTuple):
    """What is known of the run so far. Never changed in place."""

    known: Mapping[Hashable, Brought] = MappingProxyType({})
    """The calls that were tried lately."""
    older: Mapping[Hashable, Brought] = MappingProxyType({})
    """The generation of calls before. Nothing is taken out of either: copying a dictionary with gaps is slow."""
    exchanges: tuple[Exchange, ...] = ()
    """The last replies with calls, the latest at the end."""
    unchanged: int = 0
    """The latest observations in a row that are one and the same."""
    told: frozenset[Hashable] = frozenset()
    """The effects of which the ledger has told the model that they are done."""
    failed: int = 0
    """Replies in a row that brought nothing but failures, since the last refusal."""
    unusable: int = 0
    """Replies in a row none of whose calls could be run (unknown tools, bad arguments), refused ones after that too."""
    vain: int = 0
    """Replies since a refusal, itself included, that tried nothing new and brought nothing new."""
    heeded: bool = False
    """After a refusal the model has tried something new, at least once."""

    def fold(self, step: Step) -> Trail:
        """The trail after one more step."""
        event = step.event
        if type(event) is ToolsRequested:
            return self._ask(event)
        if type(event) is ToolsExecuted:
            return self._learn(event.results)
        if type(event) is ObservationAppended and event.refusals:
            return self._refuse()
        return self

    def _ask(self, event: ToolsRequested) -> Trail:
        known, older, before, unchanged, told, failed, unusable, vain, heeded = self
        if vain and self.new(event):
            vain, heeded = 0, True
        exchanges = (*before[1 - REPLIES :], Exchange(event))
        return Trail(known, older, exchanges, unchanged, told, failed, unusable, vain, heeded)

    def repeats(self, calls: Iterable[Hashable]) -> int:
        """How often in a row each of these calls has brought the same, at the least; 0 where one is new."""
        least = None
        for call in calls:
            brought = self.known.get(call) or self.older.get(call)
            if brought is None:
                return 0
            least = brought.times if least is None else min(least, brought.times)
        return least or 0

    def new(self, event: ToolsRequested) -> bool:
        """Whether some call of this reply was never tried nor refused, and is not one that was, a little changed."""
        if all(call in self.known or call in self.older for call in event.meant):
            return False
        return not any(nearly_the_same(event, exchange.asked) for exchange in self.exchanges)

    def _learn(self, results: tuple[ToolResult, ...]) -> Trail:
        asked = self.exchanges[-1].asked.meant if self.exchanges else ()
        known, told = dict(self.known), self.told
        failed = unusable = same = bool(results)
        for result in results:
            failed = failed and result.status is ResultStatus.FAILED
            unusable = unusable and failed and not result.ran
            if result.position < len(asked):
                call = asked[result.position]
                known[call] = brought = _brought(known.get(call) or self.older.get(call), result)
                same = same and brought.times > 1
                told = told | {call} if result.repeated else told
        known, older = (known, self.older) if len(known) < GENERATION else ({}, known)
        exchanges = self._answered(results)
        return Trail(
            known,
            older,
            exchanges,
            self.unchanged + 1 if self.unchanged and self._unchanged(results) else 1,
            told,
            self.failed + 1 if failed else 0,
            self.unusable + 1 if unusable else 0,
            self.vain + same if self.vain else 0,
            self.heeded,
        )

    def _unchanged(self, results: tuple[ToolResult, ...]) -> bool:
        for exchange in reversed(self.exchanges):
            if exchange.results:
                return same_observations(exchange.results, results)
        return False

    def _answered(self, results: tuple[ToolResult, ...]) -> tuple[Exchange, ...]:
        return (*self.exchanges[:-1], Exchange(self.exchanges[-1].asked, results)) if self.exchanges else ()

    def _refuse(self) -> Trail:
        asked = self.exchanges[-1].asked.meant if self.exchanges else ()
        known = {**self.known, **{call: REFUSED for call in asked if call not in self.known and call not in self.older}}
        unusable = self.unusable + 1 if self.unusable else 0
        return self._replace(known=known, failed=0, unusable=unusable, vain=self.vain + 1)


def _brought(last: Brought | None, result: ToolResult) -> Brought:
    """What is known of a call after one more result. Polling is asking again on purpose, and never counts."""
    if result.polling:
        return Brought(result.response, 0)
    again = last is not None and last.times and same_observation(last.response, result.response)
    return Brought(result.response, last.times + 1 if last is not None and again else 1)


def same_observations(one: tuple[ToolResult, ...], other: tuple[ToolResult, ...]) -> bool:
    """Whether the model learns the same from both, result by result."""
    if len(one) != len(other):
        return False
    for first, second in zip(one, other, strict=True):  # noqa: SIM110 - asked at every step: no generator
        if not same_observation(first.response, second.response):
            return False
    return True


def same_observation(one: JSON, other: JSON) -> bool:
    """Whether the model learns the same from both."""
    return one == other or (("note" in one or "note" in other) and _unnoted(one) == _unnoted(other))


def _unnoted(response: JSON) -> JSON:
    return {key: value for key, value in response.items() if key != "note"} if "note" in response else response


def nearly_the_same(one: ToolsRequested, other: ToolsRequested) -> bool:
    """Whether two replies ask the same tools for nearly the same: they differ in numbers, or in one word of many."""
    return alike(one.wording, other.wording) > NEARLY


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
        # All kinds share one fold; a subclass with one of its own may fold by its fields.
        shared = type(self).fold is OfTrail.fold and type(self).initial is OfTrail.initial
        return (OfTrail, self.scope) if shared else self

    def initial(self) -> Trail:
        return Trail()

    def fold(self, memo: Trail, step: Step) -> Trail:
        return memo.fold(step)
