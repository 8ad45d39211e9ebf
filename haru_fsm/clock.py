"""Time, as something that is handed in. Nothing else in haru_fsm reads a clock or sleeps."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for people, monotonic time for measuring, and waiting."""

    def now(self) -> float:
        """Seconds since the epoch. May jump; nothing is ordered or limited by it."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The real one."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class FakeClock:
    """A clock for tests and rehearsals: time passes only when somebody sleeps or says so."""

    def __init__(self, now: float = 1_785_000_000.0) -> None:
        self._now = now
        self._monotonic = 1_000.0  # as a real one, it does not begin at zero: only differences mean anything
        self.slept: list[float] = []

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds
        self._monotonic += seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)
