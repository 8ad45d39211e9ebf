"""A model's arguments: what it is told, and the field cases F034 to F054 and F091 at this level."""

from __future__ import annotations

import json
import unicodedata
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, field_validator, model_validator

from haru_fsm.toolbox import Prepared, Refused, Secret, Won, tool
from haru_fsm.toolbox.tools import Tool
from tests.toolbox.strategies import tool_of

Reason = Literal["DEFECT", "CHANGE_OF_MIND", "LATE"]


@tool(read_only=True)
def get_store_hours() -> dict[str, str]:
    """When the shop is open."""
    return {"open": "09:00"}


@tool(read_only=True)
def get_order(order_id: str) -> dict[str, str]:
    """One order."""
    return {"order_id": order_id}


@tool(read_only=True)
def get_orders(order_ids: list[str]) -> list[str]:
    """Several orders."""
    return order_ids


@tool(read_only=True)
def list_orders(customer_id: str, page: int = 1, page_size: int = 10) -> list[int]:
    """Orders by page."""
    assert type(page) is int
    assert type(page_size) is int
    return [page, page_size]


@tool(read_only=True)
def track_shipment(order_id: str, courier: Literal["CJ", "HANJIN", "LOTTE"] = "CJ") -> dict[str, str]:
    """Where the parcel is."""
    return {"order_id": order_id, "courier": courier}


@tool(read_only=False)
def refund_order(order_id: str, amount: int, reason: Reason) -> dict[str, str]:
    """Pay it back."""
    return {}


@tool(read_only=False)
def set_memo(order_id: str, memo: str) -> str:
    """Keep a memo."""
    return memo


def prepared(function: Any, args: Any) -> Prepared:
    result = Tool(function.__name__, function).prepare(args)
    assert isinstance(result, Prepared), result
    return result


def refusal(function: Any, args: Any, unusable: str | None = None) -> str:
    result = Tool(function.__name__, function).prepare(args, unusable)
    assert isinstance(result, Refused), result
    return result.error


# --------------------------------------------------------------------------- field cases


@pytest.mark.parametrize("args", [None, {}, [], "{}"])
def test_f034_f054_absent_null_and_empty_arguments_are_no_arguments(args: Any) -> None:
    assert prepared(get_store_hours, args).arguments == {}
    assert prepared(get_store_hours, args).canonical == "{}"


@pytest.mark.parametrize("args", [[1], 3, True, "get_store_hours()"])
def test_f054_other_containers_are_refused(args: Any) -> None:
    assert "its arguments could not be read" in refusal(get_store_hours, args)
    assert "order_id (a string)" in refusal(get_order, args)


def test_f054_arguments_that_could_not_be_read_are_refused_with_the_reason() -> None:
    text = refusal(get_order, {}, "args came as a list")
    assert text == (
        "get_order was not run: its arguments could not be read, args came as a list. "
        "Send one JSON object with: order_id (a string)."
    )


def test_f036_null_for_what_is_required_is_missing() -> None:
    text = refusal(refund_order, {"order_id": None, "amount": None, "reason": None})
    assert text == (
        "refund_order was not run. Missing: order_id (a string); amount (a whole number); "
        'reason (one of "DEFECT", "CHANGE_OF_MIND", "LATE").'
    )


def test_f037_whole_floats_are_integers_and_nothing_else_is() -> None:
    got = prepared(list_orders, {"customer_id": "C-77", "page": 2.0, "page_size": 10.0})
    assert list_orders(**got.arguments) == [2, 10]
    assert got.repairs == ("page: 2.0 was read as 2.", "page_size: 10.0 was read as 10.")
    assert "page: 2.5 is not allowed; it must be a whole number" in refusal(
        list_orders, {"customer_id": "C", "page": 2.5}
    )
    assert "page: true is not allowed" in refusal(list_orders, {"customer_id": "C", "page": True})


def test_f039_a_list_in_a_string_is_read_and_a_plain_string_is_not_split() -> None:
    got = prepared(get_orders, {"order_ids": '["HR20260725002","HR20260726011"]'})
    assert got.arguments == {"order_ids": ["HR20260725002", "HR20260726011"]}
    assert prepared(get_orders, {"order_ids": "HR20260725002"}).arguments == {"order_ids": ["HR20260725002"]}


def test_f041_an_argument_that_the_tool_does_not_have_is_dropped_and_told() -> None:
    got = prepared(get_order, {"order_id": "HR20260725002", "tool_code": "print(default_api.get_order())"})
    assert got.arguments == {"order_id": "HR20260725002"}
    assert got.repairs == ("tool_code is not a parameter and was left out.",)


def test_f043_an_invented_enum_value_is_an_error_and_other_spelling_is_not() -> None:
    text = refusal(track_shipment, {"order_id": "HR1", "courier": "롯데택배"})
    assert 'courier: "롯데택배" is not allowed; it must be one of "CJ", "HANJIN", "LOTTE".' in text
    assert 'Nearest: "HANJIN"' in refusal(track_shipment, {"order_id": "HR1", "courier": "HANJUN"})
    assert prepared(track_shipment, {"order_id": "HR1", "courier": "lotte "}).arguments["courier"] == "LOTTE"


def test_f044_empty_arguments_name_what_is_missing_every_time() -> None:
    assert refusal(get_order, {}) == refusal(get_order, {}) == "get_order was not run. Missing: order_id (a string)."


@pytest.mark.parametrize("memo", ["문 앞에 놓아주세요 👍🏽", "각", " ＡＢ ", "W\x00s\x00l", "\\u0000", ""])
def test_f091_f089_text_reaches_the_tool_exactly(memo: str) -> None:
    got = prepared(set_memo, json.loads(json.dumps({"order_id": "HR1", "memo": memo})))
    assert got.arguments["memo"] == memo
    assert got.repairs == ()
    assert json.loads(got.canonical)["memo"] == memo
    assert "\\ubb38" not in got.canonical, "Hangul is not escaped"


# --------------------------------------------------------------------------- extras


def cancel(order_id: str, reason: str = "") -> str:
    """Cancel."""
    return order_id


@pytest.mark.parametrize(
    ("marks", "extra", "dropped"),
    [
        ({"read_only": True}, "only_item", True),
        ({}, "only_item", True),
        ({"read_only": False}, "only_item", False),
        ({"read_only": False}, "tool_code", True),
        ({"destructive": True}, "dry_run", False),
        ({"destructive": True, "extra_args": "drop"}, "dry_run", True),
        ({"read_only": True, "extra_args": "refuse"}, "tool_code", False),
    ],
)
def test_what_might_have_limited_an_effect_is_not_dropped(marks: dict[str, Any], extra: str, dropped: bool) -> None:
    def fresh(order_id: str, reason: str = "") -> str:
        """Cancel."""
        return order_id

    result = Tool("cancel", tool(fresh, **marks)).prepare({"order_id": "HR1", extra: True})
    assert isinstance(result, Prepared) is dropped
    if isinstance(result, Refused):
        assert f"{extra} is not a parameter; known are: order_id, reason." in result.error


def test_a_name_that_was_nearly_right_is_pointed_at() -> None:
    assert "orderId is not a parameter; was order_id meant?" in refusal(get_order, {"orderId": "HR1"})


@pytest.mark.parametrize("effect", [False, True])
@pytest.mark.parametrize("spelled", [unicodedata.normalize("NFD", "쪽"), " 쪽", "쪽\u00a0"])
def test_a_name_that_nobody_can_tell_from_the_right_one_is_the_right_one(spelled: str, effect: bool) -> None:
    def pages(주문번호: str, 쪽: int = 1) -> str:  # noqa: PLC2401 - names as a Korean shop may well have them
        """Pages."""
        return f"{주문번호} {쪽}"

    made = Tool("pages", tool(pages, read_only=not effect))
    result = made.prepare({unicodedata.normalize("NFD", "주문번호"): "HR1", spelled: 2})
    assert isinstance(result, Prepared)
    assert result.arguments == {"주문번호": "HR1", "쪽": 2}
    assert "쪽 was written in other characters that look the same." in result.repairs
    both = made.prepare({"주문번호": "HR1", "쪽": 1, spelled: 2})
    twice = made.prepare({"주문번호": "HR1", spelled: 2, f" {spelled}": 3})
    if effect:
        assert isinstance(both, Refused), "which one is meant is not guessed"
        assert isinstance(twice, Refused)
    else:
        assert isinstance(both, Prepared)
        assert both.arguments["쪽"] == 1, "which one is meant is not guessed"
        assert isinstance(twice, Prepared)
        assert "쪽" not in twice.arguments


# --------------------------------------------------------------------------- explanations


class Address(BaseModel):
    zip: str
    line: str = ""

    @field_validator("line")
    @classmethod
    def _known(cls, line: str) -> str:
        if line == "crash":
            raise KeyError(line)
        return line

    @model_validator(mode="after")
    def _together(self) -> Address:
        if self.zip == "00000" and self.line:
            raise ValueError("a zip of zeros has no line")
        return self


@tool(read_only=True)
def send(to: Address, amounts: dict[str, Won] | None = None, items: list[int] | None = None) -> str:
    """Send."""
    return to.zip


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"to": {}}, "to.zip is missing: it must be a string."),
        ({"to": {"zip": 5}}, "to.zip: 5 is not allowed; it must be a string."),
        ({"to": {"zip": "1"}, "items": [1, "x", 2.5]}, 'items[1]: "x" is not allowed; it must be a whole number.'),
        ({"to": {"zip": "1"}, "items": [1, "x", 2.5]}, "items[2]: 2.5 is not allowed"),
        (
            {"to": {"zip": "1"}, "amounts": {"a": "1만"}},
            'amounts.a: "1만" is not allowed; it must be a whole number of won',
        ),
        ({"to": {"zip": "00000", "line": "x"}}, "a zip of zeros has no line"),
        ({"to": {"zip": "1", "line": "crash"}}, "to: "),
        ({"to": "서울"}, 'to: "서울" is not allowed; it must be an object with the keys zip, line'),
    ],
)
def test_the_place_what_came_and_what_is_allowed_are_named(args: Any, words: str) -> None:
    assert words in refusal(send, args)


def test_long_values_and_many_choices_are_shown_in_short() -> None:
    words: Any = Literal[tuple(f"word{n}" for n in range(500))]
    refused = tool_of({"word": words}).prepare({"word": "word1000" + "x" * 100_000})
    assert isinstance(refused, Refused)
    text = refused.error
    assert len(text) < 1_000
    assert "and 470 more" in text


def test_what_is_no_json_or_no_text_is_no_exception() -> None:
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    for value in (float("nan"), float("inf"), "a\ud800", 10**5000, deep, {1: 2}, b"x", object()):
        for function in (get_order, list_orders, send, get_orders):
            for name in ("order_id", "customer_id", "to", "order_ids"):
                result = Tool(function.__name__, function).prepare({name: value})
                assert isinstance(result, Prepared | Refused)
                json.dumps(result.error if isinstance(result, Refused) else result.canonical).encode()


def test_a_lone_surrogate_is_replaced_and_told() -> None:
    got = prepared(get_order, {"order_id": "HR\ud800"})
    assert got.arguments == {"order_id": "HR\ufffd"}
    assert got.repairs


def test_equal_calls_have_equal_canonical_texts() -> None:
    def pay(order_id: str, amount: float) -> str:
        """Pay."""
        return order_id

    texts = {
        prepared(pay, args).canonical
        for args in (
            {"order_id": "한", "amount": 3},
            {"amount": 3.0, "order_id": "한"},
            {"amount": "3", "order_id": "한"},
        )
    }
    assert texts == {'{"amount":3,"order_id":"한"}'}


def test_a_secret_parameter_is_nothing_that_a_model_can_fill_in() -> None:
    def call(order_id: str, token: Annotated[str, Secret] = "s3cr3t") -> str:
        """Call."""
        return order_id

    got = prepared(call, {"order_id": "HR1", "token": "mine"})
    assert got.arguments == {"order_id": "HR1"}
    assert "s3cr3t" not in repr(Tool("call", call).declaration) + refusal(call, {"token": 3})


# --------------------------------------------------------------------------- wrappings


@pytest.mark.parametrize("key", ["args", "arguments", "parameters", "params", "kwargs", "input", "tool_input"])
@pytest.mark.parametrize("inner", [{"order_id": "HR1"}, '{"order_id": "HR1"}'], ids=["object", "text"])
def test_arguments_in_a_wrapping_are_taken_out(key: str, inner: Any) -> None:
    got = prepared(get_order, {key: inner})
    assert got.arguments == {"order_id": "HR1"}
    assert got.repairs == (f"The arguments were taken out of {key}, which is not a parameter.",)


def test_a_wrapping_is_no_reason_to_run_without_what_is_in_it() -> None:
    """Where everything has a default, the key had been left out, and all orders were listed instead of one."""

    def list_orders(status: str = "all") -> Any:
        """List orders."""

    assert prepared(list_orders, {"args": {"status": "배송중"}}).arguments == {"status": "배송중"}


@pytest.mark.parametrize(
    "args",
    [{"args": {"order_id": "HR1"}, "limit": 3}, {"args": {"id": "HR1"}}, {"args": {}}, {"wanted": {"order_id": "1"}}],
)
def test_what_is_not_certainly_a_wrapping_is_left_to_the_model(args: Any) -> None:
    assert "Missing: order_id" in refusal(get_order, args)


def test_a_parameter_of_that_name_is_one() -> None:
    def run_report(args: dict[str, Any]) -> Any:
        """Run a report."""

    assert prepared(run_report, {"args": {"args": {}}}).arguments == {"args": {"args": {}}}
