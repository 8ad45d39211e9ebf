"""Outcomes that come late are written as long as the engine is open, and none after that."""

from __future__ import annotations

import asyncio
import logging

import pytest

from haru_fsm.late import LateWrites


async def test_closing_waits_for_what_is_being_written() -> None:
    late, go_on, written = LateWrites(), asyncio.Event(), list[str]()

    async def write(what: str) -> None:
        await go_on.wait()
        written.append(what)

    for what in "ab":
        late.begin(write(what), what)
    closing = asyncio.create_task(late.aclose())
    await asyncio.sleep(0)
    assert not closing.done()
    go_on.set()
    await closing
    assert written == ["a", "b"]


async def test_what_comes_after_closing_is_told_and_not_written(caplog: pytest.LogCaptureFixture) -> None:
    late, written = LateWrites(), list[str]()

    async def write() -> None:
        written.append("late")

    await late.aclose()
    with caplog.at_level(logging.WARNING, "haru_fsm"):
        late.begin(write(), "The outcome of call 2.0")
    await asyncio.sleep(0)
    assert not written
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert "The outcome of call 2.0 came after the engine was closed" in caplog.text
