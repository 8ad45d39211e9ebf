"""The carriers, as the shop reaches them. Here they are a table of scans that takes its time to answer."""

from __future__ import annotations

from dataclasses import dataclass

from haru_fsm.clock import Clock

from .seed import Parcels, Scan, Shipment


@dataclass(frozen=True)
class Carriers:
    """Asks a carrier for the scans of a parcel. Some answer at once, some only after a long while."""

    parcels: Parcels
    clock: Clock

    async def scans(self, shipment: Shipment) -> tuple[Scan, ...]:
        """All scans of a parcel, oldest first; empty where the carrier has not seen it yet."""
        for carrier in self.parcels.carriers:
            if carrier.name == shipment.carrier:
                await self.clock.sleep(carrier.answers_after_s)
        return self.parcels.parcels.get(shipment.tracking_number, ())
