"""What tokens cost, by `genai-prices`: from the price list that the package brings along, without any network.

Each request is priced when its reply is there, at the prices of that moment, and the figure is journaled with it. So a
budget counts the same for ever, whatever prices become, and no guard looks anything up. Requests are priced one by
one, because a large request may cost more per token than two small ones.

A model is named by who sells it and its name there. One that the list does not know costs None: tokens are counted,
money is not guessed. `OfflineModel` is in no list either; nobody asks money for it.

The package and its list take about a tenth of a second to load, so they are loaded when the first reply is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from haru_fsm.conversation import COST_DIGITS, Usage
from haru_fsm.models.tokens import MOST_OUTPUT_TOKENS
from haru_fsm.models.windows import window_of

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
    tariff = tariff_of(seller, model, int(at // 60))
    if tariff is None:
        return usage
    cost = tariff.usd(usage.prompt + usage.tool, usage.cached, usage.thoughts + usage.answer)
    return usage.model_copy(update={"cost_usd": cost})


# --------------------------------------------------------------------------- tariffs


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars for one token of each kind, in requests whose prompt is longer than `above`; and for the request."""

    above: int
    prompt: float
    cached: float
    answer: float
    request: float = 0.0


@dataclass(frozen=True, slots=True)
class Tariff:
    """What a model costs in one minute, and its window. Asking the price list takes a hundred times as long."""

    tiers: tuple[Rates, ...]
    window: int | None = None

    def usd(self, prompt: int, cached: int, answer: int) -> float:
        """US dollars of one request. More cached tokens than there are in the prompt are not believed."""
        rates = next(tier for tier in reversed(self.tiers) if prompt > tier.above or not tier.above)
        cached = min(cached, prompt)
        tokens = (prompt - cached) * rates.prompt + cached * rates.cached + answer * rates.answer
        return round(rates.request + tokens, COST_DIGITS)

    @property
    def dearest_token(self) -> float:
        """US dollars of the dearest token of all."""
        return max(max(tier.prompt, tier.cached, tier.answer) for tier in self.tiers)


@lru_cache(maxsize=512)
def tariff_of(seller: str, model: str, minute: int) -> Tariff | None:
    """A model's tariff in this minute since the epoch, for some are cheaper at night; None where nobody knows it."""
    from genai_prices.types import TieredPrices

    found = _calculated(seller, model, minute)
    if found is None:
        return None
    tiered = [price for price in vars(found.model_price).values() if isinstance(price, TieredPrices)]
    starts = sorted({0, *(tier.start for price in tiered for tier in price.tiers)})
    tiers = (_rates(seller, model, minute, above) for above in starts)
    return Tariff(tuple(tier for tier in tiers if tier is not None), found.model.context_window)


def _rates(seller: str, model: str, minute: int, above: int) -> Rates | None:
    """The rates of a tier: what a prompt costs that is just in it, alone, cached, and with one token of a reply."""
    prompt = above + 1
    counts = ((0, 0, 0), (prompt, 0, 0), (prompt, prompt, 0), (prompt, 0, 1))
    found = [_calculated(seller, model, minute, *each) for each in counts]
    request, alone, cached, replied = (each.total_price if each is not None else None for each in found)
    if request is None or alone is None or cached is None or replied is None:
        return None
    return Rates(
        above,
        prompt=float((alone - request) / prompt),
        cached=float((cached - request) / prompt),
        answer=float(replied - alone),
        request=float(request),
    )


def _calculated(
    seller: str, model: str, minute: int, prompt: int = 0, cached: int = 0, answer: int = 0
) -> PriceCalculation | None:
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    counted = Counted(input_tokens=prompt, cache_read_tokens=cached, output_tokens=answer)
    name, when = model.removeprefix("models/"), datetime.fromtimestamp(minute * 60, UTC)
    try:
        if "://" in seller:
            return calc_price(counted, name, provider_api_url=seller, genai_request_timestamp=when)
        return calc_price(counted, name, provider_id=SELLERS.get(seller, seller), genai_request_timestamp=when)
    except (LookupError, ValueError):
        return None


# --------------------------------------------------------------------------- the worst case


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

    `window` stands in where nobody knows it. A model that nobody asks money for costs 0.
    """
    kind, _, name = spec.partition(":")
    if kind not in SELLERS:
        return Dearest(usd=0.0, usd_per_token=0.0) if kind == "offline" else Dearest()
    tariff = tariff_of(kind, name, int(at // 60))
    # Sources differ by a few per cent; a bound needs the larger one.
    known = [each for each in (window_of(name), tariff.window if tariff is not None else None) if each is not None]
    window = max(known, default=window)
    per_token = tariff.dearest_token if tariff is not None else None
    if window is None:
        return Dearest(usd_per_token=per_token)
    if kind != "gemini":
        return Dearest(window, window * per_token if per_token is not None else None, per_token)
    # Gemini's window is that of the prompt; the reply has room of its own, and another price.
    usd = tariff.usd(window, 0, MOST_OUTPUT_TOKENS) if tariff is not None else None
    return Dearest(window + MOST_OUTPUT_TOKENS, usd, per_token)
