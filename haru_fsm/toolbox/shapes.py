"""The shape of a parameter: what its type allows, seen from JSON.

pydantic decides whether a value is valid, strictly and in its JSON mode: "3" is no int there, true is no number, and
"2026-07-25" is a date. A shape adds what repair and explanations need to know beyond yes and no: what stands inside
of it, and what is allowed in its place. Shapes unfold only where a value has been rejected.
"""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import json
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typing_extensions
from pydantic import BaseModel, ConfigDict, RootModel, TypeAdapter, ValidationError
from pydantic_core import PydanticUndefined
from typing_extensions import is_typeddict

from haru_fsm.toolbox.hints import TYPED_DICT, qualified, typed_dict_keys
from haru_fsm.toolbox.marks import MISSING, Won, WonAmount
from haru_fsm.toolbox.reading import Parameter

_LISTS = (
    list,
    set,
    frozenset,
    collections.deque,
    collections.abc.Sequence,
    collections.abc.MutableSequence,
    collections.abc.Collection,
    collections.abc.Set,
    collections.abc.MutableSet,
)
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping, collections.defaultdict)

encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode
"""Canonical JSON: sorted keys, no blanks. ValueError for NaN and the infinities, which are no JSON."""


class Kind(StrEnum):
    """What a shape is, as far as repair is concerned."""

    TEXT = "text"
    WHOLE = "whole"
    NUMBER = "number"
    DECIMAL = "decimal"
    FLAG = "flag"
    NOTHING = "nothing"
    CHOICE = "choice"
    LIST = "list"
    TUPLE = "tuple"
    OBJECT = "object"
    MAPPING = "mapping"
    UNION = "union"
    ANYTHING = "anything"
    OTHER = "other"
    """A type that JSON writes as a string: date, UUID, URL, and whatever else pydantic reads."""


_SCALARS: dict[Any, Kind] = {
    str: Kind.TEXT,
    int: Kind.WHOLE,
    float: Kind.NUMBER,
    Decimal: Kind.DECIMAL,
    bool: Kind.FLAG,
    None: Kind.NOTHING,
    types.NoneType: Kind.NOTHING,
    Any: Kind.ANYTHING,
    object: Kind.ANYTHING,
}


@dataclass(frozen=True, slots=True)
class Field:
    """A key of an object. `default` is MISSING where there is none, or where it is only made when needed."""

    shape: Shape
    required: bool
    default: Any = MISSING


class Shape:
    """What a type hint allows."""

    def __init__(self, hint: Any) -> None:
        self.hint = hint
        self._core, self._metadata = _peeled(hint)
        self._origin, self._args = get_origin(self._core), get_args(self._core)

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        """pydantic's word on this type."""
        return TypeAdapter(self.hint)

    def accepts(self, value: Any) -> bool:
        """Whether a JSON value is valid as it is."""
        return self.complaint(value) is None

    def complaint(self, value: Any) -> tuple[str, str] | None:
        """pydantic's kind of error and its words for the first thing wrong with a value; None for a valid one."""
        try:
            self.adapter.validate_json(encode(value), strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            return first["type"], first["msg"]
        except Exception:  # no JSON, nested without end, or a validator of the application's that failed
            return "not_json", "it cannot be checked"
        return None

    @cached_property
    def kind(self) -> Kind:
        """Its kind."""
        core, origin = self._core, self._origin
        if isinstance(core, collections.abc.Hashable) and core in _SCALARS:
            return _SCALARS[core]
        if origin is Literal or (isinstance(core, type) and issubclass(core, Enum)):
            return Kind.CHOICE
        if origin in (Union, types.UnionType):
            return Kind.UNION
        base = origin or core
        if base is tuple:
            return Kind.LIST if len(self._args) != 1 and self._args[1:] in ((), (...,)) else Kind.TUPLE
        if base in _LISTS:
            return Kind.LIST
        if base in _MAPPINGS:
            return Kind.MAPPING
        return Kind.OBJECT if _is_object(base) else Kind.OTHER

    @cached_property
    def is_won(self) -> bool:
        """An amount that is declared to be in won."""
        return any(mark is WonAmount or mark == Won or isinstance(mark, WonAmount) for mark in self._metadata)

    @cached_property
    def choices(self) -> tuple[Any, ...]:
        """The allowed values of a CHOICE that JSON can write."""
        found = self._args if self._origin is Literal else tuple(self._core)
        values = [value.value if isinstance(value, Enum) else value for value in found]
        return tuple(value for value in values if isinstance(value, str | int | float | bool))

    @cached_property
    def items(self) -> Shape:
        """What stands in a LIST, or as a value in a MAPPING."""
        position = 1 if self.kind is Kind.MAPPING else 0
        return Shape(self._args[position] if len(self._args) > position else Any)

    @cached_property
    def positions(self) -> tuple[Shape, ...]:
        """What stands at each position of a TUPLE."""
        return tuple(Shape(arg) for arg in self._args)

    @cached_property
    def branches(self) -> tuple[Shape, ...]:
        """What a UNION is one of."""
        return tuple(Shape(Annotated[arg, WonAmount] if self.is_won else arg) for arg in self._args)

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """The keys of an OBJECT, as JSON writes them."""
        return dict(_fields(self._origin or self._core, self._core))

    @cached_property
    def forbids_extra(self) -> bool:
        """Whether an OBJECT refuses keys that it does not know."""
        config = getattr(self._core, "model_config", None) or getattr(self._core, "__pydantic_config__", None) or {}
        return bool(config.get("extra") == "forbid")


class ArgumentsShape(Shape):
    """The arguments of a tool: an object with a key for each parameter."""

    def __init__(self, parameters: tuple[Parameter, ...]) -> None:
        fields = {param.name: qualified(param.hint, param.required) for param in parameters}
        hint: Any = TYPED_DICT("arguments", fields)
        hint.__pydantic_config__ = ConfigDict(extra="forbid")
        super().__init__(hint)
        self._parameters = parameters

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        return {param.name: Field(Shape(param.hint), param.required, param.default) for param in self._parameters}


def _peeled(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A hint without Annotated, NewType and aliases; and the metadata found on the way."""
    metadata: tuple[Any, ...] = ()
    while True:
        if get_origin(hint) is Annotated:
            hint, metadata = get_args(hint)[0], (*metadata, *hint.__metadata__)
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif hasattr(hint, "__value__") and get_origin(hint) is None:
            hint = hint.__value__
        else:
            return hint, metadata


def _is_object(base: Any) -> bool:
    if not isinstance(base, type):
        return False
    is_model = issubclass(base, BaseModel) and not issubclass(base, RootModel)
    return is_model or dataclasses.is_dataclass(base) or is_typeddict(base)


def _fields(base: Any, core: Any) -> Iterator[tuple[str, Field]]:
    infos = getattr(core, "__pydantic_fields__", None) or getattr(base, "__pydantic_fields__", None)
    if infos:
        for name, info in infos.items():
            yield _key(name, info), Field(Shape(info.rebuild_annotation()), info.is_required(), _plain(info.default))
        return
    if is_typeddict(base):
        for name, (hint, required) in typed_dict_keys(base).items():
            yield name, Field(Shape(hint), required)
        return
    hints = typing_extensions.get_type_hints(base, include_extras=True)
    for field in dataclasses.fields(base):
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        default = MISSING if field.default is dataclasses.MISSING else field.default
        yield field.name, Field(Shape(hints[field.name]), required, default)


def _key(name: str, info: Any) -> str:
    alias = info.validation_alias or info.alias
    return alias if isinstance(alias, str) else name


def _plain(default: Any) -> Any:
    return MISSING if default is PydanticUndefined else default
