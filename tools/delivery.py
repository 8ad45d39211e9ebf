"""Where an order goes, and where its parcel is now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from haru_fsm import IdempotencyKey, NotDone, tool
from haru_fsm.conversation import JSON

from .carriers import Carriers
from .seed import BEFORE_SHIPPING, Order, Scan, Shipment, Status
from .session import CustomerSession
from .shop import ADDRESS_CHANGED, NOT_FOUND, tidy

CARRIER_TIMEOUT_S = 3.0
_LATE = {
    "message": "택배사의 위치 조회가 늦어지고 있어 지금은 위치를 확인하지 못했습니다. 잠시 뒤에 다시 문의해 주세요."
}
_SHORTEST, _LONGEST = 6, 200
_LATEST_SCANS = 3


def delivery_tools(session: CustomerSession) -> list[Callable[..., Any]]:
    """change_address and track_parcel, for this customer."""
    shop = session.shop
    carriers = Carriers(shop.seed.parcels, shop.clock)

    @tool(read_only=False)
    def change_address(order_id: str, address: str, key: Annotated[str, IdempotencyKey] = "") -> JSON:
        """Change the delivery address of one order. Only before shipping: 결제완료 or 상품준비중.

        Args:
            order_id: The number of the order.
            address: The whole new address, in one line, as the customer wrote it.
        """
        new = _one_line(address)
        act = shop.act_on_order(session.customer_id, order_id, ADDRESS_CHANGED, key, lambda order: _decide(order, new))
        return {"message": "배송지를 바꿨습니다.", "order_id": tidy(order_id), "address": act.details["address"]}

    @tool(read_only=True, timeout_s=CARRIER_TIMEOUT_S, fallback=_LATE)
    async def track_parcel(order_id: str) -> JSON:
        """Ask the carrier where the parcel of one order is now: its location and the latest scans.

        Args:
            order_id: The number of an order that has been shipped.
        """
        order = shop.order(session.customer_id, order_id)
        if order is None:
            return {"error": NOT_FOUND}
        shown: JSON = {"order_id": order.order_id, "product_name": shop.seed.product_name(order)}
        shown["status"] = order.status.value
        if order.shipment is None:
            return {**shown, "message": "발송되지 않은 주문이라 택배 위치가 없습니다."}
        return {**shown, **_tracked(order.shipment, await carriers.scans(order.shipment))}

    return [change_address, track_parcel]


def _tracked(shipment: Shipment, scans: Sequence[Scan]) -> JSON:
    shown: JSON = shipment.model_dump(mode="json", exclude={"shipped_on"}, exclude_none=True)
    if scans:
        shown["location"] = scans[-1].place
        shown["scans"] = [scan.model_dump() for scan in scans[-_LATEST_SCANS:]]
    return shown


def _decide(order: Order, address: str) -> JSON:
    if order.status not in BEFORE_SHIPPING:
        because = "이미 발송되어" if order.status is Status.SHIPPING else f"{order.status.value} 상태여서"
        raise NotDone(f"{because} 배송지를 바꿀 수 없습니다.")
    return {"address": address}


def _one_line(address: str) -> str:
    """The address without stray blanks. Raises NotDone for what no carrier could print on a label."""
    tidy_address = " ".join(address.split())
    if not (_SHORTEST <= len(tidy_address) <= _LONGEST and tidy_address.isprintable()):
        raise NotDone(f"주소는 {_SHORTEST}자 이상 {_LONGEST}자 이하의 한 줄이어야 합니다. 전체 주소를 알려 주세요.")
    return tidy_address
