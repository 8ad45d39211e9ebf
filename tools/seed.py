"""What the shop was when it opened: the records of data/, read once and never written.

Everything in here is frozen. What customers have done since is kept by `acts` and laid over it by `shop`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from haru_fsm.errors import AppError
from haru_fsm.foreign import in_words

Amount = Annotated[int, Field(ge=0)]


class Record(BaseModel):
    """One entry of a data file; a misspelt field is an error and not silently dropped."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Status(StrEnum):
    """The states an order can be in, as customers read them."""

    PAID = "결제완료"
    PREPARING = "상품준비중"
    SHIPPING = "배송중"
    DELIVERED = "배송완료"
    CANCELLED = "취소"
    RETURNED = "반품"


BEFORE_SHIPPING = frozenset({Status.PAID, Status.PREPARING})
"""While an order is in one of these, it has not left the warehouse."""


class Customer(Record):
    """Somebody who may log in. Tiers: 일반, 실버, 골드, VIP."""

    customer_id: str
    name: str
    tier: str
    email: str
    phone: str
    address: str
    joined_on: date
    points_won: Amount


class Product(Record):
    """Something that is sold. `returnable` is false where a change of mind is no reason to send it back."""

    product_id: str
    name: str
    category: str
    price_won: Amount
    description: str
    rating: float
    stock: int
    returnable: bool


class Item(Record):
    """One line of an order, at the price of that day."""

    product_id: str
    quantity: Annotated[int, Field(ge=1)]
    unit_price_won: Amount


class Shipment(Record):
    """A parcel. It has arrived exactly when `delivered_on` is set."""

    carrier: str
    tracking_number: str
    shipped_on: date
    expected_on: date | None = None
    delivered_on: date | None = None


class Refund(Record):
    """Money on its way back. Without an amount of its own it is the order's total."""

    reason: str
    requested_on: date
    amount_won: Amount | None = None


class Order(Record):
    """One order of one customer."""

    order_id: str
    customer_id: str
    ordered_on: date
    status: Status
    items: tuple[Item, ...]
    shipping_fee_won: Amount
    total_won: Amount
    paid_with: str
    address: str
    shipment: Shipment | None = None
    refund: Refund | None = None
    note: str | None = None


class Coupon(Record):
    """A coupon of one customer: an amount or a percentage off orders of at least `minimum_won`."""

    code: str
    customer_id: str
    name: str
    discount_won: Amount | None = None
    discount_percent: int | None = None
    minimum_won: Amount
    expires_on: date
    used_on: date | None = None


class Policy(Record):
    """A rule as customers may read it, and the words they ask for it with."""

    policy_id: str
    title: str
    keywords: tuple[str, ...]
    body: str


class ApologyCoupon(Record):
    """What Haru may give away when something went wrong."""

    smallest_won: Amount
    ceiling_won: Amount
    ceiling_in_30_days_won: Amount
    valid_days: int


class Rules(Record):
    """The shop's rules with numbers in them. `today` is the day it believes to be; None: the real one."""

    name: str
    today: date | None
    return_window_days: int
    return_fee_won: Amount
    refund_days: dict[Status, int]
    apology_coupon: ApologyCoupon


class CarrierRecord(Record):
    """A carrier, and how many seconds it takes to answer."""

    name: str
    answers_after_s: float


class Scan(Record):
    """Where a parcel was seen. `at` is Korean time, to the minute."""

    at: str
    place: str
    event: str


class Parcels(Record):
    """What the carriers know, by tracking number, oldest scan first."""

    carriers: tuple[CarrierRecord, ...]
    parcels: dict[str, tuple[Scan, ...]]


@dataclass(frozen=True)
class Seed:
    """All records of one data folder."""

    rules: Rules
    customers: dict[str, Customer]
    products: dict[str, Product]
    orders: tuple[Order, ...]
    coupons: tuple[Coupon, ...]
    policies: tuple[Policy, ...]
    parcels: Parcels

    @cached_property
    def orders_of(self) -> dict[str, tuple[Order, ...]]:
        """Each customer's orders, newest first."""
        ordered = sorted(self.orders, key=lambda order: (order.ordered_on, order.order_id), reverse=True)
        return {known: tuple(order for order in ordered if order.customer_id == known) for known in self.customers}

    def product_name(self, order: Order) -> str:
        """What an order is called in a list: its first product, and how many more there are."""
        name = self.products[order.items[0].product_id].name
        return name if len(order.items) == 1 else f"{name} 외 {len(order.items) - 1}건"


def read_seed(folder: Path) -> Seed:
    """The records of a data folder. Raises AppError naming the file that is missing or not as it should be."""
    return Seed(
        rules=_read(folder / "shop.json", Rules),
        customers={one.customer_id: one for one in _read_all(folder / "customers.json", Customer)},
        products={one.product_id: one for one in _read_all(folder / "products.json", Product)},
        orders=tuple(_read_all(folder / "orders.json", Order)),
        coupons=tuple(_read_all(folder / "coupons.json", Coupon)),
        policies=tuple(_read_all(folder / "policies.json", Policy)),
        parcels=_read(folder / "carriers.json", Parcels),
    )


R = TypeVar("R", bound=Record)
T = TypeVar("T")


def _read(path: Path, kind: type[R]) -> R:
    return _parse(path, TypeAdapter(kind))


def _read_all(path: Path, kind: type[R]) -> Iterable[R]:
    return _parse(path, TypeAdapter(list[kind]))  # type: ignore[valid-type]  # a type made at run time


def _parse(path: Path, adapter: TypeAdapter[T]) -> T:
    try:
        return adapter.validate_json(path.read_bytes())
    except OSError as error:
        raise AppError(f"The shop cannot read {path}: {in_words(error)}. Put the file back into data/.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise AppError(f"{path} is not as the shop needs it: {where}: {first['msg']}.") from error
