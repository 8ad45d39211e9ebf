"""A condition of a row, put together once so that it can be asked often.

Composites are read from the left and no further than needed. What a counted guard let pass is noted by its kind, for
the step that is going to be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from haru_fsm.conversation import Event, Trip
from haru_fsm.guards.guard import AllOf, AnyOf, Counted, Guard, Not, atoms

Verdict = Callable[[Sequence[Any], Event, list[str]], Trip | None]
"""`(memos, event, asked) -> trip`: whether the condition holds for this event after what the memos cover. The kinds of
counted guards that did not trip are added to `asked`."""


def verdict(guard: Guard, places: Mapping[int, int]) -> Verdict:
    """The condition as a function. `places` says where each guard finds its memo (`Folds.places`)."""
    judged = _judged(guard, places)
    memos = {places[id(atom)]: atom for atom in atoms(guard)}
    return _sparing(judged, *memos.popitem()) if len(memos) == 1 and _spared(guard) else judged


def _sparing(judged: Verdict, place: int, guard: Guard) -> Verdict:
    """All that is asked looks at one memo, and as a rule there is nothing to judge: that is seen at once."""
    idle = guard.idle
    return lambda memos, event, asked: None if idle(memos[place], event) else judged(memos, event, asked)


def _spared(guard: Guard) -> bool:
    """Whether the condition cannot hold where its guards idle."""
    match guard:
        case AnyOf(guards=parts):
            return all(map(_spared, parts))
        case AllOf(guards=parts):
            return any(map(_spared, parts))
    return guard.spared_idle and _as_stated(guard)


def _as_stated(guard: Guard) -> bool:
    """Whether the judgement is the one of which it was said; a subclass with another one has to say so anew."""
    kinds = type(guard).__mro__
    says, judges = (next(kind for kind in kinds if name in vars(kind)) for name in ("spared_idle", "judge"))
    return issubclass(says, judges)


def _judged(guard: Guard, places: Mapping[int, int]) -> Verdict:
    match guard:
        case AnyOf(guards=parts):
            return _any([_judged(part, places) for part in _flat(parts)])
        case AllOf(guards=parts):
            return _all([_judged(part, places) for part in parts], guard)
        case Not(guard=part):
            return _not(_judged(part, places), guard)
        case Counted():
            return _counted(guard, places[id(guard)])
    return _one(guard, places[id(guard)])


def _flat(parts: Iterable[Guard]) -> Iterator[Guard]:
    """The parts of an AnyOf; one within another is as good as its parts."""
    for part in parts:
        if isinstance(part, AnyOf):
            yield from _flat(part.guards)
        else:
            yield part


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
        trips: tuple[Trip, ...] = ()
        for part in parts:
            trip = part(memos, event, asked)
            if trip is None:
                return None
            trips = (*trips, trip)
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
