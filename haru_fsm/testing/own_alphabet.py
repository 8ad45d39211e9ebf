"""Events of an app's own, made up for an exhaustive proof: a few of each kind, out of the types of its fields."""

from __future__ import annotations

import enum
import itertools
import types
import typing
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from haru_fsm.conversation import Event

MOST = 8
"""Events of one kind: each is tried at every place, so what they are to each other grows fast."""
FEW: dict[Any, tuple[Any, ...]] = {
    bool: (False, True),
    int: (0, 1),
    float: (0.0, 1.0),
    str: ("", "A"),
    type(None): (None,),
    list: ([],),
    tuple: ((),),
    dict: ({},),
}
"""Values that stand for all of a type."""


def made_up(kind: type[Event]) -> tuple[Event, ...]:
    """Events of this kind, with every combination of a few values of its fields; none where a field has none of these.

    A field with a default has that; what can be told apart by a glance (true and false, the words of a Literal, the
    members of an enumeration) is tried in full all the same.
    """
    own = {name: field for name, field in kind.model_fields.items() if name not in Event.model_fields}
    chosen = [list(_values(field)) for field in own.values()]
    combined = (dict(zip(own, values, strict=True)) for values in itertools.product(*chosen))
    return tuple(itertools.islice(_valid(kind, combined), MOST))


def _valid(kind: type[Event], combined: Iterator[dict[str, Any]]) -> Iterator[Event]:
    for fields in combined:
        try:
            yield kind(**fields)
        except ValidationError:
            continue


def _values(field: FieldInfo) -> Sequence[Any]:
    some = _some(field.annotation)
    if field.is_required() or _told_apart(field.annotation):
        return some
    return (field.get_default(call_default_factory=True),)


def _some(annotation: Any) -> tuple[Any, ...]:
    origin = typing.get_origin(annotation) or annotation
    if origin is typing.Literal:
        return typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return tuple(value for each in typing.get_args(annotation) for value in _some(each))
    if isinstance(origin, type) and issubclass(origin, enum.Enum):
        return tuple(origin)
    return FEW.get(origin, ())


def _told_apart(annotation: Any) -> bool:
    origin = typing.get_origin(annotation) or annotation
    return origin in (bool, typing.Literal) or (isinstance(origin, type) and issubclass(origin, enum.Enum))
