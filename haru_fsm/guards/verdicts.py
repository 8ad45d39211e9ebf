"""A condition of a row, put together once so that it can be asked often.

Composites are read from the left and no further than needed. What a counted guard let pass is noted by its kind, for
the step that is going to be written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from haru_fsm.conversation import Event, Trip
from haru_fsm.guards.guard import AllOf, AnyOf, Counted, Guard, Not

Verdict = Callable[[Sequence[Any], Event, list[str]], Trip | None]
"""`(memos, event, asked) -> trip`: whether the condition holds for this event after what the memos cover. The kinds of
counted guards that did not trip are added to `asked`."""


def verdict(guard: Guard, places: Mapping[int, int]) -> Verdict:
    """The condition as a function. `places` says where each guard finds its memo (`Folds.places`)."""
    match guard:
        case AnyOf(guards=parts):
            return _any([verdict(part, places) for part in parts])
        case AllOf(guards=parts):
            return _all([verdict(part, places) for part in parts], guard)
        case Not(guard=part):
            return _not(verdict(part, places), guard)
        case Counted():
            return _counted(guard, places[id(guard)])
    return _one(guard, places[id(guard)])


def _one(guard: Guard, place: int) -> Verdict:
    judge = guard.judge
    return lambda memos, event, asked: judge(memos[place], event)


def _counted(guard: Counted, place: int) -> Verdict:
    name = type(guard).__name__

    def judged(memos: Sequence[Any], event: Event, asked: list[str]) -> Trip | None:
        trip = guard.judge(memos[place], event)
        if trip is None:
            asked.append(name)
        return trip

    return judged


def _any(parts: Sequence[Verdict]) -> Verdict:
    def judged(memos: Sequence[Any], event: Event, asked: list[str]) -> Trip | None:
        for part in parts:
            trip = part(memos, event, asked)
            if trip is not None:
                return trip
        return None

    return judged


def _all(parts: Sequence[Verdict], whole: Guard) -> Verdict:
    def judged(memos: Sequence[Any], event: Event, asked: list[str]) -> Trip | None:
        trips = []
        for part in parts:
            trip = part(memos, event, asked)
            if trip is None:
                return None
            trips.append(trip)
        return _together(trips) if trips else whole.trip(0, whole.name)

    return judged


def _not(part: Verdict, whole: Guard) -> Verdict:
    def judged(memos: Sequence[Any], event: Event, asked: list[str]) -> Trip | None:
        return None if part(memos, event, asked) else whole.trip(0, whole.name)

    return judged


def _together(trips: Sequence[Trip]) -> Trip:
    last = trips[-1]
    return Trip(
        guard=" and ".join(trip.guard for trip in trips),
        figure=last.figure,
        limit=last.limit,
        because="; ".join(trip.because for trip in trips),
    )
