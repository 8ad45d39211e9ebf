"""Resuming all: what is wrong with one conversation holds back none of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from haru_fsm import Engine
from haru_fsm.conversation import Conversation, ModelAnswered
from haru_fsm.engine import RESUME_TOGETHER
from haru_fsm.errors import AppError, ConversationBusy, ConversationMoved, HaruError, StoreError
from haru_fsm.models import ModelRequest
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.runs import Run
from haru_fsm.stores.memory import MemoryStore
from tests.engine.shopless import Tools, engine

QUESTION = [{"role": "user", "parts": [{"text": "언제 와요?"}]}]


class Crossed(ScriptedModel):
    """A model with a bug that shows at one message."""

    async def respond(self, request: ModelRequest) -> Any:
        if "crossed" in str(request.contents):
            raise RuntimeError("wires crossed")
        for _ in range(50):  # others are slower than the bug
            await asyncio.sleep(0)
        return ModelAnswered(content={"role": "model", "parts": [{"text": "내일요"}]}, text="내일요", requests=1)


async def left_unfinished(haru: Engine) -> None:
    """Two conversations whose last message nobody has answered yet."""
    await haru.adopt(QUESTION, customer_id="C001", conversation_id="c-1")
    await haru.adopt(QUESTION, customer_id="C003", conversation_id="c-3")


def but_not_for(customer: str, make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Tools that cannot be made for one customer."""

    def make_tools(session: Any) -> Any:
        if session.customer_id == customer:
            raise ConnectionError("the shop's database is down")
        return make(session)

    return make_tools


async def test_tools_that_cannot_be_made_for_one_customer_are_that_runs_error() -> None:
    store = MemoryStore()
    async with engine(Crossed([]), store=store) as haru:
        await left_unfinished(haru)
        app = replace(haru.app, make_tools=but_not_for("C001", Tools().make))
        lame = Engine(app, model=haru.model, store=store, clock=haru.clock)
        by_kind = {type(each): each for each in await lame.resume_all()}
        assert set(by_kind) == {AppError, Run}
        assert str(by_kind[AppError]).startswith("Conversation c-1: "), "of a thousand, which one?"
        assert "test_resuming_all.py, line" in str(by_kind[AppError])
        assert "ConnectionError: the shop's database is down" in str(by_kind[AppError])
        assert (await haru.resume("c-3")).answer == "내일요"
        assert (await haru.resume("c-1")).answer == "내일요", "nothing was lost of it"


async def test_a_bug_in_one_run_is_raised_when_the_others_have_ended() -> None:
    async with engine(Crossed([])) as haru:
        await haru.adopt([{"role": "user", "parts": [{"text": "crossed"}]}], customer_id="C001", conversation_id="c-1")
        await haru.adopt(QUESTION, customer_id="C003", conversation_id="c-3")
        with pytest.raises(RuntimeError, match="wires crossed"):
            await haru.resume_all()
        record = await haru.store.load("c-3")
        assert record is not None
        assert record.summary.resting


async def test_one_error_for_several_names_each_of_them() -> None:
    closed = AppError("The shop is closed.")

    def nobody(customer_id: str, **more: Any) -> Any:
        raise closed

    async with engine(Crossed([])) as haru:
        await left_unfinished(haru)
        later = Engine(replace(haru.app, make_session=nobody), model=haru.model, store=haru.store, clock=haru.clock)
        told = sorted(map(str, await later.resume_all()))
    assert told == [f"Conversation {name}: The shop is closed." for name in ("c-1", "c-3")]
    assert str(closed) == "The shop is closed."


@pytest.mark.parametrize("refusal", [ConversationBusy, ConversationMoved, StoreError])
async def test_a_run_that_another_worker_has_is_none_of_ours_and_what_else_is_wrong_is_told(
    refusal: type[HaruError],
) -> None:
    class Meddled(MemoryStore):
        async def append(self, conversation: Conversation, **place: Any) -> None:
            if conversation.conversation_id == "c-1" and place["expected_seq"]:
                raise refusal("another worker was first")
            await super().append(conversation, **place)

    seen: list[object] = []
    async with engine(Crossed([]), store=Meddled()) as haru:
        await left_unfinished(haru)
        await haru.ask("이미 답한 질문", customer_id="C1")
        came = await haru.resume_all(watch=seen.append)
    assert {type(each) for each in came} == ({StoreError, Run} if refusal is StoreError else {Run})
    assert len(seen) == 2, "the run's resumption and its answer"


async def test_not_more_runs_are_resumed_together_than_a_process_can_bear() -> None:
    together: list[int] = []

    class Counting(ScriptedModel):
        now = 0

        async def respond(self, request: ModelRequest) -> Any:
            self.now += 1
            together.append(self.now)
            await asyncio.sleep(0)
            self.now -= 1
            return await super().respond(request)

    async with engine(Counting(["네."] * 40)) as haru:
        for number in range(40):
            await haru.adopt(QUESTION, customer_id="C1", conversation_id=f"c-{number}")
        assert len(await haru.resume_all()) == 40
    assert max(together) <= RESUME_TOGETHER
