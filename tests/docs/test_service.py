"""docs/service.md: what a customer is told, and what they are not; the same over HTTP, in FastAPI."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from starlette.testclient import TestClient

from haru_fsm import Engine, errors
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.stores.sqlite import SQLiteStore
from tests.docs.reading import blocks, write_files
from tests.engine.shopless import engine

DOCUMENT = "docs/service.md"


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def service(tmp_path: Path) -> ModuleType:
    [path] = write_files(DOCUMENT, tmp_path)
    return imported(path)


@pytest.fixture
def talking() -> Engine:
    return engine(ScriptedModel([[("look", {"what": "A"})], "배송중입니다."]))


async def heard(service: ModuleType, engine: Engine, text: str) -> list[tuple[str, Any]]:
    """The events of a message, read as a browser reads them."""
    sent = "".join([event async for event in service.events(engine, text, customer_id="C1", message_id="m-1")])
    lines = [block.split("\n") for block in sent.rstrip("\n").split("\n\n")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in lines]


async def test_the_events_of_a_run(service: ModuleType, talking: Engine) -> None:
    events = await heard(service, talking, "어디쯤?")
    assert [name for name, _ in events if name != "piece"] == ["step"] * 5 + ["answer"]
    assert [data for name, data in events if name == "step"][:2] == ["message_received", "tools_requested"]
    kind, answer = events[-1]
    assert (kind, answer["answer"], answer["finished"], answer["ticket"]) == ("answer", "배송중입니다.", True, None)
    assert set(answer) == {"conversation_id", "reply_id", "answer", "finished", "ticket"}
    assert (await heard(service, talking, "어디쯤?"))[-1] == events[-1], "the same message, the same run"


async def test_trouble_is_a_number_and_no_words_of_ours(service: ModuleType, talking: Engine) -> None:
    assert await heard(service, talking, " ") == [("error", 400)]


def test_every_error_has_its_status(service: ModuleType) -> None:
    told = {
        errors.SettingsError: 400,
        errors.UnknownCustomer: 404,
        errors.UnknownConversation: 404,
        errors.ConversationBusy: 409,
        errors.ConversationMoved: 409,
        errors.StoreError: 503,
        errors.JournalDamaged: 503,
        errors.DeskUnavailable: 503,
    }
    assert {kind: service.status(kind("words")) for kind in told} == told


@asynccontextmanager
async def carrying_on(service: ModuleType, engine: Engine) -> AsyncIterator[None]:
    """`carry_on` as the service has it, from its start to its stop."""
    stopping = asyncio.Event()
    carrying = asyncio.create_task(service.carry_on(engine, stopping))
    yield
    stopping.set()
    await carrying


async def test_what_is_left_is_carried_on_at_the_start_and_later(
    service: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "EVERY_S", 0)
    talking = engine(ScriptedModel(lambda request: "배송중입니다."))

    async def leave() -> str:
        left = await talking.adopt([{"role": "user", "parts": [{"text": "어디쯤?"}]}], customer_id="C1")
        assert not left.finished
        return left.conversation_id

    left = await leave()
    async with carrying_on(service, talking):
        for _ in range(2):
            while await talking.store.conversations(unfinished=True):
                await asyncio.sleep(0)
            assert (await talking.resume(left)).answer == "배송중입니다."
            left = await leave()


async def test_a_store_that_fails_is_told_at_once(
    service: ModuleType, talking: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    talking.store = SQLiteStore(tmp_path / "no\0file")
    async with carrying_on(service, talking):
        while "what was left could not be carried on" not in caplog.text:
            await asyncio.sleep(0)


@pytest.fixture
def web(tmp_path: Path, service: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The service of the document over HTTP, on the starter app."""
    from haru_fsm.app import starter

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("HARU_MODEL", "offline")
    monkeypatch.setitem(sys.modules, "service", service)
    [block] = blocks(DOCUMENT, "py")
    (tmp_path / "web.py").write_text(block.text.replace('"shop"', repr(str(starter()))), "utf-8")
    with TestClient(imported(tmp_path / "web.py").api) as client:
        yield client


def test_the_service_answers_over_http(web: Any) -> None:
    message = {"text": "HR20260725002 언제 와요?", "message_id": "m-1"}
    whose = {"x-customer": "C003"}
    first = web.post("/messages", json=message, headers=whose)
    assert (first.status_code, first.json()["finished"]) == (200, True)
    again = web.post("/messages/stream", json=message, headers=whose)
    assert again.text.startswith("event: answer\n")
    assert json.loads(again.text.split("data: ")[-1]) == first.json()
    refused = web.post("/messages", json={**message, "text": " "}, headers=whose)
    assert (refused.status_code, refused.json()) == (400, {"error": "SettingsError"})
    assert web.post("/messages", json={**message, "message_id": "m-2"}, headers={"x-customer": "X"}).status_code == 404
