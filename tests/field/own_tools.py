"""Tools as a case writes them: the signature as it stands there, and what each sentence of `behaviour` means."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal

from haru_fsm import NotDone
from tests.field.log import Log

Function = Callable[..., Any]
PAGE = "주문 기록. " * 500
"""About 3,500 characters."""


def as_written(signature: str, act: Function, *, later: bool) -> Function:
    """A function with this signature (Python source) that hands its arguments to `act`."""
    made: dict[str, Any] = {"Literal": Literal, "act": act}
    head, name = f"{'async ' * later}def {signature}:", signature.partition("(")[0]
    exec(
        f"{head}\n    '''{name.replace('_', ' ')}'''\n    return {'await ' * later}act(**locals())", made
    )  # the case's own source
    function: Function = made[name]
    return function


def is_later(behaviour: str) -> bool:
    """Whether the tool is an async function."""
    return behaviour.startswith("async")


def _order(_log: Log, order_id: str) -> dict[str, Any]:
    return {"order_id": order_id, "status": "배송중", "item": "무선 이어폰", "amount": 12900}


def _down_for_one(log: Log, order_id: str) -> dict[str, Any]:
    if order_id == "HR20260726011":
        raise ConnectionError("db down")
    return _order(log, order_id)


def _until_cancelled(log: Log, order_id: str) -> dict[str, Any]:
    return {"order_id": order_id, "status": "취소됨" if log.read("done", "cancel_order") else "결제완료"}


def _of_each(_log: Log, order_id: str) -> dict[str, Any]:
    status = {"HR20260725002": "배송중", "HR20260726011": "결제완료"}.get(order_id, "배송완료")
    return {"order_id": order_id, "status": status}


def _ending(_log: Log, order_id: str) -> Any:
    raise SystemExit(3) if order_id == "HR20260725002" else asyncio.CancelledError


def _against_the_rules(_log: Log, **_args: Any) -> Any:
    raise NotDone("이미 발송된 주문입니다")


def _desk_closed(_log: Log, **_args: Any) -> Any:
    raise NotDone("the desk is closed")


def _sent_and_broken(log: Log, **args: Any) -> Any:
    log.write("done", "cancel_order", args)
    raise ConnectionError("connection lost")


def _talkative(_log: Log, **_args: Any) -> Any:
    raise RuntimeError("Traceback (most recent call last):\n  File orders.py\n" + "x" * 10_000)


def _twice_down(log: Log, order_id: str) -> dict[str, Any]:
    if len(log.read("begun", "get_order")) <= 2:
        raise ConnectionError("db down")
    return _order(log, order_id)


def _slow(log: Log, order_id: str) -> dict[str, Any]:
    time.sleep(0.3)
    return _order(log, order_id)


async def _slow_later(log: Log, order_id: str) -> dict[str, Any]:
    await asyncio.sleep(0.3)
    return _order(log, order_id)


async def _forever(_log: Log, **_args: Any) -> Any:
    await asyncio.Event().wait()


async def _deaf(_log: Log, **_args: Any) -> Any:
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


class Thing:
    """Nothing that JSON knows."""


def _of_every_kind(_log: Log, order_id: str) -> Any:
    circle: dict[str, Any] = {"name": "circle"}
    circle["self"] = circle

    def generated() -> Iterator[str]:
        yield from ("a", "b")

    kinds: dict[str, Any] = {
        "none": None,
        "nan": {"amount": float("nan"), "rate": float("inf")},
        "generator": generated(),
        "circle": circle,
        "object": Thing(),
        "text": "배송중",
        "list": [1, "b", None],
    }
    return kinds[order_id]


async def _down_in_two_places(_log: Log, **_args: Any) -> Any:
    raise ExceptionGroup("both", [ConnectionError("db refused"), KeyError("cache")])


def _stages(_log: Log, order_id: str) -> Any:
    async def stages() -> AsyncIterator[str]:
        yield f"{order_id} 출고"
        yield f"{order_id} 배송중"

    return stages()


def _row(_log: Log, order_id: str) -> Any:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute("SELECT ? AS order_id, 12900 AS amount", (order_id,)).fetchone()


def _page(log: Log, **args: Any) -> dict[str, Any]:
    return {"orders": [f"HR{args['page']:04d}{n}" for n in range(3)]}


def _done(name: str, value: dict[str, Any]) -> Function:
    def act(log: Log, **args: Any) -> dict[str, Any]:
        log.write("done", name, args)
        return value

    return act


MEANT: dict[str, Function] = {
    'returns {"order_id": order_id, "status": "배송중", "item": "무선 이어폰", "amount": 12900}': _order,
    "returns one dict per id": lambda log, order_ids: [_order(log, order_id) for order_id in order_ids],
    'returns {"orders": []}': lambda _log, **_args: {"orders": []},
    'appends to a cancel ledger and returns {"status": "CANCELLED"}': _done("cancel_order", {"status": "CANCELLED"}),
    'appends to a refund ledger and returns {"refund_id": "RF-1", "status": "ACCEPTED"}': _done(
        "refund_order", {"refund_id": "RF-1", "status": "ACCEPTED"}
    ),
    'returns {"location": "옥천HUB", "eta": "2026-07-28"}': lambda _log, **_args: {"location": "옥천HUB"},
    'returns {"open":"09:00","close":"18:00"}': lambda _log: {"open": "09:00", "close": "18:00"},
    "stores memo": _done("set_memo", {"memo": "stored"}),
    'returns {"orders": ["HR20260725002"]}': lambda _log, **_args: {"orders": ["HR20260725002"]},
    'stores and returns {"ticket_id": "T-1"}': _done("create_ticket", {"ticket_id": "T-1"}),
    'order HR20260726011 raises ConnectionError("db down")': _down_for_one,
    'returns status "취소됨" once cancel_order has run, "결제완료" before': _until_cancelled,
    'returns {"order_id": order_id, "status": one of three different values per id}': _of_each,
    "order HR20260725002 raises SystemExit(3); HR20260726011 raises asyncio.CancelledError": _ending,
    'raises NotDone("이미 발송된 주문입니다")': _against_the_rules,
    'raises NotDone("the desk is closed")': _desk_closed,
    'returns NotDone("이미 발송된 주문입니다")': lambda _log, **_args: NotDone("이미 발송된 주문입니다"),
    'async; raises a group of ConnectionError("db refused") and KeyError("cache")': _down_in_two_places,
    "returns an async generator of two stages": _stages,
    "returns a row of a database: order_id, amount": _row,
    "raises ConnectionError after the request was sent": _sent_and_broken,
    "raises RuntimeError with 10,000 characters": _talkative,
    "raises ConnectionError on calls 1 and 2": _twice_down,
    "sync; time.sleep(0.3)": _slow,
    "async; takes 0.3 s": _slow_later,
    "async; awaits forever": _forever,
    "async; swallows CancelledError and goes on for ever": _deaf,
    "by order_id: None, NaN, a generator, a dict that contains itself, an object, a text, a list": _of_every_kind,
    "returns another page each time": _page,
    'returns {"memo": half of an emoji}': lambda _log, order_id: {"memo": "놓아주세요 \ud83d"},
    "returns 3,000 characters": lambda _log, order_id: {"order_id": order_id, "history": PAGE},
}
"""What a tool does, by the sentence that says so. A sentence that is not here is no case of ours."""
