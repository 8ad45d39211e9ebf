"""What Haru may do: plain functions, bound to one customer before a model sees them.

A function's signature and docstring are what the model reads of it; its rules are in its code and hold for
everybody who calls it. One module for each subject; `shop` is the state that they share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from haru_fsm import Session

from .cancellations import cancellation_tools
from .coupons import coupon_tools
from .delivery import delivery_tools
from .orders import order_tools
from .policies import policy_tools
from .products import product_tools
from .refunds import refund_tools
from .returns import return_tools
from .session import CustomerSession
from .shop import Shop, open_shop
from .tickets import ticket_tools

__all__ = ["EXAMPLE_CUSTOMER", "CustomerSession", "Shop", "make_tools", "open_shop"]

EXAMPLE_CUSTOMER = "C003"
"""Whose tools are shown where nobody is named."""

_SUBJECTS = (
    order_tools,
    delivery_tools,
    cancellation_tools,
    return_tools,
    refund_tools,
    coupon_tools,
    policy_tools,
    product_tools,
    ticket_tools,
)


def make_tools(session: Session) -> dict[str, Callable[..., Any]]:
    """The tools of one customer, by name. Raises UnknownCustomer where the shop has no such customer."""
    customer = CustomerSession.of(session)
    return {function.__name__: function for tools in _SUBJECTS for function in tools(customer)}
