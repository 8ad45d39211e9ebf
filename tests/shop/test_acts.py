"""One row for each thing done, under its key: not twice, not by halves, and nothing where it could not be written."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from haru_fsm import NotDone
from tests.shop.opening import a_shop, tools_of
from tools import Shop

ORDER = "HR20260726017"


def rows(shop: Shop) -> int:
    with sqlite3.connect(shop.acts.path) as connection:
        count: int = connection.execute("SELECT count(*) FROM acts").fetchone()[0]
    connection.close()
    return count


def test_the_same_key_acts_once_and_tells_the_same(shop: Shop) -> None:
    cancel = tools_of("C003", shop)["cancel_order"]
    assert cancel(ORDER, key="run-1/2.0") == cancel(ORDER, key="run-1/2.0")
    assert rows(shop) == 1
    with pytest.raises(NotDone, match="이미 취소된"):
        cancel(ORDER, key="run-1/3.0")
    assert rows(shop) == 1


def test_the_seed_is_never_written(shop: Shop, tmp_path: Path) -> None:
    tools_of("C003", shop)["cancel_order"](ORDER)
    assert shop.seed.orders_of["C003"][0].status == "결제완료"
    assert shop.orders("C003")[0].status == "취소"
    again = a_shop(tmp_path)  # another process
    assert again.orders("C003")[0].status == "취소"


def test_a_key_belongs_to_one_thing(shop: Shop) -> None:
    tools_of("C003", shop)["cancel_order"](ORDER, key="k")
    for customer, tool, args in (
        ("C003", "cancel_order", ("HR20260724033",)),
        ("C003", "issue_apology_coupon", (1000,)),
        ("C001", "issue_apology_coupon", (1000,)),
    ):
        with pytest.raises(NotDone, match="고유 키"):
            tools_of(customer, shop)[tool](*args, key="k")
    assert rows(shop) == 1


@pytest.mark.parametrize("same_key", [True, False])
def test_many_at_once_cancel_once(shop: Shop, same_key: bool) -> None:
    cancel = tools_of("C003", shop)["cancel_order"]

    def attempt(number: int) -> bool:
        try:
            cancel(ORDER, key="k" if same_key else f"k{number}")
        except NotDone:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(attempt, range(16)))
    assert sum(done) == (16 if same_key else 1)
    assert rows(shop) == 1


def test_nobody_else_writes_while_a_decision_is_made(shop: Shop) -> None:
    """Else two decisions could both be made upon what was there before either."""

    def decide(acts: object) -> dict[str, object]:
        other = sqlite3.connect(shop.acts.path, timeout=0, isolation_level=None)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()
        return {}

    shop.acts.once("first", "kind", "C003", "", decide)  # makes the table
    shop.acts.once("second", "kind", "C003", "", decide)


def test_an_act_is_on_one_order(shop: Shop) -> None:
    tools = tools_of("C003", shop)
    before = {row["order_id"]: row for row in tools["get_my_orders"]()}
    tools["cancel_order"](ORDER)
    tools["change_address"]("HR20260724033", "서울특별시 중구 세종대로 1")
    after = {row["order_id"]: row for row in tools["get_my_orders"]()}
    assert after.pop(ORDER)["status"] == "취소"
    assert before.pop(ORDER)["status"] == "결제완료"
    assert after == before
    assert tools["get_order_status"]("HR20260724033")["address"] != tools["get_order_status"](ORDER)["address"]


def test_reading_makes_no_file(shop: Shop) -> None:
    tools = tools_of("C003", shop)
    tools["get_my_orders"]()
    tools["get_coupons"]()
    assert not shop.acts.path.exists()


def test_a_file_without_a_table_is_an_empty_one(shop: Shop) -> None:
    shop.acts.path.touch()
    assert shop.acts.of("C003") == ()


def test_what_cannot_be_written_is_not_done(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for memory in (tmp_path / "file", tmp_path / "file" / "below"):
        shop = a_shop(memory)
        with pytest.raises(NotDone, match="처리하지 않았습니다"):
            tools_of("C003", shop)["issue_apology_coupon"](1000)


def test_a_database_of_somebody_else_is_not_written(shop: Shop) -> None:
    shop.acts.path.write_bytes(b"this is no database, it is a letter to a friend" * 40)
    with pytest.raises(NotDone, match="처리하지 않았습니다"):
        shop.acts.once("k", "kind", "C003", "", lambda acts: {})


def test_a_decision_that_fails_leaves_nothing(shop: Shop) -> None:
    def decide(acts: object) -> dict[str, object]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        shop.acts.once("k", "kind", "C003", "", decide)
    assert shop.acts.of("C003") == ()
    assert shop.acts.once("k", "kind", "C003", "", lambda acts: {"fine": True}).details == {"fine": True}
