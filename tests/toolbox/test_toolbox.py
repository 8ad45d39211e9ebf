"""The toolbox, and the marks on its tools."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from haru_fsm.errors import ToolError
from haru_fsm.limits import Limits
from haru_fsm.toolbox import Marks, Toolbox, tool
from haru_fsm.toolbox.marks import marks_of
from haru_fsm.toolbox.tools import Tool


def get_order(order_id: str) -> str:
    """Get an order."""
    return order_id


@tool(read_only=True, timeout_s=0.5, retries=2)
def get_orders() -> list[str]:
    """Get the orders."""
    return []


@tool(read_only=False, destructive=True, approval=True)
def cancel_order(order_id: str) -> str:
    """Cancel an order."""
    return order_id


@tool
def bare(order_id: str) -> str:
    """Nothing is said."""
    return order_id


ALL = Toolbox([get_order, get_orders, cancel_order], Limits(tool_timeout_s=3))


def test_a_list_or_a_dictionary_of_functions() -> None:
    assert [declaration.name for declaration in ALL.declarations] == ["get_order", "get_orders", "cancel_order"]
    named = Toolbox({"order": get_order}, Limits())
    assert [each.name for each in named.tools] == ["order"]
    assert Toolbox([functools.partial(get_order, order_id="HR1")], Limits()).tools[0].name == "get_order"
    assert Toolbox([], Limits()).declarations == ()


def test_two_of_one_name_and_what_is_no_function_are_refused() -> None:
    with pytest.raises(ToolError, match="tool get_order: there are two of this name"):
        Toolbox([get_order, get_order], Limits())
    with pytest.raises(ToolError, match="tool x: int is not a function"):
        Toolbox({"x": 3}, Limits())  # type: ignore[arg-type]


def test_a_tool_is_found_by_its_name_with_or_without_a_known_prefix() -> None:
    for name in (
        "get_order",
        "default_api.get_order",
        "functions.get_order",
        "default_api:get_order",
        " get_order\n",
        "get_order<|channel|>commentary",
        "functions.get_order<|constrain|>json",
        " tools/get_order",
    ):
        found = ALL.find(name)
        assert found is not None
        assert found.name == "get_order"
    for name in (
        "",
        "getOrder",
        "Get_order",
        "other_shop.get_order",
        "get_order.",
        "default_api.",
        "<|get_order",
        "get order",
    ):
        assert ALL.find(name) is None


def test_a_model_that_asks_for_an_unknown_tool_is_told_what_there_is() -> None:
    text = ALL.unknown("get_ordr")
    assert text == 'There is no tool "get_ordr". Available: get_order, get_orders, cancel_order. Nearest: get_order.'
    assert "Nearest" not in ALL.unknown("날씨")
    assert "Answer without one" in Toolbox([], Limits()).unknown("x")


def test_what_says_nothing_acts_and_is_warned_of() -> None:
    order, orders, cancel = ALL.tools
    assert (order.has_effect, order.declares_effect) == (True, False)
    assert (orders.has_effect, orders.declares_effect) == (False, False)
    assert (cancel.has_effect, cancel.declares_effect) == (True, True)
    assert [warning.partition(" says")[0] for warning in ALL.warnings] == ["tool get_order"]


def test_times() -> None:
    assert [each.timeout_s for each in ALL.tools] == [3, 0.5, 3]
    assert ALL.tools[1].worst_case_s == pytest.approx(3 * 0.5 + 0.2 + 0.4)


def test_a_marked_function_stays_the_plain_function_it_was() -> None:
    def plain(order_id: str) -> str:
        """Doc."""
        return order_id

    assert tool(plain, read_only=True) is plain
    assert tool()(plain) is plain
    assert plain("a") == "a"
    assert bare("b") == "b"
    assert marks_of(bare) == Marks()
    assert marks_of(cancel_order).approval


def test_marks_on_methods_partials_and_callable_objects() -> None:
    class Shop:
        @tool(read_only=True)
        def get(self) -> str:
            """Doc."""
            return "got"

        @tool(read_only=True)
        @staticmethod
        def static() -> str:
            """Doc."""
            return "static"

        def plain(self) -> str:
            """Doc."""
            return "plain"

        @tool(read_only=True)
        def __call__(self) -> str:
            """Doc."""
            return "called"

    shop = Shop()
    marked = tool(shop.plain, read_only=True)
    builtin = tool(len, read_only=True)
    partial = tool(functools.partial(get_order, "HR1"), read_only=True)
    for function in (shop.get, Shop.static, marked, shop, builtin, partial, functools.partial(shop.get)):
        assert marks_of(function).read_only, function
    assert marked() == "plain"
    assert marks_of(shop.plain) == Marks(), "marking one instance's method must not mark the others'"
    assert builtin([1]) == 1


@pytest.mark.parametrize(
    ("marks", "words"),
    [
        ({"read_only": True, "destructive": True}, "contradict each other"),
        ({"timeout_s": 0}, "timeout_s must be"),
        ({"timeout_s": float("nan")}, "timeout_s must be"),
        ({"retries": -1, "read_only": True}, "retries must be"),
        ({"retries": 1}, "only a tool with read_only=True or idempotent=True may be retried"),
        ({"retries": 1, "destructive": True}, "only a tool with read_only=True or idempotent=True may be retried"),
        ({"fallback": None, "read_only": False}, "a fallback would hide"),
        ({"extra_args": "keep"}, "extra_args must be"),
    ],
)
def test_contradictions_are_refused_with_the_way_out(marks: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolError, match="tool get_order: ") as caught:
        tool(get_order, **marks)
    assert words in str(caught.value)
    assert marks_of(get_order) == Marks()


def test_a_fallback_of_none_is_a_fallback() -> None:
    assert Marks(fallback=None).has_fallback
    assert not Marks().has_fallback


def test_keys() -> None:
    from tests.toolbox.test_declaration import everything

    assert Tool("everything", everything).accepts_key
    assert not Tool("get_order", get_order).accepts_key
