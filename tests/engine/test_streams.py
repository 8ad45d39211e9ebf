"""Whoever listens to a run may leave: it goes on to its ending, and closing the engine waits for that."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from haru_fsm import Engine, Run
from haru_fsm.conversation import Step, ToolsRequested
from haru_fsm.errors import ConversationBusy
from haru_fsm.models.scripted import Line, ScriptedModel
from tests.engine.shopless import Tools, engine

PAYS: list[Line] = [[("pay", {"what": "A"})], "결제했습니다."]


class Shop:
    """A shop whose payment goes on until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self.tools = Tools(pay=lambda what: self._pay(what))
        self.engine: Engine = engine(ScriptedModel(PAYS), tools=self.tools)

    async def _pay(self, what: str) -> dict[str, Any]:
        self.begun.set()
        await self.go_on.wait()
        return {"paid": what}


async def leave_by_breaking(shop: Shop) -> None:
    stream = shop.engine.stream("결제해 주세요", customer_id="C1", conversation_id="c-1")
    async for item in stream:
        if isinstance(item, Step) and isinstance(item.event, ToolsRequested):
            break
    await stream.aclose()


async def leave_by_cancelling(shop: Shop) -> None:
    async def listening() -> None:
        async for _ in shop.engine.stream("결제해 주세요", customer_id="C1", conversation_id="c-1"):
            pass

    reader = asyncio.create_task(listening())
    await shop.begun.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader


@pytest.mark.parametrize("leave", [leave_by_breaking, leave_by_cancelling])
async def test_a_payment_is_not_broken_off_when_the_reader_leaves(leave: Any) -> None:
    shop = Shop()
    await leave(shop)
    await shop.begun.wait()
    with pytest.raises(ConversationBusy):
        await shop.engine.resume("c-1")
    closing = asyncio.create_task(shop.engine.aclose())
    await asyncio.sleep(0)
    assert not closing.done(), "closing waits for the run"
    shop.go_on.set()
    await closing
    run = await shop.engine.resume("c-1")
    assert (run.state, run.answer, run.ticket) == ("DONE", "결제했습니다.", None)
    assert shop.tools.runs == {"pay(A)": 1}


async def test_what_a_run_raises_is_raised_to_its_reader() -> None:
    shop = Shop()
    await leave_by_breaking(shop)
    with pytest.raises(ConversationBusy):
        async for _ in shop.engine.stream("또요", customer_id="C1", conversation_id="c-1"):
            pass
    shop.go_on.set()
    await shop.engine.aclose()


async def test_the_same_message_streamed_again_is_the_same_run() -> None:
    async with engine(ScriptedModel(["네."])) as haru:
        ends = [[item async for item in haru.stream("안녕", customer_id="C1", message_id="m1")][-1] for _ in range(2)]
    assert ends[0] == ends[1]
    assert isinstance(ends[0], Run)
