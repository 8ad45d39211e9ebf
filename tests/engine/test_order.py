"""What is durable when: before the model is asked, after a cancellation, after a newer version has written."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from haru_fsm import NotDone, tool
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import ModelAnswered, executed
from haru_fsm.errors import FormatTooNew
from haru_fsm.models import ModelOutcome, ModelRequest
from haru_fsm.models.scripted import ScriptedModel, answer, calls
from haru_fsm.stores import FORMAT, Store
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.testing.crashes import Crashed, Crasher, CrashingStore, CrashPoint
from haru_fsm.transfer import export, import_lines
from tests.engine.shopless import Tools, engine


class Reading:
    """A model that looks into the database, as it was when the request came, before it answers."""

    name = "reading"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.found: list[Any] = []

    async def respond(self, _request: ModelRequest) -> ModelOutcome:
        fresh = SQLiteStore(self._path)
        record = await fresh.load("c-1")
        await fresh.aclose()
        self.found.append([step.event.kind for step in record.steps] if record is not None else None)
        return answer("네.")


async def test_the_message_is_durable_before_the_model_is_asked(tmp_path: Path) -> None:
    model = Reading(tmp_path / "haru.db")
    async with engine(model, store=SQLiteStore(tmp_path / "haru.db")) as haru:
        await haru.ask("안녕", customer_id="C1", conversation_id="c-1")
    assert model.found == [["message_received"]]


@pytest.mark.parametrize("where", ["model", "read", "effect"])
async def test_a_cancelled_run_lets_go_and_can_be_resumed(where: str) -> None:
    """The cancellation comes out, the lease is given back, and what was begun is not begun again."""
    waiting, tools = asyncio.Event(), Tools()

    async def for_ever(what: str) -> str:
        """Wait."""
        tools.runs[what] += 1
        waiting.set()
        await asyncio.Event().wait()
        return what

    class Model(ScriptedModel):
        async def respond(self, request: ModelRequest) -> ModelOutcome:
            if where == "model":
                await for_ever("model")
            return await super().respond(request)

    made = engine(Model([[(where, {"what": where})]]))
    marked = tool(read_only=where == "read")(for_ever)
    app = made.app.with_tools(lambda _session: {where: marked})
    haru = type(made)(app, model=made.model, store=made.store, clock=FakeClock())
    asking = asyncio.create_task(haru.ask("해 주세요", customer_id="C1", conversation_id="c-1"))
    await waiting.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert (await haru.store.conversations())[0].owner is None
    quick = tool(read_only=where == "read")(_quick(tools))
    app = app.with_tools(lambda _session: {where: quick})
    run = await type(made)(app, model=ScriptedModel(["다 됐습니다."]), store=made.store, clock=FakeClock()).resume(
        "c-1"
    )
    assert (run.finished, run.state) == (True, "ESCALATE_TICKET" if where == "effect" else "DONE")
    assert tools.runs == {"model": {"model": 1}, "read": {"read": 2}, "effect": {"effect": 1}}[where]


def _quick(tools: Tools) -> Any:
    async def quick(what: str) -> str:
        """Do not wait."""
        tools.runs[what] += 1
        return what

    return quick


async def test_a_newer_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "haru.db"
    async with engine(ScriptedModel(["네."]), store=SQLiteStore(path)) as haru:
        await haru.ask("안녕", customer_id="C1", conversation_id="c-1")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    before = path.read_bytes()
    store = SQLiteStore(path)
    with pytest.raises(FormatTooNew, match="Update"):
        await store.load("c-1")
    with pytest.raises(FormatTooNew):
        await store.conversations()
    async with engine(ScriptedModel(["네."]), store=SQLiteStore(path)) as haru:
        with pytest.raises(FormatTooNew):
            await haru.ask("안녕", customer_id="C1", conversation_id="c-2")
    await store.aclose()
    assert path.read_bytes() == before


async def test_fields_that_a_newer_version_wrote_are_kept_wherever_the_journal_goes(tmp_path: Path) -> None:
    newer = ModelAnswered(content={"role": "model", "parts": [{"text": "네."}]}, mood="polite")
    store: Store = SQLiteStore(tmp_path / "haru.db")
    async with engine(ScriptedModel([newer]), store=store) as haru:
        await haru.ask("안녕", customer_id="C1", conversation_id="c-1")
        lines = [line async for line in export(haru.store)]
    other = MemoryStore()
    await import_lines(other, lines)
    fresh = SQLiteStore(tmp_path / "haru.db")
    for each in (fresh, other):
        record = await each.load("c-1")
        assert record is not None
        assert json.loads(record.steps[1].event.model_dump_json())["mood"] == "polite"
    await fresh.aclose()


@pytest.mark.parametrize("number", [5, 6, 7])
async def test_after_a_crash_a_known_outcome_is_used_and_not_that_of_the_same_call_beside_it(number: int) -> None:
    """The first call was not done; the second, with the same arguments, was. Each keeps what came of it."""
    tools, store = Tools(), MemoryStore()

    def sold_out_once(what: str) -> dict[str, str]:
        if tools.runs[f"pay({what})"] == 1:
            raise NotDone("sold out for a moment")
        return {"paid": what}

    tools.behave["pay"] = sold_out_once
    model = ScriptedModel([calls(("pay", {"what": "A"}), ("pay", {"what": "A"})), answer("끝입니다.")])
    crasher = Crasher(CrashPoint("write", number, "before"), in_process=True)
    dying = engine(model, tools=tools, store=CrashingStore(store, crasher))
    with pytest.raises(Crashed):
        await dying.ask("주문해 주세요", customer_id="C1", conversation_id="c-1")
    async with engine(model, tools=tools, store=store) as haru:
        await haru.resume("c-1")
        record = await store.load("c-1")
    assert record is not None
    first, second = (result for _, _, result in executed(record.steps))
    assert (first.status, first.response) == ("not_done", {"error": "sold out for a moment"})
    assert second.status == ("in_doubt" if number == 6 else "done")
    assert tools.runs["pay(A)"] == 2
