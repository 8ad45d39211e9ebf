"""What tokens cost, by `genai-prices`: from the price list that the package brings along, without any network.

Each request is priced when its reply is there, at the prices of that moment, and the figure is journaled with it. So a
budget counts the same for ever, whatever prices become, and no guard looks anything up. Requests are priced one by
one, because a large request may cost more per token than two small ones.

A model is named by who sells it and its name there. One that the list does not know costs None: tokens are counted,
money is not guessed. `OfflineModel` is in no list either; nobody asks money for it.

The package and its list take about a quarter of a second to load, so they are loaded when the first reply is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from haru_fsm.conversation import Usage
from haru_fsm.models.tokens import MOST_OUTPUT_TOKENS

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

SELLERS = {"gemini": "google", "openai": "openai"}
"""What genai-prices calls the sellers behind the kinds of HARU_MODEL."""


def priced(usage: Usage, *, seller: str, model: str, at: float) -> Usage:
    """The usage of one request with its cost in US dollars, as far as the price is known. Never raises.

    Cached tokens are charged as such, thoughts as answer, the prompts of the provider's own tools as prompt. `seller`
    is "gemini", "openai", an id of genai-prices, or the address of an API; `at` is in seconds since the epoch.
    """
    if not usage.total or not seller or usage.cost_usd is not None:
        return usage
    prompt = usage.prompt + usage.tool
    found = _calculated(seller, model, at, prompt, min(usage.cached, prompt), usage.thoughts + usage.answer)
    if found is None:
        return usage
    return usage.model_copy(update={"cost_usd": float(found.total_price)})


LONG = 10**9
"""Tokens of a prompt that is in the highest tier of every price."""


@dataclass(frozen=True, slots=True)
class Dearest:
    """What one request to a model can come to at worst. None: nobody knows."""

    tokens: int | None = None
    """Tokens of the largest request together with the largest reply."""
    usd: float | None = None
    """US dollars for these, and never more for less."""
    usd_per_token: float | None = None
    """US dollars of the dearest token of all, at the window's highest tier."""


def dearest(spec: str, *, at: float, window: int | None = None) -> Dearest:
    """The worst case of one request to the model `kind:name` (as in HARU_MODEL), at the prices of this moment.

    `window` stands in where genai-prices knows none. A model that nobody asks money for costs 0.
    """
    kind, _, name = spec.partition(":")
    if kind not in SELLERS:
        return Dearest(usd=0.0, usd_per_token=0.0) if kind == "offline" else Dearest()
    found = _calculated(kind, name, at, LONG, 0, LONG)
    window = (found.model.context_window if found is not None else None) or window
    per_token = float(max(found.input_price, found.output_price) / LONG) if found is not None else None
    if window is None:
        return Dearest(usd_per_token=per_token)
    if kind != "gemini":
        return Dearest(window, window * per_token if per_token is not None else None, per_token)
    # Gemini's window is that of the prompt; the reply has room of its own, and another price.
    whole = _calculated(kind, name, at, window, 0, MOST_OUTPUT_TOKENS)
    return Dearest(window + MOST_OUTPUT_TOKENS, float(whole.total_price) if whole is not None else None, per_token)


def _calculated(
    seller: str, model: str, at: float, prompt: int = 0, cached: int = 0, answer: int = 0
) -> PriceCalculation | None:
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    counted = Counted(input_tokens=prompt, cache_read_tokens=cached, output_tokens=answer)
    name, when = model.removeprefix("models/"), datetime.fromtimestamp(at, UTC)
    try:
        if "://" in seller:
            return calc_price(counted, name, provider_api_url=seller, genai_request_timestamp=when)
        return calc_price(counted, name, provider_id=SELLERS.get(seller, seller), genai_request_timestamp=when)
    except (LookupError, ValueError):
        return None
