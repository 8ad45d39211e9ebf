"""The trail of a run: what was tried and what it brought, folded once for all the loop detectors that judge it.

Results are kept as they stand in the journal and compared only when a call repeats, so a step that brings something
new costs next to nothing. Refusals are no observations, and notes are the engine's own words.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
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

FAILED = ResultStatus.FAILED

TRAIL_EVENTS: tuple[type[Event], ...] = (ToolsRequested, ToolsExecuted, ObservationAppended)
"""The events that leave a trail."""


Brought = tuple[JSON, int]
"""What a call has brought the last time, and how often in a row it has brought just that."""

REFUSED: Brought = ({}, 0)
"""Of a call that was only ever refused."""


class Exchange(NamedTuple):
    """A reply with calls and their results; none where they were refused, or are not there yet."""

    asked: ToolsRequested
    results: tuple[ToolResult, ...] = ()
    observed: tuple[JSON, ...] = ()
    """What the model learns from the results."""

    def brought_the_same(self, other: Exchange) -> bool:
        """Whether both brought the same observations; a refusal contradicts nothing."""
        return not self.results or not other.results or self.observed == other.observed


def observations(results: Iterable[ToolResult]) -> tuple[JSON, ...]:
    """What the model learns from results: notes are the engine's own words."""
    return tuple([r.response if "note" not in r.response else _unnoted(r.response) for r in results])


def _unnoted(response: JSON) -> JSON:
    return {key: value for key, value in response.items() if key != "note"}


class Signs(NamedTuple):
    """What speaks for a run that goes in circles."""

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


NONE = Signs()
"""Before the first observation."""
ONCE = (Signs(unchanged=1), Signs(unchanged=1, failed=1), Signs(unchanged=1, failed=1, unusable=1))
"""After an observation, where nothing has happened twice; after a first failure; and after a first unusable reply."""
QUIET = (NONE, *ONCE)


class Trail(NamedTuple):
    """What is known of the run so far. Never changed in place."""

    known: Mapping[Hashable, Brought] = MappingProxyType({})
    """The calls that were tried lately."""
    older: Mapping[Hashable, Brought] = MappingProxyType({})
    """The generation of calls before. Nothing is taken out of either: copying a dictionary with gaps is slow."""
    closed: tuple[Exchange, ...] = ()
    """The last replies with calls that were run or refused, the latest at the end."""
    asked: ToolsRequested | None = None
    """The latest reply with calls, as long as they were neither run nor refused."""
    most: int = 0
    """No call has brought the same more often in a row than this."""
    signs: Signs = NONE

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """The last replies with calls, the latest at the end."""
        return self.closed if self.asked is None else _closing(self.closed, Exchange(self.asked))

    def repeats(self, calls: Iterable[Hashable]) -> int:
        """How often in a row each of these calls has brought the same, at the least; 0 where one is new."""
        known, older, least = self.known, self.older, 0
        for call in calls:
            brought = known.get(call) or older.get(call)
            if brought is None or not brought[1]:
                return 0
            least = brought[1] if not least or brought[1] < least else least
        return least

    def new(self, event: ToolsRequested) -> bool:
        """Whether some call of this reply was never tried nor refused, and is not one that was, a little changed."""
        if all(call in self.known or call in self.older for call in event.meant):
            return False
        return not any(nearly_the_same(event, exchange.asked) for exchange in self.exchanges)

    def ask(self, event: ToolsRequested) -> Trail:
        """The trail after a reply with calls."""
        signs = self.signs
        if signs.vain and self.new(event):
            signs = signs._replace(vain=0, heeded=True)
        return Trail(self.known, self.older, self.exchanges, event, self.most, signs)

    def learn(self, results: tuple[ToolResult, ...]) -> Trail:
        """The trail after the results of the last reply's calls."""
        before, older, closed, asked, most, signs = self
        if asked is None:
            return self
        exchange = Exchange(asked, results, observations(results))
        known, told, same = dict(before), signs.told, bool(results)
        for result, observed in zip(results, exchange.observed, strict=True):
            if result.position >= len(asked.meant):
                continue
            call = asked.meant[result.position]
            last, times = known.get(call) or older.get(call), 1
            if result.polling:  # to ask again is what it is there for
                times = 0
            elif last is not None and last[0] == observed:
                times = last[1] + 1
            known[call] = observed, times
            same = same and times > 1
            most = times if times > most else most
            if result.repeated:
                told |= {call}
        signs = signs_after(signs, closed, exchange, same, told)
        if len(known) >= GENERATION:
            known, older = {}, known
        return Trail(known, older, _closing(closed, exchange), None, most, signs)

    def refuse(self) -> Trail:
        """The trail after the last reply's calls were refused."""
        asked, signs = self.asked.meant if self.asked is not None else (), self.signs
        known = {**self.known, **{call: REFUSED for call in asked if call not in self.known and call not in self.older}}
        unusable = signs.unusable + 1 if signs.unusable else 0
        signs = signs._replace(failed=0, unusable=unusable, vain=signs.vain + 1)
        return self._replace(known=known, closed=self.exchanges, asked=None, signs=signs)


def signs_after(
    before: Signs, closed: Sequence[Exchange], exchange: Exchange, same: bool, told: frozenset[Hashable]
) -> Signs:
    """The signs after one more exchange. `same`: all its calls have brought what they had brought before."""
    failed, unusable = failures(exchange.results)
    unchanged = before.unchanged + 1 if before.unchanged and _unchanged(closed, exchange) else 1
    if before in QUIET and unchanged == 1 and not told and not (failed and before.failed):
        return ONCE[failed + unusable]
    return Signs(
        unchanged,
        told,
        before.failed + 1 if failed else 0,
        before.unusable + 1 if unusable else 0,
        before.vain + same if before.vain else 0,
        before.heeded,
    )


def failures(results: Sequence[ToolResult]) -> tuple[bool, bool]:
    """Whether there is nothing but failures; and whether not one of the calls could be run."""
    ran = not results
    for result in results:
        if result.status is not FAILED:
            return False, False
        ran = ran or result.ran
    return bool(results), not ran


def _unchanged(closed: Sequence[Exchange], exchange: Exchange) -> bool:
    for before in reversed(closed):
        if before.results:
            return before.observed == exchange.observed
    return False


def _closing(closed: tuple[Exchange, ...], exchange: Exchange) -> tuple[Exchange, ...]:
    return (*closed[1 - REPLIES :], exchange)


def nearly_the_same(one: ToolsRequested, other: ToolsRequested) -> bool:
    """Whether two replies ask the same tools for nearly the same: they differ in numbers, or in one word of many."""
    return alike(one.wording, other.wording) > NEARLY


@dataclass(frozen=True)
class OfTrail(Guard):
    """A guard that judges replies with calls by the trail before them. It promises nothing."""

    judges = (ToolsRequested,)
    folds = TRAIL_EVENTS

    @property
    def fold_key(self) -> Hashable:
        # All kinds share one fold; a subclass with one of its own may fold by its fields.
        shared = type(self).fold is OfTrail.fold and type(self).initial is OfTrail.initial
        return (OfTrail, self.scope) if shared else self

    def initial(self) -> Trail:
        return Trail()

    def fold(self, memo: Trail, step: Step) -> Trail:
        event = step.event
        if type(event) is ToolsRequested:
            return memo.ask(event)
        if type(event) is ToolsExecuted:
            return memo.learn(event.results)
        if type(event) is ObservationAppended and event.refusals:
            return memo.refuse()
        return memo

    def idle(self, memo: Trail, event: Event) -> bool:
        """Nothing has happened twice, and some call of this reply has brought nothing yet that could come again."""
        return memo.signs in QUIET and isinstance(event, ToolsRequested) and not memo.repeats(event.meant)
