"""What the journal says of each call: how it ended, whether it ran, what was repaired, how long it took."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from haru_fsm import Engine, tool
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import ResultStatus, ToolResult, ToolsExecuted, executed
from haru_fsm.models.scripted import ScriptedModel
from tests.engine.shopless import Tools, Where, broken, engine, record_of

HERE = Where(customer_id="C1", conversation_id="c-1")


class Slow:
    """Tools that take their time, by the engine's own clock."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock

    def make(self, _session: Any) -> list[Callable[..., Any]]:
        @tool(read_only=True, polling=True)
        async def look(number: int) -> int:
            """Look something up."""
            await self.clock.sleep(2)
            return number

        @tool(read_only=False)
        async def pay(number: int) -> int:
            """Pay."""
            await self.clock.sleep(3)
            return number

        return [look, pay]


async def results(haru: Engine) -> list[ToolResult]:
    """What the journal says of the calls of one message."""
    await haru.ask("해 주세요", **HERE)
    return [result for _, _, result in executed((await record_of(haru, "c-1")).steps)]


async def test_a_result_says_what_its_call_was() -> None:
    clock = FakeClock()
    model = ScriptedModel([[("look", {"number": "7"}), ("pay", {"number": 8})], "됐습니다."])
    haru = engine(model, tools=Slow(clock), clock=clock)
    read, effect = await results(haru)
    assert (read.status, read.ran, read.effect, read.polling) == (ResultStatus.DONE, True, False, True)
    assert (effect.status, effect.ran, effect.effect, effect.polling) == (ResultStatus.DONE, True, True, False)
    assert (read.took_ms, effect.took_ms) == (2000, 3000)
    assert len(read.repairs) == 1
    assert "7" in read.repairs[0]
    assert effect.repairs == ()
    [acted] = [step.event for step in (await record_of(haru, "c-1")).steps if isinstance(step.event, ToolsExecuted)]
    assert acted.took_ms == 5000


async def test_a_read_that_raises_has_failed() -> None:
    model = ScriptedModel([[("look", {"what": "A"})], "모르겠습니다."])
    [read] = await results(engine(model, tools=Tools(look=broken)))
    assert (read.status, read.ran) == (ResultStatus.FAILED, True)


@pytest.mark.parametrize("call", [("pay", {"why": 1}), ("look", {}), ("steal", {"what": "A"})])
async def test_a_call_that_cannot_be_made_has_not_run_and_is_in_no_ledger(call: tuple[str, dict[str, Any]]) -> None:
    tools = Tools()
    haru = engine(ScriptedModel([[call], "안 됩니다."]), tools=tools)
    [result] = await results(haru)
    assert (result.status, result.ran, result.effect) == (ResultStatus.FAILED, False, False)
    assert not tools.runs
    assert not (await record_of(haru, "c-1")).ledger


async def test_reads_that_nobody_waits_for_any_more_are_cancelled() -> None:
    begun, ended = asyncio.Semaphore(0), asyncio.Semaphore(0)

    @tool(read_only=True, timeout_s=1_000)
    async def look(what: str) -> str:
        """Look something up."""
        begun.release()
        try:
            return await asyncio.Future[str]()
        finally:
            ended.release()

    made = engine(ScriptedModel([[("look", {"what": "A"}), ("look", {"what": "B"})]]))
    haru = Engine(made.app.with_tools(lambda _session: [look]), model=made.model, store=made.store)
    asking = asyncio.create_task(haru.ask("어디쯤 왔나요?", **HERE))
    for _ in range(2):
        await begun.acquire()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    async with asyncio.timeout(5):
        for _ in range(2):
            await ended.acquire()
