"""Running one call: in a thread or as a task, within its time, again where that is harmless, never with an exception.

Whatever a tool does, waiting for it ends in time. A tool that hangs, ignores its cancellation or blocks a thread is
given up, not waited for; if it ends all the same, its outcome is told late, once. Only the cancellation of the run
itself comes out of here as an exception.

Not perfect: an async tool that blocks the event loop (time.sleep, a long computation) blocks everyone, and no time
limit can help; write it as a plain function, and it gets a thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from haru_fsm.clock import Clock
from haru_fsm.conversation import JSON
from haru_fsm.errors import NotDone
from haru_fsm.toolbox import results
from haru_fsm.toolbox.marks import CALL, Marks
from haru_fsm.toolbox.threads import THREADS, Job, Threads

Kind = Literal["returned", "not_done", "raised", "timed_out", "cancelled"]
OnLate = Callable[["Outcome"], None]

FIRST_WAIT_S = 0.2
LONGEST_WAIT_S = 5.0
UNKNOWN = "It is not known whether it took place."

_log = logging.getLogger("haru_fsm.toolbox")
_given_up: set[asyncio.Task[Any]] = set()
"""Tasks that nobody waits for any more; held, so that they are not collected while they still run."""


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


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of one attempt."""

    kind: Kind
    response: JSON


@dataclass(frozen=True, slots=True)
class Callee:
    """A function as it is called: what to call, how, and how to read what it gives."""

    name: str
    function: Callable[..., Any]
    marks: Marks
    timeout_s: float
    """Seconds for one attempt."""
    returns: Any = None
    """The return annotation, where it marks secrets; else None."""
    secrets: tuple[Any, ...] = ()
    threads: Threads = THREADS
    is_async: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_async", _is_async(self.function))

    def read(self, value: Any) -> Ended:
        """The end of an attempt that returned this."""
        return Ended("returned", results.response(value, hints=self.returns, secrets=self.secrets))

    def failed(self, error: BaseException) -> Ended:
        """The end of an attempt that raised this."""
        if isinstance(error, NotDone):
            return Ended("not_done", results.failure(error, named=False, secrets=self.secrets))
        kind: Kind = "cancelled" if isinstance(error, asyncio.CancelledError) else "raised"
        return Ended(kind, results.failure(error, secrets=self.secrets))


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
    attempts = 0
    while True:
        attempts += 1
        late.attempts = attempts
        ended = await _attempt(callee, arguments(), min(callee.timeout_s, left()), late)
        wait = min(FIRST_WAIT_S * 2 ** (attempts - 1), LONGEST_WAIT_S)
        if attempts > callee.marks.retries or ended.kind not in ("raised", "timed_out") or wait >= left():
            break
        try:
            await clock.sleep(wait)
        except asyncio.CancelledError:
            late.wanted()
            raise
    outcome = _outcome(late.instead_of(ended), clock, started, attempts)
    return _completed(callee, outcome)


def _time_left(timeout_s: float | None, clock: Clock, started: float) -> Callable[[], float]:
    if timeout_s is None:
        return lambda: float("inf")
    return lambda: timeout_s - (clock.monotonic() - started)


def _outcome(ended: Ended, clock: Clock, started: float, attempts: int) -> Outcome:
    return Outcome(ended.kind, ended.response, round((clock.monotonic() - started) * 1000), attempts)


def _completed(callee: Callee, outcome: Outcome) -> Outcome:
    """The outcome with its fallback, or with the word that nobody knows."""
    if outcome.kind in ("returned", "not_done"):
        return outcome
    marks, response, kind = callee.marks, outcome.response, outcome.kind
    if marks.has_fallback:
        note = f"This is a fallback value: the tool did not answer ({response['error']})."
        fallback = results.response(marks.fallback, secrets=callee.secrets)
        response = results.with_note(fallback, note)
        # For what may have acted the value says nothing of its effect: that is still not known.
        kind = kind if marks.has_effect else "returned"
    elif marks.has_effect:
        response = results.with_note(response, UNKNOWN)
    return Outcome(kind, response, outcome.took_ms, outcome.attempts, marks.has_fallback)


# --------------------------------------------------------------------------- one attempt


async def _attempt(callee: Callee, arguments: dict[str, Any], limit_s: float, late: _Late) -> Ended:
    """One attempt within `limit_s` seconds. CancelledError comes out only where the run itself is cancelled."""
    if limit_s <= 0:
        return Ended("not_done", {"error": "It was not begun: no time was left."})
    call = functools.partial(callee.function, **arguments)
    begin = _Task if callee.is_async else _Thread
    try:
        attempt = begin(callee, call, late)
    except RuntimeError as error:
        return Ended("not_done", {"error": f"It was not begun: {error}."})
    try:
        await asyncio.wait((attempt.ended,), timeout=limit_s)
    except asyncio.CancelledError:
        attempt.give_up()
        late.wanted()
        raise
    if attempt.ended.done():
        return attempt.ended.result()
    if attempt.give_up():
        return Ended("not_done", {"error": f"It was not begun within {limit_s:g}s: too many other calls are running."})
    return Ended("timed_out", {"error": f"timeout after {limit_s:g}s"})


class _Attempt:
    """A call under way. `ended` is for whoever waits; when nobody does any more, the end is told late."""

    def __init__(self, callee: Callee, call: Callable[[], Any], late: _Late) -> None:
        self.callee, self.call, self.late = callee, call, late
        self.loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[Ended] = self.loop.create_future()
        self.given_up = False

    def arrive(self, ended: Ended) -> None:
        """The call has ended; to be called in the loop."""
        if self.given_up:
            self.late.arrived(ended)
        elif not self.ended.done():
            self.ended.set_result(ended)

    def give_up(self) -> bool:
        """Wait no longer. True: it had not begun, and never will."""
        self.given_up = True
        if self.ended.done():
            self.late.arrived(self.ended.result())
            return False
        return self.stop()

    def stop(self) -> bool:
        """Ask it to stop, without waiting for that."""
        raise NotImplementedError


class _Thread(_Attempt):
    """A plain function, in a thread, with the caller's context variables."""

    def __init__(self, callee: Callee, call: Callable[[], Any], late: _Late) -> None:
        super().__init__(callee, call, late)
        self.awaited: Any = None
        self.job: Job = callee.threads.submit(functools.partial(contextvars.copy_context().run, self._work))

    def _work(self) -> None:
        try:
            value = self.call()
            if inspect.isawaitable(value):
                value = self._await(value)
            ended = self.callee.read(results.drained(value))
        except BaseException as error:  # SystemExit of a tool ends the tool, not the thread
            ended = self.callee.failed(error)
        try:
            self.loop.call_soon_threadsafe(self.arrive, ended)
        except RuntimeError:
            _log.debug("%s ended after its event loop was closed", self.callee.name)

    def _await(self, value: Any) -> Any:
        """What a plain function gave to be awaited belongs to the loop; this thread waits for it."""
        self.awaited = asyncio.run_coroutine_threadsafe(_awaiting(value), self.loop)
        return self.awaited.result()

    def stop(self) -> bool:
        if self.awaited is not None:
            self.awaited.cancel()
        return self.callee.threads.give_up(self.job)


class _Task(_Attempt):
    """An async function, as a task of its own."""

    def __init__(self, callee: Callee, call: Callable[[], Any], late: _Late) -> None:
        super().__init__(callee, call, late)
        self.task = self.loop.create_task(self._work())
        self.task.add_done_callback(self._done)

    async def _work(self) -> Ended:
        try:
            value = self.call()
            value = await (_collected(value) if isinstance(value, AsyncIterator) else value)
            return self.callee.read(results.drained(value))
        except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # SystemExit would end the loop
            return self.callee.failed(error)

    def _done(self, task: asyncio.Task[Ended]) -> None:
        _given_up.discard(task)
        if task.cancelled():
            self.arrive(self.callee.failed(asyncio.CancelledError("the tool was cancelled")))
        elif task.exception() is None:
            self.arrive(task.result())

    def stop(self) -> bool:
        self.task.cancel()
        _given_up.add(self.task)
        # asyncio.run cancels and awaits every registered task before it returns; one that swallows its cancellation
        # would keep the process for ever. (asyncio documents this function for task implementations.)
        asyncio.tasks._unregister_task(self.task)
        self.task._log_destroy_pending = False  # type: ignore[attr-defined]
        return False


async def _awaiting(value: Any) -> Any:
    return await value


async def _collected(values: AsyncIterator[Any]) -> list[Any]:
    found = results.Drained()
    async for value in values:
        found.append(value)
        if len(found) > results.MOST_ITEMS:
            break
    return found


def _is_async(function: Callable[..., Any]) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    for layer in (function, inspect.unwrap(function), getattr(type(function), CALL, None)):
        if inspect.iscoroutinefunction(layer) or inspect.isasyncgenfunction(layer):
            return True
    return False


# --------------------------------------------------------------------------- late outcomes


class _Late:
    """Outcomes of attempts that were given up. The first one is told, and only if nothing better is known."""

    def __init__(self, outcome: Callable[[Ended, int], Outcome], on_late: OnLate | None) -> None:
        self.attempts = 1
        self._outcome = outcome
        self._on_late = on_late
        self._held: Ended | None = None
        self._wanted = False

    def arrived(self, ended: Ended) -> None:
        """An attempt has ended after it was given up. That it obeyed its cancellation is no news."""
        if ended.kind == "cancelled" or self._held is not None:
            return
        self._held = ended
        if self._wanted:
            self._tell(ended)

    def wanted(self) -> None:
        """The run is over, and how the call ended is not known: whatever comes, or has come, is to be told."""
        self._wanted = True
        if self._held is not None:
            self._tell(self._held)

    def instead_of(self, ended: Ended) -> Ended:
        """The end of the run: an earlier attempt's late value where the last attempt brought nothing."""
        if ended.kind in ("returned", "not_done"):
            self._on_late = None
        elif self._held is not None and self._held.kind == "returned":
            ended, self._on_late = self._held, None
        else:
            self._held = None
            self._wanted = True
        return ended

    def _tell(self, ended: Ended) -> None:
        on_late, self._on_late = self._on_late, None
        if on_late is None:
            return
        try:
            on_late(self._outcome(ended, self.attempts))
        except Exception:
            _log.exception("A late outcome could not be taken in")
