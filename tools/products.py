"""What the shop sells."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from haru_fsm import tool
from haru_fsm.conversation import JSON

from .search import Index
from .seed import Product
from .session import CustomerSession

_SHOWN = 5


def product_tools(session: CustomerSession) -> list[Callable[..., Any]]:
    """search_products; the same for every customer."""
    index = _index(tuple(session.shop.seed.products.values()))

    @tool(read_only=True)
    def search_products(query: str) -> list[JSON]:
        """Search the products that the shop sells: name, price, description, rating and whether it is in stock.

        Args:
            query: The kind of product that is looked for, in the customer's words.
        """
        return [_shown(product) for product in index.find(query, _SHOWN)]

    return [search_products]


def _shown(product: Product) -> JSON:
    return {
        "product_name": product.name,
        "price_won": product.price_won,
        "description": product.description,
        "rating": product.rating,
        "availability": "구매 가능" if product.stock else "품절",
    }


@lru_cache(maxsize=4)
def _index(products: tuple[Product, ...]) -> Index[Product]:
    return Index([(product, f"{product.name} {product.category}", product.description) for product in products])
