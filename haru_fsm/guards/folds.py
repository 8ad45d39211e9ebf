"""The memos of several guards, kept together.

Guards that fold alike share one memo, and a step is shown only to those whose memo it may change. So a table may ask
the same detector with several limits, and a step costs what it concerns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from haru_fsm.conversation import Event, Step
from haru_fsm.guards.guard import Counted, Guard

_Fold = tuple[int, Callable[[Any, Step], Any]]
Memos = tuple[Any, ...]
"""One memo for each fold, in the order of `Folds.guards`. Never changed in place."""


class Folds:
    """The folds that a number of guards need.

    Guards are found by their identity: hashing a frozen dataclass costs more than judging by it.
    """

    def __init__(self, guards: Iterable[Guard]) -> None:
        asked = tuple(guards)
        self.guards: tuple[Guard, ...] = tuple({guard.fold_key: guard for guard in reversed(asked)}.values())[::-1]
        """One guard for each fold: the one whose `fold` is used for all that fold alike."""
        self.keys: tuple[Hashable, ...] = tuple(guard.fold_key for guard in self.guards)
        """Those who have the same keys have the same memos of any journal."""
        self.lasting: bool = any(guard.scope == "conversation" for guard in self.guards)
        """Some memo goes on from one run to the next."""
        places = {guard.fold_key: place for place, guard in enumerate(self.guards)}
        self.places: dict[int, int] = {id(guard): places[guard.fold_key] for guard in asked}
        """Where a guard, by its identity, finds its memo."""
        self._asked = asked  # an identity means something as long as its owner lives
        self._concerned: dict[type[Event], tuple[_Fold, ...]] = _Concerned(self.guards)
        self._asking: dict[type[Event], tuple[_Fold, ...]] = _Concerned(self.guards, asked=True)

    def initial(self) -> Memos:
        """The memos of an empty journal."""
        return tuple([guard.initial() for guard in self.guards])

    def after(self, memos: Sequence[Any], step: Step, run: int) -> Memos:
        """The memos after one more step, the one before it being of this run: each run begins with fresh ones."""
        now = list(memos if step.run == run else self.begun(memos))
        for place, fold in (self._asking if step.asked else self._concerned)[type(step.event)]:
            now[place] = fold(now[place], step)
        return tuple(now)

    def along(self, memos: Memos, steps: Iterable[Step]) -> Memos:
        """The memos after more steps of the run that they belong to."""
        for step in steps:
            memos = self.after(memos, step, step.run)
        return memos

    def begun(self, memos: Sequence[Any]) -> Memos:
        """The memos at the beginning of a new run."""
        return tuple(
            [guard.initial() if guard.scope == "run" else memo for guard, memo in zip(self.guards, memos, strict=True)]
        )

    def replayed(self, steps: Sequence[Step]) -> Memos:
        """The memos of a journal. What belongs to a run began with it, so earlier runs are not looked at for it."""
        now = list(self.initial())
        last = steps[-1].run if steps else 0
        for step in steps:
            for place, fold in (self._asking if step.asked else self._concerned)[type(step.event)]:
                if step.run == last or self.guards[place].scope == "conversation":
                    now[place] = fold(now[place], step)
        return tuple(now)


class _Concerned(dict[type[Event], tuple[_Fold, ...]]):
    """The folds that a step with such an event may change; it has `asked` counted guards, or has not."""

    def __init__(self, guards: Sequence[Guard], *, asked: bool = False) -> None:
        self._guards = tuple(enumerate(guards))
        self._asked = asked

    def __missing__(self, event: type[Event]) -> tuple[_Fold, ...]:
        found = self[event] = tuple((place, guard.fold) for place, guard in self._guards if self._may(guard, event))
        return found

    def _may(self, guard: Guard, event: type[Event]) -> bool:
        return guard.folds is None or issubclass(event, guard.folds) or (self._asked and isinstance(guard, Counted))
