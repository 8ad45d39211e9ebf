"""Money on its way back, after a cancellation or a return."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

from haru_fsm import tool
from haru_fsm.conversation import JSON

from .seed import Order, Rules, Status
from .session import CustomerSession
from .shop import NOT_FOUND

_SATURDAY = 5


def refund_tools(session: CustomerSession) -> list[Callable[..., Any]]:
    """get_refund_status, for this customer."""
    shop = session.shop

    @tool(read_only=True, polling=True)
    def get_refund_status(order_id: str) -> JSON:
        """Look up how far the refund of a cancelled or returned order is. Its answer changes with time.

        Args:
            order_id: The number of the cancelled or returned order.
        """
        order = shop.order(session.customer_id, order_id)
        if order is None:
            return {"error": NOT_FOUND}
        return {"product_name": shop.seed.product_name(order), **refund_of(order, shop.today, shop.seed.rules)}

    return [get_refund_status]


def refund_of(order: Order, today: date, rules: Rules) -> JSON:
    """What can be said of an order's refund today."""
    refund = order.refund
    if refund is None:
        return {
            "order_id": order.order_id,
            "status": order.status.value,
            "message": "취소나 반품이 접수되지 않은 주문이라 환불 내역이 없습니다.",
        }
    due = expected_on(refund.requested_on.isoformat(), order.status, rules)
    return {
        "order_id": order.order_id,
        "refund_status": _progress(refund.requested_on, date.fromisoformat(due), today),
        "refund_won": order.total_won if refund.amount_won is None else refund.amount_won,
        "refund_reason": refund.reason,
        "refund_requested_on": refund.requested_on.isoformat(),
        "refund_expected_on": due,
    }


def expected_on(requested_on: str, status: Status, rules: Rules) -> str:
    """The day by which the money is back: so many working days after the request. Holidays are not known here."""
    day, left = date.fromisoformat(requested_on), rules.refund_days[status]
    while left:
        day += timedelta(days=1)
        left -= day.weekday() < _SATURDAY
    return day.isoformat()


def _progress(requested: date, due: date, today: date) -> str:
    if today >= due:
        return "환불완료"
    return "환불접수" if today <= requested else "환불처리중"
