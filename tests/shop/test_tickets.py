"""A ticket is filed at the desk of the run, under the session's own customer."""

from __future__ import annotations

import asyncio
from pathlib import Path

from haru_fsm.stores.memory import MemoryStore
from haru_fsm.stores.sqlite import SQLiteStore
from tests.shop.opening import a_session, a_shop
from tools import CustomerSession, Shop, make_tools


def test_a_ticket_belongs_to_the_customer_of_the_session(shop: Shop) -> None:
    store = MemoryStore()
    create = make_tools(a_session("C003", shop, store=store))["create_ticket"]
    told = create("배송", "높음", "상자가 젖어 있었다고 합니다.")
    (stored,) = asyncio.run(store.tickets())
    assert told["ticket_id"] == stored.ticket.ticket_id
    assert (stored.ticket.customer_id, stored.ticket.category, stored.ticket.urgency) == ("C003", "배송", "높음")
    assert told["ticket_id"] == create("기타", "보통", "다시")["ticket_id"]  # one case for one run


def test_by_hand_each_ticket_is_a_case_of_its_own(tmp_path: Path) -> None:
    create = make_tools(CustomerSession("C003", shop=a_shop(tmp_path)))["create_ticket"]
    numbers = {create("기타", "보통", text)["ticket_id"] for text in ("하나", "둘")}
    assert len(numbers) == 2
    stored = asyncio.run(SQLiteStore(tmp_path / "haru.db").tickets())
    assert {each.ticket.ticket_id for each in stored} == numbers
