"""The table read as a graph: an arc for each way in which a row can fire (`ways.py`), with the limits that this way
asks and those that it counts up.

A limit is a counter. It counts visits of states (work done, the visit being judged included), or how often a guard
was asked without tripping: a `Counted` guard wherever it is asked, any other at each (state, event) for itself.
A guard may trip before its counter is full, and trips always once it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from haru_fsm.certificate.ways import Verdicts, passed, ways_to_fire
from haru_fsm.conversation import OUTSIDE, Event, Resumed, kind_of
from haru_fsm.guards.guard import Counted, Guard
from haru_fsm.machine import Row, Workflow


class Place(NamedTuple):
    """Where a run is: in a state, with its work still to do, or at rest there."""

    state: str
    rests: bool = False


START = Place("", rests=True)
"""Before the run. No arc leads back to it."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A counter: what raises it, and the count (`limit`) at which the guards that read it trip for good."""

    limit: int
    guard: Guard
    """One of the guards that read it, to name it by."""
    visits: frozenset[str]
    """The states whose visits raise it; empty: askings do."""


@dataclass(frozen=True, slots=True, eq=False)
class Arc:
    """One way in which one row fires. Rows and limits are named by their numbers in the workflow and in the graph."""

    row: int
    event: type[Event]
    source: Place
    target: Place
    verdicts: Verdicts
    needs: tuple[tuple[int, int], ...] = ()
    """The limits that are asked, each with the highest count at which the row can still fire this way."""
    raises: frozenset[int] = frozenset()
    """The limits whose count is one higher afterwards."""
    given: bool = False
    """The event is given by the work of the source: a visit of it is done."""

    @property
    def asks(self) -> frozenset[int]:
        """The limits that are asked, and not reached."""
        return frozenset(limit for limit, _ in self.needs)

    @property
    def kind(self) -> str:
        """The name of the event."""
        return kind_of(self.event)

    def passes(self, guard: Guard) -> bool:
        """Whether this guard is asked and found not to trip."""
        return self.verdicts.get(guard) is False


@dataclass(frozen=True)
class Graph:
    """All arcs of a workflow. `starts` are the events from outside that begin a run; `arcs` is what follows."""

    workflow: Workflow
    limits: tuple[Limit, ...]
    starts: tuple[Arc, ...]
    arcs: tuple[Arc, ...]

    @cached_property
    def after(self) -> Mapping[Place, Sequence[Arc]]:
        """The arcs out of each place; out of START, the beginnings of runs."""
        found: defaultdict[Place, list[Arc]] = defaultdict(list, {START: list(self.starts)})
        for arc in self.arcs:
            found[arc.source].append(arc)
        return dict(found)

    @cached_property
    def asked_from(self) -> Mapping[Place, frozenset[int]]:
        """The limits that are asked somewhere from each place on."""
        places = {arc.target for arc in (*self.starts, *self.arcs)}
        return {
            place: frozenset(
                limit
                for source in (place, *reach([place], self.arcs))
                for arc in self.after.get(source, ())
                for limit in arc.asks
            )
            for place in places
        }

    @cached_property
    def undisturbed(self) -> Graph:
        """The same without `resumed`: runs whose process does not die."""
        return replace(self, arcs=tuple(arc for arc in self.arcs if not issubclass(arc.event, Resumed)))

    @cached_property
    def reachable(self) -> frozenset[Place]:
        """Where a conversation can come to be, whatever its guards' counts say."""
        initial = Place(self.workflow.initial, rests=True)
        return frozenset({initial, *reach([initial], (*self.starts, *self.arcs))})

    def run(self) -> tuple[Arc, ...]:
        """The arcs that runs can use, beginning at START: none that asks a limit which leaves no room at all."""
        arcs = tuple(arc for arc in self.arcs if all(most >= 0 for _, most in arc.needs))
        begun = [arc.target for arc in self.starts]
        places = reach(begun, arcs) | {*begun}
        starts = (replace(arc, source=START) for arc in self.starts)
        return (*starts, *(arc for arc in arcs if arc.source in places))


def reach(places: Iterable[Place], arcs: Iterable[Arc]) -> frozenset[Place]:
    """The places that are reached from these by at least one arc."""
    after: defaultdict[Place, list[Place]] = defaultdict(list)
    for arc in arcs:
        after[arc.source].append(arc.target)
    found: set[Place] = set()
    waiting = list(places)
    while waiting:
        fresh = [place for place in after[waiting.pop()] if place not in found]
        found.update(fresh)
        waiting.extend(fresh)
    return frozenset(found)


def from_outside(event: type[Event]) -> bool:
    """No state's work gives it: it comes to a conversation that rests."""
    return event in OUTSIDE or hasattr(event, "continues")


def continues(event: type[Event]) -> bool:
    """From outside, and part of the run that paused for it (an approval). Such events say so: `continues = True`."""
    return bool(getattr(event, "continues", False))


# --------------------------------------------------------------------------- reading the table


def read(workflow: Workflow) -> Graph:
    """All that can happen according to the table."""
    limits: dict[object, tuple[int, Limit]] = {}
    arcs = [arc for pair in _pairs(workflow) for arc in _arcs(pair, limits)]
    visits = [number for number in limits.values() if number[1].visits]
    arcs = [_counted(arc, visits) for arc in arcs]
    begins = {arc for arc in arcs if arc.source.rests and not continues(arc.event)}
    return Graph(
        workflow,
        limits=tuple(limit for _, limit in limits.values()),
        starts=tuple(arc for arc in arcs if arc in begins),
        arcs=tuple(arc for arc in arcs if arc not in begins),
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    """A place, an event that can come there, and the rows that are asked then."""

    place: Place
    event: type[Event]
    rows: tuple[tuple[int, Row], ...]
    given: bool


def _pairs(workflow: Workflow) -> Iterator[_Pair]:
    rows: defaultdict[tuple[str, str], list[tuple[int, Row]]] = defaultdict(list)
    for number, row in enumerate(workflow.rows):
        for source in dict.fromkeys(row.sources):
            rows[str(source), row.kind].append((number, row))
    for (state, name), asked in rows.items():
        event = asked[0][1].event
        given = name in {kind_of(event) for event in workflow.gives.get(state, ())}
        if given or (issubclass(event, Resumed) and state in workflow.work):
            yield _Pair(Place(state), event, tuple(asked), given)
        elif from_outside(event):
            yield _Pair(Place(state, rests=True), event, tuple(asked), given=False)


def _arcs(pair: _Pair, limits: dict[object, tuple[int, Limit]]) -> Iterator[Arc]:
    """The arcs of a pair. What visits raise is added when all limits are known."""
    for (number, row), ways in zip(pair.rows, ways_to_fire([row.when for _, row in pair.rows]), strict=True):
        target = Place(str(row.target), row.rests)
        for way in ways:
            asked = {_limit(guard, pair, limits): guard for guard in passed(way) if guard.limit is not None}
            needs = tuple((limit, guard.limit - 1) for limit, guard in asked.items() if guard.limit is not None)
            raises = frozenset(limit for limit, guard in asked.items() if not guard.counts)
            yield Arc(number, pair.event, pair.place, target, way, needs, raises, pair.given)


def _limit(guard: Guard, pair: _Pair, limits: dict[object, tuple[int, Limit]]) -> int:
    """The number of the counter that a limited guard reads, when asked at this pair."""
    assert guard.limit is not None
    visits = frozenset(str(state) for state in guard.counts)
    key: object = (visits, guard.limit)
    if not visits:
        key = guard if isinstance(guard, Counted) else (guard, pair.place.state, kind_of(pair.event))
    return limits.setdefault(key, (len(limits), Limit(guard.limit, guard, visits)))[0]


def _counted(arc: Arc, visits: Iterable[tuple[int, Limit]]) -> Arc:
    """The arc with the counters that its visit raises. The visit being judged counts, hence the tighter need."""
    raised = frozenset(number for number, limit in visits if arc.given and arc.source.state in limit.visits)
    needs = tuple((limit, most - (limit in raised)) for limit, most in arc.needs)
    return replace(arc, needs=needs, raises=arc.raises | raised)
