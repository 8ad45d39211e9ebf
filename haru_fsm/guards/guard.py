"""What a guard is, and how guards are put together.

A guard is a frozen condition on the journal: a memo that folds one step after the other, and a judgement of the event
at hand. Composites carry no memo and no limit of their own; the machine takes them apart while it reads a row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

from haru_fsm.conversation import Event, Step, Trip


@dataclass(frozen=True)
class Guard:
    """A condition on the journal. Subclasses are frozen dataclasses; equal guards are one guard.

    `limit` and `counts` are what a guard promises the certificate: once the count has reached `limit`, the guard
    trips for the rest of the run. It counts visits of the states in `counts` (the one being judged included), or,
    where `counts` is empty, how often this guard was asked at the same (state, event) without tripping. A guard
    with `limit` None promises nothing.
    """

    scope: Literal["run", "conversation"] = field(default="run", kw_only=True)

    judges: ClassVar[tuple[type[Event], ...] | None] = None
    """The events that the guard can judge; None: any. A row that asks it about another is refused."""
    folds: ClassVar[tuple[type[Event], ...] | None] = None
    """The events that may change the memo; None: any. Steps with other events are not shown to `fold`."""
    folds_by_kind: ClassVar[bool] = False
    """The memo depends on the guard's class and scope alone, so guards that differ in their limit share one."""
    measures: ClassVar[Literal["requests", "tool_calls", "tokens", "cost", "seconds"] | None] = None
    """The quantity that `ceiling` bounds, where the guard is a budget."""

    @property
    def ceiling(self) -> float | None:
        """The figure of what the guard `measures` beyond which no further work of that kind is begun."""
        return None

    @property
    def limit(self) -> int | None:
        """The promised limit, or None."""
        return None

    @property
    def counts(self) -> frozenset[str]:
        """The states whose visits are counted; empty: askings of this guard."""
        return frozenset()

    @property
    def fold_key(self) -> Hashable:
        """Guards with the same key have the same memo of any journal, and it is folded once for all of them.

        By default those that are equal; where `folds_by_kind` says so, those of one class and scope. A subclass with a
        fold of its own has to say so anew: it may fold by a field that its parent does not have.
        """
        return (type(self), self.scope) if self.folds_by_kind and self._folds_as_stated() else self

    def _folds_as_stated(self) -> bool:
        kind = type(self)
        stated = next(each for each in kind.__mro__ if issubclass(each, Guard) and "folds_by_kind" in vars(each))
        mine, theirs = (kind.fold, kind.initial), (stated.fold, stated.initial)
        return mine == theirs

    @cached_property
    def name(self) -> str:
        """How trips, tables and diagrams call this guard."""
        values = [getattr(self, f.name) for f in dataclasses.fields(self) if not f.kw_only]
        return f"{type(self).__name__}({', '.join(str(value) for value in values)})"

    def initial(self) -> Any:
        """The memo before anything has happened. Memos are never changed in place."""
        return None

    def fold(self, memo: Any, step: Step) -> Any:
        """The memo after one more step."""
        return memo

    def judge(self, memo: Any, event: Event) -> Trip | None:
        """Whether the guard trips on this event, and why. `memo` covers all steps before it.

        Composites have no judgement of their own: their parts are asked, so this is not abstract.
        """
        raise NotImplementedError

    def idle(self, memo: Any, event: Event) -> bool:
        """Whether there is nothing to judge: no guard that folds alike and is `spared_idle` trips on this event.

        It must cost less than to judge; by default nobody is spared.
        """
        return False

    @property
    def spared_idle(self) -> bool:
        """Whether it never trips where `idle` holds, so that it is not asked there."""
        return False

    def trip(self, figure: float, because: str, limit: float | None = None) -> Trip:
        """A trip of this guard; `limit` defaults to the promised one."""
        limit = limit if limit is not None else self.limit or 0
        return Trip(guard=self.name, figure=figure, limit=limit, because=because)


@dataclass(frozen=True)
class Counted(Guard):
    """Trips once it has been asked, without tripping, `times` times in its scope.

    Each step names the counted guards that were asked and let it pass (`Step.asked`), so the count is a fold like
    any other. They are named by kind, without their limit: raising a limit does not lose the count. A step that
    asked one is shown to it, whatever its event.
    """

    times: int

    folds = ()
    folds_by_kind = True

    @property
    def limit(self) -> int | None:
        return self.times

    def initial(self) -> int:
        return 0

    def fold(self, memo: int, step: Step) -> int:
        return memo + (type(self).__name__ in step.asked)

    def judge(self, memo: int, event: Event) -> Trip | None:
        return self.trip(memo, self.because(memo)) if memo >= self.times else None

    def because(self, count: int) -> str:
        """The sentence for people when it trips."""
        return f"{self.name} was passed {count} times"


@dataclass(frozen=True)
class AnyOf(Guard):
    """Trips when one of the guards does; the first that trips says why."""

    guards: tuple[Guard, ...]

    def __init__(self, *guards: Guard) -> None:
        object.__setattr__(self, "guards", guards)
        object.__setattr__(self, "scope", "run")

    @cached_property
    def name(self) -> str:
        return " or ".join(guard.name for guard in self.guards) or "never"


@dataclass(frozen=True)
class AllOf(Guard):
    """Trips when every one of the guards does; all of them say why, the figure and the limit are the last one's."""

    guards: tuple[Guard, ...]

    def __init__(self, *guards: Guard) -> None:
        object.__setattr__(self, "guards", guards)
        object.__setattr__(self, "scope", "run")

    @cached_property
    def name(self) -> str:
        parts = (f"({guard.name})" if isinstance(guard, AnyOf) else guard.name for guard in self.guards)
        return " and ".join(parts) or "always"


@dataclass(frozen=True)
class Not(Guard):
    """Trips when the guard does not."""

    guard: Guard

    def __init__(self, guard: Guard) -> None:
        object.__setattr__(self, "guard", guard)
        object.__setattr__(self, "scope", "run")

    @cached_property
    def name(self) -> str:
        return f"not ({self.guard.name})"


def atoms(guard: Guard | None) -> Iterator[Guard]:
    """The guards that a composite is made of, in order, each as often as it occurs."""
    match guard:
        case None:
            return
        case AnyOf(guards=parts) | AllOf(guards=parts):
            for part in parts:
                yield from atoms(part)
        case Not(guard=part):
            yield from atoms(part)
        case _:
            yield guard
