"""Parts of an engine that are given by name: what is said, and where."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from haru_fsm import App, Engine, Limits, load_app
from haru_fsm.app import starter
from haru_fsm.conversation import Ticket
from haru_fsm.errors import AppError, HaruError, SettingsError
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.stores.sqlite import SQLiteStore
from tests.engine.shopless import bare


class Desk:
    """A desk that is as good as the store's."""

    def open(self, ticket: Ticket) -> Ticket:
        return ticket


class Mute:
    name = "says nothing"


@pytest.mark.parametrize(
    ("named", "advice"),
    [
        ({"app": "shop"}, "load_app('shop')"),
        ({"app": Path("shop")}, "load_app"),
        ({"model": "gemini:gemini-flash-latest"}, "HARU_MODEL=gemini:gemini-flash-latest"),
        ({"store": "sqlite:///shop.db"}, "HARU_DATABASE_URL=sqlite:///shop.db"),
        ({"store": Path("shop.db")}, "SQLiteStore"),
    ],
)
def test_a_name_is_no_part_and_the_refusal_says_how_to_make_one(named: dict[str, Any], advice: str) -> None:
    parts = {"app": bare(Limits()), "model": ScriptedModel(["네."]), "store": MemoryStore()}
    with pytest.raises(SettingsError, match=next(iter(named))) as refused:
        Engine(**{**parts, **named})
    assert advice in str(refused.value)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"model": ScriptedModel}, "The engine's model is the class ScriptedModel. Make one: ScriptedModel(...)."),
        ({"store": MemoryStore}, "The engine's store is the class MemoryStore. Make one: MemoryStore(...)."),
        ({"desk": Desk}, "The engine's desk is the class Desk. Make one: Desk(...)."),
        (
            {"desk": "zendesk"},
            "The engine's desk is 'zendesk', which only names one. Give an object with `open(ticket)`.",
        ),
        ({"desk": object()}, "has no `open(ticket)`"),
        ({"model": Mute()}, "has no `respond(request)`"),
    ],
)
def test_what_is_no_part_is_refused_before_a_customer_comes(given: dict[str, Any], told: str) -> None:
    parts = {"app": bare(Limits()), "model": ScriptedModel(["네."]), "store": MemoryStore()}
    with pytest.raises(HaruError, match=re.escape(told)):
        Engine(**{**parts, **given})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"workflow": bare(Limits()).workflow.rows}, "its workflow is a tuple. Give Workflow(rows, work=...)"),
        ({"make_tools": []}, "its make_tools is a list. Give a function that takes the session and returns the tools"),
        ({"limits": {"max_steps": 3}}, "its limits are a dict. Give Limits(...)"),
    ],
)
def test_what_is_no_app_is_refused_with_the_way_out(given: dict[str, Any], told: str) -> None:
    parts = {"workflow": bare(Limits()).workflow, "make_tools": lambda session: []}
    with pytest.raises(AppError, match=re.escape(told)):
        App(**{**parts, **given})
    if "make_tools" in given:
        with pytest.raises(AppError, match="make_tools is a list"):
            bare(Limits()).with_tools(given["make_tools"])


def test_a_folder_is_not_loaded_under_what_is_no_limits() -> None:
    limits: Any = {"max_steps": 3}
    with pytest.raises(AppError, match=re.escape("its limits are a dict. Give Limits(...)")):
        load_app(starter(), limits=limits)


@pytest.mark.parametrize("address", ["sqlite:///shop.db", "sqlite:////srv/shop.db", "memory:"])
def test_an_address_is_no_file(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match="address"):
        SQLiteStore(address)
    assert not list(tmp_path.iterdir())
