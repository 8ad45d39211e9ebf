"""An app that was changed while a run was open, through the command: resumed, and seen in `haru show`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from haru_fsm import Engine, load_app
from haru_fsm.conversation import MessageReceived
from haru_fsm.models.scripted import ScriptedModel, calls
from haru_fsm.stores.sqlite import SQLiteStore
from tests.cli.apps import STATES, TOOLS, write_app
from tests.cli.conftest import Haru


async def _left_open(app: Path, database: Path) -> None:
    """A process has died before it ran the call that the model had asked for."""
    loaded = load_app(app)
    async with Engine(loaded, model=ScriptedModel([]), store=SQLiteStore(database)) as engine:
        digest = loaded.definition(loaded.toolbox(loaded.session("kim")))
        conversation = loaded.workflow.begin("c-1", "kim")
        for event in (MessageReceived(text="재고?", definition=digest), calls(("get_stock", {"item": "mug"}))):
            conversation = loaded.workflow.advance(conversation, event)
        await engine.store.append(conversation, expected_seq=0, owner=None, over=None, lease_s=15)


CHANGES = {
    "a tool more": (TOOLS.replace("return [get_stock]", "return [get_stock, lambda_free]"), STATES, "DONE"),
    "another parameter": (TOOLS.replace("item: str", "item: str, shelf: int"), STATES, "no longer fit"),
    "no tool": (TOOLS.replace("return [get_stock]", "return []"), STATES, "no longer has the tool get_stock"),
    "no such state": (TOOLS, STATES.replace('"ACT"', '"DO"'), "no longer has work for the state ACT"),
}
MORE = '''
    @tool(read_only=True)
    def lambda_free(what: str) -> str:
        """Another tool."""
        return what

    return ['''


@pytest.mark.parametrize(("tools", "states", "shown"), CHANGES.values(), ids=CHANGES)
def test_a_run_under_a_changed_app(process: Haru, tmp_path: Path, tools: str, states: str, shown: str) -> None:
    app, database = write_app(tmp_path / "app"), tmp_path / "haru.db"
    asyncio.run(_left_open(app, database))
    (app / "tools/__init__.py").write_text(tools.replace("    return [", MORE.lstrip("\n"), 1), "utf-8")
    (app / "states/__init__.py").write_text(states, "utf-8")
    resumed = process("resume", "c-1", "--app", str(app), "--model", "offline")
    assert resumed.code == 0, resumed.err
    told = " ".join(process("show", "c-1", "--app", str(app), COLUMNS="200").out.split())
    assert "The app was changed while the run was open" in told
    assert shown in told
