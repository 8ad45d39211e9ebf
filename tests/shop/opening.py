"""A shop to test in: the real seed, a database of its own, and a clock that stands still."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from haru_fsm.clock import FakeClock
from haru_fsm.conversation import JSON
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.tickets import StoreDesk
from tests.conftest import ROOT
from tools import CustomerSession, Shop, make_tools
from tools.seed import Seed, read_seed

DATA = ROOT / "data"


@cache
def seed() -> Seed:
    """The data folder, read once."""
    return read_seed(DATA)


def a_shop(memory: Path, *, today: date | None = None, clock: FakeClock | None = None) -> Shop:
    """The shop with its database in `memory`, on its own day or on another one."""
    rules = seed().rules if today is None else seed().rules.model_copy(update={"today": today})
    return Shop(replace(seed(), rules=rules), memory, clock or FakeClock())


def a_session(customer_id: str, shop: Shop, *, run: int = 1, store: MemoryStore | None = None) -> CustomerSession:
    """A session as an engine would make it, with a desk that files into `store`."""
    desk = StoreDesk(store or MemoryStore())
    return CustomerSession(customer_id, "conversation-1", run, desk, FakeClock(), shop=shop)


def tools_of(customer_id: str, shop: Shop) -> dict[str, Callable[..., Any]]:
    """The tools of one customer."""
    return make_tools(a_session(customer_id, shop))


async def value_of(result: Any) -> Any:
    """What a tool gave, awaited where it is a coroutine."""
    return await result if inspect.isawaitable(result) else result


def orders_in(status: str, customer_id: str | None = None) -> Sequence[str]:
    """Numbers of the seed's orders in a state."""
    return [
        order.order_id for order in seed().orders if order.status == status and customer_id in (None, order.customer_id)
    ]


def as_text(value: Any) -> str:
    """All of a result as one text, to look for things in it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def snapshot(shop: Shop, customer_id: str) -> JSON:
    """All that the shop holds of one customer."""
    return {
        "orders": [order.model_dump() for order in shop.orders(customer_id)],
        "coupons": [coupon.model_dump() for coupon in shop.coupons(customer_id)],
        "acts": [act.details for act in shop.acts.of(customer_id)],
    }
