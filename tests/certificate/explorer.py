"""The certificate's rival: tries out everything that can happen, with all counts, one event at a time.

Shares no code with haru_fsm.certificate and knows none of its shortcuts: it evaluates every row under every
assignment of truth to the guards of its pair. Only for small tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

from haru_fsm.certificate.arcs import continues
from haru_fsm.conversation import OUTSIDE, Event, ModelEvent, Resumed
from haru_fsm.guards.guard import AllOf, AnyOf, Counted, Guard, Not, atoms
from haru_fsm.machine import Workflow

Counts = tuple[int, ...]
Figures = tuple[int, int]
"""The most transitions, and the most visits of a state that asks the model."""


class Config(NamedTuple):
    """Everything that the future of a run depends on."""

    state: str
    rests: bool
    counts: Counts


BEGIN = ""
Found = dict[Config, list[tuple[int, Config]]]
"""For each configuration the rows that can fire, and where they lead."""


def _verdict(guard: Guard, values: Mapping[Guard, bool], passed: set[Guard]) -> bool:
    """A guard's verdict, from the left and no further than needed; notes what was asked and did not trip."""
    match guard:
        case AnyOf(guards=parts):
            return any(_verdict(part, values, passed) for part in parts)
        case AllOf(guards=parts):
            return all(_verdict(part, values, passed) for part in parts)
        case Not(guard=part):
            return not _verdict(part, values, passed)
    if not values[guard]:
        passed.add(guard)
    return values[guard]


class Explorer:
    """Everything that can happen in a workflow. Counts are kept for each guard, and for each place it is asked at."""

    def __init__(self, workflow: Workflow, *, resumes: bool) -> None:
        self.workflow = workflow
        self.resumes = resumes
        self.slots: dict[object, int] = {guard: slot for slot, guard in enumerate(self._limited())}
        self.caps = [guard.limit or 0 for guard in self._limited()]
        self.by_visits = {self.slots[guard] for guard in self._limited() if guard.counts}
        self.options: dict[tuple[str, bool], list[tuple[int, Counts, Counts, str, bool]]] = {}

    def _limited(self) -> list[Guard]:
        return [guard for guard in self.workflow.guards if guard.limit is not None]

    def explore(self) -> Found:
        """All that can come to be, and what follows it."""
        begin = Config(BEGIN, True, ())
        found: Found = {}
        waiting = [begin]
        while waiting:
            config = waiting.pop()
            if config not in found:
                found[config] = list(dict.fromkeys(self._after(config)))
                waiting += [following for _, following in found[config]]
        return found

    def _after(self, config: Config) -> Iterator[tuple[int, Config]]:
        key = (config.state, config.rests)
        if key not in self.options:
            self.options[key] = [way for state, event in self._events(*key) for way in self._ways(state, event)]
        counts = list(config.counts)
        counts += [0] * (len(self.caps) - len(counts))
        for number, visits, asked, state, rests in self.options[key]:
            now = counts.copy()
            for slot in visits:
                now[slot] = min(now[slot] + 1, self.caps[slot])
            if any(now[slot] >= self.caps[slot] for slot in asked):
                continue
            for slot in asked:
                if slot not in self.by_visits:
                    now[slot] += 1
            yield number, Config(state, rests, tuple(now))

    def _events(self, state: str, rests: bool) -> list[tuple[str, type[Event]]]:
        rows = self.workflow.rows
        if state == BEGIN:
            return [(str(row.source), row.event) for row in rows if row.event in OUTSIDE and not continues(row.event)]
        if rests:
            return [(state, event) for event in {row.event for row in rows} if getattr(event, "continues", False)]
        events = list(self.workflow.gives.get(state, ()))
        if self.resumes:
            events.append(Resumed)
        return [(state, event) for event in events]

    def _ways(self, state: str, event: type[Event]) -> Iterator[tuple[int, Counts, Counts, str, bool]]:
        """Row, counts raised by the visit, limited guards that were asked and did not trip, target, rest."""
        given = event in self.workflow.gives.get(state, ())
        visits = tuple(self.slots[guard] for guard in self._limited() if given and state in guard.counts)
        for number, passed in sorted(self._firing(state, event), key=repr):
            asked = tuple(self._slot(guard, state, event) for guard in passed if guard.limit is not None)
            row = self.workflow.rows[number]
            yield number, visits, asked, str(row.target), row.rests

    def _firing(self, state: str, event: type[Event]) -> set[tuple[int, frozenset[Guard]]]:
        rows = [(n, row) for n, row in enumerate(self.workflow.rows) if (row.event, row.source) == (event, state)]
        guards = list(dict.fromkeys(atom for _, row in rows for atom in atoms(row.when)))
        found = set()
        for values in product((True, False), repeat=len(guards)):
            passed: set[Guard] = set()
            truth = dict(zip(guards, values, strict=True))
            fired = (number for number, row in rows if row.when is None or _verdict(row.when, truth, passed))
            if (number := next(fired, None)) is not None:
                found.add((number, frozenset(passed)))
        return found

    def _slot(self, guard: Guard, state: str, event: type[Event]) -> int:
        if guard.counts or isinstance(guard, Counted):
            return self.slots[guard]
        key = (guard, state, event.__name__)
        if key not in self.slots:
            self.slots[key] = len(self.caps)
            self.caps.append(guard.limit or 0)
        return self.slots[key]


def explore(workflow: Workflow, *, resumes: bool) -> Found:
    """All that can come to be in runs of this workflow."""
    return Explorer(workflow, resumes=resumes).explore()


def heaviest(workflow: Workflow, found: Found) -> Figures | None:
    """The worst case of a run; None if a run can go on for ever."""
    figures: dict[Config, Figures] = {}
    begin = next(iter(found))
    stack = [(begin, iter(found[begin]))]
    on_path = {begin}
    while stack:
        config, following = stack[-1]
        child = next((c for _, c in following if c not in figures), None)
        if child is None:
            figures[config] = _most(workflow, config, found[config], figures)
            on_path.discard(stack.pop()[0])
        elif child in on_path:
            return None
        else:
            on_path.add(child)
            stack.append((child, iter(found[child])))
    return figures[begin]


def _most(
    workflow: Workflow, config: Config, following: list[tuple[int, Config]], known: dict[Config, Figures]
) -> Figures:
    asks = any(issubclass(event, ModelEvent) for event in workflow.gives.get(config.state, ())) and not config.rests
    return (
        max((1 + known[after][0] for _, after in following), default=0),
        max((asks + known[after][1] for _, after in following), default=0),
    )


def shortest_loop(found: Found) -> int | None:
    """The length of the shortest loop."""
    best: int | None = None
    for config in found:
        seen: set[Config] = set()
        layer, length = {config}, 0
        while layer and (best is None or length + 1 < best):
            layer = {following for each in layer for _, following in found[each]} - seen
            length += 1
            if config in layer:
                best = length
                break
            seen |= layer
    return best
