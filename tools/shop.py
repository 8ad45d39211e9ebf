"""The shop at this moment: the seed, with everything that was done since laid over it.

A shop answers questions about one customer at a time, and only about that one. An order of somebody else does
not exist here: it takes the same path, and ends in the same words, as an order that nobody ever placed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from functools import cache
from pathlib import Path

from haru_fsm import NotDone
from haru_fsm.clock import Clock, SystemClock
from haru_fsm.conversation import JSON

from .acts import Act, Acts
from .seed import Coupon, Customer, Order, Refund, Seed, Status, read_seed

KOREA = timezone(timedelta(hours=9), "KST")
NOT_FOUND = "해당 주문을 찾을 수 없습니다. 주문번호를 다시 확인해 주세요."
"""The same for an order that does not exist and for somebody else's; it repeats nothing of what was asked."""

CANCELLED = "order_cancelled"
RETURN_REQUESTED = "return_requested"
ADDRESS_CHANGED = "address_changed"
COUPON_ISSUED = "apology_coupon_issued"


@dataclass(frozen=True)
class Shop:
    """One shop. `memory` is the folder that its database, and tickets filed by hand, are kept in."""

    seed: Seed
    memory: Path
    clock: Clock = field(default_factory=SystemClock)

    @property
    def acts(self) -> Acts:
        """What was done through the tools."""
        return Acts(self.memory / "shop.db")

    @property
    def today(self) -> date:
        """The day on which the shop believes to be: a setting of its rules, or the real one in Korea."""
        return self.seed.rules.today or datetime.fromtimestamp(self.clock.now(), KOREA).date()

    def customer(self, customer_id: str) -> Customer | None:
        """A customer by number."""
        return self.seed.customers.get(customer_id)

    def orders(self, customer_id: str) -> list[Order]:
        """The customer's orders as they are now, newest first."""
        acts = self.acts.of(customer_id)
        return [laid_over(order, acts) for order in self.seed.orders_of.get(customer_id, ())]

    def order(self, customer_id: str, order_id: str) -> Order | None:
        """One order of this customer; None for any other number."""
        return self._order(customer_id, order_id, self.acts.of(customer_id))

    def act_on_order(
        self, customer_id: str, order_id: str, kind: str, key: str, decide: Callable[[Order], JSON]
    ) -> Act:
        """Do something to one order, once per key. `decide` gives the details of the act, or raises NotDone."""

        def decide_on(acts: Sequence[Act]) -> JSON:
            order = self._order(customer_id, order_id, acts)
            if order is None:
                raise NotDone(NOT_FOUND)
            return decide(order)

        return self.acts.once(key, kind, customer_id, tidy(order_id), decide_on)

    def coupons(self, customer_id: str) -> list[Coupon]:
        """The customer's coupons that can be used today, the ones that end first in front."""
        given = [coupon for coupon in self.seed.coupons if coupon.customer_id == customer_id]
        issued = [Coupon(**act.details["coupon"]) for act in self.acts.of(customer_id) if act.kind == COUPON_ISSUED]
        usable = [coupon for coupon in (*given, *issued) if coupon.used_on is None and coupon.expires_on >= self.today]
        return sorted(usable, key=lambda coupon: (coupon.expires_on, coupon.code))

    def _order(self, customer_id: str, order_id: str, acts: Sequence[Act]) -> Order | None:
        wanted = tidy(order_id)
        for order in self.seed.orders_of.get(customer_id, ()):
            if order.order_id == wanted:
                return laid_over(order, acts)
        return None


def tidy(order_id: str) -> str:
    """An order number as it is kept. Customers type it in small letters, in groups, and without its two letters."""
    typed = re.sub(r"[\s#-]", "", order_id).upper()
    return f"HR{typed}" if re.fullmatch("[0-9]{11}", typed) else typed


def laid_over(order: Order, acts: Sequence[Act]) -> Order:
    """The order after these acts; those on other orders do not touch it."""
    for act in acts:
        if act.subject != order.order_id:
            continue
        if act.kind == ADDRESS_CHANGED:
            order = order.model_copy(update={"address": act.details["address"]})
        elif act.kind in _REFUNDED:
            refund = Refund(**act.details["refund"])
            order = order.model_copy(update={"status": _REFUNDED[act.kind], "refund": refund})
    return order


_REFUNDED = {CANCELLED: Status.CANCELLED, RETURN_REQUESTED: Status.RETURNED}


def open_shop(data: Path, memory: Path, clock: Clock | None = None) -> Shop:
    """The shop whose seed is in `data` and whose database is in `memory`. Raises AppError for a broken seed."""
    return Shop(read_seed(data), memory, clock or SystemClock())


@cache
def default_shop() -> Shop:
    """The shop of the app that this package belongs to: data/ and memory_store/ beside it."""
    app = Path(__file__).resolve().parent.parent
    return open_shop(app / "data", app / "memory_store")
