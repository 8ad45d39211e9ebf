"""Do the guards of a workflow keep the limits that they claim? Tried against generated histories, not proved.

The certificate takes a guard's word: once what it counts has reached its limit, it trips for the rest of the run. A
guard of a user's own may claim what it does not keep (it forgets, it can be reset, it counts something else), and then
the proof is worth nothing. So histories are made up as an adversary would, and the guard is asked as the table asks it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from haru_fsm.certificate.histories import made_up, whole
from haru_fsm.conversation import Event, Step
from haru_fsm.guards.guard import Counted, Guard, atoms
from haru_fsm.machine import Workflow

HISTORIES = 40
"""Histories for each guard; a third of them always ask it at one place, the rest go anywhere."""
LONGEST = 2_000
"""Steps of one history. A limit beyond it is claimed on trust."""
AFTER = 12
"""Steps after the limit, in which the guard must stay tripped."""


@dataclass(frozen=True, slots=True)
class BrokenClaim:
    """A guard that did not trip although what it counts had reached its limit."""

    guard: Guard
    count: int
    history: tuple[Step, ...]
    event: Event
    raised: str = ""

    def __str__(self) -> str:
        limit, name = self.guard.limit, self.guard.name
        last = " -> ".join([*(step.event.kind for step in self.history[-6:]), self.event.kind])
        if self.raised:
            return f"{name} could not judge a history that may come ({self.raised}). Its end: {last}."
        counted = (
            f"visits of {', '.join(sorted(self.guard.counts))}" if self.guard.counts else "askings that it let pass"
        )
        return (
            f"{name} claims to trip for the rest of a run after {limit} {counted}, and did not after {self.count}. "
            f"Mend the guard, or let it claim nothing (limit None). The end of the history: {last}."
        )


def broken_claims(workflow: Workflow, *, seed: int = 0) -> tuple[BrokenClaim, ...]:
    """The first broken claim of each guard that claims a limit; none where all kept theirs. Always the same answer."""
    found = (_broken(workflow, guard, random.Random(seed)) for guard in workflow.guards)
    return tuple(claim for claim in found if claim is not None)


def untried_claims(workflow: Workflow) -> tuple[Guard, ...]:
    """Guards of somebody's own whose limit is beyond a made-up history: nobody has tried whether they keep it."""
    return tuple(guard for guard in workflow.guards if (guard.limit or 0) > LONGEST and not _ours(guard))


def _ours(guard: Guard) -> bool:
    """Whether it is one of the engine's own, whose claims are tested with the engine."""
    package, _, _ = Guard.__module__.rpartition(".")
    return type(guard).__module__.startswith(f"{package}.")


def _broken(workflow: Workflow, guard: Guard, draw: random.Random) -> BrokenClaim | None:
    if guard.limit is None or guard.limit > LONGEST:
        return None
    places = sorted(set(_asked_at(workflow, guard)), key=lambda place: (place[0], place[1].__name__))
    for number in range(HISTORIES):
        only = draw.choice(places) if number % 3 == 0 else None
        claim = _Trial(workflow, guard, frozenset(places), draw).run(only)
        if claim is not None:
            return claim
    return None


def _asked_at(workflow: Workflow, guard: Guard) -> Iterator[tuple[str, type[Event]]]:
    for row in workflow.rows:
        if guard in atoms(row.when):
            yield from ((str(source), row.event) for source in row.sources)


@dataclass(slots=True)
class _Trial:
    """One history, and the guard asked all along it."""

    workflow: Workflow
    guard: Guard
    places: frozenset[tuple[str, type[Event]]]
    draw: random.Random

    def run(self, only: tuple[str, type[Event]] | None) -> BrokenClaim | None:
        guard, limit = self.guard, self.guard.limit or 0
        memo, counts, history = guard.initial(), dict[object, int](), list[Step]()
        reached = 0
        for seq in range(1, LONGEST + AFTER):
            state, event = only if only is not None else self._somewhere()
            made = made_up(event, self.draw)
            count = self._count(counts, state, event)
            asked: tuple[str, ...] = ()
            if (state, event) in self.places:
                try:
                    trip = guard.judge(memo, made)
                except Exception as error:
                    if not whole(made):
                        return None
                    return BrokenClaim(guard, count, tuple(history), made, repr(error))
                if trip is None and count >= limit:
                    return BrokenClaim(guard, count, tuple(history), made)
                asked = self._passed(counts, state, event) if trip is None else ()
                reached += trip is not None
            step = Step(seq=seq, run=1, event=made, source=state, state=state, asked=asked)
            memo = guard.fold(memo, step)
            history.append(step)
            if reached > AFTER:
                return None
        return None

    def _somewhere(self) -> tuple[str, type[Event]]:
        """A place where something may happen: the work of a state gives one of its events."""
        if self.draw.random() < 0.5:
            return self.draw.choice(sorted(self.places, key=lambda place: (place[0], place[1].__name__)))
        state = self.draw.choice(list(self.workflow.gives))
        return state, self.draw.choice(self.workflow.gives[state])

    def _count(self, counts: dict[object, int], state: str, event: type[Event]) -> int:
        """What the guard counts, when it is asked now: visits with this one included, or askings let pass before."""
        if self.guard.counts:
            counts["visits"] = counts.get("visits", 0) + (state in self.guard.counts and self._given(state, event))
            return counts["visits"]
        return counts.get(self._key(state, event), 0)

    def _given(self, state: str, event: type[Event]) -> bool:
        return event in self.workflow.gives.get(state, ())

    def _passed(self, counts: dict[object, int], state: str, event: type[Event]) -> tuple[str, ...]:
        if not self.guard.counts:
            key = self._key(state, event)
            counts[key] = counts.get(key, 0) + 1
        return (type(self.guard).__name__,) if isinstance(self.guard, Counted) else ()

    def _key(self, state: str, event: type[Event]) -> object:
        return "askings" if isinstance(self.guard, Counted) else (state, event)
