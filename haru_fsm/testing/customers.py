"""Which customers an app has, and what belongs to one of them alone, as far as its data tells.

Read from the JSON files in the app's `data/`: an object that names a customer belongs to them, and what stands in no
other place is theirs alone.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from haru_fsm.app import App
from haru_fsm.errors import HaruError, UnknownCustomer

CUSTOMER = "customer_id"
INVENTED = ("C001", "C002", "C003")
"""Customers of an app that knows none: any number will do there."""
TELLING = re.compile(r"(?=.*\d)(?=.*[^\W\d]).{5,}|.*@.*|[\d-]{9,}", re.DOTALL)
"""What is worth calling somebody's own: numbers with letters, addresses, e-mail, telephone numbers."""
DATE = re.compile(r"\d{4}-\d{2}-\d{2}.*")


def customers_of(app: App) -> tuple[str, ...]:
    """Customers that the app accepts: those that its data names, else the one that it gives as an example, and any.

    Raises UnknownCustomer where it accepts none of them.
    """
    named = sorted({str(item[CUSTOMER]) for item in _objects(app.folder) if CUSTOMER in item})
    # Where no data names them, the tools may still know somebody: whoever they give as an example.
    stated = () if app.example_customer == App.example_customer else (app.example_customer,)
    for asking in (named, dict.fromkeys((*stated, *INVENTED)), (app.example_customer,)):
        if accepted := tuple(customer for customer in asking if _accepted(app, customer)):
            return accepted
    raise UnknownCustomer(
        f"Nobody can ask: the app accepts none of {', '.join([*named, *INVENTED, app.example_customer])}. "
        'Write EXAMPLE_CUSTOMER = "..." into tools/__init__.py, or name customers in your tests: customers=("...",).'
    )


def one_customer(app: App) -> str:
    """The customer to ask as where one will do: the app's own example, where it has one. Raises UnknownCustomer."""
    return app.example_customer if _accepted(app, app.example_customer) else customers_of(app)[0]


def _accepted(app: App, customer: str) -> bool:
    try:
        app.session(customer)
    except HaruError:
        return False
    return True


def private_texts(app: App, customers: Sequence[str]) -> dict[str, frozenset[str]]:
    """By customer: the texts in the app's data that stand in their objects and nowhere else; and who they are."""
    places: defaultdict[str, set[str]] = defaultdict(set)
    for owner, text in _texts(app.folder):
        places[text].add(owner)
    mine = {customer: {customer} for customer in customers}
    common = "\n".join(public_texts(app))
    for text, owners in places.items():
        owner = next(iter(owners))
        if len(owners) == 1 and owner in mine and text not in common:
            mine[owner].add(text)
    return {customer: frozenset(texts) for customer, texts in mine.items()}


def is_telling(text: str) -> bool:
    """Whether a text alone gives somebody away; others (`배송중`) may stand anywhere."""
    return TELLING.fullmatch(text) is not None and DATE.fullmatch(text) is None


def public_texts(app: App) -> Iterator[str]:
    """The texts in the app's data that belong to nobody, and what the model is told."""
    yield app.system_prompt
    yield from (text for owner, text in _texts(app.folder) if not owner)


def _texts(folder: Path | None) -> Iterator[tuple[str, str]]:
    """Each text of the data with its owner, '' for what belongs to nobody."""
    for document in _documents(folder):
        yield from _owned(document, "")


def _owned(value: Any, owner: str) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            owner = str(value.get(CUSTOMER, owner))
            for item in value.values():
                yield from _owned(item, owner)
        case list():
            for item in value:
                yield from _owned(item, owner)
        case str():
            yield owner, value


def _objects(folder: Path | None) -> Iterator[dict[str, Any]]:
    waiting: list[Any] = list(_documents(folder))
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _documents(folder: Path | None) -> Iterator[Any]:
    if folder is None or not (folder / "data").is_dir():
        return
    for file in sorted((folder / "data").glob("*.json")):
        try:
            yield json.loads(file.read_text("utf-8"))
        except ValueError:
            continue
