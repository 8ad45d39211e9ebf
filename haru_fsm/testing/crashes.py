"""Points at which a process can die, and a store and tools that die there.

A crash here is SIGKILL of one's own process: nothing is flushed, closed or told. Points are counted from 1: durable
writes (before or after the commit), and effects (before or after the tool's own code).
"""

from __future__ import annotations

import functools
import inspect
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from haru_fsm.conversation import Conversation
from haru_fsm.stores import Outcome, Started, Store

Place = Literal["write", "effect"]
When = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """The `number`-th write or effect of a process, and whether it dies before or after it."""

    place: Place
    number: int
    when: When

    def __str__(self) -> str:
        return f"{self.when} {self.place} {self.number}"


@dataclass(slots=True)
class Crasher:
    """Counts what happens in this process, and kills it at its point (None: lets it live)."""

    point: CrashPoint | None = None
    counts: dict[str, int] = field(default_factory=lambda: {"write": 0, "effect": 0})

    def reached(self, place: Place) -> Callable[[When], None]:
        """Count one more; the function returned is called before and after it takes place."""
        self.counts[place] += 1
        number = self.counts[place]

        def die(when: When) -> None:
            if self.point == CrashPoint(place, number, when):
                os.kill(os.getpid(), signal.SIGKILL)

        return die


class CrashingStore:
    """A store whose writes are crash points; everything else is the store's own."""

    def __init__(self, store: Store, crasher: Crasher) -> None:
        self._store = store
        self._crasher = crasher

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def append(self, conversation: Conversation, **place: Any) -> None:
        """As the store's, with a crash point before and after it."""
        die = self._crasher.reached("write")
        die("before")
        await self._store.append(conversation, **place)
        die("after")

    async def note(self, conversation_id: str, call: str, what: Started | Outcome) -> bool:
        """As the store's, with a crash point before and after it."""
        die = self._crasher.reached("write")
        die("before")
        written = await self._store.note(conversation_id, call, what)
        die("after")
        return written


def crashing_tools(
    make_tools: Callable[[Any], Any], crasher: Crasher, log: Callable[[str], None]
) -> Callable[[Any], list[Callable[..., Any]]]:
    """`make_tools` whose acting tools are crash points; `log` is told the name of each one whose code is started."""

    def made(session: Any) -> list[Callable[..., Any]]:
        tools: Mapping[str, Callable[..., Any]] | Sequence[Callable[..., Any]] = make_tools(session)
        functions = tools.values() if isinstance(tools, Mapping) else tools
        return [_crashing(function, crasher, log) if _acts(function) else function for function in functions]

    def _acts(function: Callable[..., Any]) -> bool:
        marks = getattr(getattr(function, "__func__", function), "__haru_tool__", None)
        return not getattr(marks, "read_only", False)

    return made


def _crashing(function: Callable[..., Any], crasher: Crasher, log: Callable[[str], None]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def acts_later(*args: Any, **kwargs: Any) -> Any:
            die = crasher.reached("effect")
            die("before")
            log(function.__name__)
            value = await function(*args, **kwargs)
            die("after")
            return value

        return acts_later

    @functools.wraps(function)
    def acts(*args: Any, **kwargs: Any) -> Any:
        die = crasher.reached("effect")
        die("before")
        log(function.__name__)
        value = function(*args, **kwargs)
        die("after")
        return value

    return acts
