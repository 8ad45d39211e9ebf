"""Figures over journals: endings, guards, tokens, times, tools, models, days. Pure: steps in, sums out."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice, takewhile
from typing import Any, TypeVar

from haru_fsm.cli.output import when
from haru_fsm.conversation import (
    COST_DIGITS,
    JSON,
    OUTSIDE,
    ModelEvent,
    ModelFailed,
    ResultStatus,
    Share,
    Step,
    TicketClosed,
    TicketOpened,
    ToolResult,
    Usage,
    executed,
    self_contained,
)
from haru_fsm.runs import answer_of, stopped_by

Figure = TypeVar("Figure", int, float)


def percentile(values: Sequence[Figure], share: float) -> Figure | int:
    """The smallest value that at least this share of them does not exceed (nearest rank); 0 for no values."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else 0


def spread(values: Sequence[int] | Sequence[float]) -> JSON:
    """What is said of a quantity: its sum, its median and its 95th percentile."""
    return {"total": round(sum(values), COST_DIGITS), "p50": percentile(values, 0.5), "p95": percentile(values, 0.95)}


@dataclass
class Spent:
    """What models were asked and what that took."""

    requests: int = 0
    usage: Usage = field(default_factory=Usage)

    def add(self, share: Share) -> None:
        self.requests += share.requests
        self.usage = self.usage + share.usage

    def as_object(self) -> JSON:
        return {"requests": self.requests, **self.usage.model_dump(mode="json"), "tokens": self.usage.total}


@dataclass
class Work:
    """The steps of one state: milliseconds of each, and tokens where a model was asked."""

    took_ms: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def add(self, step: Step) -> None:
        self.took_ms.append(step.event.took_ms)
        if isinstance(step.event, ModelEvent):
            self.tokens.append(step.event.usage.total)

    def as_object(self) -> JSON:
        return {"steps": len(self.took_ms), "ms": spread(self.took_ms), "tokens": spread(self.tokens)}


@dataclass
class Use:
    """The calls of one tool. Times are those of calls that were run."""

    calls: int = 0
    took_ms: list[int] = field(default_factory=list)
    ended: Counter[str] = field(default_factory=Counter)
    repaired: int = 0

    def add(self, result: ToolResult) -> None:
        self.calls += 1
        self.repaired += bool(result.repairs)
        if result.ran:
            self.took_ms.append(result.took_ms)
        self.ended["repeated" if result.repeated else result.status] += 1

    def as_object(self) -> JSON:
        ended = {name: self.ended[name] for name in (*ResultStatus, "repeated")}
        return {"calls": self.calls, "ran": len(self.took_ms), **ended, "repaired": self.repaired} | {
            "ms": spread(self.took_ms)
        }


@dataclass
class Figures:
    """The sums. `add` the steps of one conversation after the other."""

    conversations: int = 0
    endings: Counter[str] = field(default_factory=Counter)
    tickets: Counter[str] = field(default_factory=Counter)
    """Runs that ended in a ticket, by what had stopped them."""
    guards: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    spent: Spent = field(default_factory=Spent)
    states: defaultdict[str, Work] = field(default_factory=lambda: defaultdict(Work))
    tools: defaultdict[str, Use] = field(default_factory=lambda: defaultdict(Use))
    models: defaultdict[str, Spent] = field(default_factory=lambda: defaultdict(Spent))
    days: defaultdict[str, Spent] = field(default_factory=lambda: defaultdict(Spent))
    per_run: list[int] = field(default_factory=list)
    """Tokens of each run."""
    usd_per_run: list[float] = field(default_factory=list)
    """US dollars of each run that has a price."""

    def add(self, steps: Sequence[Step], *, shared: int = 0) -> None:
        """Count one conversation in. So many of its first steps it `shared` with the one that it was forked from: what
        was done and spent in them is counted there."""
        self.conversations += 1
        own = steps[shared:]
        for number, run in groupby(steps, key=lambda step: step.run):
            if number and (own and number >= own[0].run):  # a history that was adopted is no run
                self._add_run(list(run), own)
        for step in own:
            self._add_step(step)
        before = sum(1 for _ in executed(steps[:shared]))
        for _, call, result in islice(executed(steps), before, None):
            self.tools[call.name].add(result)

    def _add_run(self, steps: Sequence[Step], own: Sequence[Step]) -> None:
        ended, spent = ending(steps), Spent()
        self.endings[ended] += 1
        if ended == "ticket":
            self.tickets[reason(steps)] += 1
        for step in steps:
            if isinstance(step.event, ModelEvent) and step.seq >= own[0].seq:
                for share in step.event.by_model:
                    spent.add(share)
        self.per_run.append(spent.usage.total)
        if spent.usage.cost_usd is not None:
            self.usd_per_run.append(spent.usage.cost_usd)

    def _add_step(self, step: Step) -> None:
        event = step.event
        if type(event) not in OUTSIDE:
            self.states[step.source].add(step)
        if step.trip is not None:
            self.guards[step.trip.guard] += 1
        if isinstance(event, ModelFailed):
            self.failures[event.reason] += 1
        if isinstance(event, ModelEvent):
            for share in event.by_model:
                for spent in (self.spent, self.models[share.model], self.days[day(event.at)]):
                    spent.add(share)

    def as_object(self) -> JSON:
        """All of it, as JSON."""
        return {
            "conversations": self.conversations,
            "runs": self.endings.total(),
            "endings": dict(self.endings),
            "tickets": dict(self.tickets.most_common()),
            "guards": dict(self.guards.most_common()),
            "failures": dict(self.failures.most_common()),
            "model": self.spent.as_object(),
            "tokens_per_run": spread(self.per_run),
            "usd_per_run": spread(self.usd_per_run),
            "states": _objects(self.states),
            "tools": _objects(self.tools),
            "models": _objects(self.models),
            "days": _objects(dict(sorted(self.days.items()))),
        }


def _objects(parts: Mapping[str, Any]) -> JSON:
    return {name: part.as_object() for name, part in parts.items()}


def shared_with(parent: Sequence[Step], steps: Sequence[Step]) -> int:
    """How many of a fork's first steps are its parent's."""
    pairs = zip(map(self_contained, parent), map(self_contained, steps), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def ending(steps: Iterable[Step]) -> str:
    """How a run ended: `ticket`, `answer`; or `waiting` (for a person's approval), or `unfinished`."""
    seen: list[Step] = []
    for step in steps:
        if isinstance(step.event, TicketOpened):
            return "ticket"
        if not isinstance(step.event, TicketClosed):  # of a run before this one, where this one has no ticket
            seen.append(step)
    if seen and seen[-1].pauses:
        return "waiting"
    return "answer" if seen and answer_of(seen) is not None else "unfinished"


def reason(steps: Sequence[Step]) -> str:
    """What has stopped a run that ended in a ticket: the guard, or what the model failed of."""
    stopped = stopped_by(steps)
    if stopped is None:
        return "a tool"
    return stopped.guard if stopped.guard != "model_failed" else f"model_failed: {stopped.because.partition(':')[0]}"


def day(at: float) -> str:
    """The day of a moment, in the reader's time zone; "?" for one that cannot be."""
    return when(at)[:10]
