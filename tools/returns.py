"""Sending an order back within the days that the shop allows."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

from haru_fsm import IdempotencyKey, NotDone, tool
from haru_fsm.conversation import JSON

from .refunds import expected_on
from .seed import Order, Status
from .session import CustomerSession
from .shop import RETURN_REQUESTED, Shop, tidy


class ReturnReason(StrEnum):
    """Why a customer sends something back. Only a change of mind is at the customer's cost."""

    CHANGE_OF_MIND = "단순 변심"
    DEFECTIVE = "상품 불량"
    WRONG_ITEM = "오배송"
    DAMAGED = "배송 중 파손"


def return_tools(session: CustomerSession) -> list[Callable[..., Any]]:
    """request_return, for this customer."""
    shop = session.shop

    @tool(read_only=False)
    def request_return(order_id: str, reason: ReturnReason, key: Annotated[str, IdempotencyKey] = "") -> JSON:
        """Request the return of one delivered order (배송완료), within 7 days of its delivery.

        Args:
            order_id: The number of the order that the customer wants to send back.
            reason: The reason that the customer gave; ask for it if it was not given.
        """
        act = shop.act_on_order(
            session.customer_id, order_id, RETURN_REQUESTED, key, lambda order: _decide(order, reason, shop)
        )
        refund = act.details["refund"]
        return {
            "message": "반품을 접수했습니다. 택배 기사님이 상품을 가지러 갑니다.",
            "order_id": tidy(order_id),
            "status": Status.RETURNED.value,
            "return_reason": refund["reason"],
            "return_fee_won": act.details["fee_won"],
            "refund_won": refund["amount_won"],
            "refund_expected_on": expected_on(refund["requested_on"], Status.RETURNED, shop.seed.rules),
        }

    return [request_return]


def _decide(order: Order, reason: ReturnReason, shop: Shop) -> JSON:
    rules, reason = shop.seed.rules, _reason(reason)
    if order.status == Status.RETURNED:
        raise NotDone("이미 반품으로 접수된 주문입니다.")
    delivered_on = order.shipment.delivered_on if order.shipment else None
    if order.status != Status.DELIVERED or delivered_on is None:
        raise NotDone(f"배송이 끝난 주문만 반품할 수 있습니다. 지금 상태는 {order.status.value}입니다.")
    if (shop.today - delivered_on).days > rules.return_window_days:
        raise NotDone(
            f"반품은 배송완료일부터 {rules.return_window_days}일 안에만 됩니다. "
            f"이 주문은 {delivered_on.isoformat()}에 배송되었습니다."
        )
    own_wish = reason is ReturnReason.CHANGE_OF_MIND
    if own_wish and not all(shop.seed.products[item.product_id].returnable for item in order.items):
        raise NotDone("식품이 들어 있는 주문은 단순 변심으로 반품할 수 없습니다.")
    fee = min(rules.return_fee_won, order.total_won) if own_wish else 0
    return {
        "fee_won": fee,
        "refund": {
            "reason": reason.value,
            "requested_on": shop.today.isoformat(),
            "amount_won": order.total_won - fee,
        },
    }


def _reason(given: str) -> ReturnReason:
    """A reason as it was given; tools called by hand are not validated by anybody else."""
    try:
        return ReturnReason(given)
    except ValueError:
        allowed = ", ".join(ReturnReason)
        raise NotDone(f"반품 사유는 다음 가운데 하나여야 합니다: {allowed}.") from None
