"""Mistakes in parts of one's own: told with the part's name, and the run can be taken up when they are mended."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest

from haru_fsm import App, Engine, Limits, Workflow
from haru_fsm.conversation import ModelAnswered, ModelFailed, ToolsRequested
from haru_fsm.errors import AppError
from haru_fsm.models import Model, ModelRequest
from haru_fsm.models.scripted import ScriptedModel, answer
from haru_fsm.models.two_tier import TwoTierModel
from haru_fsm.stores.memory import MemoryStore
from tests.engine.shopless import Tools, bare, engine


class Mine:
    """A model that gives this, whatever is asked."""

    name = "mine"

    def __init__(self, gives: Any) -> None:
        self.gives = gives

    async def respond(self, _request: ModelRequest) -> Any:
        return self.gives


class Plain(Mine):
    """The same, and not async."""

    def respond(self, _request: ModelRequest) -> Any:
        return self.gives


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (Mine(None), "The model mine gave None"),
        (Mine("네, 배송중입니다."), "The model mine gave '네, 배송중입니다.'"),
        (Plain({"text": "네."}), "The model mine gave {'text': '네.'}"),
        (TwoTierModel(Mine(None), ScriptedModel(["네."])), "The model mine gave None"),
    ],
)
async def test_what_is_no_outcome_of_a_model_is_told(model: Model, told: str) -> None:
    store = MemoryStore()
    with pytest.raises(AppError, match=re.escape(told)):
        await engine(model, store=store).ask("언제 와요?", customer_id="C001", conversation_id="c-1")
    run = await engine(Plain(answer("내일요.")), store=store).resume("c-1")
    assert (run.state, run.answer) == ("DONE", "내일요.")


async def test_a_model_without_a_name_is_refused() -> None:
    nameless: Any = object()
    with pytest.raises(AppError, match="has no `name`"):
        engine(nameless)


async def test_what_is_no_event_of_a_state_s_work_is_told() -> None:
    def work(_conversation: Any, _services: Any) -> ModelAnswered | ModelFailed | ToolsRequested:
        return cast(ModelAnswered, "done")

    table = bare(Limits()).workflow
    broken = Workflow(table.rows, work={**table.work, "AWAIT_MODEL": work}, initial=table.initial)
    app = App(workflow=broken, make_tools=Tools().make, system_prompt="하루")
    with pytest.raises(AppError, match="The work of AWAIT_MODEL gave 'done', which is no event"):
        await Engine(app, model=ScriptedModel([]), store=MemoryStore()).ask("언제 와요?", customer_id="C001")


async def test_work_that_does_not_wait_for_its_model_is_told_so() -> None:
    async def work(_conversation: Any, services: Any) -> ModelAnswered | ModelFailed | ToolsRequested:
        return cast(ModelAnswered, services.model.respond(None))

    table = bare(Limits()).workflow
    broken = Workflow(table.rows, work={**table.work, "AWAIT_MODEL": work}, initial=table.initial)
    app = App(workflow=broken, make_tools=Tools().make, system_prompt="하루")
    with pytest.raises(AppError, match="of AWAIT_MODEL gave a coroutine that was not awaited"):
        await Engine(app, model=ScriptedModel([]), store=MemoryStore()).ask("언제 와요?", customer_id="C001")
