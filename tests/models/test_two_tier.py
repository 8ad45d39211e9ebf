"""TwoTierModel: the steps by a cheap model, the words of the answer by a strong one."""

from typing import Any

import pytest

from haru_fsm.clock import FakeClock
from haru_fsm.conversation import FailureReason, Incident, ModelAnswered, ModelFailed, ToolsRequested, Usage
from haru_fsm.models import Declaration, Model, ModelOutcome, ModelRequest
from haru_fsm.models.scripted import ScriptedModel, answer, calls
from haru_fsm.models.two_tier import REWRITE, TwoTierModel
from haru_fsm.testing.strict import check_contents
from tests.models.test_fallback import Takes, failed

USER = {"role": "user", "parts": [{"text": "주문 어디쯤 왔나요?"}]}
DRAFT = answer("배송중", model="cheap", usage=Usage(prompt=100, answer=5), requests=2,
               incidents=(Incident(reason="empty", detail="nothing"),))  # fmt: skip
FINAL = answer("고객님, 주문하신 상품은 배송중입니다.", model="strong", usage=Usage(prompt=150, answer=20))


async def ask(cheap: Model, strong: Model, clock: FakeClock | None = None, **more: Any) -> ModelOutcome:
    given = {"declarations": [Declaration("look", "")], "requests_left": 8, **more}
    return await TwoTierModel(cheap, strong, clock=clock or FakeClock()).respond(ModelRequest("s", (USER,), **given))


async def test_calls_are_the_cheap_models_own_business() -> None:
    strong = Takes(FINAL)
    wanted = calls(("look", {}), model="cheap")
    assert await ask(Takes(wanted), strong) is wanted
    assert (await ask(Takes(failed("cheap")), strong)) == failed("cheap")
    assert strong.requests == []


async def test_the_answer_is_the_strong_models_and_both_are_counted() -> None:
    strong = Takes(FINAL)
    outcome = await ask(Takes(DRAFT), strong)
    assert isinstance(outcome, ModelAnswered)
    assert (outcome.text, outcome.model, outcome.requests) == (FINAL.text, "strong", 3)
    assert outcome.content == FINAL.content
    assert outcome.usage == Usage(prompt=250, answer=25)
    assert [one.detail for one in outcome.incidents] == ["cheap: nothing"]
    (asked,) = strong.requests
    assert asked.contents == (
        USER,
        {"role": "model", "parts": [{"text": "배송중"}]},
        {"role": "user", "parts": [{"text": REWRITE}]},
    )
    assert check_contents(list(asked.contents)) == []
    assert (asked.tools_allowed, asked.requests_left, asked.system) == (False, 6, "s")


async def test_a_leaked_thought_and_signatures_of_the_draft_stay_behind() -> None:
    content = {"role": "model", "parts": [{"text": "THOUGHT: x\n\n배송중", "thoughtSignature": "QUJD"}]}
    strong = Takes(FINAL)
    await ask(Takes(DRAFT.model_copy(update={"content": content, "shown": "배송중"})), strong)
    assert strong.requests[0].contents[1] == {"role": "model", "parts": [{"text": "배송중"}]}


@pytest.mark.parametrize(
    "nothing",
    [
        *(failed("strong", reason) for reason in FailureReason),
        calls(("look", {}), model="strong"),
        answer("", model="strong"),
    ],
    ids=lambda outcome: getattr(outcome, "reason", outcome.kind),
)
async def test_a_strong_model_that_fails_leaves_the_draft_and_what_it_has_spent(nothing: ModelOutcome) -> None:
    heard: list[str] = []
    outcome = await ask(Takes(DRAFT), Takes(nothing), on_text=heard.append)
    assert isinstance(outcome, ModelAnswered)
    assert (outcome.text, outcome.model, outcome.content) == ("배송중", "cheap", DRAFT.content)
    assert outcome.requests == DRAFT.requests + nothing.requests
    assert outcome.usage == DRAFT.usage + nothing.usage
    assert [one.detail for one in outcome.incidents] == ["nothing", *["strong: down"] * len(nothing.incidents)]
    assert heard[-1:] == ["배송중"]
    assert not isinstance(outcome, ToolsRequested | ModelFailed)


@pytest.mark.parametrize(("left", "rewritten"), [(2, False), (3, True)])
async def test_the_rewriting_is_a_request_like_any_other(left: int, rewritten: bool) -> None:
    strong = Takes(FINAL)
    outcome = await ask(Takes(DRAFT), strong, requests_left=left)
    assert (outcome.model == "strong", bool(strong.requests)) == (rewritten, rewritten)


async def test_the_rewriting_has_the_time_that_is_left() -> None:
    clock, strong = FakeClock(), Takes(FINAL)
    outcome = await ask(Takes(DRAFT, clock, 29.5), strong, clock=clock, timeout_s=30)
    assert (outcome.model, strong.requests[0].timeout_s) == ("strong", 0.5)


async def test_there_is_no_rewriting_after_the_deadline() -> None:
    clock, strong, heard = FakeClock(), Takes(FINAL), list[str]()
    outcome = await ask(Takes(DRAFT, clock, 30), strong, clock=clock, timeout_s=30, on_text=heard.append)
    assert (outcome, strong.requests, heard) == (DRAFT, [], ["배송중"])


async def test_only_the_final_answer_is_heard() -> None:
    heard, cheap = list[str](), Takes(DRAFT, says="초안")
    await ask(cheap, Takes(FINAL), on_text=heard.append)
    assert cheap.requests[0].on_text is None
    assert heard == [FINAL.text]
    heard.clear()
    await ask(Takes(DRAFT), Takes(failed("strong"), says="고객님, "), on_text=heard.append)
    assert heard == ["고객님, "]


async def test_both_are_named_and_closed() -> None:
    class Closing(ScriptedModel):
        closed = 0

        async def aclose(self) -> None:
            self.closed += 1

    cheap, strong = Closing([]), Closing([])
    model = TwoTierModel(cheap, strong)
    await model.aclose()
    assert (model.name, cheap.closed, strong.closed) == ("scripted + scripted", 1, 1)
