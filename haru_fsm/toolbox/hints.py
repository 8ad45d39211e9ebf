"""Type hints, made such that pydantic and JSON agree on what they mean.

Three corrections, wherever they stand inside of a hint:

* `typing.TypedDict` becomes the one of typing_extensions, which pydantic insists on before Python 3.12;
* `Iterable[X]` becomes `list[X]`, because pydantic would check its items only while the tool already runs;
* a Literal or an Enum of numbers refuses true and false, which Python takes for 1 and 0.
"""

from __future__ import annotations

import collections.abc
import sys
import types
import typing
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typing_extensions
from pydantic import BeforeValidator

TYPED_DICT: Any = typing_extensions.TypedDict
"""The functional form, for fields that are known only when it is called."""


def modern(hint: Any) -> Any:
    """The same hint with these corrections; what needs none comes back as it is."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return Annotated[hint, _NO_FLAG] if _is_numeric(args) else hint
    if origin is None:
        return _modern_class(hint)
    if origin is collections.abc.Iterable:
        return types.GenericAlias(list, (modern(args[0]),))
    if origin is collections.abc.Callable:
        return hint
    changed = tuple(modern(arg) if index == 0 or origin is not Annotated else arg for index, arg in enumerate(args))
    return hint if changed == args else _rebuilt(hint, origin, changed)


def is_marked(hint: Any, marker: type) -> bool:
    """Whether a hint carries a marker, as the class or as an instance of it; in `X | None`, whether X does."""
    origin = get_origin(hint)
    if origin is Annotated and any(mark is marker or isinstance(mark, marker) for mark in hint.__metadata__):
        return True
    return origin in (Annotated, Union, types.UnionType) and any(is_marked(arg, marker) for arg in get_args(hint))


def mentions(hint: Any, marker: type) -> bool:
    """Whether a marker stands anywhere in a hint, as in `list[Annotated[str, Secret]]`."""
    return is_marked(hint, marker) or any(mentions(arg, marker) for arg in get_args(hint))


def _rebuilt(hint: Any, origin: Any, args: tuple[Any, ...]) -> Any:
    if origin is Annotated:
        return Annotated[args]
    if origin in (Union, types.UnionType):
        return Union[args]  # noqa: UP007 - the arguments are only known here
    return hint.copy_with(args) if hasattr(hint, "copy_with") else origin[args]


def _modern_class(hint: Any) -> Any:
    if not isinstance(hint, type):
        return hint
    if issubclass(hint, Enum):
        return Annotated[hint, _NO_FLAG] if _is_numeric(member.value for member in hint) else hint
    if sys.version_info < (3, 12) and typing.is_typeddict(hint):
        return _modern_typed_dict(hint)
    return hint


def _modern_typed_dict(hint: Any) -> Any:
    keys = typed_dict_keys(hint)
    if any(found is hint for found, _ in keys.values()):
        return hint  # it holds itself; pydantic says what to do
    fields = {name: qualified(modern(found), required) for name, (found, required) in keys.items()}
    made: Any = TYPED_DICT(hint.__name__, fields)
    made.__doc__ = hint.__doc__
    return made


def typed_dict_keys(kind: Any) -> dict[str, tuple[Any, bool]]:
    """The keys of a TypedDict, each with its type and whether it is required."""
    hints = typing_extensions.get_type_hints(kind, include_extras=True)
    must = kind.__required_keys__
    return {name: (unqualified(hint), _is_required(hint, name in must)) for name, hint in hints.items()}


def _is_required(hint: Any, by_class: bool) -> bool:
    # Python knows only of its class where the annotation was a string.
    origin = get_origin(hint)
    return origin is typing.Required or (origin is not typing.NotRequired and by_class)


def qualified(hint: Any, required: bool) -> Any:
    """A type as that of a key which is required, or not."""
    qualifier: Any = typing_extensions.Required if required else typing_extensions.NotRequired
    return qualifier[hint]


def unqualified(hint: Any) -> Any:
    """The type of a TypedDict's key, without Required, NotRequired and ReadOnly."""
    qualifiers = (typing.Required, typing.NotRequired, typing_extensions.ReadOnly)
    return unqualified(get_args(hint)[0]) if get_origin(hint) in qualifiers else hint


def _is_numeric(values: Any) -> bool:
    found = list(values)
    numbers = any(isinstance(value, int | float) and not isinstance(value, bool) for value in found)
    return numbers and not any(isinstance(value, bool) for value in found)


def _refuse_flag(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("true and false are not numbers")  # noqa: TRY004 - pydantic wants a ValueError
    return value


_NO_FLAG = BeforeValidator(_refuse_flag)
