"""One contract for all wires: the same scenarios through the engine, with the real clients, over HTTP to fake servers.

What differs between providers is said once, in `WIRES`; every scenario then asks for the same journal and the same
customer's view of it.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from haru_fsm import Engine, Limits
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import ModelEvent, Step, ToolsRequested
from haru_fsm.models import Model, ModelOutcome, ModelRequest
from haru_fsm.models.gemini import GeminiModel
from haru_fsm.models.openai import OpenAIModel
from haru_fsm.runs import Piece, Run
from haru_fsm.testing import fake_gemini, fake_openai
from haru_fsm.testing.fake_gemini import FakeGemini
from haru_fsm.testing.fake_openai import FakeOpenAI
from tests.engine.shopless import Tools, engine, record_of

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Wire:
    """How one provider says things."""

    server: Callable[..., Any]
    model: Callable[..., Any]
    say: Callable[..., Any]
    want: Callable[..., Any]
    error: Callable[[int, str], Any]
    empty: Any
    cut: Any
    blocked: Any
    malformed: Any
    unknown: Any
    tokenless: Any
    half: Any
    """The chunks of a stream that breaks off."""
    waits_3_s: Any
    spent: Any
    """A quota that no waiting brings back."""


def _want_gemini(*calls: Call, text: str = "") -> Any:
    return fake_gemini.reply(*([text] if text else []), *(fake_gemini.call(name, **args) for name, args in calls))


def _want_openai(*calls: Call, text: str = "") -> Any:
    return fake_openai.reply(*([text] if text else []), *(fake_openai.call(name, **args) for name, args in calls))


WIRES = {
    "gemini": Wire(
        server=FakeGemini,
        model=GeminiModel,
        say=fake_gemini.reply,
        want=_want_gemini,
        error=fake_gemini.error,
        empty=fake_gemini.reply(),
        cut=fake_gemini.reply("배송은", finish="MAX_TOKENS"),
        blocked=fake_gemini.reply(finish="SAFETY"),
        malformed=fake_gemini.reply(finish="MALFORMED_FUNCTION_CALL"),
        unknown=fake_gemini.reply("네.", finish="SOMETHING_NEW"),
        tokenless=fake_gemini.reply("배송중입니다.", usage={}),
        half=list(fake_gemini.split_into_chunks(fake_gemini.reply("배송중입니다. 곧 도착합니다.")))[:1],
        waits_3_s=fake_gemini.error(
            429, "slow", details=[{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3s"}]
        ),
        spent=fake_gemini.error(429, "Quota exceeded for quota metric requests per day"),
    ),
    "openai": Wire(
        server=FakeOpenAI,
        model=OpenAIModel,
        say=fake_openai.reply,
        want=_want_openai,
        error=fake_openai.error,
        empty=fake_openai.reply(),
        cut=fake_openai.reply("배송은", finish="length"),
        blocked=fake_openai.reply(finish="content_filter"),
        malformed=fake_openai.reply(finish="tool_calls"),
        unknown=fake_openai.reply("네.", finish="something_new"),
        tokenless=fake_openai.reply("배송중입니다.", usage={}),
        half=list(fake_openai.split_into_chunks(fake_openai.reply("배송중입니다. 곧 도착합니다.")))[:2],
        waits_3_s=fake_openai.error(429, "slow", retry_after="3"),
        spent=fake_openai.error(429, "You exceeded your current quota", code="insufficient_quota"),
    ),
}


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> Wire:
    return WIRES[request.param]


@dataclass
class Played:
    """A server, and an engine that talks to it."""

    server: Any
    engine: Engine
    tools: Tools
    clock: FakeClock

    async def ask(self, text: str = "제 주문 어디 있나요?", conversation_id: str | None = None) -> Run:
        return await self.engine.ask(text, customer_id="C1", conversation_id=conversation_id)

    async def events(self, run: Run) -> list[ModelEvent]:
        record = await self.engine.store.load(run.conversation_id)
        assert record is not None
        return [step.event for step in record.steps if isinstance(step.event, ModelEvent)]


@asynccontextmanager
async def playing(wire: Wire, *script: Any, **limits: Any) -> AsyncIterator[Played]:
    clock, tools = FakeClock(), Tools()
    async with wire.server(script) as server:
        model = wire.model(
            "gemini-2.5-flash",
            api_key="topsecret1",
            base_url=server.base_url,
            clock=clock,
            limits=Limits(**limits),
            rng=random.Random(1),
        )
        async with engine(model, tools=tools, clock=clock, **limits) as haru:
            yield Played(server, haru, tools, clock)
        assert server.violations == []
        assert server.overruns == 0


A, B = ("look", {"what": "A"}), ("look", {"what": "B"})


async def test_tools_then_an_answer_then_another_message(wire: Wire) -> None:
    script = [
        wire.want(A, B, text="볼게요."),
        wire.want(("pay", {"what": "A"})),
        wire.say("결제했습니다."),
        wire.say("네."),
    ]
    async with playing(wire, *script) as played:
        run = await played.ask()
        assert (run.state, run.answer, run.steps, run.tool_runs) == ("DONE", "결제했습니다.", 3, 3)
        assert run.usage.total == 360
        assert not run.usage.estimated
        assert dict(played.tools.runs) == {"look(A)": 1, "look(B)": 1, "pay(A)": 1}
        again = await played.ask("고마워요", run.conversation_id)
        assert again.answer == "네."
        first = (await played.events(run))[0]
        assert isinstance(first, ToolsRequested)
        assert [(call.name, call.args) for call in first.calls] == [A, B]
        assert (first.text, first.model) == ("볼게요.", "gemini-2.5-flash")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("empty", "empty"),
        ("cut", "cut_off"),
        ("blocked", "answer_blocked"),
        ("malformed", "malformed_call"),
        ("unknown", "unknown_finish"),
    ],
)
async def test_an_unusable_reply_is_asked_for_again_and_then_a_ticket_tells_why(
    wire: Wire, name: str, reason: str
) -> None:
    item = getattr(wire, name)
    async with playing(wire, item, wire.say("배송중입니다."), item, item, item) as played:
        run = await played.ask()
        assert (run.answer, run.steps) == ("배송중입니다.", 2)
        lost = await played.ask(conversation_id=run.conversation_id)
        assert lost.state == "ESCALATE_TICKET"
        assert lost.stopped_by is not None
        assert reason in lost.stopped_by.because
        first, last = await played.events(run)
        assert [incident.reason for incident in first.incidents] == [reason]
        assert [incident.reason for incident in last.incidents] == [reason] * 3
        assert run.usage.total + lost.usage.total == 5 * 120


async def test_an_empty_reply_after_an_effect_repeats_nothing(wire: Wire) -> None:
    async with playing(wire, wire.want(("pay", {"what": "A"})), wire.empty, wire.say("결제했습니다.")) as played:
        assert (await played.ask()).answer == "결제했습니다."
        assert dict(played.tools.runs) == {"pay(A)": 1}


async def test_a_told_wait_is_kept_and_a_spent_quota_is_not_waited_for(wire: Wire) -> None:
    async with playing(wire, wire.waits_3_s, wire.say("네."), wire.spent) as played:
        run = await played.ask()
        assert (run.answer, played.clock.slept) == ("네.", [3.0])
        lost = await played.ask(conversation_id=run.conversation_id)
        assert (lost.state, played.clock.slept) == ("ESCALATE_TICKET", [3.0])
        assert (await played.events(run))[-1].incidents[0].reason == "quota"


@pytest.mark.parametrize(
    ("status", "reason", "attempts"),
    [(500, "server", 4), (503, "server", 4), (401, "wrong_key", 1), (404, "unknown_model", 1)],
)
async def test_errors_end_in_a_ticket_and_tell_no_key(wire: Wire, status: int, reason: str, attempts: int) -> None:
    item = wire.error(status, "topsecret1 did something")
    async with playing(wire, *[item] * attempts) as played:
        run = await played.ask()
        assert (run.state, run.steps) == ("ESCALATE_TICKET", attempts)
        record = await played.engine.store.load(run.conversation_id)
        assert reason in str(record)
        assert "did something" in str(record)
        assert "topsecret1" not in str(record) + str(run)


@pytest.mark.parametrize("fault", ["close", "reset", "truncate"])
async def test_a_broken_wire_is_mended_by_asking_again(wire: Wire, fault: str) -> None:
    item = {"transport": fault, "body": wire.say("배송중입니다.")}
    async with playing(wire, wire.want(A), item, wire.say("배송중입니다.")) as played:
        run = await played.ask()
        assert (run.answer, run.steps, dict(played.tools.runs)) == ("배송중입니다.", 3, {"look(A)": 1})
        assert (await played.events(run))[-1].incidents[0].reason == "transport"


async def test_tools_that_do_not_exist_and_arguments_that_do_not_fit_are_told(wire: Wire) -> None:
    odd = [("nothing_like_it", {}), ("look", {}), ("default_api.look", {"what": "A"})]
    async with playing(wire, wire.want(*odd), wire.say("네.")) as played:
        assert (await played.ask()).answer == "네."
        assert dict(played.tools.runs) == {"look(A)": 1}


async def test_at_the_limit_there_is_a_ticket_and_the_conversation_goes_on(wire: Wire) -> None:
    async with playing(wire, wire.want(A), wire.want(B), wire.say("네."), max_steps=2) as played:
        run = await played.ask()
        assert (run.state, dict(played.tools.runs)) == ("ESCALATE_TICKET", {"look(A)": 1})
        assert (await played.ask("고마워요", run.conversation_id)).answer == "네."


async def test_a_token_budget_counts_what_was_really_spent(wire: Wire) -> None:
    async with playing(wire, wire.empty, wire.want(A), wire.want(B), token_budget=300) as played:
        run = await played.ask()
        assert (run.state, run.usage.total, dict(played.tools.runs)) == ("ESCALATE_TICKET", 360, {"look(A)": 1})


async def test_missing_usage_is_estimated_and_marked(wire: Wire) -> None:
    async with playing(wire, wire.tokenless) as played:
        run = await played.ask()
        assert run.usage.estimated
        assert run.usage.prompt > 100


async def test_an_answer_is_heard_as_it_is_written_and_a_broken_one_is_no_answer(wire: Wire) -> None:
    script = [wire.want(A), wire.say("주문하신 상품은 배송중입니다."), wire.half, wire.say("곧 도착합니다.")]
    async with playing(wire, *script) as played:
        seen = [item async for item in played.engine.stream("어디쯤?", customer_id="C1")]
        run = seen[-1]
        assert isinstance(run, Run)
        pieces = [item.text for item in seen if isinstance(item, Piece)]
        assert ("".join(pieces), len(pieces) > 1) == (run.answer, True)
        assert run.answer == "주문하신 상품은 배송중입니다."
        assert all(isinstance(item, Step | Piece) for item in seen[:-1])
        more = [
            item
            async for item in played.engine.stream("언제요?", customer_id="C1", conversation_id=run.conversation_id)
        ]
        last = more[-1]
        assert isinstance(last, Run)
        assert last.answer == "곧 도착합니다."
        assert (await played.events(run))[-1].incidents[0].reason == "transport"


# --------------------------------------------------------------------------- both in one conversation


class Turns:
    """Each request to the next of these models: a conversation that changes its model between steps."""

    name = "turns"

    def __init__(self, *models: Model) -> None:
        self.models = models
        self.asked = 0

    async def respond(self, request: ModelRequest) -> ModelOutcome:
        model = self.models[self.asked % len(self.models)]
        self.asked += 1
        return await model.respond(request)


@pytest.mark.parametrize("gemini_first", [True, False])
async def test_a_conversation_may_change_its_model_between_steps(gemini_first: bool) -> None:
    """Gemini 3, which wants its calls signed and knows its own signatures, and a model that knows of none."""
    signed = {**fake_gemini.call("look", what="A"), "thoughtSignature": "AQID"}
    own = [
        fake_gemini.reply("볼게요.", signed, fake_gemini.call("look", what="C")),
        fake_gemini.reply("네, 그렇습니다."),
    ]
    other = [fake_openai.reply(fake_openai.call("look", what="B"), fake_openai.call("look", what="D", id=None))]
    async with (
        FakeGemini([*own, *own], require_signatures=True, check_signatures=True) as gemini,
        FakeOpenAI([*other, fake_openai.reply("더요?"), *other, fake_openai.reply("더요?")]) as openai,
    ):
        models: list[GeminiModel | OpenAIModel] = [
            GeminiModel("gemini-3-flash", api_key="k", base_url=gemini.base_url, clock=FakeClock()),
            OpenAIModel("gpt-5-mini", api_key="k", base_url=openai.base_url, clock=FakeClock()),
        ]
        tools = Tools()
        async with engine(Turns(*(models if gemini_first else models[::-1])), tools=tools) as haru:
            run = await haru.ask("어디쯤?", customer_id="C1")
            for text in ("그리고요?", "또요?", "끝으로요?"):
                run = await haru.ask(text, customer_id="C1", conversation_id=run.conversation_id)
            record = await record_of(haru, run.conversation_id)
        assert gemini.violations + openai.violations == []
        assert {step.event.model for step in record.steps if isinstance(step.event, ModelEvent)} == {
            "gemini-3-flash",
            "gpt-5-mini",
        }
        assert "AQID" in str(gemini.requests[-1])
        assert "AQID" not in str(openai.requests)
        assert not any(step.event.incidents for step in record.steps if isinstance(step.event, ModelEvent))
        for model in models:
            await model.aclose()
