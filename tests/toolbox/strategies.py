"""Types with values that are valid for them, damage that is certainly repairable, and odd values of Python's own."""

from __future__ import annotations

import dataclasses
import inspect
import json
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from types import GenericAlias
from typing import Annotated, Any, Literal

from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from haru_fsm.toolbox import Won
from haru_fsm.toolbox.tools import Tool

COURIERS = ("CJ", "HANJIN", "LOTTE", "우체국 택배", "same day")

texts = st.text(alphabet=st.characters(codec="utf-8"), max_size=12)
whole_numbers = st.integers(-(10**12), 10**12)
numbers = st.floats(allow_nan=False, allow_infinity=False)

json_values = st.recursive(
    st.none() | st.booleans() | whole_numbers | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)

likely_strings = st.sampled_from(
    (
        *("1", "2.0", "2.5", " 3", "１２", "12,900", "12,900원", "1만원", "true", "FALSE", "yes", "null", "None", ""),
        *(
            "lotte ",
            "Lotte",
            "롯데택배",
            "우체국택배",
            "same-day",
            "hr1",
            " HR1",
            "ＨＲ１",
            "2026-07-25",
            " 2026-07-25",
        ),
        *("[1, 2]", '["HR1"]', '{"zip": "12345"}', "a,b", '"HR1"', "[]", "{}", "1e3", "-0", "007", "NaN"),
    )
)
model_values = json_values | likely_strings | st.lists(likely_strings, max_size=3)
"""What a model may send for a parameter."""


class Address(BaseModel):
    """Where a parcel goes."""

    zip: Annotated[str, Field(pattern=r"^\d{5}$")]
    line: str = ""


class Size(Enum):
    """An Enum of numbers."""

    SMALL = 1
    LARGE = 2


@dataclasses.dataclass
class Item:
    """A line of an order."""

    name: str
    quantity: int = 1


class Filter(TypedDict):
    """What to look for."""

    page: int
    exact: bool


@dataclass(frozen=True)
class Typed:
    """A type hint, with JSON values that are valid for it."""

    hint: Any
    values: st.SearchStrategy[Any]


SCALARS = (
    Typed(str, texts),
    Typed(int, whole_numbers),
    Typed(float, numbers),
    Typed(bool, st.booleans()),
    Typed(Won, st.integers(0, 10**9)),
    Typed(Literal[COURIERS], st.sampled_from(COURIERS)),
    Typed(Literal[1, 2, 3], st.integers(1, 3)),
    Typed(Size, st.sampled_from((1, 2))),
    Typed(date, st.dates().map(date.isoformat)),
    Typed(Annotated[str, Field(pattern=r"^HR\d+$")], st.integers(0, 10**8).map("HR{}".format)),
    Typed(Annotated[int, Field(ge=1, le=100)], st.integers(1, 100)),
)
OBJECTS = (
    Typed(Address, st.fixed_dictionaries({"zip": st.from_regex(r"\A[0-9]{5}\Z")}, optional={"line": texts})),
    Typed(Item, st.fixed_dictionaries({"name": texts}, optional={"quantity": whole_numbers})),
    Typed(Filter, st.fixed_dictionaries({"page": whole_numbers, "exact": st.booleans()})),
)


def _larger(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return st.one_of(
        inner.map(lambda each: Typed(GenericAlias(list, each.hint), st.lists(each.values, max_size=3))),
        inner.map(lambda each: Typed(each.hint | None, st.none() | each.values)),
        inner.map(
            lambda each: Typed(GenericAlias(dict, (str, each.hint)), st.dictionaries(texts, each.values, max_size=3))
        ),
    )


types = st.recursive(st.sampled_from(SCALARS + OBJECTS), _larger, max_leaves=3)


@dataclass(frozen=True)
class Signature:
    """Parameters of a tool, each with its type and perhaps a default of None."""

    parameters: dict[str, Typed]
    optional: frozenset[str]

    @property
    def valid(self) -> st.SearchStrategy[dict[str, Any]]:
        """Valid arguments."""
        required = {name: each.values for name, each in self.parameters.items() if name not in self.optional}
        rest = {name: each.values for name, each in self.parameters.items() if name in self.optional}
        return st.fixed_dictionaries(required, optional=rest)

    @property
    def tool(self) -> Tool:
        """A tool of this signature."""
        return tool_of({name: each.hint for name, each in self.parameters.items()}, self.optional)


signatures = st.builds(
    lambda kinds, optional: Signature(
        {f"p{index}": kind for index, kind in enumerate(kinds)}, frozenset(f"p{index}" for index in optional)
    ),
    st.lists(types, min_size=1, max_size=3),
    st.frozensets(st.integers(0, 2), max_size=3),
)


def tool_of(hints: dict[str, Any], optional: frozenset[str] = frozenset(), **marks: Any) -> Tool:
    """A tool with these parameters, which gives back what it was called with."""
    from haru_fsm.toolbox import tool

    def give_back(**arguments: Any) -> dict[str, Any]:
        """Give back the arguments."""
        return arguments

    kind = inspect.Parameter.KEYWORD_ONLY
    vars(give_back)["__signature__"] = inspect.Signature(
        [
            inspect.Parameter(
                name, kind, annotation=hint, default=None if name in optional else inspect.Parameter.empty
            )
            for name, hint in hints.items()
        ]
    )
    return Tool("give_back", tool(**{"read_only": True, **marks})(give_back))


# --------------------------------------------------------------------------- certain damage

Damage = tuple[Any, Any, Callable[[Any], Any]]
"""A type, values of it, and what happened to them on the way: repair has to give back the very same value."""


def _spaced(word: str) -> str:
    return f"  {word.upper()} \n"


DAMAGES: tuple[tuple[Any, st.SearchStrategy[Any], Callable[[Any], Any]], ...] = (
    (int, whole_numbers, str),
    (int, st.integers(-(2**53), 2**53), float),
    (int, whole_numbers, lambda value: f" {value}.0 "),
    (
        int,
        st.integers(0, 10**6),
        lambda value: str(value).translate(str.maketrans("0123456789", "０１２３４５６７８９")),
    ),
    (float, numbers, json.dumps),
    (bool, st.booleans(), lambda value: str(value).upper()),
    (Won, st.integers(0, 10**9), "{:,}원".format),
    (Won, st.integers(0, 10**9), "₩{:,}".format),
    (Won | None, st.integers(0, 10**9), "{} 원".format),
    (Literal[COURIERS], st.sampled_from(COURIERS), _spaced),
    (Literal[COURIERS], st.sampled_from(COURIERS), lambda word: unicodedata.normalize("NFD", word)),
    (Literal[1, 2, 3], st.integers(1, 3), str),
    (Annotated[str, Field(pattern=r"^HR\d+$")], st.integers(0, 10**8).map("HR{}".format), " {}\n".format),
    (list[str], st.lists(texts), json.dumps),
    (list[int], st.lists(whole_numbers), lambda value: json.dumps([str(item) for item in value])),
    (list[int], st.lists(whole_numbers, min_size=1, max_size=1), lambda value: value[0]),
    (Address, OBJECTS[0].values, json.dumps),
    (dict[str, int], st.dictionaries(texts, whole_numbers), json.dumps),
    (Filter, OBJECTS[2].values, lambda value: {**value, "page": str(value["page"])}),
    (list[Item], st.lists(OBJECTS[1].values, max_size=2), json.dumps),
)
