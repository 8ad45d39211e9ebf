"""Plays of our own cases whose scripts do not say enough: what is damaged, who goes away, what is missing since."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import time
from typing import Any

import pytest

from haru_fsm.errors import ConversationBusy, HaruError
from haru_fsm.runs import Piece, Run
from haru_fsm.testing.fake_gemini import FakeGemini
from tests.field.playing import CUSTOMER, Played, Stage, played, talk
from tests.field.plays import Play


async def refused_histories(stage: Stage, gemini: FakeGemini) -> Played:
    """Checkpoints of other loops that are none: each is refused by an error of ours or taken in, never a crash."""
    began = time.monotonic()
    refused: list[HaruError] = []
    async with stage.engine() as engine:
        for raw in stage.case.script["preloaded_raw_checkpoint"]:
            try:
                await engine.adopt(_history_in(raw), customer_id=CUSTOMER)
            except HaruError as error:
                refused.append(error)
        runs = await talk(engine, stage.case)
    return await played(stage, gemini, runs, began, refused=refused)


def _history_in(raw: str) -> Any:
    """What a naive loader makes of a checkpoint."""
    try:
        read = json.loads(raw)
    except ValueError:
        return raw
    return read["history"] if isinstance(read, dict) else read


async def one_damaged(stage: Stage, gemini: FakeGemini) -> Played:
    """The journal of one of two unfinished conversations is damaged on disk."""
    began = time.monotonic()
    question = [{"role": "user", "parts": [{"text": stage.case.messages[0]["text"]}]}]
    async with stage.engine() as engine:
        whole = await engine.adopt(question, customer_id=CUSTOMER)
        broken = await engine.adopt(question, customer_id=CUSTOMER)
    raw = stage.case.script["preloaded_raw_checkpoint"][0]
    with contextlib.closing(sqlite3.connect(stage.database)) as connection, connection:
        connection.execute(
            "UPDATE steps SET event = ? WHERE conversation = (SELECT number FROM conversations WHERE conversation_id = ?)",
            (raw, broken.conversation_id),
        )
    async with stage.engine() as engine:
        ended = await engine.resume_all()
        with pytest.raises(HaruError) as refusal:
            await engine.resume(broken.conversation_id)
    runs = [run for run in ended if isinstance(run, Run)]
    errors = [str(error) for error in ended if not isinstance(error, Run)]
    assert [run.conversation_id for run in runs] == [whole.conversation_id]
    return await played(stage, gemini, runs, began, broken=broken.conversation_id, said=[*errors, str(refusal.value)])


async def from_the_future(stage: Stage, gemini: FakeGemini) -> Played:
    """A database of a later version lies where ours should be; afterwards another one is used."""
    began = time.monotonic()
    version = stage.case.script["preloaded_checkpoint"]["schema_version"]
    async with stage.engine() as engine:
        await talk(engine, stage.case)
    with contextlib.closing(sqlite3.connect(stage.database)) as connection, connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = stage.database.read_bytes()
    async with stage.engine() as engine:
        with pytest.raises(HaruError) as refusal:
            await talk(engine, stage.case)
    untouched = stage.database.read_bytes() == before
    stage.database.rename(stage.folder / "later.db")
    async with stage.engine() as engine:
        runs = await talk(engine, stage.case)
    return await played(stage, gemini, runs, began, said=str(refusal.value), untouched=untouched, version=version)


async def without_its_tool(stage: Stage, gemini: FakeGemini) -> Played:
    """A process dies with a call open; the app that carries on has no such tool."""
    began = time.monotonic()
    await stage.child("ask", dies=("tools_requested", "after"))
    stage.case.script["tools"] = []
    async with stage.engine() as engine:
        runs = [run for run in await engine.resume_all() if isinstance(run, Run)]
    return await played(stage, gemini, runs, began)


async def in_an_unknown_state(stage: Stage, gemini: FakeGemini) -> Played:
    """The record says that it is in a state which this workflow does not have."""
    began = time.monotonic()
    checkpoint = stage.case.script["preloaded_checkpoint"]
    async with stage.engine() as engine:
        lost = await engine.adopt(checkpoint["history"], customer_id=CUSTOMER)
    with contextlib.closing(sqlite3.connect(stage.database)) as connection, connection:
        for table, column in (("conversations", "state"), ("steps", "state")):
            with contextlib.suppress(sqlite3.OperationalError):
                connection.execute(f"UPDATE {table} SET {column} = ?", (checkpoint["state"],))
    async with stage.engine() as engine:
        try:
            end: Run | HaruError = await engine.resume(lost.conversation_id)
        except HaruError as error:
            end = error
        runs = await talk(engine, stage.case)
    return await played(stage, gemini, runs, began, end=end)


async def caller_leaves(stage: Stage, gemini: FakeGemini) -> Played:
    """Whoever waits for the answer is cancelled while a tool runs; somebody else resumes."""
    began = time.monotonic()
    async with stage.engine() as engine:
        asking = asyncio.create_task(talk(engine, stage.case, "c-left"))
        while not stage.log.read("begun"):
            await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        run = await engine.resume("c-left")
    return await played(stage, gemini, [run], began)


async def second_message_meanwhile(stage: Stage, gemini: FakeGemini) -> Played:
    """The second message comes while the first one's tool runs; it is sent again until it is taken."""
    began = time.monotonic()
    first, second = stage.case.messages
    said: set[bool] = set()
    async with stage.engine() as engine, stage.engine() as other:

        def ask(whose: Any, message: dict[str, str]) -> Any:
            return whose.ask(
                message["text"],
                customer_id=CUSTOMER,
                conversation_id="c-two",
                message_id=message["message_id"],
            )

        working = asyncio.create_task(ask(engine, first))
        while not stage.log.read("begun"):
            await asyncio.sleep(0.01)
        while True:
            try:
                later = await ask(other, second)
                break
            except ConversationBusy as busy:
                said.add("nothing was changed" in str(busy))
                await asyncio.sleep(0.02)
        runs = [await working, later]
    return await played(stage, gemini, runs, began, said=said)


async def listened_to(stage: Stage, gemini: FakeGemini) -> Played:
    """Somebody watches the answer being written: requests are streamed as long as that is of use."""
    began = time.monotonic()
    heard: list[str] = []
    runs: list[Run] = []
    async with stage.engine() as engine:
        for message in stage.case.messages:
            told = engine.stream(message["text"], customer_id=CUSTOMER, message_id=message["message_id"])
            async for item in told:
                if isinstance(item, Run):
                    runs.append(item)
                elif isinstance(item, Piece):
                    heard.append(item.text)
    return await played(stage, gemini, runs, began, heard=heard)


OWN_PLAYS: dict[str, dict[str, Play]] = {
    "O056c": {"meanwhile": second_message_meanwhile},
    "O086a": {"refused": refused_histories},
    "O086b": {"damaged": one_damaged},
    "O093a": {"newer": from_the_future},
    "O093b": {"without": without_its_tool},
    "O097b": {"listened": listened_to},
    "O097c": {"listened": listened_to},
    "O097d": {"listened": listened_to},
    "O106a": {"cancelled": caller_leaves},
    "O108a": {"unknown": in_an_unknown_state},
}
