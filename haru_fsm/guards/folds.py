"""The memos of several guards, kept together.

Guards that fold alike share one memo, and a step is shown only to those whose memo it may change. So a table may ask
the same detector with several limits, and a step costs what it concerns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
        places = {guard.fold_key: place for place, guard in enumerate(self.guards)}
        self.places: dict[int, int] = {id(guard): places[guard.fold_key] for guard in asked}
        """Where a guard, by its identity, finds its memo."""
        self._asked = asked  # an identity means something as long as its owner lives
        self._known: dict[tuple[type[Event], bool, bool], tuple[_Fold, ...]] = {}

    def initial(self) -> Memos:
        """The memos of an empty journal."""
        return tuple([guard.initial() for guard in self.guards])

    def after(self, memos: Sequence[Any], step: Step, run: int) -> Memos:
        """The memos after one more step, the one before it being of this run: each run begins with fresh ones."""
        now = list(memos if step.run == run else self.begun(memos))
        for place, fold in self._concerned(type(step.event), bool(step.asked)):
            now[place] = fold(now[place], step)
        return tuple(now)

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
            for place, fold in self._concerned(type(step.event), bool(step.asked), past=step.run != last):
                now[place] = fold(now[place], step)
        return tuple(now)

    def _concerned(self, event: type[Event], asked: bool, past: bool = False) -> tuple[_Fold, ...]:
        """The folds that such a step may change; of a run that is past, only those of conversations."""
        found = self._known.get((event, asked, past))
        if found is None:
            found = self._known[event, asked, past] = tuple(
                (place, guard.fold)
                for place, guard in enumerate(self.guards)
                if _concerns(guard, event, asked) and not (past and guard.scope == "run")
            )
        return found


def _concerns(guard: Guard, event: type[Event], asked: bool) -> bool:
    return guard.folds is None or issubclass(event, guard.folds) or (asked and isinstance(guard, Counted))
