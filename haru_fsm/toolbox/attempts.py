"""One attempt at a call: in a thread or as a task, given up when its time is over.

Waiting for a tool ends in time, whatever the tool does. One that hangs, ignores its cancellation or blocks a thread is
given up and not waited for, neither by the run nor by the end of the process; if it ends all the same, `Afterwards`
hears of it.

Not perfect: an async tool that blocks the event loop (time.sleep, a long computation) blocks everyone, and no time
limit can help; write it as a plain function, and it gets a thread.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import inspect
import logging
import math
from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from haru_fsm.conversation import JSON
from haru_fsm.errors import NotDone
from haru_fsm.toolbox import results
from haru_fsm.toolbox.marks import CALL, Marks
from haru_fsm.toolbox.threads import THREADS, Job, Threads

Kind = Literal["returned", "not_done", "raised", "timed_out", "cancelled"]

_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
_MOST_WAITS = 8
"""Promises of promises that are followed; one that goes on for ever is no value."""
_TO_BEGIN = 0.5
"""Share of its time within which what acts has to begin, where no thread is free. What is cut short while it acts is in
doubt, and what was never begun is not: so it begins with time to act in, or not at all."""
_log = logging.getLogger("haru_fsm.toolbox")
_given_up: set[asyncio.Task[Any]] = set()
"""Tasks that nobody waits for any more; held, so that they are not collected while they still run."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of one attempt."""

    kind: Kind
    response: JSON
    begun: bool = True


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
        """The end of an attempt that returned this. A NotDone says the same whether it is returned or raised."""
        if isinstance(value, NotDone):
            return self.failed(value)
        return Ended("returned", results.response(value, hints=self.returns, secrets=self.secrets))

    def failed(self, error: BaseException) -> Ended:
        """The end of an attempt that raised this."""
        if isinstance(error, NotDone):
            return Ended("not_done", results.failure(error, named=False, secrets=self.secrets))
        kind: Kind = "cancelled" if isinstance(error, _CANCELLED) else "raised"
        response = results.failure(error, secrets=self.secrets)
        # A traceback ends in the error's own words, from which nobody takes a secret.
        trace = error if not self.secrets else None
        _log.debug("the tool %s %s: %s", self.name, kind, response["error"], exc_info=trace)
        return Ended(kind, response)


class Afterwards(Protocol):
    """Who hears of an attempt after it was given up."""

    def given_up(self) -> None:
        """Nobody waits for the attempt any more. Once it ends after all, `arrived` is called."""
        ...

    def arrived(self, ended: Ended) -> None:
        """An attempt that was given up has ended."""
        ...

    def over(self) -> None:
        """The run itself was cancelled: no other attempt follows."""
        ...


async def attempt(callee: Callee, arguments: dict[str, Any], limit_s: float, late: Afterwards) -> Ended:
    """One attempt within `limit_s` seconds. CancelledError comes out only where the run itself is cancelled."""
    if limit_s <= 0:
        return _not_begun("no time was left")
    call = functools.partial(callee.function, **arguments)
    begin = _Task if callee.is_async else _Thread
    try:
        under_way = begin(callee, call, late)
    except RuntimeError as error:
        return _not_begun(str(error))
    try:
        ended = await under_way.within(limit_s)
    except asyncio.CancelledError:
        under_way.give_up()
        late.over()
        raise
    if ended is not None:
        return ended
    if under_way.give_up():
        return _too_many(limit_s)
    return Ended("timed_out", {"error": f"timeout after {limit_s:g}s"})


def _too_many(waited_s: float) -> Ended:
    return _not_begun(f"too many other calls were running for {waited_s:g}s")


def _not_begun(why: str) -> Ended:
    return Ended("not_done", {"error": f"It was not begun: {why}."}, begun=False)


class _Attempt:
    """A call under way. Whoever waits hears how it `ended`; once it was given up, its end is told to `late` instead."""

    def __init__(self, callee: Callee, call: Callable[[], Any], late: Afterwards) -> None:
        self.callee, self.call, self.late = callee, call, late
        self.loop = asyncio.get_running_loop()
        self.waiting: asyncio.Future[None] = self.loop.create_future()
        self.ended: Ended | None = None
        self.given_up = False
        self.task: asyncio.Task[None] | None = None

    async def within(self, limit_s: float) -> Ended | None:
        """The end of the call, or None where it has not come within so many seconds."""
        timer = self.loop.call_later(limit_s, self._stop_waiting) if limit_s < math.inf else None
        try:
            await self.waiting
        finally:
            if timer is not None:
                timer.cancel()
        return self.ended

    def _stop_waiting(self) -> None:
        if not self.waiting.done():
            self.waiting.set_result(None)

    def arrive(self, ended: Ended) -> None:
        """The call has ended; to be called in the loop."""
        if self.given_up:
            self.late.arrived(ended)
            return
        self.ended = ended
        self._stop_waiting()

    def give_up(self) -> bool:
        """Wait no longer. True: it had not begun, and never will."""
        self.given_up = True
        if self.ended is None and self.stop():
            return True
        self.late.given_up()
        if self.ended is not None:
            self.late.arrived(self.ended)
        return False

    def stop(self) -> bool:
        """Ask it to stop, without waiting for that. True as in `give_up`."""
        if self.task is not None:
            self.task.cancel()
            _abandon(self.task)
        return False

    def follow(self, call: Callable[[], Any]) -> None:
        """Go on in the loop, as a task of its own."""
        self.task = self.loop.create_task(self._awaited(call))
        self.task.add_done_callback(self._done)

    async def _awaited(self, call: Callable[[], Any]) -> None:
        try:
            ended = self.callee.read(results.drained(await _whole(call())))
        except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # SystemExit would end the loop
            ended = self.callee.failed(error)
        self.arrive(ended)

    def _done(self, task: asyncio.Task[None]) -> None:
        _given_up.discard(task)
        if task.cancelled():
            self.arrive(self.callee.failed(asyncio.CancelledError("the tool was cancelled")))
        else:
            task.exception()  # looked at, so that asyncio does not call it unheard


class _Task(_Attempt):
    """An async function."""

    def __init__(self, callee: Callee, call: Callable[[], Any], late: Afterwards) -> None:
        super().__init__(callee, call, late)
        self.follow(call)


class _Thread(_Attempt):
    """A plain function, in a thread, with the caller's context variables."""

    def __init__(self, callee: Callee, call: Callable[[], Any], late: Afterwards) -> None:
        super().__init__(callee, call, late)
        self.job: Job = callee.threads.submit(functools.partial(contextvars.copy_context().run, self._work))

    async def within(self, limit_s: float) -> Ended | None:
        if not self.callee.marks.has_effect or limit_s == math.inf:
            return await super().within(limit_s)
        to_begin = limit_s * _TO_BEGIN
        timer = self.loop.call_later(to_begin, self._now_or_never, to_begin)
        try:
            return await super().within(limit_s)
        finally:
            timer.cancel()

    def _now_or_never(self, waited_s: float) -> None:
        if self.callee.threads.take_back(self.job):
            self.arrive(_too_many(waited_s))

    def stop(self) -> bool:
        super().stop()
        return self.callee.threads.give_up(self.job)

    def _work(self) -> None:
        try:
            value = self.call()
            if results.is_later(value):
                return self._tell(self._go_on, value)
            ended = self.callee.read(results.drained(value))
        except BaseException as error:  # SystemExit of a tool ends the tool, not the thread
            ended = self.callee.failed(error)
        self._tell(self.arrive, ended)

    def _tell(self, what: Callable[[Any], None], value: Any) -> None:
        try:
            self.loop.call_soon_threadsafe(what, value)
        except RuntimeError:
            _log.debug("%s ended after its event loop was closed", self.callee.name)

    def _go_on(self, value: Any) -> None:
        """A plain function, perhaps a decorator, that gave something to be awaited: that belongs to the loop."""
        if not self.given_up:
            self.follow(lambda: value)
            return
        if inspect.iscoroutine(value):
            value.close()
        self.late.arrived(self.callee.failed(asyncio.CancelledError()))


def _abandon(task: asyncio.Task[Any]) -> None:
    """Have nobody wait for a task, not even the end of the process.

    `asyncio.run` cancels and awaits every registered task before it returns, and one that swallows its cancellation
    would keep the process for ever. asyncio documents this function for those who implement tasks.
    """
    if not task.done():
        _given_up.add(task)
        asyncio.tasks._unregister_task(task)
        # As asyncio.gather does it: no complaint where it is collected unfinished. No stub has the attribute.
        task._log_destroy_pending = False  # type: ignore[attr-defined]


async def _whole(value: Any) -> Any:
    """What comes in the end of what has to be waited for, which may again be such a thing."""
    for _ in range(_MOST_WAITS):
        if isinstance(value, AsyncIterable):
            return await _collected(value)
        if isinstance(value, concurrent.futures.Future):  # what a pool of the tool's own is still at
            value = asyncio.wrap_future(value)
        if not inspect.isawaitable(value):
            break
        value = await value
    return value


async def _collected(values: AsyncIterable[Any]) -> list[Any]:
    found = results.Drained()
    async for value in values:
        found.append(value)
        if len(found) > results.MOST_ITEMS:
            break
    return found


def _is_async(function: Callable[..., Any]) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    layers = (function, getattr(type(function), CALL, None))
    return any(inspect.iscoroutinefunction(layer) or inspect.isasyncgenfunction(layer) for layer in layers)
