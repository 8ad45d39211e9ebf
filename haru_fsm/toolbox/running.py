"""Running one call to its outcome: within its time, again where that is harmless, and never with an exception.

Only the cancellation of the run itself comes out of here as an exception. What a tool with an effect did after it was
given up is told late, once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from haru_fsm.clock import Clock
from haru_fsm.conversation import JSON
from haru_fsm.toolbox import results
from haru_fsm.toolbox.attempts import Callee, Ended, Kind, attempt

OnLate = Callable[["Outcome"], None]

FIRST_WAIT_S = 0.2
LONGEST_WAIT_S = 5.0
UNKNOWN = "It is not known whether it took place."

_log = logging.getLogger("haru_fsm.toolbox")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended, and what the model reads of it: {"result": ...} or {"error": ...}, perhaps with a "note".

    returned   it came back with a value, or its fallback stands for one
    not_done   it said NotDone, or it certainly never began
    raised     it raised; with an effect, nobody knows how far it came
    timed_out  it was given up; an outcome may still come late
    cancelled  it raised CancelledError without having been cancelled
    """

    kind: Kind
    response: JSON
    took_ms: int = 0
    attempts: int = 1
    fallback_used: bool = False


async def run(
    callee: Callee,
    arguments: Callable[[], dict[str, Any]],
    *,
    timeout_s: float | None,
    clock: Clock,
    on_late: OnLate | None,
) -> Outcome:
    """Run a call to its outcome. `arguments` gives fresh ones for each attempt.

    `timeout_s` bounds the whole call, waits included (None: each attempt has its own bound, and that is all).
    `on_late` is called at most once, in the event loop, with an outcome that came after the call was given up or
    cancelled; what comes after the loop was closed is lost, and stays in doubt.
    """
    started = clock.monotonic()
    late = _Late(lambda ended, attempts: _outcome(ended, clock, started, attempts), on_late)
    left = _time_left(timeout_s, clock, started)
    while True:
        ended = await attempt(callee, arguments(), min(callee.timeout_s, left()), late)
        wait = wait_s(late.attempts)
        if late.attempts > callee.marks.retries or ended.kind not in ("raised", "timed_out") or wait >= left():
            break
        late.attempts += 1
        await late.while_waiting(clock.sleep(wait), ended)
    ended = late.instead_of(ended)
    return _completed(callee, ended, _outcome(ended, clock, started, late.attempts))


def wait_s(attempt: int) -> float:
    """Seconds to wait after a failed attempt, counted from 1."""
    return float(min(FIRST_WAIT_S * 2 ** (attempt - 1), LONGEST_WAIT_S))


def _time_left(timeout_s: float | None, clock: Clock, started: float) -> Callable[[], float]:
    if timeout_s is None:
        return lambda: float("inf")
    return lambda: timeout_s - (clock.monotonic() - started)


def _outcome(ended: Ended, clock: Clock, started: float, attempts: int) -> Outcome:
    return Outcome(ended.kind, ended.response, round((clock.monotonic() - started) * 1000), attempts)


def _completed(callee: Callee, ended: Ended, outcome: Outcome) -> Outcome:
    """The outcome with its fallback, or with the word that nobody knows."""
    if ended.begun and outcome.kind in ("returned", "not_done"):
        return outcome
    marks, response, kind = callee.marks, outcome.response, outcome.kind
    if marks.has_fallback:
        note = f"This is a fallback value: the tool did not answer ({response['error']})."
        fallback = results.response(marks.fallback, secrets=callee.secrets)
        response = results.with_note(fallback, note)
        # For what may have acted the value says nothing of its effect: that is still not known.
        kind = kind if marks.has_effect else "returned"
    elif marks.has_effect and ended.begun:
        response = results.with_note(response, UNKNOWN)
    return Outcome(kind, response, outcome.took_ms, outcome.attempts, marks.has_fallback)


# --------------------------------------------------------------------------- late outcomes


class _Late:
    """What is known of a call beyond its last attempt: how earlier attempts ended, and those that end after they were
    given up.

    At most one outcome is told late, and only where the call ended without a known one. It is the first attempt that
    came back with a value (or, where there was only one attempt, said NotDone); or an exception, when no attempt is
    still to come.
    """

    def __init__(self, outcome: Callable[[Ended, int], Outcome], on_late: OnLate | None) -> None:
        self.attempts = 1
        self._outcome = outcome
        self._on_late = on_late
        self._held: Ended | None = None
        """The best that has arrived late so far."""
        self._earlier: Ended | None = None
        """How the first attempt ended, where it was repeated."""
        self._given_up = 0
        """Attempts that nobody waits for, and that have not arrived."""
        self._over = False

    def given_up(self) -> None:
        """Nobody waits for an attempt any more; when it ends, it arrives here."""
        self._given_up += 1

    def arrived(self, ended: Ended) -> None:
        """An attempt has ended after it was given up. That it obeyed its cancellation is no news."""
        self._given_up -= 1
        if ended.kind == "not_done" and self.attempts > 1:
            ended = Ended("raised", ended.response)  # this attempt did nothing, but another one may have
        if ended.kind != "cancelled" and (self._held is None or self._held.kind == "raised"):
            self._held = ended
        if self._over:
            self._tell()

    def over(self) -> None:
        """Nobody waits for the call any more, and how it ended is not known: from here on it is told late."""
        self._over = True
        self._tell()

    async def while_waiting(self, wait: Awaitable[None], ended: Ended) -> None:
        """Between two attempts, of which the first ended like this."""
        self._earlier = self._earlier or ended
        try:
            await wait
        except asyncio.CancelledError:
            self.over()
            raise

    def instead_of(self, ended: Ended) -> Ended:
        """The end of the whole call, given that of its last attempt."""
        if ended.kind == "not_done" and self._earlier is not None:
            ended = self._earlier  # this attempt did nothing, but the one before it may have
        if ended.kind not in ("returned", "not_done") and self._held is not None and self._held.kind != "raised":
            ended = self._held  # an earlier attempt has come back in the meantime
        if ended.kind in ("returned", "not_done"):
            self._on_late = None
        else:
            self.over()
        return ended

    def _tell(self) -> None:
        ended, on_late = self._held, self._on_late
        if ended is None or on_late is None or (ended.kind == "raised" and self._given_up):
            return
        self._on_late = None
        try:
            on_late(self._outcome(ended, self.attempts))
        except Exception:
            _log.exception("A late outcome could not be taken in")
