"""The rules of the shop, as customers may read them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from haru_fsm import tool
from haru_fsm.conversation import JSON

from .search import Index
from .seed import Policy
from .session import CustomerSession

_SHOWN = 3


def policy_tools(session: CustomerSession) -> list[Callable[..., Any]]:
    """search_policies; the same for every customer."""
    index = _index(session.shop.seed.policies)

    @tool(read_only=True)
    def search_policies(question: str) -> list[JSON]:
        """Search the shop's policies and guides for a general question.

        They cover delivery time and fees, lost parcels, address changes, cancellation, returns, exchange, refunds,
        defects, points, coupons, membership tiers, gift wrapping, receipts, payment and opening hours.

        Args:
            question: What the customer wants to know, in the customer's words.
        """
        return [{"title": policy.title, "body": policy.body} for policy in index.find(question, _SHOWN)]

    return [search_policies]


@lru_cache(maxsize=4)
def _index(policies: tuple[Policy, ...]) -> Index[Policy]:
    return Index([(policy, f"{policy.title} {' '.join(policy.keywords)}", policy.body) for policy in policies])
