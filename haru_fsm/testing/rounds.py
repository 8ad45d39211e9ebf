"""Rounds of attacks, for minutes: each with a seed of its own, in turn on memory, on SQLite, and against the scope."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from haru_fsm.app import load_app
from haru_fsm.clock import SystemClock
from haru_fsm.limits import Limits
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.testing.customers import customers_of
from haru_fsm.testing.hunting import ALL_PROMISES, Coverage, Found, Ground, hunt
from haru_fsm.testing.scoping import Scope
from haru_fsm.testing.strategies import hostile_plays


def attack(
    folder: Path,
    databases: Path,
    *,
    limits: Limits,
    minutes: float,
    seed: int,
    plays: int,
    coverage: Coverage,
    on_play: Callable[[float], None],
) -> Found | None:
    """Attack the app in this folder, which is a copy, until something breaks or the time is over; at least one round.

    `databases`: an empty folder. `on_play` is told, at each conversation, the share of the time that is over.
    """
    clock = SystemClock()
    began = clock.monotonic()
    number = 0

    def over() -> float:
        return (clock.monotonic() - began) / (60 * minutes)

    while number == 0 or over() < 1:
        found = _round(folder, databases, limits, number, seed + number, plays, coverage, lambda: on_play(over()))
        if found is not None:
            return found
        number += 1
    return None


def _round(
    folder: Path,
    databases: Path,
    limits: Limits,
    number: int,
    seed: int,
    plays: int,
    coverage: Coverage,
    on_play: Callable[[], None],
) -> Found | None:
    app = load_app(folder, limits=limits)
    customers = customers_of(app)
    if number % 4 == 3 and len(customers) > 1:
        with Ground(app, coverage=coverage) as ground:
            ground.reset()
            scope = Scope.of(app, customers, {})
            return hunt(ground, scope.plays(), scope.judged(ground), examples=plays, seed=seed, on_play=on_play)
    store = databases if number % 4 == 1 else MemoryStore
    with Ground(folder, store, coverage=coverage) as ground:
        wanted = hostile_plays(app, customers=customers, crashes=True, limited=True)
        found = hunt(
            ground,
            wanted,
            lambda play: ground.judged(play, ALL_PROMISES),
            examples=plays,
            seed=seed,
            on_play=on_play,
        )
    for file in databases.iterdir():
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    return found
