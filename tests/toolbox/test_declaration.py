"""From a function to its declaration: what is read, what is refused and with which words, and that it is built once."""

from __future__ import annotations

import dataclasses
import functools
import re
import subprocess
import sys
import typing
from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, ClassVar, Final, Generic, Literal

import pytest
from hypothesis import given, settings
from pydantic import BaseModel, Field

from haru_fsm.errors import ToolError
from haru_fsm.limits import Limits
from haru_fsm.toolbox import IdempotencyKey, Secret, Toolbox, Won, tool
from haru_fsm.toolbox.arguments import Prepared
from haru_fsm.toolbox.schema import for_models
from haru_fsm.toolbox.tools import Tool
from tests.toolbox.strategies import Signature, signatures, tool_of

# What Gemini's `parametersJsonSchema` documents (GenerationConfig.responseJsonSchema lists the keywords), and besides
# those the bounds and patterns that it takes without enforcing them.
ACCEPTED = {
    *("$defs", "$ref", "type", "format", "description", "enum", "items", "prefixItems", "minItems", "maxItems"),
    *("minimum", "maximum", "anyOf", "properties", "additionalProperties", "required", "default"),
    *("pattern", "minLength", "maxLength", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


class Status(Enum):
    PAID = "결제완료"
    SHIPPED = "배송중"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Old(typing.TypedDict, total=False):
    page: typing.Required[int]
    size: int


class Address(BaseModel):
    """Where it goes."""

    zip: Annotated[str, Field(pattern=r"^\d{5}$")]
    tags: dict[str, int] = {}


class Node(BaseModel):
    name: str
    children: list[Node] = []


@dataclasses.dataclass
class Line:
    product: str
    quantity: int = 1


def everything(
    text: str,
    amount: Won,
    day: date,
    status: Status,
    level: Level = Level.LOW,
    kind: Literal["a", "b"] = "a",
    one: Literal["only"] = "only",
    count: Annotated[int, Field(gt=0, lt=10)] = 1,
    price: Decimal = Decimal("1.50"),
    ids: Iterable[str] = (),
    unique: set[int] | None = None,
    old: Old | None = None,
    to: Address | None = None,
    lines: list[Line] | None = None,
    tree: Node | None = None,
    pair: tuple[int, str] = (1, "a"),
    either: int | str = 1,
    none_by_default: str = None,  # type: ignore[assignment]
    key: Annotated[str, IdempotencyKey] = "",
    token: Annotated[str, Secret] = "s3cr3t",
) -> dict[str, Any]:
    """Do everything.

    And say more about it.

    Args:
        text: Words,
            on two lines.
        key: never shown
        to: Where it goes to.

    Returns:
        What was done.

    Raises:
        ValueError: never told
    """
    return {}


def test_the_signature_and_the_docstring_become_the_declaration() -> None:
    declaration = Tool("everything", everything).declaration
    assert declaration.description == "Do everything.\n\nAnd say more about it.\n\nReturns:\n    What was done."
    schema = declaration.parameters
    assert schema is not None
    properties = schema["properties"]
    assert schema["type"] == "object"
    assert schema["required"] == ["text", "amount", "day", "status"]
    assert "key" not in properties
    assert "token" not in properties
    assert properties["text"] == {"type": "string", "description": "Words, on two lines."}
    assert properties["amount"] == {"type": "integer"}
    assert properties["day"] == {"type": "string", "format": "date"}
    assert properties["status"] == {"type": "string", "enum": ["결제완료", "배송중"]}
    assert properties["level"] == {"type": "integer", "enum": [1, 2], "default": 1}
    assert properties["kind"] == {"type": "string", "enum": ["a", "b"], "default": "a"}
    assert properties["one"] == {"type": "string", "enum": ["only"], "default": "only"}
    assert properties["count"] == {"type": "integer", "minimum": 1, "maximum": 9, "default": 1}
    assert properties["price"]["default"] == "1.50"
    assert properties["ids"] == {"type": "array", "items": {"type": "string"}, "default": []}
    assert properties["unique"]["anyOf"][0] == {"type": "array", "items": {"type": "integer"}}
    assert properties["old"]["anyOf"][0]["required"] == ["page"]
    assert properties["to"]["description"] == "Where it goes to."
    assert properties["to"]["anyOf"][0]["properties"]["zip"]["pattern"] == r"^\d{5}$"
    assert properties["lines"]["anyOf"][0]["items"]["required"] == ["product"]
    assert properties["tree"]["anyOf"][0] == {"$ref": "#/$defs/Node"}
    assert list(schema["$defs"]) == ["Node"]
    assert "default" not in properties["none_by_default"]


def keywords(schema: Any) -> Iterable[str]:
    """Every keyword of a schema, names of properties left out."""
    if isinstance(schema, dict):
        for word, inner in schema.items():
            yield word
            if word in ("properties", "$defs"):
                for each in inner.values():
                    yield from keywords(each)
            elif word in ("items", "additionalProperties"):
                yield from keywords(inner)
            elif word in ("anyOf", "prefixItems"):
                for each in inner:
                    yield from keywords(each)


def references_stand_alone(schema: Any) -> bool:
    if isinstance(schema, list):
        return all(map(references_stand_alone, schema))
    if not isinstance(schema, dict):
        return True
    return ("$ref" not in schema or len(schema) == 1) and all(map(references_stand_alone, schema.values()))


def test_the_schema_uses_only_what_the_apis_take() -> None:
    schema = Tool("everything", everything).declaration.parameters
    assert set(keywords(schema)) <= ACCEPTED
    assert references_stand_alone(schema)


@settings(max_examples=60, deadline=None)
@given(signatures)
def test_so_does_every_schema(signature: Signature) -> None:
    schema = signature.tool.declaration.parameters
    assert set(keywords(schema)) <= ACCEPTED
    assert references_stand_alone(schema)


class Gift(Enum):
    NONE = ""
    CARD = "카드"


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (Literal["", "a"], {"type": "string", "enum": ["a"]}),
        (Literal[""], {"type": "string"}),
        (Gift, {"type": "string", "enum": ["카드"]}),
        (Literal["a", None], {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
        (Literal["a", 1], {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}]}),
        (list[Literal["", "a"]], {"type": "array", "items": {"type": "string", "enum": ["a"]}}),
        (Level, {"type": "integer", "enum": [1, 2]}),
    ],
    ids=str,
)
def test_what_may_be_chosen_has_one_type_and_is_no_empty_text(hint: Any, schema: Any) -> None:
    declared = tool_of({"p": hint})
    assert declared.declaration.parameters is not None
    assert declared.declaration.parameters["properties"]["p"] == schema


def test_what_is_not_declared_may_be_sent_all_the_same() -> None:
    prepared = tool_of({"p": Literal["", "a"]}).prepare({"p": ""})
    assert isinstance(prepared, Prepared)
    assert prepared.arguments == {"p": ""}


def test_a_pattern_that_looks_around_is_not_sent() -> None:
    """As pydantic writes one for Decimal; constrained sampling of models knows none."""
    schema = {"properties": {"a": {"type": "string", "pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"}}}
    assert for_models(schema) == {"properties": {"a": {"type": "string"}}}
    for pattern in (r"^HR\d+$", r"(?P<a>x)", r"(?:x|=)", "(!)"):
        assert for_models({"pattern": pattern}) == {"pattern": pattern}


def test_no_parameters_are_no_schema() -> None:
    def get_store_hours() -> dict[str, str]:
        """When the shop is open."""
        return {}

    assert Tool("get_store_hours", get_store_hours).declaration.parameters is None


@pytest.mark.parametrize(
    "docstring",
    [
        "Get it.\n\n    Args:\n        order_id: The order.\n    ",
        "Get it.\n\n    Parameters\n    ----------\n    order_id : str\n        The order.\n    ",
        "Get it.\n\n    :param order_id: The order.\n    :raises ValueError: never told\n    ",
    ],
    ids=["Google", "NumPy", "reST"],
)
def test_docstrings_of_every_style(docstring: str) -> None:
    def get(order_id: str) -> str:
        return order_id

    get.__doc__ = docstring
    declaration = Tool("get", get).declaration
    assert declaration.description == "Get it."
    assert declaration.parameters is not None
    assert declaration.parameters["properties"]["order_id"]["description"] == "The order."


def test_what_stands_below_the_sections_is_not_lost() -> None:
    def get(order_id: str) -> str:
        """Get it.

        Note:
            Only open orders.

        Args:
            order_id: The order,

                in full.
        Raises:
            ValueError: never told

        Warning:
            Never twice.

        Closing words.
        """
        return order_id

    declaration = Tool("get", get).declaration
    assert declaration.description == (
        "Get it.\n\nNote:\n    Only open orders.\n\nWarning:\n    Never twice.\n\nClosing words."
    )


# --------------------------------------------------------------------------- callables


class Shop:
    def get(self, order_id: str) -> str:
        """Get an order."""
        return order_id

    async def get_later(self, order_id: str) -> str:
        """Get an order."""
        return order_id

    @tool(read_only=True)
    def marked(self) -> str:
        """Marked in the class."""
        return ""

    @staticmethod
    def static(order_id: str) -> str:
        """Get an order."""
        return order_id


class Getter:
    """Get an order."""

    def __call__(self, order_id: str) -> str:
        return order_id


def for_customer(customer_id: str, order_id: str, limit: int = 3) -> str:
    """Get an order."""
    return customer_id + order_id


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@pytest.mark.parametrize(
    "function",
    [
        Shop().get,
        Shop().get_later,
        Shop.static,
        Getter(),
        logged(Shop().get),
        functools.partial(for_customer, "C003", limit=1),
        functools.partial(functools.partial(for_customer, limit=1), customer_id="C003"),
        tool(Shop().get, read_only=True),
    ],
    ids=lambda function: type(function).__name__,
)
def test_every_kind_of_callable(function: Callable[..., Any]) -> None:
    declaration = Tool("get", function).declaration
    assert declaration.description == "Get an order."
    assert declaration.parameters == {
        "type": "object",
        "properties": {"order_id": {"type": "string"}},
        "required": ["order_id"],
    }


def test_what_a_partial_has_bound_is_not_the_models_to_change() -> None:
    bound = Tool("get", functools.partial(for_customer, customer_id="C003"))
    prepared = bound.prepare({"order_id": "HR1", "customer_id": "C001"})
    assert getattr(prepared, "arguments", None) == {"order_id": "HR1"}


def test_hints_that_only_a_closure_knows() -> None:
    allowed = Literal["one", "two"]

    def choose(word: allowed) -> Any:
        """Choose."""
        return word, allowed

    schema = Tool("choose", choose).declaration.parameters
    assert schema is not None
    assert schema["properties"]["word"]["enum"] == ["one", "two"]


# --------------------------------------------------------------------------- refusals


def no_hint(order_id) -> str:  # type: ignore[no-untyped-def]
    """Doc."""
    return str(order_id)


def no_doc(order_id: str) -> str:
    return order_id


def only_args(order_id: str) -> str:
    """
    Args:
        order_id: The order.
    """
    return order_id


def many(*ids: str) -> str:
    """Doc."""
    return ""


def anything(**words: str) -> str:
    """Doc."""
    return ""


def positional(order_id: str, /) -> str:
    """Doc."""
    return order_id


def unknown_type(order: Nowhere) -> str:  # type: ignore[name-defined]  # noqa: F821
    """Doc."""
    return ""


def no_json(callback: Callable[[], int]) -> str:
    """Doc."""
    return ""


def looks_around(order_id: Annotated[str, Field(pattern=r"^(?!x)HR\d+$")]) -> str:
    """A pattern for which pydantic has no engine."""
    return order_id


def no_schema(connection: re.Scanner) -> str:  # type: ignore[name-defined]
    """Doc."""
    return ""


def field_default(limit: int = Field(default=3)) -> str:
    """Doc."""
    return str(limit)


def open_secret(token: Annotated[str, Secret]) -> str:
    """Doc."""
    return token


class Unit(Enum):
    """Values as no JSON has them."""

    WON = ("원", 0)


class Sale(Enum):
    """Dates, which come back as texts."""

    SUMMER = date(2026, 7, 1)


class OpenSale(Enum):
    """Dates that it reads by itself."""

    SUMMER = date(2026, 7, 1)

    @classmethod
    def _missing_(cls, value: object) -> OpenSale | None:
        return next((sale for sale in cls if sale.value.isoformat() == value), None)


class Rank(Enum):
    """A text is none of its members, though it looks like one in a schema."""

    LOW = "low"


class Most(Enum):
    """A number that no JSON has: the API refuses every request that offers it."""

    FEW = 3.0
    ALL = float("inf")


class Price(BaseModel):
    amount: int
    unit: Unit


def in_a_unit(unit: Unit) -> str:
    """Doc."""
    return unit.name


def for_a_price(price: list[Price] | None = None) -> str:
    """Doc."""
    return str(price)


def at_a_rank(rank: Literal[Rank.LOW]) -> str:
    """Doc."""
    return rank.name


def at_most(most: Most) -> str:
    """Doc."""
    return most.name


def at_a_sale(sale: Sale) -> str:
    """Doc."""
    return sale.name


def test_a_choice_that_reads_its_values_by_itself_is_declared() -> None:
    def work(sale: OpenSale) -> str:
        """Work."""
        return sale.name

    prepared = Tool("work", work).prepare({"sale": "2026-07-01"})
    assert isinstance(prepared, Prepared)
    assert prepared.arguments == {"sale": OpenSale.SUMMER}


def bare_key(key: IdempotencyKey) -> str:
    """Doc."""
    return str(key)


def bare_secret(token: Secret | None = None) -> str:
    """Doc."""
    return str(token)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            in_a_unit,
            "parameter unit has a type that cannot be declared to a model: Unit leaves a model nothing to choose",
        ),
        (for_a_price, "parameter price has a type that cannot be declared to a model: Unit leaves"),
        (at_a_rank, "Rank.LOW cannot be written in JSON and read again; give it texts or numbers as values"),
        (at_most, "Most leaves a model nothing to choose: Most.ALL cannot be written in JSON"),
        (at_a_sale, "Sale.SUMMER cannot be written in JSON and read again; give it texts or numbers as values"),
        (no_hint, "parameter order_id has no type hint; write one"),
        (no_doc, "has no docstring"),
        (only_args, "its docstring does not say what it does"),
        (many, "parameter ids takes anything"),
        (anything, "parameter words takes anything"),
        (positional, "parameter order_id is positional-only"),
        (unknown_type, "parameter order: its type hint 'Nowhere' cannot be understood"),
        (no_json, "parameter callback has a type that cannot be declared"),
        (looks_around, "parameter order_id has a type that cannot be declared"),
        (no_schema, "parameter connection has a type that cannot be declared"),
        (field_default, "parameter limit has a pydantic Field as its default"),
        (open_secret, "parameter token is a Secret"),
        (bare_key, "parameter key has a marker for its type; write Annotated[str, IdempotencyKey]"),
        (bare_secret, "parameter token has a marker for its type; write Annotated[str, Secret]"),
        (Address, "a class cannot be a tool"),
    ],
)
def test_what_cannot_be_declared_is_refused_with_the_way_out(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(ToolError) as caught:
        Toolbox({"get": function}, Limits())
    assert str(caught.value).startswith("tool get: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_where_python_takes_docstrings_away_nobody_is_told_to_write_one() -> None:
    program = "from haru_fsm.toolbox.tools import Tool\ndef get():\n    'Get.'\nTool('get', get)"
    ended = subprocess.run([sys.executable, "-OO", "-c", program], capture_output=True, text=True, check=False)
    assert "tool get: it has no docstring" in ended.stderr
    assert "run Python without -OO" in ended.stderr


@pytest.mark.parametrize("name", ["주문조회", "<lambda>", "get order", "1st", "a" * 65, "get.order", ""])
def test_names_that_the_apis_refuse(name: str) -> None:
    with pytest.raises(ToolError, match="models take names of letters, digits"):
        Toolbox({name: for_customer}, Limits())


# --------------------------------------------------------------------------- built once


def make_tools(customer_id: str, smallest: int = 1) -> list[Callable[..., Any]]:
    def get_order(order_id: str) -> str:
        """Get an order."""
        return customer_id + order_id

    def page(number: Annotated[int, Field(ge=0)] = smallest) -> int:
        """Turn the page."""
        return number

    return [get_order, page]


def test_closures_of_another_session_share_their_declaration() -> None:
    one, other = (Toolbox(make_tools(customer), Limits()) for customer in ("C001", "C002"))
    assert one.declarations[0] is other.declarations[0]
    assert one.declarations[1] is other.declarations[1]
    first, second = Shop(), Shop()
    assert Tool("get", first.get).declaration is Tool("get", second.get).declaration


def default_of(function: Callable[..., Any]) -> Any:
    schema = Tool("page", function).declaration.parameters
    assert schema is not None
    return schema["properties"]["number"]["default"]


def test_another_default_or_name_is_another_declaration() -> None:
    one, other = make_tools("C001", 1)[1], make_tools("C001", 2)[1]
    assert (default_of(one), default_of(other), default_of(one)) == (1, 2, 1)
    assert Tool("turn", one).declaration.name == "turn"
    assert Tool("page", one).declaration.name == "page"


@pytest.mark.parametrize(
    ("marks", "read_only"),
    [({}, None), ({"read_only": True}, True), ({"read_only": False}, False), ({"destructive": True}, False)],
)
def test_what_a_function_says_of_its_effect_is_known_and_told_to_no_model(
    marks: dict[str, Any], read_only: bool | None
) -> None:
    def look() -> str:
        """Look."""
        return ""

    declared = Tool("look", tool(**marks)(look)).declaration
    assert declared.read_only is read_only
    assert declared.told == {"name": "look", "description": "Look.", "parameters": None}


def test_the_cache_is_bounded_per_function() -> None:
    from haru_fsm.toolbox import declaration

    pages = [make_tools("C001", number)[1] for number in range(100)]
    for each in pages:
        Tool("page", each)
    code = pages[0].__code__
    assert len(declaration._kept[code]) <= 16


@pytest.mark.parametrize("hint", [Final[int], ClassVar[int], Generic], ids=str)
def test_a_hint_that_stands_for_no_value_is_refused_by_name(hint: Any) -> None:
    def work(amount: int) -> None:
        """Work."""

    work.__annotations__["amount"] = hint
    with pytest.raises(ToolError, match="tool work: "):
        Tool("work", work)
