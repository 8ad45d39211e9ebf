"""The table read as logic: in which ways each of several rows, asked in order, can be the first to pass.

A row fires under every assignment of its pair's guards in which it is the first to pass. Guards are evaluated as
the machine does it: in the order of the rows, from the left, no further than needed; equal guards have one value.
Each way of firing *asks* the limited guards that were false in it, so composites, caps and rows that can never
fire need no rules of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from haru_fsm.guards.guard import AllOf, AnyOf, Guard, Not, atoms

Verdicts = Mapping[Guard, bool]
"""Which guards tripped. One that was not evaluated is not in it."""

MOST_WAYS = 200
"""Ways of firing that are told apart at one (state, event)."""


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


def passed(way: Verdicts) -> frozenset[Guard]:
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
    marks = [(passed(way), frozenset(item for item in way.items() if item[0] in later)) for way in ways]
    kept: list[int] = []
    for number in sorted(range(len(ways)), key=lambda n: len(marks[n][0]) + len(marks[n][1])):
        asks, values = marks[number]
        if not any(marks[other][0] <= asks and marks[other][1] <= values for other in kept):
            kept.append(number)
    return [ways[number] for number in sorted(kept)]
