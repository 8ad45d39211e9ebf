"""The conversation that is measured: a question, `n` steps of think - call - observe, and an answer.

The model takes no time and is a function of how many results it has read. Its page moves with every call, so no loop
guard has anything to say. The tool gives 988 bytes of JSON.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

CUSTOMER = "C001"
QUESTION = "지난 1월부터 제가 주문한 상품 전부의 배송 상태를 페이지별로 확인해서 알려주세요."
ANSWER = "확인이 끝났습니다. 모든 주문이 예정대로 배송되고 있으며, 지연된 상품은 없습니다. 더 도와드릴까요?"
TOOL = "list_parcels"
RESULT_BYTES = 988
"""Length of the result as `json.dumps` writes it."""
_FILLER = "Picked up by the carrier; the next scan is expected at the sorting centre tonight. " * 12


@dataclass(frozen=True, slots=True)
class Call:
    """What the model asks for in one step, and what it says beside it."""

    thought: str
    args: dict[str, Any]


def call(results: int) -> Call:
    """The model's next call after so many results."""
    return Call(
        thought=f"Page {results:04d} of the parcels is still missing. I read it with {TOOL}, look at the state of each "
        "parcel on it, and decide then whether the list is complete or a person has to see it.",
        args={"customer": CUSTOMER, "page": results},
    )


@cache
def page(number: int) -> dict[str, Any]:
    """One page of parcels, always of the same length. Made once, for it is not what is measured."""
    parcels = [
        {
            "order": f"HR{number:04d}{index}",
            "state": "in_transit",
            "carrier": "CJ",
            "tracking": f"{number:04d}-{index:08d}",
        }
        for index in range(5)
    ]
    found = {"page": number % 10, "parcels": parcels, "note": ""}
    return {**found, "note": _FILLER[: RESULT_BYTES - len(json.dumps(found))]}


@cache
def reply(results: int, n: int) -> dict[str, Any]:
    """The model's content after so many results, as the Gemini REST API writes it. Made once, as pages are."""
    if results >= n:
        return {"role": "model", "parts": [{"text": ANSWER}]}
    wanted = call(results)
    parts = [{"text": wanted.thought}, {"functionCall": {"name": TOOL, "args": wanted.args}}]
    return {"role": "model", "parts": parts}
