"""Cancelling an order that has not been shipped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from haru_fsm import IdempotencyKey, NotDone, tool
from haru_fsm.conversation import JSON

from .refunds import expected_on
from .seed import BEFORE_SHIPPING, Order, Status
from .session import CustomerSession
from .shop import CANCELLED, tidy

_TOO_LATE = {
    Status.SHIPPING: "이미 발송된 주문이라 취소할 수 없습니다. 받으신 뒤에 반품으로 접수해 주세요.",
    Status.DELIVERED: "이미 배송이 끝난 주문이라 취소할 수 없습니다. 반품으로 접수해 주세요.",
    Status.CANCELLED: "이미 취소된 주문입니다.",
    Status.RETURNED: "이미 반품으로 접수된 주문입니다.",
}


def cancellation_tools(session: CustomerSession) -> list[Callable[..., Any]]:
    """cancel_order, for this customer."""
    shop = session.shop

    def decide(order: Order) -> JSON:
        if order.status not in BEFORE_SHIPPING:
            raise NotDone(_TOO_LATE[order.status])
        return {
            "refund": {"reason": "고객 요청", "requested_on": shop.today.isoformat(), "amount_won": order.total_won}
        }

    @tool(read_only=False, destructive=True)
    def cancel_order(order_id: str, key: Annotated[str, IdempotencyKey] = "") -> JSON:
        """Cancel one whole order and refund it. Only while it is 결제완료 or 상품준비중; it cannot be undone.

        Args:
            order_id: The number of the order that the customer asked to cancel.
        """
        act = shop.act_on_order(session.customer_id, order_id, CANCELLED, key, decide)
        refund = act.details["refund"]
        return {
            "message": "주문을 취소했습니다.",
            "order_id": tidy(order_id),
            "status": Status.CANCELLED.value,
            "refund_won": refund["amount_won"],
            "refund_expected_on": expected_on(refund["requested_on"], Status.CANCELLED, shop.seed.rules),
        }

    return [cancel_order]
