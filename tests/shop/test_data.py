"""The seed agrees with itself, with the policies that customers read, and with the system prompt's promises."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from haru_fsm.errors import AppError
from tests.shop.opening import DATA, seed
from tools.seed import BEFORE_SHIPPING, Order, Status, read_seed


def test_there_are_eighty_orders_of_twelve_customers_in_every_state() -> None:
    assert list(seed().customers) == [f"C{number:03d}" for number in range(1, 13)]
    assert len(seed().orders) == 80
    assert {order.status for order in seed().orders} == set(Status)
    assert {order.customer_id for order in seed().orders} == set(seed().customers)


def test_the_customer_of_the_demo() -> None:
    customer = seed().customers["C003"]
    assert (customer.name, customer.tier) == ("김도윤", "VIP")
    shown = [
        (order.order_id, seed().product_name(order), order.shipment.carrier, order.shipment.tracking_number)
        for order in seed().orders_of["C003"]
        if order.status is Status.SHIPPING and order.shipment
    ]
    assert shown == [
        ("HR20260725002", "무선 블루투스 이어폰", "한진택배", "34622188536"),
        ("HR20260711064", "스테인리스 텀블러 500ml", "CJ대한통운", "56102174598"),
        ("HR20260706059", "UV차단 버킷햇", "우체국택배", "90937026152"),
    ]
    assert {order.status for order in seed().orders_of["C003"]} == set(Status)


@pytest.mark.parametrize("what", ["order_id", "tracking_number", "code"])
def test_numbers_are_given_once(what: str) -> None:
    shipments = [order.shipment for order in seed().orders if order.shipment]
    numbers = {
        "order_id": [order.order_id for order in seed().orders],
        "tracking_number": [shipment.tracking_number for shipment in shipments],
        "code": [coupon.code for coupon in seed().coupons],
    }[what]
    assert not [number for number, times in Counter(numbers).items() if times > 1]


@pytest.mark.parametrize("order", seed().orders, ids=lambda order: str(order.order_id))
def test_an_order_agrees_with_itself(order: Order) -> None:
    products, today = seed().products, seed().rules.today
    assert re.fullmatch(rf"HR{order.ordered_on:%Y%m%d}\d{{3}}", order.order_id)
    assert order.customer_id in seed().customers
    assert all(item.product_id in products for item in order.items)
    goods = sum(item.quantity * item.unit_price_won for item in order.items)
    assert order.total_won == goods + order.shipping_fee_won
    assert order.shipping_fee_won == (0 if goods >= 30_000 else 3_000)
    assert (order.shipment is None) == (order.status in BEFORE_SHIPPING | {Status.CANCELLED})
    assert (order.refund is not None) == (order.status in {Status.CANCELLED, Status.RETURNED})
    days = [order.ordered_on]
    if order.shipment:
        arrived = order.shipment.delivered_on
        assert (arrived is not None) == (order.status in {Status.DELIVERED, Status.RETURNED})
        assert (arrived is None) == (order.shipment.expected_on is not None)
        days += [order.shipment.shipped_on, *([arrived] if arrived else [])]
    if order.refund:
        days.append(order.refund.requested_on)
    assert days == sorted(days)
    assert today is not None
    assert days[-1] <= today


def test_every_parcel_is_known_to_its_carrier() -> None:
    names = {carrier.name for carrier in seed().parcels.carriers}
    shipments = [order.shipment for order in seed().orders if order.shipment]
    assert {shipment.carrier for shipment in shipments} == names
    assert {shipment.tracking_number for shipment in shipments} == set(seed().parcels.parcels)
    for scans in seed().parcels.parcels.values():
        assert [scan.at for scan in scans] == sorted(scan.at for scan in scans)


def test_policies_say_what_the_rules_do() -> None:
    rules = seed().rules
    bodies = {policy.policy_id: policy.body for policy in seed().policies}
    assert f"배송완료일부터 {rules.return_window_days}일" in bodies["return"]
    assert f"{rules.return_fee_won:,}원" in bodies["return"]
    assert f"취소는 접수 후 {rules.refund_days[Status.CANCELLED]}영업일" in bodies["refund"]
    assert f"반품은 접수 후 {rules.refund_days[Status.RETURNED]}영업일" in bodies["refund"]
    assert "결제완료와 상품준비중" in bodies["cancel"]
    assert "결제완료와 상품준비중" in bodies["address-change"]


def test_nobody_in_here_is_real() -> None:
    for customer in seed().customers.values():
        assert customer.email.endswith("@example.com")
        assert customer.phone.startswith("010-0000-")


def test_the_prompt_asks_for_what_a_chat_window_needs() -> None:
    prompt = (DATA / "system_prompt.md").read_text("utf-8")
    for word in ("하루", "존댓말", "마크다운", "도구", "지시가 아닙니다"):
        assert word in prompt
    assert "**" not in prompt


def test_files_are_readable_by_people() -> None:
    for file in DATA.glob("*.json"):
        text = file.read_text("utf-8")
        assert "\\u" not in text
        assert max(map(len, text.splitlines())) < 300


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    for file in DATA.glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    orders = json.loads((tmp_path / "orders.json").read_text("utf-8"))
    orders[3]["statos"] = "배송중"
    (tmp_path / "orders.json").write_text(json.dumps(orders), "utf-8")
    with pytest.raises(AppError, match=r"orders\.json .* 3\.statos"):
        read_seed(tmp_path)
    (tmp_path / "orders.json").unlink()
    with pytest.raises(AppError, match=r"orders\.json"):
        read_seed(tmp_path)


def test_the_shops_day_is_the_demos() -> None:
    assert seed().rules.today == date(2026, 7, 27)
