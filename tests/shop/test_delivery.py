"""Asking a carrier takes its time, and more than a customer waits for one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from haru_fsm.clock import FakeClock
from haru_fsm.toolbox.marks import marks_of
from tests.shop.opening import a_shop, seed
from tools import CustomerSession, Shop, make_tools
from tools.delivery import CARRIER_TIMEOUT_S
from tools.seed import Order
from tools.shop import NOT_FOUND


@pytest.mark.parametrize("order", [order for order in seed().orders if order.shipment], ids=lambda o: str(o.order_id))
async def test_a_parcel_is_where_it_was_seen_last(tmp_path: Path, order: Order) -> None:
    clock, shipment = FakeClock(), order.shipment
    assert shipment is not None
    tools = make_tools(CustomerSession(order.customer_id, clock=clock, shop=a_shop(tmp_path)))
    tracked = await tools["track_parcel"](order.order_id)
    scans = seed().parcels.parcels[shipment.tracking_number]
    assert tracked["location"] == scans[-1].place
    assert tracked["scans"][-1]["event"] == scans[-1].event
    assert tracked["tracking_number"] == shipment.tracking_number
    assert (clock.slept[0] > CARRIER_TIMEOUT_S) == (shipment.carrier == "로젠택배")


async def test_what_has_not_left_has_no_parcel(shop: Shop) -> None:
    track = make_tools(CustomerSession("C003", clock=FakeClock(), shop=shop))["track_parcel"]
    assert "발송되지 않은" in (await track("HR20260726017"))["message"]
    assert await track("HR0") == {"error": NOT_FOUND}


def test_the_fallback_promises_nothing(shop: Shop) -> None:
    marks = marks_of(make_tools(CustomerSession("C003", shop=shop))["track_parcel"])
    assert marks.timeout_s == CARRIER_TIMEOUT_S
    assert "확인하지 못했습니다" in marks.fallback["message"]
