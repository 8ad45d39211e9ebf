"""Coupons and points: what the customer has, and a small one for when something went wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Annotated, Any

from haru_fsm import IdempotencyKey, NotDone, tool
from haru_fsm.conversation import JSON
from haru_fsm.toolbox import Won

from .acts import Act
from .seed import Coupon
from .session import CustomerSession
from .shop import COUPON_ISSUED

_MONTH = timedelta(days=30)


def coupon_tools(session: CustomerSession) -> list[Callable[..., Any]]:
    """get_coupons and issue_apology_coupon, for this customer."""
    shop, rules = session.shop, session.shop.seed.rules.apology_coupon

    @tool(read_only=True)
    def get_coupons() -> JSON:
        """List the coupons that the customer can use today, and the customer's points."""
        return {
            "points_won": session.customer.points_won,
            "coupons": [_shown(coupon) for coupon in shop.coupons(session.customer_id)],
        }

    @tool(read_only=False)
    def issue_apology_coupon(amount: Won, key: Annotated[str, IdempotencyKey] = "") -> JSON:
        """Give the customer an apology coupon, as a compensation for something that went wrong. There is a ceiling.

        Args:
            amount: What the coupon is worth, in won: at least 1,000 and at most 5,000.
        """

        def decide(acts: Sequence[Act]) -> JSON:
            if not rules.smallest_won <= amount <= rules.ceiling_won:
                raise NotDone(f"사과 쿠폰은 {rules.smallest_won:,}원부터 {rules.ceiling_won:,}원까지 드릴 수 있습니다.")
            if _given_since(acts, shop.today - _MONTH) + amount > rules.ceiling_in_30_days_won:
                raise NotDone(f"사과 쿠폰은 30일 동안 모두 {rules.ceiling_in_30_days_won:,}원까지만 드릴 수 있습니다.")
            coupon = _apology(session.customer_id, amount, shop.today + timedelta(days=rules.valid_days), acts)
            return {"issued_on": shop.today.isoformat(), "coupon": coupon}

        act = shop.acts.once(key, COUPON_ISSUED, session.customer_id, "", decide)
        return {"message": "사과의 뜻으로 쿠폰을 드렸습니다.", **_shown(Coupon(**act.details["coupon"]))}

    return [get_coupons, issue_apology_coupon]


def _shown(coupon: Coupon) -> JSON:
    return coupon.model_dump(mode="json", exclude={"customer_id", "used_on"}, exclude_none=True)


def _given_since(acts: Sequence[Act], day: date) -> int:
    """Won that apologies have cost since that day."""
    issued = [act for act in acts if act.kind == COUPON_ISSUED]
    return sum(act.details["coupon"]["discount_won"] for act in issued if act.details["issued_on"] > day.isoformat())


def _apology(customer_id: str, amount: int, expires_on: date, acts: Sequence[Act]) -> JSON:
    earlier = sum(act.kind == COUPON_ISSUED for act in acts)
    digest = hashlib.sha256(f"{customer_id}/{earlier}".encode()).hexdigest().upper()
    return {
        "code": f"SORRY-{digest[:8]}",
        "customer_id": customer_id,
        "name": "사과 쿠폰",
        "discount_won": amount,
        "minimum_won": 0,
        "expires_on": expires_on.isoformat(),
    }
