"""The graph unfolded by counts, made as it is walked.

A spot is a place together with the counts of those limits that are tracked. A count stops at its limit, and is
forgotten where nothing that can still come asks it. What is not tracked is taken to be far from its limit, so every
real run has a walk in here: whatever holds for all walks holds for all runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from haru_fsm.certificate.arcs import START, Arc, Graph, Place

Counts = tuple[int, ...]
Spot = tuple[Place, Counts]


@dataclass(frozen=True, slots=True)
class _Move:
    """An arc whose limits are named by their place in `Counts`."""

    arc: Arc
    target: Place
    needs: tuple[tuple[int, int], ...]
    raises: tuple[int, ...]
    forgets: tuple[int, ...]


class Unfolding:
    """A graph, with counts of the limits in `tracked` (by their numbers in the graph)."""

    def __init__(self, graph: Graph, tracked: Iterable[int]) -> None:
        self.tracked = tuple(tracked)
        self.first: Spot = (START, (0,) * len(self.tracked))
        self._limits = tuple(graph.limits[number].limit for number in self.tracked)
        self._moves = {place: self._moves_from(graph, place) for place in {START, *graph.after}}

    def _moves_from(self, graph: Graph, place: Place) -> list[_Move]:
        return [self._move(arc, graph.asked_from[arc.target]) for arc in graph.after[place]]

    def _move(self, arc: Arc, asked: frozenset[int]) -> _Move:
        slots = {number: slot for slot, number in enumerate(self.tracked)}
        return _Move(
            arc,
            arc.target,
            needs=tuple((slots[number], most) for number, most in arc.needs if number in slots),
            raises=tuple(slots[number] for number in sorted(arc.raises & asked) if number in slots),
            forgets=tuple(slot for number, slot in slots.items() if number not in asked),
        )

    def after(self, spot: Spot) -> Iterator[tuple[Arc, Spot]]:
        """What can happen at this spot, and where it leads."""
        place, counts = spot
        for move in self._moves.get(place, ()):
            for slot, most in move.needs:
                if counts[slot] > most:
                    break
            else:
                yield move.arc, (move.target, self._count(counts, move))

    def _count(self, counts: Counts, move: _Move) -> Counts:
        if not (move.raises or move.forgets):
            return counts
        changed = list(counts)
        for slot in move.raises:
            if changed[slot] < self._limits[slot]:
                changed[slot] += 1
        for slot in move.forgets:
            changed[slot] = 0
        return tuple(changed)
