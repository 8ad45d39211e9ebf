"""How long can a run get? The heaviest walk through the graph, unfolded by as few counts as will do.

Unfolded by no count at all, the graph has loops, or its heaviest walk goes through rows that a spent limit closes.
Either shows a limit that must be tracked; the smallest such is added, until the heaviest walk is one that a run can
really take. Every round bounds all runs, and so does simple arithmetic; where the unfolding would grow too large, the
best bound so far stands, marked as `at_most`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from haru_fsm.certificate.arcs import Arc, Graph, Limit, Place
from haru_fsm.certificate.loops import Knot, conflicts, knots_of
from haru_fsm.certificate.unfolding import Spot, Unfolding

MOST_SPOTS = 100_000
"""Spots that are looked at for an exact figure, in all rounds together."""

MOST_KNOTS = 2_000
"""Parts of a graph that are looked at for an estimate."""

Weigh = Callable[[Arc], float]
"""What an arc adds to the figure in question; never negative."""


@dataclass(frozen=True, slots=True)
class Worst:
    """A bound on every run. With `at_most` False, `path` is a run that attains it; otherwise it may be too high."""

    value: float
    at_most: bool = False
    path: tuple[Arc, ...] = ()


class Runs:
    """The runs of a graph, each of which must end. What was unfolded for one question is there for the next."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._unfolded: dict[tuple[int, ...], _Unfolded] = {}

    def worst(self, weigh: Weigh, known: Sequence[tuple[Arc, ...]] = (), most_spots: int = MOST_SPOTS) -> Worst:
        """The heaviest run, or infinity where no bound is found.

        `known` are runs that were found before: one of them that attains a bound shows that it is exact.
        """
        least = estimate(self._graph, weigh)
        tracked: tuple[int, ...] = ()
        if not least:
            return Worst(least)
        while (attained := next((run for run in known if _weight(run, weigh) == least), None)) is None:
            unfolded = self._by(tracked, most_spots)
            if unfolded is None:
                return Worst(least, at_most=True)
            most_spots -= len(unfolded.after)
            walk, loop = unfolded.loop()
            if not loop:
                walk = unfolded.heaviest(weigh)
                least = min(least, _weight(walk, weigh))
            broken = (_overdrawn([*walk, *loop]) | conflicts(loop)) - set(tracked)
            if not broken:
                return Worst(math.inf) if loop else Worst(least, path=walk)
            smallest = min(broken, key=lambda number: (self._graph.limits[number].limit, number))
            if loop and self._graph.limits[smallest].limit > most_spots:
                return Worst(least, at_most=True)  # the loop alone would be unfolded that often
            tracked = (*tracked, smallest)
        return Worst(least, path=attained)

    def _by(self, tracked: tuple[int, ...], most_spots: int) -> _Unfolded | None:
        """The graph unfolded by these counts; None if that takes too many spots."""
        if tracked not in self._unfolded:
            unfolded = _Unfolded.of(self._graph, tracked, most_spots)
            if unfolded is None:
                return None
            self._unfolded[tracked] = unfolded
        return self._unfolded[tracked]


def _weight(walk: Iterable[Arc], weigh: Weigh) -> float:
    return sum(map(weigh, walk))


def _overdrawn(walk: Iterable[Arc]) -> set[int]:
    """The limits that this walk asks, and finds not tripped, after they were reached."""
    counts: Counter[int] = Counter()
    broken: set[int] = set()
    for arc in walk:
        broken.update(limit for limit, most in arc.needs if counts[limit] > most)
        counts.update(arc.raises)
    return broken


# --------------------------------------------------------------------------- all of an unfolding


@dataclass(frozen=True, slots=True)
class _Unfolded:
    """All spots of an unfolding that a run can reach."""

    after: dict[Spot, list[tuple[Arc, Spot]]]
    came: dict[Spot, tuple[Arc, Spot]]
    """How each spot was reached first; walked backwards it leads to the start."""
    order: list[Spot]
    """The spots, each after all that lead to it. Those that lie on a loop, or behind one, have no place in it."""

    @staticmethod
    def of(graph: Graph, tracked: Iterable[int], most_spots: int) -> _Unfolded | None:
        """All spots that can be reached, or None if there are too many."""
        unfolding = Unfolding(graph, tracked)
        after: dict[Spot, list[tuple[Arc, Spot]]] = {}
        came: dict[Spot, tuple[Arc, Spot]] = {}
        waiting = deque([unfolding.first])
        while waiting:
            spot = waiting.popleft()
            after[spot] = list(unfolding.after(spot))
            for arc, following in after[spot]:
                if following not in came:
                    came[following] = (arc, spot)
                    waiting.append(following)
            if len(came) > most_spots:
                return None
        return _Unfolded(after, came, _in_order(after))

    def heaviest(self, weigh: Weigh) -> tuple[Arc, ...]:
        """The heaviest walk from the start. There must be no loop."""
        weights = dict.fromkeys(self.order, 0.0)
        came: dict[Spot, tuple[Arc, Spot]] = {}
        for spot in self.order:
            for arc, following in self.after[spot]:
                weight = weights[spot] + weigh(arc)
                if following not in came or weight > weights[following]:
                    weights[following] = weight
                    came[following] = (arc, spot)
        return _back(came, max(self.order, key=weights.__getitem__))

    def loop(self) -> tuple[tuple[Arc, ...], tuple[Arc, ...]]:
        """A walk from the start to a loop, and the loop; both empty if there is none."""
        knotted = self.after.keys() - set(self.order)
        if not knotted:
            return (), ()
        before = {next_: (arc, spot) for spot in self.after if spot in knotted for arc, next_ in self.after[spot]}
        spot = next(spot for spot in self.after if spot in knotted)
        seen: set[Spot] = set()
        while spot not in seen:
            seen.add(spot)
            spot = before[spot][1]
        arc, source = before[spot]
        return _back(self.came, spot), (*_back(before, source, until=spot), arc)


def _in_order(after: dict[Spot, list[tuple[Arc, Spot]]]) -> list[Spot]:
    """Kahn's algorithm: a spot is next when all that lead to it have had their turn."""
    missing = Counter(following for arcs in after.values() for _, following in arcs)
    order = [spot for spot in after if not missing[spot]]
    for spot in order:
        for _, following in after[spot]:
            missing[following] -= 1
            if not missing[following]:
                order.append(following)
    return order


def _back(came: dict[Spot, tuple[Arc, Spot]], spot: Spot, until: Spot | None = None) -> tuple[Arc, ...]:
    """The arcs that led to this spot."""
    walk = []
    while spot != until and spot in came:
        arc, spot = came[spot]
        walk.append(arc)
    return tuple(reversed(walk))


# --------------------------------------------------------------------------- arithmetic


def estimate(graph: Graph, weigh: Weigh) -> float:
    """A bound that takes no longer for large limits than for small ones, and may be far too high.

    Of a knot with a limit n: at most n arcs raise it before it is reached, each with a walk between them that does not
    raise it, and afterwards no arc asks it. So W(knot) <= n * (heaviest raising arc + W(not raising)) + W(not asking).
    Infinity where that would take too long.
    """
    return _Estimate(graph.limits, weigh).chain(graph.run())


class _Estimate:
    """Heaviest walks in parts of a graph, each part looked at once."""

    def __init__(self, limits: Sequence[Limit], weigh: Weigh) -> None:
        self._limits = limits
        self._weigh = weigh
        self._known: dict[frozenset[Arc], float] = {}

    def chain(self, arcs: Iterable[Arc]) -> float:
        """The heaviest walk in these arcs: from knot to knot, none of which it comes back to."""
        arcs = tuple(arcs)
        knots = knots_of(arcs)
        home: dict[Place, Place | int] = {arc.source: number for number, knot in enumerate(knots) for arc in knot}
        onward: defaultdict[Place | int, list[tuple[float, Place | int]]] = defaultdict(list)
        onward |= {node: [] for node in home.values()}
        for arc in arcs:
            source, target = home.get(arc.source, arc.source), home.get(arc.target, arc.target)
            if source != target:
                onward[source].append((self._weigh(arc), target))
        weights: dict[Place | int, float] = {}
        followers = {node: [target for _, target in steps] for node, steps in onward.items()}
        for node in TopologicalSorter(followers).static_order():
            inside = self._knot(knots[node]) if isinstance(node, int) else 0
            weights[node] = inside + max((weight + weights[target] for weight, target in onward[node]), default=0)
        return max(weights.values(), default=0)

    def _knot(self, knot: Knot) -> float:
        """The heaviest walk within a knot."""
        if not any(self._weigh(arc) for arc in knot):
            return 0
        if (key := frozenset(knot)) not in self._known:
            if len(self._known) > MOST_KNOTS:
                return math.inf
            self._known[key] = self._broken(knot)
        return self._known[key]

    def _broken(self, knot: Knot) -> float:
        limit = min(conflicts(knot), key=lambda each: self._looseness(each, knot), default=None)
        if limit is None:
            return math.inf
        most = self._limits[limit].limit
        afterwards = self.chain(arc for arc in knot if limit not in arc.asks)
        if most <= 0:
            return afterwards
        raising = max(self._weigh(arc) for arc in knot if limit in arc.raises)
        between = self.chain(arc for arc in knot if limit not in arc.raises)
        return most * (raising + between) + afterwards

    def _looseness(self, limit: int, knot: Knot) -> tuple[int, int]:
        """How much can still be repeated between two raises of this limit; limits of one kind by their size."""
        left = knots_of(arc for arc in knot if limit not in arc.raises)
        return sum(1 for rest in left for arc in rest if self._weigh(arc)), self._limits[limit].limit
