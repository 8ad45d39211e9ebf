"""The customer's orders: a list without details, and the details of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from haru_fsm import tool
from haru_fsm.conversation import JSON

from .seed import Order, Seed
from .session import CustomerSession
from .shop import NOT_FOUND


def order_tools(session: CustomerSession) -> list[Callable[..., Any]]:
    """get_my_orders and get_order_status, for this customer."""
    shop, customer_id = session.shop, session.customer_id

    @tool(read_only=True)
    def get_my_orders() -> list[JSON]:
        """List all orders of the customer, newest first: order number, day, status, product name, total.

        The list has no carrier and no tracking number; get_order_status has them. Status is one of
        결제완료, 상품준비중, 배송중, 배송완료, 취소, 반품.
        """
        return [summary(order, shop.seed) for order in shop.orders(customer_id)]

    @tool(read_only=True)
    def get_order_status(order_id: str) -> JSON:
        """Look up one order: product name, status, carrier, tracking number, when it will arrive or has arrived.

        Args:
            order_id: The order number, as get_my_orders or the customer gives it, for example HR20260101001.
        """
        order = shop.order(customer_id, order_id)
        return {"error": NOT_FOUND} if order is None else details(order, shop.seed)

    return [get_my_orders, get_order_status]


def summary(order: Order, seed: Seed) -> JSON:
    """An order as the list shows it."""
    return {
        "order_id": order.order_id,
        "ordered_on": order.ordered_on.isoformat(),
        "status": order.status.value,
        "product_name": seed.product_name(order),
        "total_won": order.total_won,
    }


def details(order: Order, seed: Seed) -> JSON:
    """All about one order. What does not exist (yet) is left out."""
    shown: JSON = {
        "order_id": order.order_id,
        "product_name": seed.product_name(order),
        "status": order.status.value,
        "ordered_on": order.ordered_on.isoformat(),
    }
    if order.shipment is not None:
        shown |= order.shipment.model_dump(mode="json", exclude_none=True)
    if len(order.items) > 1:
        shown["items"] = [
            {"product_name": seed.products[item.product_id].name, "quantity": item.quantity} for item in order.items
        ]
    shown |= {"total_won": order.total_won, "paid_with": order.paid_with, "address": order.address}
    return shown | ({"note": order.note} if order.note else {})
