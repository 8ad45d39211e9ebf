"""The list has no tracking numbers, the details have; somebody else's order does not exist."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from haru_fsm.errors import UnknownCustomer
from haru_fsm.session import Session
from tests.shop.opening import a_session, as_text, seed, tools_of
from tools import CustomerSession, Shop, make_tools
from tools.shop import NOT_FOUND


def test_the_list_is_newest_first_and_has_no_tracking_numbers(shop: Shop) -> None:
    listed = tools_of("C003", shop)["get_my_orders"]()
    assert [row["ordered_on"] for row in listed] == sorted((row["ordered_on"] for row in listed), reverse=True)
    assert [row["order_id"] for row in listed if row["status"] == "배송중"] == [
        "HR20260725002",
        "HR20260711064",
        "HR20260706059",
    ]
    assert set(listed[0]) == {"order_id", "ordered_on", "status", "product_name", "total_won"}
    for order in seed().orders:
        if order.shipment:
            assert order.shipment.tracking_number not in as_text(listed)


def test_the_details_have_carrier_and_tracking_number(shop: Shop) -> None:
    status = tools_of("C003", shop)["get_order_status"]("HR20260711064")
    assert status["product_name"] == "스테인리스 텀블러 500ml"
    assert (status["carrier"], status["tracking_number"]) == ("CJ대한통운", "56102174598")
    assert (status["status"], status["expected_on"]) == ("배송중", "2026-07-28")


def test_an_order_of_several_products_lists_them(shop: Shop) -> None:
    status = tools_of("C003", shop)["get_order_status"]("HR20260724033")
    assert status["product_name"] == "핸드드립 커피 세트 외 1건"
    assert [item["product_name"] for item in status["items"]] == ["핸드드립 커피 세트", "드립백 커피 20개입"]
    assert "tracking_number" not in status


def test_small_letters_and_blanks_are_forgiven(shop: Shop) -> None:
    get = tools_of("C003", shop)["get_order_status"]
    for typed in (
        " hr20260725002 ",
        "HR 20260725002",
        "HR-2026-0725-002",
        "hr 2026 0725 002",
        "20260725002",
        "#HR20260725002",
    ):
        assert get(typed) == get("HR20260725002"), typed
    for typed in ("", "HR", "HR2026072500", "XX20260725002", "HR20260725002X"):
        assert get(typed) == {"error": NOT_FOUND}, typed


@pytest.mark.parametrize("asked", ["HR20269999999", "", "C001", "' OR 1=1 --", "\ud800", "HR20260725002\x00"])
def test_somebody_elses_order_is_as_unknown_as_none(shop: Shop, asked: str) -> None:
    get = tools_of("C003", shop)["get_order_status"]
    for order in seed().orders:
        if order.customer_id != "C003":
            assert get(order.order_id) == get(asked) == {"error": NOT_FOUND}


def test_a_session_names_a_known_customer(shop: Shop) -> None:
    session = CustomerSession("C003", shop=shop)
    assert (session.customer.name, session.customer.tier) == ("김도윤", "VIP")
    for unknown in ("C999", "", "c003", "C003 "):
        with pytest.raises(UnknownCustomer) as error:
            CustomerSession(unknown, shop=shop)
        assert not any(customer.name in str(error.value) for customer in seed().customers.values())


def test_a_plain_session_becomes_one_of_the_shop() -> None:
    assert list(make_tools(Session("C003"))) == list(make_tools(CustomerSession("C003")))
    with pytest.raises(UnknownCustomer):
        make_tools(Session("C999"))


def test_a_session_cannot_change_its_customer(shop: Shop) -> None:
    session: Any = a_session("C003", shop)
    with pytest.raises(dataclasses.FrozenInstanceError):
        session.customer_id = "C001"
