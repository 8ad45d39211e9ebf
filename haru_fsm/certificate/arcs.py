"""The table read as logic: in which ways each row can fire, what each way asks, and what it counts up.

A row fires under every assignment of its pair's guards in which it is the first to pass. Guards are evaluated as
the machine does it: in the order of the rows, from the left, no further than needed; equal guards have one value.
Each way of firing *asks* the limited guards that were false in it, so composites, caps and rows that can never
fire need no rules of their own.

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

from haru_fsm.conversation import OUTSIDE, Event, Resumed
from haru_fsm.guards.guard import AllOf, AnyOf, Counted, Guard, Not, atoms
from haru_fsm.machine import Row, Workflow

Verdicts = Mapping[Guard, bool]
"""Which guards tripped. One that was not evaluated is not in it."""


class Place(NamedTuple):
    """Where a run is: in a state, with its work still to do, or at rest there."""

    state: str
    rests: bool = False


MOST_WAYS = 200
"""Ways of firing that are told apart at one (state, event)."""

START = Place("", rests=True)
"""Before the run. No arc leads back to it."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A counter: what raises it, and the count at which the guards that read it trip for good."""

    limit: int
    guard: Guard
    visits: frozenset[str]
    """The states whose visits raise it; empty: askings do."""


@dataclass(frozen=True, slots=True, eq=False)
class Arc:
    """One way in which one row fires. `needs` are pairs (limit, highest count at which it can still fire this way)."""

    row: int
    event: type[Event]
    source: Place
    target: Place
    verdicts: Verdicts
    needs: tuple[tuple[int, int], ...] = ()
    raises: frozenset[int] = frozenset()
    given: bool = False
    """The event is given by the work of the source: a visit of it is done."""

    @property
    def asks(self) -> frozenset[int]:
        """The limits that are asked, and not reached."""
        return frozenset(limit for limit, _ in self.needs)

    @property
    def kind(self) -> str:
        """The name of the event."""
        return kind(self.event)

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
        """The arcs that runs can use, beginning at START; those that ask a limit without any room left out."""
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


def kind(event: type[Event]) -> str:
    """The name of an event's class in tables and journals."""
    return str(event.model_fields["kind"].default)


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
        given = name in {kind(event) for event in workflow.gives.get(state, ())}
        if given or (issubclass(event, Resumed) and state in workflow.work):
            yield _Pair(Place(state), event, tuple(asked), given)
        elif from_outside(event):
            yield _Pair(Place(state, rests=True), event, tuple(asked), given=False)


def _arcs(pair: _Pair, limits: dict[object, tuple[int, Limit]]) -> Iterator[Arc]:
    """The arcs of a pair. What visits raise is added when all limits are known."""
    for (number, row), ways in zip(pair.rows, ways_to_fire([row.when for _, row in pair.rows]), strict=True):
        target = Place(str(row.target), row.rests)
        for way in ways:
            asked = {_limit(guard, pair, limits): guard for guard in _passed(way) if guard.limit is not None}
            needs = tuple((limit, guard.limit - 1) for limit, guard in asked.items() if guard.limit is not None)
            raises = frozenset(limit for limit, guard in asked.items() if not guard.counts)
            yield Arc(number, pair.event, pair.place, target, way, needs, raises, pair.given)


def _limit(guard: Guard, pair: _Pair, limits: dict[object, tuple[int, Limit]]) -> int:
    """The number of the counter that a limited guard reads, when asked at this pair."""
    assert guard.limit is not None
    visits = frozenset(str(state) for state in guard.counts)
    key: object = (visits, guard.limit)
    if not visits:
        key = guard if isinstance(guard, Counted) else (guard, pair.place.state, kind(pair.event))
    return limits.setdefault(key, (len(limits), Limit(guard.limit, guard, visits)))[0]


def _counted(arc: Arc, visits: Iterable[tuple[int, Limit]]) -> Arc:
    """The arc with the counters that its visit raises. The visit being judged counts, hence the tighter need."""
    raised = frozenset(number for number, limit in visits if arc.given and arc.source.state in limit.visits)
    needs = tuple((limit, most - (limit in raised)) for limit, most in arc.needs)
    return replace(arc, needs=needs, raises=arc.raises | raised)


# --------------------------------------------------------------------------- ways of firing


def ways_to_fire(conditions: Sequence[Guard | None]) -> list[list[Verdicts]]:
    """For each of these rows, asked in this order, the ways in which it is the first to pass.

    Of two ways of which one asks no more than the other, only that one is kept: whatever can happen in the other can
    happen in it, for as long and longer.
    """
    found = []
    going: list[Verdicts] = [{}]
    for position, condition in enumerate(conditions):
        later = frozenset(guard for rest in conditions[position + 1 :] for guard in atoms(rest))
        passing, going = _split(condition, going, later)
        found.append(_least(passing, frozenset()))
    return found


def _split(guard: Guard | None, ways: list[Verdicts], later: frozenset[Guard]) -> tuple[list[Verdicts], list[Verdicts]]:
    """The ways, carried on, in which a guard trips, and those in which it does not. `later` guards are yet to come."""
    match guard:
        case None:
            return ways, []
        case Not(guard=part):
            passing, failing = _split(part, ways, later)
            return failing, passing
        case AnyOf(guards=parts):
            return _until(True, parts, ways, later)
        case AllOf(guards=parts):
            failing, passing = _until(False, parts, ways, later)
            return passing, failing
        case _:
            tripped: list[Verdicts] = [{**way, guard: True} for way in ways if way.get(guard, True)]
            passed: list[Verdicts] = [{**way, guard: False} for way in ways if not way.get(guard, False)]
            return tripped, passed


def _until(
    verdict: bool, parts: tuple[Guard, ...], ways: list[Verdicts], later: frozenset[Guard]
) -> tuple[list[Verdicts], list[Verdicts]]:
    """The ways in which a part has this verdict (and no further part is asked), and those in which none has it."""
    ended: list[Verdicts] = []
    for position, part in enumerate(parts):
        to_come = later.union(*(atoms(rest) for rest in parts[position + 1 :]))
        tripped, passed = _split(part, ways, to_come)
        ended += tripped if verdict else passed
        ways = _least(passed if verdict else tripped, to_come)
    return _least(ended, later), ways


def _passed(way: Verdicts) -> frozenset[Guard]:
    """The guards that bound something, and were asked and did not trip."""
    return frozenset(guard for guard, tripped in way.items() if not tripped and _binds(guard))


def _binds(guard: Guard) -> bool:
    return guard.limit is not None or guard.measures is not None


def _least(ways: list[Verdicts], later: frozenset[Guard]) -> list[Verdicts]:
    """The ways that ask least. A value matters as long as `later` guards include it."""
    kept = _undercut(ways, later)
    if len(kept) <= MOST_WAYS:
        return kept
    # Too many to tell apart. A guard that promises nothing may then change its mind from row to row, which allows more
    # than can happen, and never less.
    return _undercut([{guard: way[guard] for guard in way if _binds(guard)} for way in kept], later)


def _undercut(ways: list[Verdicts], later: frozenset[Guard]) -> list[Verdicts]:
    marks = [(_passed(way), frozenset(item for item in way.items() if item[0] in later)) for way in ways]
    kept: list[int] = []
    for number in sorted(range(len(ways)), key=lambda n: len(marks[n][0]) + len(marks[n][1])):
        asks, values = marks[number]
        if not any(marks[other][0] <= asks and marks[other][1] <= values for other in kept):
            kept.append(number)
    return [ways[number] for number in sorted(kept)]
