"""Parts of an engine that are given by name: what is said, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from haru_fsm import Engine, Limits
from haru_fsm.errors import SettingsError
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.stores.sqlite import SQLiteStore
from tests.engine.shopless import bare


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


@pytest.mark.parametrize("address", ["sqlite:///shop.db", "sqlite:////srv/shop.db", "memory:"])
def test_an_address_is_no_file(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match="address"):
        SQLiteStore(address)
    assert not list(tmp_path.iterdir())
