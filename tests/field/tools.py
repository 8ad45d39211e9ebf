"""The tools of the field cases: small real functions, one behaviour for each that a case describes.

Each writes down that it was begun, and what it did to the world, in a file: counts hold over processes and kills.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, Literal

from pydantic import BaseModel

from haru_fsm import tool
from tests.field.log import Log
from tests.field.own_tools import MEANT, as_written, is_later

KST = timezone(timedelta(hours=9))
Function = Callable[..., Any]
STATUSES = {"HR20260725002": "배송중", "HR20260726011": "결제완료", "HR20260727030": "배송완료"}
LARGE_TEXT = "주문 내역 👍🏽 " * 160_000
"""About 3 MB in UTF-8."""


class Parcel(BaseModel):
    """A pydantic model among a tool's results."""

    weight: int = 1


class Colour(Enum):
    """An enum among a tool's results."""

    RED = "red"


def tools_of(case_id: str, specs: list[dict[str, Any]], log: Log) -> list[Function]:
    """The tools of one case, marked as it says."""
    return [_marked(_function(case_id, spec, log), spec) for spec in specs]


def _marked(function: Function, spec: dict[str, Any]) -> Function:
    marks = {name: spec[name] for name in ("timeout_s", "fallback", "polling") if name in spec}
    return tool(read_only=not spec["side_effect"], **marks)(function)


def _function(case_id: str, spec: dict[str, Any], log: Log) -> Function:
    name, own = spec["name"], not case_id.startswith("F")
    does = MEANT[spec["behaviour"]] if own else SPECIAL.get((case_id, name)) or USUAL[name]

    def act(**args: Any) -> Any:
        log.write("begun", name, args)
        return does(log, **args)

    if own:
        return as_written(spec["signature"], act, later=is_later(spec["behaviour"]))
    signature = _track_shipment_later if (case_id, name) in ASYNCHRONOUS else SIGNATURES[name]
    return signature(act)


# --------------------------------------------------------------------------- signatures


def _get_order(act: Function) -> Function:
    def get_order(order_id: str) -> Any:
        """One order: its status, item and amount."""
        return act(order_id=order_id)

    return get_order


def _get_orders(act: Function) -> Function:
    def get_orders(order_ids: list[str]) -> list[Any]:
        """Several orders at once."""
        return list(act(order_ids=order_ids))

    return get_orders


def _list_orders(act: Function) -> Function:
    def list_orders(customer_id: str, page: int = 1, page_size: int = 10) -> dict[str, Any]:
        """A page of a customer's orders."""
        return dict(act(customer_id=customer_id, page=page, page_size=page_size))

    return list_orders


def _cancel_order(act: Function) -> Function:
    def cancel_order(order_id: str) -> dict[str, Any]:
        """Cancel an order."""
        return dict(act(order_id=order_id))

    return cancel_order


def _refund_order(act: Function) -> Function:
    def refund_order(order_id: str, amount: int, reason: Literal["DEFECT", "CHANGE_OF_MIND", "LATE"]) -> dict[str, Any]:
        """Refund an amount of won."""
        return dict(act(order_id=order_id, amount=amount, reason=reason))

    return refund_order


def _get_refund_status(act: Function) -> Function:
    def get_refund_status(refund_id: str) -> dict[str, Any]:
        """How far a refund is."""
        return dict(act(refund_id=refund_id))

    return get_refund_status


def _track_shipment(act: Function) -> Function:
    def track_shipment(order_id: str, courier: Literal["CJ", "HANJIN", "LOTTE"] = "CJ") -> Any:
        """Where a parcel is."""
        return act(order_id=order_id, courier=courier)

    return track_shipment


def _get_store_hours(act: Function) -> Function:
    def get_store_hours() -> dict[str, Any]:
        """Opening hours."""
        return dict(act())

    return get_store_hours


def _get_receipt(act: Function) -> Function:
    def get_receipt(order_id: str) -> dict[str, Any]:
        """The receipt as a PDF."""
        return dict(act(order_id=order_id))

    return get_receipt


def _make_report(act: Function) -> Function:
    async def make_report(month: str) -> dict[str, Any]:
        """The settlement report of a month."""
        return dict(await act(month=month))

    return make_report


def _set_memo(act: Function) -> Function:
    def set_memo(order_id: str, memo: str) -> dict[str, Any]:
        """Set the delivery memo of an order."""
        return dict(act(order_id=order_id, memo=memo))

    return set_memo


def _create_ticket(act: Function) -> Function:
    def create_ticket(summary: str, order_id: str | None = None) -> dict[str, Any]:
        """Hand a case to a person."""
        return dict(act(summary=summary, order_id=order_id))

    return create_ticket


def _track_shipment_later(act: Function) -> Function:
    async def track_shipment(order_id: str, courier: Literal["CJ", "HANJIN", "LOTTE"] = "CJ") -> Any:
        """Where a parcel is."""
        return await act(order_id=order_id, courier=courier)

    return track_shipment


SIGNATURES: dict[str, Callable[[Function], Function]] = {
    "get_order": _get_order,
    "get_orders": _get_orders,
    "list_orders": _list_orders,
    "cancel_order": _cancel_order,
    "refund_order": _refund_order,
    "get_refund_status": _get_refund_status,
    "track_shipment": _track_shipment,
    "get_store_hours": _get_store_hours,
    "get_receipt": _get_receipt,
    "make_report": _make_report,
    "set_memo": _set_memo,
    "create_ticket": _create_ticket,
}


# --------------------------------------------------------------------------- behaviours


def _order(_log: Log, order_id: str) -> dict[str, Any]:
    return {"order_id": order_id, "status": "배송중", "item": "무선 이어폰", "amount": 12900}


def _cancelled(log: Log, **args: Any) -> dict[str, Any]:
    log.write("done", "cancel_order", args)
    return {"status": "CANCELLED"}


def _refunded(log: Log, **args: Any) -> dict[str, Any]:
    log.write("done", "refund_order", args)
    return {"refund_id": "RF-1", "status": "ACCEPTED"}


def _refunded_late(log: Log, **args: Any) -> dict[str, Any]:
    time.sleep(0.8)
    return _refunded(log, **args)


async def _reported(log: Log, **args: Any) -> dict[str, Any]:
    await asyncio.sleep(3)
    log.write("done", "make_report", args)
    return {"report": "2026-07"}


def _memo_set(log: Log, **args: Any) -> dict[str, Any]:
    log.write("done", "set_memo", args)
    return {"memo": args["memo"]}


def _ticketed(log: Log, **args: Any) -> dict[str, Any]:
    log.write("done", "create_ticket", args)
    return {"ticket_id": "T-1"}


def _refund_status(log: Log, **_args: Any) -> dict[str, Any]:
    return {"status": "DONE" if len(log.read("begun", "get_refund_status")) >= 5 else "PENDING"}


def _one_of_three_fails(log: Log, order_id: str) -> dict[str, Any]:
    if order_id == "HR20260726011":
        raise ConnectionError("db down")
    if order_id == "HR20260727030":
        raise KeyError(order_id)
    return _order(log, order_id)


def _first_is_slow(log: Log, order_id: str) -> dict[str, Any]:
    if order_id == "HR20260725002":
        time.sleep(0.3)
    return _order(log, order_id)


def _blocking(log: Log, order_id: str) -> dict[str, Any]:
    time.sleep(0.5)
    return _order(log, order_id)


def _exact_pages(_log: Log, customer_id: str, page: int, page_size: int) -> dict[str, Any]:
    if type(page) is not int or type(page_size) is not int:
        raise TypeError("page and page_size must be int")
    return {"customer_id": customer_id, "page": page, "page_size": page_size, "orders": ["HR20260725002"]}


def _of_all_types(_log: Log, order_id: str) -> dict[str, Any]:
    return {
        "ordered_at": datetime(2026, 7, 25, 10, 0, tzinfo=KST),
        "day": date(2026, 7, 25),
        "amount": Decimal("12900.50"),
        "id": uuid.uuid5(uuid.NAMESPACE_OID, order_id),
        "status": Colour.RED,
        "tags": {"a"},
        "m": Parcel(),
        "t": (1, 2),
    }


def _courier_down(_log: Log, **_args: Any) -> Any:
    raise RuntimeError("courier api 500")


def _broken(_log: Log, **_args: Any) -> Any:
    raise RuntimeError("the orders are out of reach")


async def _forever(_log: Log, **_args: Any) -> Any:
    await asyncio.Event().wait()


async def _five_seconds(_log: Log, **_args: Any) -> Any:
    await asyncio.sleep(5)
    return {"location": "옥천HUB"}


USUAL: dict[str, Function] = {
    "get_order": _order,
    "get_orders": lambda log, order_ids: [_order(log, order_id) for order_id in order_ids],
    "list_orders": lambda _log, **_args: {"orders": []},
    "cancel_order": _cancelled,
    "refund_order": _refunded,
    "get_refund_status": _refund_status,
    "track_shipment": lambda _log, **_args: {"location": "옥천HUB", "eta": "2026-07-28"},
    "get_store_hours": lambda _log: {"open": "09:00", "close": "18:00"},
    "get_receipt": lambda _log, **_args: {"pdf": b"%PDF-\xff\x00", "parts": [b"\x00", b"\xff"]},
    "make_report": _reported,
    "set_memo": _memo_set,
    "create_ticket": _ticketed,
}
"""What a tool does where its case says nothing else."""

SPECIAL: dict[tuple[str, str], Function] = {
    ("F017", "get_order"): _one_of_three_fails,
    ("F022", "get_order"): _first_is_slow,
    ("F031", "get_order"): lambda _log, order_id: {"order_id": order_id, "status": STATUSES[order_id]},
    ("F037", "list_orders"): _exact_pages,
    ("F057", "track_shipment"): _courier_down,
    ("F059", "track_shipment"): _forever,
    ("F061", "refund_order"): _refunded_late,
    ("F062", "get_order"): _blocking,
    ("F063", "get_order"): _of_all_types,
    ("F066", "list_orders"): lambda _log, **_args: {"orders": LARGE_TEXT},
    ("F087", "get_order"): lambda _log, order_id: {1: "a", "order_id": order_id},
    ("F089", "get_order"): lambda _log, **_args: {"memo": "W\x00s\x00l", "literal": "\\u0000"},
    ("F105", "track_shipment"): _five_seconds,
    ("F107", "get_order"): _broken,
}
ASYNCHRONOUS = {("F059", "track_shipment"), ("F105", "track_shipment")}
