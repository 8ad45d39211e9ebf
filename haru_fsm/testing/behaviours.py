"""What a tool does instead of what it is for: a value, an error, silence, a flood; and a log of all that was started.

A behaviour is chosen by the round of the conversation (how many replies have asked for tools so far), never by how
often a tool was called: a read that is run again after a crash then does what it did before, as a real one would.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from haru_fsm.conversation import Frozen
from haru_fsm.errors import NotDone
from haru_fsm.json_safe import json_safe
from haru_fsm.testing.crashes import Made, by_name
from haru_fsm.toolbox.marks import marks_of

HUGE_CHARS = 60_000
HANG_S = 0.03
"""Seconds after which a tool that hangs is given up: real ones, so there are few."""


class Does(StrEnum):
    """What a tool does."""

    OWN = "own"
    """Its own code."""
    RETURNS = "returns"
    """Gives `value` at once."""
    RAISES = "raises"
    """Raises an exception that says `value`."""
    EXITS = "exits"
    """Raises SystemExit."""
    REFUSES = "refuses"
    """Raises NotDone: the effect certainly did not take place."""
    HANGS = "hangs"
    """Never comes back."""
    LATE = "late"
    """Gives `value`, but only after it was given up."""
    HUGE = "huge"
    """Gives tens of thousands of characters."""
    ODD = "odd"
    """Gives what is no JSON: NaN, a lone surrogate, bytes, numbers as keys."""


class Behaviour(Frozen):
    """One way to behave, and the value or message that belongs to it."""

    does: Does = Does.OWN
    value: Any = None

    def __str__(self) -> str:
        return self.does if self.value is None else f"{self.does} {json.dumps(self.value, ensure_ascii=False)}"


OWN = Behaviour()
WAITS = frozenset((Does.HANGS, Does.LATE))


@dataclass(slots=True)
class Happened:
    """A tool's code was started. `ended`: None while nobody knows, else how it ended."""

    name: str
    arguments: str
    """As JSON, hidden ones (an idempotency key) included."""
    effect: bool
    ended: str | None = None
    response: Any = None


@dataclass(slots=True)
class Stage:
    """Where the tools play: what each does in which round, and what has happened."""

    behaviours: Mapping[str, Sequence[Behaviour]] = field(default_factory=dict)
    round: int = 0
    happened: list[Happened] = field(default_factory=list)

    def tools(self, make_tools: Callable[[Any], Made]) -> Callable[[Any], dict[str, Callable[..., Any]]]:
        """`make_tools` whose tools behave as said, and are logged."""
        return lambda session: {name: self._played(name, each) for name, each in by_name(make_tools(session)).items()}

    def _played(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        script = self.behaviours.get(name, ())
        if any(behaviour.does is not Does.OWN for behaviour in script):
            return self._misbehaving(name, function, script)
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            return self._misbehaving(name, function, (OWN,))

        @functools.wraps(function)
        def logged(*args: Any, **kwargs: Any) -> Any:
            with _Logged(self, name, function, kwargs) as log:
                return log.ended(function(*args, **kwargs))

        return logged

    def _misbehaving(self, name: str, function: Callable[..., Any], script: Sequence[Behaviour]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def played(*args: Any, **kwargs: Any) -> Any:
            behaviour = script[min(self.round, len(script) - 1)]
            with _Logged(self, name, function, kwargs) as log:
                if behaviour.does is Does.OWN:
                    return log.ended(await _own(function, args, kwargs))
                return log.ended(await _value(behaviour))

        if any(behaviour.does in WAITS for behaviour in script):
            played.__dict__["__haru_tool__"] = replace(marks_of(function), timeout_s=HANG_S)
        return played


class _Logged:
    """One start in the log, from before the first line of the tool's code to its end."""

    def __init__(self, stage: Stage, name: str, function: Callable[..., Any], arguments: dict[str, Any]) -> None:
        written = json.dumps(json_safe(arguments), ensure_ascii=False, sort_keys=True)
        self._happened = Happened(name, written, marks_of(function).has_effect)
        stage.happened.append(self._happened)

    def __enter__(self) -> _Logged:
        return self

    def ended(self, value: Any) -> Any:
        self._happened.ended, self._happened.response = "returned", value
        return value

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if kind is not None:
            self._happened.ended = "refused" if issubclass(kind, NotDone) else "raised"


async def _own(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if inspect.isasyncgenfunction(function):
        return [item async for item in function(*args, **kwargs)]
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    value = await asyncio.to_thread(function, *args, **kwargs)
    return await value if inspect.isawaitable(value) else value


async def _value(behaviour: Behaviour) -> Any:
    match behaviour.does:
        case Does.RAISES:
            raise RuntimeError(str(behaviour.value))
        case Does.EXITS:
            raise SystemExit(3)
        case Does.REFUSES:
            raise NotDone(str(behaviour.value))
        case Does.HUGE:
            return "가" * HUGE_CHARS
        case Does.ODD:
            return {"nan": float("nan"), "half": "\ud800", "bytes": b"\xff\x00", 7: {3.5, None}}
        case Does.HANGS:
            await asyncio.Event().wait()
        case Does.LATE:
            await _until_given_up()
    return behaviour.value


async def _until_given_up() -> None:
    """A tool that does not hear that it was given up."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return
