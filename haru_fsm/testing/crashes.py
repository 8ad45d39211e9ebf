"""Points at which a process can die, and a store and tools that die there.

A crash is SIGKILL of one's own process: nothing is flushed, closed or told. Or, to die by the thousand, it is
`Crashed`: raised there, and again at whatever a process that is dead would still like to do to its store or to the
world. Points are counted from 1: durable writes (before or after the commit), and effects (before or after the tool's
own code).
"""

from __future__ import annotations

import functools
import inspect
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from haru_fsm.conversation import Conversation, Ticket
from haru_fsm.stores import Outcome, Started, Store
from haru_fsm.toolbox.marks import marks_of
from haru_fsm.toolbox.tools import name_of

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


class Crashed(BaseException):
    """The process is dead, as far as a rehearsal of its death goes. No part of the engine may catch it for good."""


def killed() -> None:
    """Die by SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(slots=True)
class Crasher:
    """Counts what happens in this process, and kills it at its point (None: lets it live).

    `in_process`: the death is rehearsed; from its point on everything that would be durable raises `Crashed`.
    """

    point: CrashPoint | None = None
    in_process: bool = False
    counts: dict[str, int] = field(default_factory=lambda: {"write": 0, "effect": 0})
    dead: bool = False

    def reached(self, place: Place) -> Callable[[When], None]:
        """Count one more; the function returned is called before and after it takes place."""
        self.counts[place] += 1
        number = self.counts[place]

        def die(when: When) -> None:
            self.check()
            if self.point == CrashPoint(place, number, when):
                self.die()

        return die

    def die(self) -> None:
        """Die now."""
        if not self.in_process:
            killed()
        self.dead = True
        self.check()

    def check(self) -> None:
        """Raises Crashed where this process is dead."""
        if self.dead:
            raise Crashed(str(self.point))


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

    async def release(self, conversation_id: str, owner: str) -> None:
        """As the store's; a dead process gives nothing back."""
        self._crasher.check()
        await self._store.release(conversation_id, owner)

    def file_ticket(self, ticket: Ticket) -> Ticket:
        """As the store's; a dead process files nothing."""
        self._crasher.check()
        return self._store.file_ticket(ticket)


Made = Mapping[str, Callable[..., Any]] | Sequence[Callable[..., Any]]


def crashing_tools(
    make_tools: Callable[[Any], Made], crasher: Crasher, log: Callable[[str], None]
) -> Callable[[Any], dict[str, Callable[..., Any]]]:
    """`make_tools` whose acting tools are crash points; `log` is told the name of each one whose code is started."""

    def made(session: Any) -> dict[str, Callable[..., Any]]:
        return {
            name: _crashing(name, function, crasher, log) if marks_of(function).has_effect else function
            for name, function in by_name(make_tools(session)).items()
        }

    return made


def by_name(made: Made) -> dict[str, Callable[..., Any]]:
    """What `make_tools` gave, by name."""
    return dict(made) if isinstance(made, Mapping) else {name_of(function): function for function in made}


def _crashing(
    name: str, function: Callable[..., Any], crasher: Crasher, log: Callable[[str], None]
) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def acts_later(*args: Any, **kwargs: Any) -> Any:
            die = crasher.reached("effect")
            die("before")
            log(name)
            value = await function(*args, **kwargs)
            die("after")
            return value

        return acts_later

    @functools.wraps(function)
    def acts(*args: Any, **kwargs: Any) -> Any:
        die = crasher.reached("effect")
        die("before")
        log(name)
        value = function(*args, **kwargs)
        die("after")
        return value

    return acts
