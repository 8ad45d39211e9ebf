"""The rules of the shop hold in its code, whoever calls the tools."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haru_fsm import NotDone
from haru_fsm.clock import FakeClock
from haru_fsm.toolbox.marks import marks_of
from tests.shop.opening import a_shop, orders_in, seed, tools_of
from tools import Shop
from tools.refunds import expected_on
from tools.returns import ReturnReason
from tools.seed import Status
from tools.shop import NOT_FOUND

READING = {"get_my_orders", "get_order_status", "track_parcel", "get_refund_status", "get_coupons"}
READING |= {"search_policies", "search_products"}
ACTING = {"cancel_order", "request_return", "change_address", "issue_apology_coupon", "create_ticket"}


def owner(order_id: str) -> str:
    return next(order.customer_id for order in seed().orders if order.order_id == order_id)


def act(shop: Shop, order_id: str, name: str, *args: Any) -> Any:
    return tools_of(owner(order_id), shop)[name](order_id, *args)


def test_tools_say_what_they_are(shop: Shop) -> None:
    tools = tools_of("C003", shop)
    assert set(tools) == READING | ACTING
    assert {name for name, tool in tools.items() if marks_of(tool).read_only} == READING
    assert {name for name, tool in tools.items() if marks_of(tool).declares_effect} == ACTING
    assert [name for name, tool in tools.items() if marks_of(tool).destructive] == ["cancel_order"]
    assert [name for name, tool in tools.items() if marks_of(tool).polling] == ["get_refund_status"]


# --------------------------------------------------------------------------- cancelling


@pytest.mark.parametrize("order_id", [*orders_in("결제완료"), *orders_in("상품준비중")])
def test_an_order_that_has_not_left_can_be_cancelled(shop: Shop, order_id: str) -> None:
    done = act(shop, order_id, "cancel_order")
    total = next(order.total_won for order in seed().orders if order.order_id == order_id)
    assert (done["order_id"], done["status"], done["refund_won"]) == (order_id, "취소", total)
    assert done["refund_expected_on"] == "2026-07-30"
    assert act(shop, order_id, "get_order_status")["status"] == "취소"
    assert act(shop, order_id, "get_refund_status")["refund_status"] == "환불접수"


@pytest.mark.parametrize(
    ("status", "because"),
    [("배송중", "이미 발송된"), ("배송완료", "이미 배송이 끝난"), ("취소", "이미 취소된"), ("반품", "이미 반품")],
)
def test_any_other_order_cannot(shop: Shop, status: str, because: str) -> None:
    for order_id in orders_in(status):
        with pytest.raises(NotDone, match=because):
            act(shop, order_id, "cancel_order")
    assert not shop.acts.of(owner(order_id))


# --------------------------------------------------------------------------- returning


def test_a_return_within_the_window(shop: Shop) -> None:
    done = act(shop, "HR20260719008", "request_return", ReturnReason.CHANGE_OF_MIND)
    assert (done["return_fee_won"], done["refund_won"]) == (6_000, 31_800)
    assert (done["status"], done["refund_expected_on"]) == ("반품", "2026-08-03")
    with pytest.raises(NotDone, match="이미 반품"):
        act(shop, "HR20260719008", "request_return", ReturnReason.DEFECTIVE)


@pytest.mark.parametrize("reason", [ReturnReason.DEFECTIVE, ReturnReason.WRONG_ITEM, ReturnReason.DAMAGED])
def test_a_fault_of_the_shop_costs_the_customer_nothing(shop: Shop, reason: ReturnReason) -> None:
    done = act(shop, "HR20260719008", "request_return", reason)
    assert (done["return_fee_won"], done["refund_won"]) == (0, 37_800)


@pytest.mark.parametrize(("days", "allowed"), [(0, True), (7, True), (8, False), (400, False)])
def test_the_window_is_seven_days_after_delivery(tmp_path: Path, days: int, allowed: bool) -> None:
    shop = a_shop(tmp_path, today=date(2026, 7, 22) + timedelta(days=days))  # delivered on July 22nd
    if allowed:
        assert act(shop, "HR20260719008", "request_return", ReturnReason.DEFECTIVE)["status"] == "반품"
    else:
        with pytest.raises(NotDone, match="7일 안에"):
            act(shop, "HR20260719008", "request_return", ReturnReason.DEFECTIVE)


@pytest.mark.parametrize("status", ["결제완료", "상품준비중", "배송중", "취소"])
def test_only_what_has_arrived_can_be_returned(shop: Shop, status: str) -> None:
    for order_id in orders_in(status):
        with pytest.raises(NotDone, match="배송이 끝난 주문만"):
            act(shop, order_id, "request_return", ReturnReason.DEFECTIVE)


def test_food_is_not_returned_for_a_change_of_mind(tmp_path: Path) -> None:
    shop = a_shop(tmp_path, today=date(2026, 7, 2))
    with pytest.raises(NotDone, match="식품"):
        act(shop, "HR20260628012", "request_return", ReturnReason.CHANGE_OF_MIND)
    assert act(shop, "HR20260628012", "request_return", ReturnReason.DEFECTIVE)["refund_won"] == 31_900


@pytest.mark.parametrize("reason", ["", "그냥", "단순변심 ", "DEFECTIVE"])
def test_an_invented_reason_is_refused(shop: Shop, reason: str) -> None:
    with pytest.raises(NotDone, match="단순 변심, 상품 불량, 오배송, 배송 중 파손"):
        act(shop, "HR20260719008", "request_return", reason)


# --------------------------------------------------------------------------- the address


def test_an_address_changes_before_shipping(shop: Shop) -> None:
    done = act(shop, "HR20260724033", "change_address", "  서울특별시 중구\n세종대로 1,  2층 ")
    assert done["address"] == "서울특별시 중구 세종대로 1, 2층"
    assert act(shop, "HR20260724033", "get_order_status")["address"] == done["address"]
    act(shop, "HR20260724033", "change_address", "부산광역시 남구 바다로 5")  # again: the latest counts
    assert act(shop, "HR20260724033", "get_order_status")["address"] == "부산광역시 남구 바다로 5"


@pytest.mark.parametrize("status", ["배송중", "배송완료", "취소", "반품"])
def test_it_does_not_afterwards(shop: Shop, status: str) -> None:
    for order_id in orders_in(status):
        with pytest.raises(NotDone, match="배송지를 바꿀 수 없습니다"):
            act(shop, order_id, "change_address", "서울특별시 중구 세종대로 1")


def test_it_does_not_after_the_order_was_cancelled(shop: Shop) -> None:
    act(shop, "HR20260724033", "cancel_order")
    with pytest.raises(NotDone, match="취소 상태여서"):
        act(shop, "HR20260724033", "change_address", "서울특별시 중구 세종대로 1")


@pytest.mark.parametrize(
    "address", ["", "   ", "집", "주소\x00주소주소", "서울\ud800서울서울", "가" * 201, "a\u202eb" * 4]
)
def test_what_is_no_address_is_refused(shop: Shop, address: str) -> None:
    with pytest.raises(NotDone, match="한 줄이어야"):
        act(shop, "HR20260724033", "change_address", address)


# --------------------------------------------------------------------------- coupons


def test_coupons_that_can_be_used_today(shop: Shop) -> None:
    shown = tools_of("C003", shop)["get_coupons"]()
    assert shown["points_won"] == 18_600
    assert [coupon["expires_on"] for coupon in shown["coupons"]] == ["2026-07-31", "2026-08-31", "2026-12-31"]
    assert all("customer_id" not in coupon for coupon in shown["coupons"])
    for customer_id in seed().customers:
        for coupon in shop.coupons(customer_id):
            assert coupon.used_on is None
            assert coupon.expires_on >= date(2026, 7, 27)


def test_an_apology_can_be_used_at_once(shop: Shop) -> None:
    tools = tools_of("C003", shop)
    given_coupon = tools["issue_apology_coupon"](3_000)
    assert (given_coupon["discount_won"], given_coupon["expires_on"]) == (3_000, "2026-08-26")
    assert given_coupon["code"] in [coupon["code"] for coupon in tools["get_coupons"]()["coupons"]]


@pytest.mark.parametrize("amount", [-5_000, 0, 1, 999, 5_001, 10**12, True])
def test_an_apology_has_a_ceiling(shop: Shop, amount: int) -> None:
    with pytest.raises(NotDone, match="1,000원부터 5,000원까지"):
        tools_of("C003", shop)["issue_apology_coupon"](amount)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20)
@given(amounts=st.lists(st.integers(min_value=-1_000, max_value=7_000), max_size=8))
def test_many_small_apologies_have_one_too(tmp_path_factory: pytest.TempPathFactory, amounts: list[int]) -> None:
    shop = a_shop(tmp_path_factory.mktemp("shop"))
    issue = tools_of("C003", shop)["issue_apology_coupon"]
    given_won = sum(_won(issue, amount) for amount in amounts)
    assert given_won <= 10_000
    issued = [coupon for coupon in shop.coupons("C003") if coupon.code.startswith("SORRY-")]
    assert sum(coupon.discount_won or 0 for coupon in issued) == given_won
    assert len({coupon.code for coupon in issued}) == len(issued)


def _won(issue: Callable[[int], Any], amount: int) -> int:
    try:
        won: int = issue(amount)["discount_won"]
    except NotDone:
        return 0
    return won


def test_the_ceiling_opens_again_after_thirty_days(tmp_path: Path) -> None:
    def issue(day: str, amount: int) -> None:
        tools_of("C003", a_shop(tmp_path, today=date.fromisoformat(day)))["issue_apology_coupon"](amount)

    issue("2026-07-27", 5_000)
    issue("2026-08-01", 5_000)
    with pytest.raises(NotDone, match="30일 동안"):
        issue("2026-08-25", 1_000)
    issue("2026-08-26", 5_000)  # the first one is thirty days old
    with pytest.raises(NotDone, match="30일 동안"):
        issue("2026-08-30", 1_000)
    issue("2026-08-31", 5_000)


# --------------------------------------------------------------------------- refunds


def test_a_refund_gets_on_with_time(tmp_path: Path) -> None:
    act(a_shop(tmp_path), "HR20260726017", "cancel_order")  # on Monday, July 27th
    for day, status in ((27, "환불접수"), (28, "환불처리중"), (29, "환불처리중"), (30, "환불완료"), (31, "환불완료")):
        shop = a_shop(tmp_path, today=date(2026, 7, day))
        assert act(shop, "HR20260726017", "get_refund_status")["refund_status"] == status


def test_an_order_without_a_refund_says_so(shop: Shop) -> None:
    assert "환불 내역이 없습니다" in act(shop, "HR20260725002", "get_refund_status")["message"]
    assert tools_of("C003", shop)["get_refund_status"]("HR0") == {"error": NOT_FOUND}


@given(st.dates(date(2026, 1, 1), date(2027, 1, 1)))
def test_refunds_are_due_on_working_days(requested: date) -> None:
    for status in (Status.CANCELLED, Status.RETURNED):
        due = date.fromisoformat(expected_on(requested.isoformat(), status, seed().rules))
        assert due.weekday() < 5
        between = [requested + timedelta(days=day) for day in range(1, (due - requested).days + 1)]
        assert sum(day.weekday() < 5 for day in between) == seed().rules.refund_days[status]


# --------------------------------------------------------------------------- the day


def test_without_a_day_of_its_own_the_shop_has_the_real_one(tmp_path: Path) -> None:
    rules = seed().rules.model_copy(update={"today": None})
    new_year = 1_767_193_200.0  # 2026-01-01 00:00 in Korea, 2025-12-31 15:00 UTC
    for at, day in ((new_year, date(2026, 1, 1)), (new_year - 1, date(2025, 12, 31))):
        shop = a_shop(tmp_path, clock=FakeClock(at))
        object.__setattr__(shop.seed, "rules", rules)
        assert shop.today == day
