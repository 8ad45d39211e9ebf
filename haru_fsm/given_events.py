"""Which events the work of a state may give, read from the return annotation of its function; and what it has given
where that is none."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable, Iterator
from types import UnionType
from typing import Any

from haru_fsm.conversation import Event
from haru_fsm.errors import AppError, WorkflowError


def events_of(work: Callable[..., Any]) -> tuple[type[Event], ...]:
    """The events that a work function may give, each once, in the order in which the annotation names them.

    Raises WorkflowError where the function has no annotation, or one that is not made of events.
    """
    try:
        annotation = typing.get_type_hints(work).get("return")
    except NameError as error:
        raise WorkflowError(f"{_name(work)}: its return annotation cannot be resolved: {error}.") from error
    found = tuple(dict.fromkeys(_event_types(annotation)))
    if not found or not all(isinstance(event, type) and issubclass(event, Event) for event in found):
        raise WorkflowError(
            f"{_name(work)} does not say which events it gives. Annotate its return type, "
            "for example `-> ModelAnswered | ToolsRequested | ModelFailed`."
        )
    return found


def no_event(state: str, given: object) -> AppError:
    """What is wrong with the work of a state that gave this in the place of an event."""
    if inspect.iscoroutine(given):
        given.close()
        return AppError(f"The work of {state} gave a coroutine that was not awaited. Write `await` before it.")
    return AppError(f"The work of {state} gave {given!r:.80}, which is no event.")


def _event_types(annotation: Any) -> Iterator[Any]:
    """The members of unions, and what an Awaitable comes to; None is no event."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, UnionType):
        for member in typing.get_args(annotation):
            yield from _event_types(member)
    elif inspect.isclass(origin) and issubclass(origin, Awaitable):
        yield from _event_types(typing.get_args(annotation)[-1])
    elif annotation is not None and annotation is not type(None):
        yield annotation


def _name(work: Callable[..., Any]) -> str:
    return getattr(work, "__qualname__", repr(work))
