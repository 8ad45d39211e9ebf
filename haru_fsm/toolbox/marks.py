"""What a tool says about itself: marks on the function, and markers in its annotations.

    @tool(read_only=True, timeout_s=5, fallback={"location": "조회 지연"})
    def track_parcel(order_id: str) -> dict: ...

    @tool(read_only=False, destructive=True)
    def cancel_order(order_id: str, key: Annotated[str, IdempotencyKey]) -> dict: ...

The words are those of MCP's tool annotations (readOnlyHint, idempotentHint, destructiveHint). A function stays the
plain function that it was; its marks are an attribute of it. A tool that says nothing is treated as one that acts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from inspect import ismethod
from typing import Annotated, Any, Final, Literal, TypeVar, cast, overload

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from haru_fsm.errors import ToolError

_ATTRIBUTE = "__haru_tool__"
CALL = "__call__"
"""The method that makes an object a tool; its marks are the object's."""
F = TypeVar("F", bound=Callable[..., Any])


class Missing(Enum):
    """The type of MISSING."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING
"""Says that no value was given, where None would be a value."""


# --------------------------------------------------------------------------- in annotations


class IdempotencyKey:
    """`key: Annotated[str, IdempotencyKey]`: the engine passes the call's key here, and the model never sees it.

    The same call gets the same key however often it runs, so a tool that stores the key with what it does can be run
    again after a crash without doing anything twice.
    """


class Secret:
    """`Annotated[str, Secret]`: never reaches a model, a journal or a log.

    On a parameter: it is not declared to the model, and its value (a default, or bound by `functools.partial`) is
    cut out of results and errors. On a field of a result (pydantic model, dataclass, TypedDict): the field's value is
    replaced by REDACTED.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        redacting = core_schema.wrap_serializer_function_ser_schema(_redact, info_arg=True, schema=schema)
        return cast(CoreSchema, {**schema, "serialization": redacting})


REDACTED = "[secret]"
REDACT: Final = "haru_fsm: redact secrets"
"""Under this name a pydantic serialization context holds the list that secrets are collected into."""


def _redact(value: Any, handler: Callable[[Any], Any], info: core_schema.SerializationInfo) -> Any:
    # The application's own dumps must keep the value; only ours bring this context along.
    context = info.context
    if isinstance(context, dict) and REDACT in context:
        context[REDACT].append(value)
        return REDACTED
    return handler(value)


class WonAmount:
    """The marker behind `Won`."""


Won = Annotated[int, WonAmount]
"""An amount in won. "12,900원" is then a number, and nowhere else. Write `amount: Won` or `Annotated[int, Won]`."""


# --------------------------------------------------------------------------- on functions


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What is known of a tool. See `tool` for the meaning of each."""

    read_only: bool | None = None
    idempotent: bool | None = None
    destructive: bool | None = None
    repeatable: bool = False
    polling: bool = False
    timeout_s: float | None = None
    fallback: Any = MISSING
    retries: int = 0
    extra_args: Literal["drop", "refuse"] | None = None
    approval: bool = False

    @property
    def has_effect(self) -> bool:
        """Whatever is not read-only acts, as far as we know."""
        return not self.read_only

    @property
    def declares_effect(self) -> bool:
        """It said that it acts, rather than having said nothing."""
        return self.read_only is False or self.destructive is True

    @property
    def says_nothing(self) -> bool:
        """Nothing is known about its effect."""
        return self.read_only is None and self.destructive is None and self.idempotent is None

    @property
    def may_repeat(self) -> bool:
        """Running it twice is as good as running it once."""
        return self.read_only is True or self.idempotent is True

    @property
    def has_fallback(self) -> bool:
        """There is a value to give where the tool gives none."""
        return self.fallback is not MISSING


NO_MARKS = Marks()


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    function: F,
    /,
    *,
    read_only: bool | None = None,
    idempotent: bool | None = None,
    destructive: bool | None = None,
    repeatable: bool = False,
    polling: bool = False,
    timeout_s: float | None = None,
    fallback: Any = MISSING,
    retries: int = 0,
    extra_args: Literal["drop", "refuse"] | None = None,
    approval: bool = False,
) -> F: ...


@overload
def tool(
    *,
    read_only: bool | None = None,
    idempotent: bool | None = None,
    destructive: bool | None = None,
    repeatable: bool = False,
    polling: bool = False,
    timeout_s: float | None = None,
    fallback: Any = MISSING,
    retries: int = 0,
    extra_args: Literal["drop", "refuse"] | None = None,
    approval: bool = False,
) -> Callable[[F], F]: ...


def tool(function: F | None = None, /, **marks: Any) -> F | Callable[[F], F]:
    """Say what a tool is. A decorator, with or without arguments; also `tool(function, read_only=True)`.

    read_only    changes nothing: may run beside others, and again
    idempotent   the same arguments twice do what once does: may be retried
    destructive  what it does cannot be taken back
    repeatable   doing the same again in one run is meant, not a slip
    polling      is asked again until its answer changes
    timeout_s    seconds for one attempt (default: `Limits.tool_timeout_s`)
    fallback     the result where there is none; read-only tools only, because it would hide an unknown outcome
    retries      further attempts after an error or a time-out; read-only and idempotent tools only
    extra_args   "drop" or "refuse" arguments that the tool does not have. Default: drop, but a tool with a declared
                 effect drops only what is known to be noise (`tool_code` and the like)
    approval     a person has to agree first, to each call with its exact arguments; for tools that act

    Raises ToolError where the marks contradict each other. A function is returned as it is; what can carry no
    attribute (a bound method, a builtin) comes back wrapped in a `functools.partial`.
    """
    if function is None:
        return lambda decorated: _marked(decorated, marks)
    return _marked(function, marks)


def _marked(function: F, words: dict[str, Any]) -> F:
    marks = Marks(**words)
    wrong = _contradiction(marks)
    if wrong:
        raise ToolError(f"tool {getattr(function, '__name__', None) or type(function).__name__}: {wrong}")
    if not ismethod(function):
        try:
            setattr(getattr(function, "__func__", function), _ATTRIBUTE, marks)
        except (AttributeError, TypeError):
            pass
        else:
            return function
    wrapper = functools.partial(function)
    setattr(wrapper, _ATTRIBUTE, marks)
    return cast(F, wrapper)


def marks_of(function: Callable[..., Any]) -> Marks:
    """The marks of a function, method, partial or callable object; NO_MARKS where it has none."""
    for layer in (function, getattr(type(function), CALL, None)):
        marks = getattr(layer, _ATTRIBUTE, None)
        if isinstance(marks, Marks):
            return marks
    return marks_of(function.func) if isinstance(function, functools.partial) else NO_MARKS


def _contradiction(marks: Marks) -> str | None:
    """Why these marks make no sense together, with the way out; None where they do."""
    if marks.read_only and marks.destructive:
        return "read_only=True and destructive=True contradict each other; keep the one that is true"
    if marks.read_only and marks.approval:
        return "approval=True is for tools that act, and read_only=True says that it does not; keep one of them"
    if marks.timeout_s is not None and not (marks.timeout_s > 0 and math.isfinite(marks.timeout_s)):
        return f"timeout_s must be a number of seconds above 0, not {marks.timeout_s!r}"
    if not isinstance(marks.retries, int) or marks.retries < 0:
        return f"retries must be a whole number from 0, not {marks.retries!r}"
    if marks.retries and not marks.may_repeat:
        return "only a tool with read_only=True or idempotent=True may be retried; say so, or leave out retries"
    if marks.has_fallback and marks.declares_effect:
        return "a fallback would hide that nobody knows whether the effect took place; leave it out"
    if marks.extra_args not in (None, "drop", "refuse"):
        return f'extra_args must be "drop" or "refuse", not {marks.extra_args!r}'
    return None
