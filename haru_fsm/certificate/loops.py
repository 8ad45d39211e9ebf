"""Can a run go on for ever? If so, the shortest way to do it.

A limit breaks a loop only if the loop both asks it and raises it: a loop that asks without raising stays below the
limit for ever, one that raises without asking does not care. So a run can be endless exactly if there is a closed
walk in which no limit is both asked and raised, and a way to get there with room left in the limits that it asks.

That is decided on the table itself, whatever the size of the limits. Within a knot (arcs that all lie on common
loops), a limit that is both asked and raised is resolved by looking once at the arcs that do not ask it and once
at those that do not raise it, until no such limit is left. Counts only ever grow, so the ways to get somewhere
that matter are those with the least counts, and they visit no place twice.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from haru_fsm.certificate.arcs import Arc, Graph, Place
from haru_fsm.certificate.unfolding import Counts, Spot, Unfolding

Knot = tuple[Arc, ...]
"""Arcs of which any two lie on a common closed walk."""

MOST_SPOTS = 20_000
"""Ways of arriving that are looked at before a loop is refused although nobody has shown that runs get there."""
MOST_KNOTS = 2_000
"""Knots that are looked at before one is taken for endless although its limits may break all its loops."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A run that does not end: the way there, then the loop, again and again."""

    path: tuple[Arc, ...]
    loop: tuple[Arc, ...]
    confirmed: bool = True
    """False: the table is too tangled to know whether the limits leave room for it."""


def endless_loop(graph: Graph) -> Loop | None:
    """The shortest loop that a run can go through for ever, with the shortest way there; None if every run ends."""
    knots = list(unbroken(graph.run()))
    if not knots:
        return None
    arrivals = _arrivals(graph)
    if arrivals is None:
        return _unconfirmed(graph, knots)
    found = _loops(knots, arrivals)
    return min(found, key=lambda each: (not each.confirmed, len(each.loop), len(each.path)), default=None)


# --------------------------------------------------------------------------- loops that no limit breaks


def knots_of(arcs: Iterable[Arc]) -> list[Knot]:
    """The arcs that lie on closed walks, by the strongly connected component that they are part of."""
    arcs = tuple(arcs)
    after: defaultdict[Place, dict[Place, None]] = defaultdict(dict)
    for arc in arcs:
        after[arc.source][arc.target] = None
    home = _components(after)
    found: defaultdict[Place, list[Arc]] = defaultdict(list)
    for arc in arcs:
        if home[arc.source] == home[arc.target]:
            found[home[arc.source]].append(arc)
    return [tuple(knot) for knot in found.values()]


def _components(after: Mapping[Place, Iterable[Place]]) -> dict[Place, Place]:
    """For each place one that stands for its strongly connected component (Tarjan's algorithm, without recursion)."""
    number: dict[Place, int] = {}
    lowest: dict[Place, int] = {}
    home: dict[Place, Place] = {}
    pending: list[Place] = []
    for root in after:
        walk = [] if root in number else [root]
        while walk:
            place = walk[-1]
            if place not in number:
                number[place] = lowest[place] = len(number)
                pending.append(place)
            fresh = next((target for target in after.get(place, ()) if target not in number), None)
            if fresh is not None:
                walk.append(fresh)
                continue
            walk.pop()
            lowest[place] = min(lowest[each] for each in (place, *after.get(place, ())) if each not in home)
            if lowest[place] == number[place]:
                cut = pending.index(place)
                home.update(dict.fromkeys(pending[cut:], place))
                del pending[cut:]
    return home


def conflicts(knot: Knot) -> frozenset[int]:
    """The limits that are both asked and raised somewhere in a knot."""
    return frozenset().union(*(arc.asks for arc in knot)) & frozenset().union(*(arc.raises for arc in knot))


def unbroken(arcs: Iterable[Arc]) -> Iterator[Knot]:
    """The knots in which no limit is both asked and raised. Every walk that no limit breaks lies within one.

    Where there are too many to look at, those that are left are given as they are.
    """
    seen: set[frozenset[Arc]] = set()
    waiting = [tuple(arc for arc in arcs if not arc.asks & arc.raises)]
    while waiting:
        for knot in knots_of(waiting.pop()):
            if frozenset(knot) in seen:
                continue
            seen.add(frozenset(knot))
            limit = min(conflicts(knot), default=None)
            if limit is None or len(seen) > MOST_KNOTS:
                yield knot
            else:
                waiting.append(tuple(arc for arc in knot if limit not in arc.asks))
                waiting.append(tuple(arc for arc in knot if limit not in arc.raises))


# --------------------------------------------------------------------------- getting there


@dataclass(frozen=True, slots=True)
class _Arrival:
    """One way to get somewhere, with the counts that it leaves. `before` is None at the start."""

    spot: Spot
    arc: Arc | None = None
    before: _Arrival | None = None

    @property
    def path(self) -> tuple[Arc, ...]:
        arcs = []
        arrival = self
        while arrival.arc is not None and arrival.before is not None:
            arcs.append(arrival.arc)
            arrival = arrival.before
        return tuple(reversed(arcs))


def _arrivals(graph: Graph) -> Mapping[Place, Sequence[_Arrival]] | None:
    """For each place the ways to get there with the least counts, shortest first. None if there are too many."""
    unfolding = Unfolding(graph, range(len(graph.limits)))
    found: defaultdict[Place, list[_Arrival]] = defaultdict(list)
    waiting = deque([_Arrival(unfolding.first)])
    for _ in range(MOST_SPOTS):
        if not waiting:
            return found
        arrival = waiting.popleft()
        for arc, spot in unfolding.after(arrival.spot):
            if not any(_no_more(known.spot[1], spot[1]) for known in found[spot[0]]):
                found[spot[0]].append(_Arrival(spot, arc, arrival))
                waiting.append(found[spot[0]][-1])
    return None


def _no_more(counts: Counts, others: Counts) -> bool:
    return all(count <= other for count, other in zip(counts, others, strict=True))


def _loops(knots: Iterable[Knot], arrivals: Mapping[Place, Sequence[_Arrival]]) -> Iterator[Loop]:
    """For each way of arriving in a knot, the shortest loop that its counts leave room for."""
    for knot in knots:
        for place in dict.fromkeys(arc.source for arc in knot):
            for arrival in arrivals.get(place, ()):
                counts = arrival.spot[1]
                loop = _shortest(place, [arc for arc in knot if all(counts[n] <= most for n, most in arc.needs)])
                if loop:
                    yield Loop(arrival.path, loop, confirmed=not conflicts(loop))


def _unconfirmed(graph: Graph, knots: Sequence[Knot]) -> Loop:
    """The shortest loop, and the shortest way there that pays no heed to counts."""
    loop = min((_shortest(arc.source, knot) for knot in knots for arc in knot), key=len)
    starts = (_walk({arc.target: (arc,)}, loop[0].source, graph.arcs) for arc in graph.starts)
    return Loop(min((path for path in starts if path), key=len), loop, confirmed=False)


def _shortest(place: Place, arcs: Iterable[Arc]) -> tuple[Arc, ...]:
    """The shortest closed walk through a place; empty if there is none."""
    arcs = tuple(arcs)
    first = {arc.target: (arc,) for arc in reversed(arcs) if arc.source == place}
    return _walk(dict(reversed(first.items())), place, arcs)


def _walk(reached: Mapping[Place, tuple[Arc, ...]], goal: Place, arcs: Iterable[Arc]) -> tuple[Arc, ...]:
    """The shortest continuation of one of these walks to the goal; empty if there is none."""
    after: defaultdict[Place, list[Arc]] = defaultdict(list)
    for arc in arcs:
        after[arc.source].append(arc)
    walks = dict(reached)
    waiting = deque(walks)
    while waiting:
        place = waiting.popleft()
        if place == goal:
            return walks[place]
        for arc in after[place]:
            if arc.target not in walks:
                walks[arc.target] = (*walks[place], arc)
                waiting.append(arc.target)
    return ()
