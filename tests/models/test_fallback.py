"""FallbackModel: who speaks where one has failed, and that all is counted."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haru_fsm.clock import FakeClock
from haru_fsm.conversation import FailureReason, Incident, ModelAnswered, ModelFailed, ToolsRequested, Usage
from haru_fsm.errors import ModelError
from haru_fsm.models import Model, ModelOutcome, ModelRequest
from haru_fsm.models.fallback import FallbackModel
from haru_fsm.models.scripted import ScriptedModel, answer, calls

USER = {"role": "user", "parts": [{"text": "주문 어디쯤 왔나요?"}]}


class Takes(ScriptedModel):
    """A scripted model that takes its time, and may speak before it fails."""

    def __init__(
        self, line: ModelOutcome, clock: FakeClock | None = None, takes_s: float = 0.0, says: str = ""
    ) -> None:
        super().__init__([line])
        self._clock, self._takes_s, self._says = clock, takes_s, says

    async def respond(self, request: ModelRequest) -> ModelOutcome:
        if self._clock:
            self._clock.advance(self._takes_s)
        if self._says and request.on_text:
            request.on_text(self._says)
        return await super().respond(request)


def failed(model: str, reason: str = "server", tokens: int = 10, requests: int = 4) -> ModelFailed:
    incident = Incident(reason=reason, detail="down", http_status=503)
    return ModelFailed(
        model=model, reason=reason, detail=f"{model} is down", requests=requests,
        usage=Usage(prompt=tokens), incidents=(incident,),
    )  # fmt: skip


def said(model: str, text: str = "배송중입니다.") -> ModelAnswered:
    return answer(text, model=model, usage=Usage(prompt=100, answer=20), requests=2)


async def ask(*models: Model, clock: FakeClock | None = None, **more: Any) -> ModelOutcome:
    return await FallbackModel(models, clock=clock or FakeClock()).respond(ModelRequest("", (USER,), **more))


async def test_the_first_speaks_where_it_can() -> None:
    second = Takes(said("b"))
    outcome = await ask(Takes(said("a")), second)
    assert outcome == said("a")
    assert second.requests == []


@pytest.mark.parametrize("reason", [reason for reason in FailureReason if reason is not FailureReason.DEADLINE])
async def test_the_next_speaks_where_one_has_failed_and_all_is_counted(reason: str) -> None:
    outcome = await ask(Takes(failed("a", reason)), Takes(failed("b")), Takes(said("c")))
    assert isinstance(outcome, ModelAnswered)
    assert (outcome.model, outcome.text, outcome.requests) == ("c", "배송중입니다.", 10)
    assert outcome.usage == Usage(prompt=120, answer=20)
    assert [(one.reason, one.detail) for one in outcome.incidents] == [(reason, "a: down"), ("server", "b: down")]


async def test_calls_come_from_the_next_as_well() -> None:
    outcome = await ask(Takes(failed("a")), Takes(calls(("look", {}), model="b", usage=Usage(prompt=5))))
    assert isinstance(outcome, ToolsRequested)
    assert (outcome.model, outcome.usage.prompt) == ("b", 15)


async def test_nobody_else_is_asked_when_the_time_is_over() -> None:
    second = Takes(said("b"))
    outcome = await ask(Takes(failed("a", "deadline")), second)
    assert isinstance(outcome, ModelFailed)
    assert outcome.reason == "deadline"
    clock = FakeClock()
    outcome = await ask(Takes(failed("a"), clock, 30), second, clock=clock, timeout_s=30)
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.detail) == ("server", "a is down")
    assert second.requests == []


async def test_the_first_is_asked_whatever_time_there_is_and_the_next_with_the_last_of_it() -> None:
    assert (await ask(Takes(said("a")), timeout_s=0)).model == "a"
    clock = FakeClock()
    assert (await ask(Takes(failed("a"), clock, 29.5), Takes(said("b")), clock=clock, timeout_s=30)).model == "b"


async def test_tools_that_are_off_are_off_for_all() -> None:
    models = [Takes(failed("a")), Takes(said("b"))]
    await ask(*models, tools_allowed=False)
    assert [model.requests[0].tools_allowed for model in models] == [False, False]


async def test_the_next_has_what_is_left_of_time_and_requests() -> None:
    clock = FakeClock()
    second = Takes(said("b"))
    await ask(Takes(failed("a"), clock, 12), second, clock=clock, timeout_s=30, requests_left=6)
    assert (second.requests[0].timeout_s, second.requests[0].requests_left) == (18, 2)
    third = Takes(said("b"))
    await ask(Takes(failed("a")), third, requests_left=3)
    assert (third.requests[0].timeout_s, third.requests[0].requests_left) == (None, 1)


async def test_where_all_fail_the_failure_tells_of_all() -> None:
    outcome = await ask(Takes(failed("a", "wrong_key")), Takes(failed("b", "server")))
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.model, outcome.requests) == ("server", "b", 8)
    assert outcome.detail == "a: a is down; b: b is down"
    assert [one.detail for one in outcome.incidents] == ["a: down", "down"]


@pytest.mark.parametrize("reason", ["prompt_blocked", "too_large"])
async def test_a_reason_that_later_requests_depend_on_is_not_lost(reason: str) -> None:
    outcome = await ask(Takes(failed("a", reason)), Takes(failed("b", "server")))
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.model) == (reason, "a")


async def test_what_was_heard_of_one_is_not_followed_by_anothers_words() -> None:
    heard: list[str] = []
    outcome = await ask(Takes(failed("a"), says="배송이 "), Takes(said("b")), on_text=heard.append)
    assert isinstance(outcome, ModelAnswered)
    assert outcome.text == "배송중입니다."
    assert heard == ["배송이 "]
    heard.clear()
    await ask(Takes(failed("a")), Takes(said("b")), on_text=heard.append)
    assert heard == ["배송중입니다."]


def test_an_empty_list_is_no_model() -> None:
    with pytest.raises(ModelError, match="at least one"):
        FallbackModel([])


async def test_all_are_closed_and_named() -> None:
    class Closing(ScriptedModel):
        closed = 0

        async def aclose(self) -> None:
            self.closed += 1

    first, last = Closing([]), Closing([])
    model = FallbackModel([first, ScriptedModel([]), last])
    await model.aclose()
    assert model.name == "scripted > scripted > scripted"
    assert [first.closed, last.closed] == [1, 1]


outcomes = st.sampled_from(
    [said, failed, lambda name: failed(name, "deadline"), lambda name: failed(name, "quota", 7, 1)]
)


@given(st.lists(outcomes, min_size=1, max_size=5))
def test_nothing_that_was_spent_is_lost(made: list[Callable[[str], ModelOutcome]]) -> None:
    lines = [one(f"m{index}") for index, one in enumerate(made)]
    models = [Takes(line) for line in lines]
    outcome = asyncio.run(ask(*models))
    asked = [line for line, model in zip(lines, models, strict=True) if model.requests]
    assert outcome.requests == sum(line.requests for line in asked)
    assert outcome.usage.total == sum(line.usage.total for line in asked)
    assert [(one.model, one.requests, one.usage) for one in outcome.by_model] == [
        (line.model, line.requests, line.usage) for line in asked
    ], "each at its own price"
    assert len(outcome.incidents) == sum(len(line.incidents) for line in asked)
    assert all(isinstance(line, ModelFailed) for line in asked[:-1])
