"""What tokens cost: from the price list of genai-prices, request by request, journaled with the event."""

from __future__ import annotations

import random
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from genai_prices import Usage as Counted
from genai_prices import calc_price
from hypothesis import given
from hypothesis import strategies as st

from haru_fsm.clock import FakeClock
from haru_fsm.conversation import ModelAnswered, ModelFailed, Usage
from haru_fsm.limits import Limits
from haru_fsm.models import ModelRequest
from haru_fsm.models.gemini import GeminiModel
from haru_fsm.models.offline import OfflineModel
from haru_fsm.models.prices import dearest, priced
from haru_fsm.testing.fake_gemini import FakeGemini, call, error, reply
from tests.engine.shopless import engine

NOW = FakeClock().now()
FLASH = "gemini-2.5-flash"
PRICES = {"prompt": 0.30e-6, "cached": 0.03e-6, "answer": 2.50e-6}
"""US dollars per token of gemini-2.5-flash, from Google's price list."""

counts = st.integers(0, 2_000_000)


def counted(prompt: int, answer: int, *, cached: int = 0, thoughts: int = 0, tool: int = 0) -> dict[str, int]:
    return {
        "promptTokenCount": prompt,
        "cachedContentTokenCount": cached,
        "thoughtsTokenCount": thoughts,
        "toolUsePromptTokenCount": tool,
        "candidatesTokenCount": answer,
        "totalTokenCount": prompt + answer + thoughts + tool,
    }


def cost(usage: Usage, model: str = FLASH, seller: str = "gemini", at: float = NOW) -> float | None:
    return priced(usage, seller=seller, model=model, at=at).cost_usd


# --------------------------------------------------------------------------- one request


def test_each_kind_of_token_has_its_price() -> None:
    assert cost(Usage(prompt=1_000_000)) == pytest.approx(0.30)
    assert cost(Usage(prompt=1_000_000, cached=1_000_000)) == pytest.approx(0.03)
    assert cost(Usage(answer=1_000_000)) == cost(Usage(thoughts=1_000_000)) == pytest.approx(2.50)
    assert cost(Usage(tool=1_000_000)) == pytest.approx(0.30)


@given(prompt=counts, cached=counts, thoughts=counts, tool=counts, answer=counts, seed=st.booleans())
def test_any_counts_have_a_price(prompt: int, cached: int, thoughts: int, tool: int, answer: int, seed: bool) -> None:
    """Also counts that cannot be: gateways have reported more cached tokens than there were."""
    usage = Usage(prompt=prompt, cached=cached, thoughts=thoughts, tool=tool, answer=answer, estimated=seed)
    told = priced(usage, seller="gemini", model=FLASH, at=NOW)
    assert told.model_copy(update={"cost_usd": None}) == usage
    if not usage.total:
        assert told.cost_usd is None
        return
    cheap = min(cached, prompt + tool)
    expected = (prompt + tool - cheap) * PRICES["prompt"] + cheap * PRICES["cached"]
    expected += (thoughts + answer) * PRICES["answer"]
    assert told.cost_usd == pytest.approx(expected)


@pytest.mark.parametrize(
    ("seller", "model"),
    [
        ("google", FLASH),
        ("google", "gemini-2.5-pro"),
        ("google", "gemini-3-pro-preview"),
        ("openai", "gpt-5"),
        ("openai", "gpt-4o-mini"),
        ("anthropic", "claude-sonnet-4-5"),
        ("deepseek", "deepseek-chat"),
        ("perplexity", "sonar-pro"),
    ],
)
@given(prompt=counts, share=st.floats(0, 1), answer=counts, at=st.integers(1_700_000_000, 1_900_000_000))
def test_the_figure_is_that_of_the_price_list(
    seller: str, model: str, prompt: int, share: float, answer: int, at: int
) -> None:
    """In every tier, at every hour, with prices per request too: our rates give what the list itself gives."""
    cached = int(prompt * share)
    counted = Counted(input_tokens=prompt, cache_read_tokens=cached, output_tokens=answer)
    when = datetime.fromtimestamp(at, UTC)
    expected = calc_price(counted, model, provider_id=seller, genai_request_timestamp=when).total_price
    usage = Usage(prompt=prompt, cached=cached, answer=answer)
    assert (cost(usage, model, seller, at) or 0.0) == pytest.approx(float(expected) if usage.total else 0.0, abs=1e-11)


@pytest.mark.parametrize(
    ("seller", "model"),
    [
        ("gemini", "nobody-knows-it"),
        ("", "gpt-4o"),
        ("nobody", "gpt-4o"),
        ("http://127.0.0.1:8000/v1", "gpt-4o"),
        ("gemini", ""),
    ],
)
def test_what_is_not_known_has_no_price(seller: str, model: str) -> None:
    usage = Usage(prompt=10, answer=5)
    assert priced(usage, seller=seller, model=model, at=NOW) == usage


def test_names_as_people_write_them() -> None:
    usage = Usage(prompt=1000, answer=100)
    assert cost(usage, "models/gemini-2.5-flash") == cost(usage, FLASH)
    assert cost(usage, "gemini-flash-latest") is not None
    direct = cost(usage, "gpt-4o", "openai")
    assert direct is not None
    assert cost(usage, "gpt-4o", "https://api.openai.com/v1/") == direct
    assert cost(usage, "openai/gpt-4o", "https://openrouter.ai/api/v1") is not None


def test_the_price_is_that_of_the_moment() -> None:
    """gemini-3.8-flash has introductory prices until the end of 2026."""
    usage = Usage(prompt=1_000_000)
    early, late = (datetime(year, 1, 2, tzinfo=UTC).timestamp() for year in (2026, 2027))
    assert cost(usage, "gemini-3.8-flash", at=early) == pytest.approx(0.75)
    assert cost(usage, "gemini-3.8-flash", at=late) == pytest.approx(1.5)


def test_a_price_that_is_known_already_stays() -> None:
    usage = Usage(prompt=10, cost_usd=0.5)
    assert priced(usage, seller="gemini", model=FLASH, at=NOW) is usage


def test_sums_have_no_noise() -> None:
    assert (Usage(cost_usd=0.1) + Usage(cost_usd=0.2)).cost_usd == 0.3
    assert (Usage(cost_usd=0.1) + Usage()).cost_usd == 0.1
    assert (Usage() + Usage()).cost_usd is None


# --------------------------------------------------------------------------- events


async def ask(gemini: FakeGemini, name: str = FLASH, **facts: Any) -> Any:
    model = GeminiModel(
        name, api_key="k", base_url=gemini.base_url, clock=FakeClock(), rng=random.Random(1), limits=Limits()
    )
    request = ModelRequest(
        **{"system": "", "contents": [{"role": "user", "parts": [{"text": "?"}]}], "requests_left": 8, **facts}
    )
    try:
        return await model.respond(request)
    finally:
        await model.aclose()


async def test_an_event_says_what_it_cost() -> None:
    body = reply("네", usage=counted(1000, 50, cached=200, thoughts=30, tool=10))
    async with FakeGemini([body, body]) as gemini:
        event = await ask(gemini)
        streamed = await ask(gemini, on_text=lambda text: None)
    expected = 810 * PRICES["prompt"] + 200 * PRICES["cached"] + 80 * PRICES["answer"]
    assert event.usage.cost_usd == streamed.usage.cost_usd == pytest.approx(expected)
    assert not event.usage.estimated


async def test_an_unknown_model_has_tokens_only() -> None:
    async with FakeGemini([reply("네")]) as gemini:
        event = await ask(gemini, "tuned-by-us")
    assert (event.usage.total, event.usage.cost_usd) == (120, None)


async def test_failed_attempts_cost_too() -> None:
    """An empty reply, a blocked one and one that was cut off are paid for; an error is not."""
    script = [
        reply(usage=counted(1000, 0, thoughts=100)),
        error(503, "overloaded"),
        reply("반쪽", finish="MAX_TOKENS", usage=counted(1000, 500)),
        reply("네", usage=counted(1000, 10)),
    ]
    async with FakeGemini(script) as gemini:
        event = await ask(gemini)
    assert isinstance(event, ModelAnswered)
    assert (event.requests, event.usage.prompt) == (4, 3000)
    assert event.usage.cost_usd == pytest.approx(3000 * PRICES["prompt"] + 610 * PRICES["answer"])


async def test_each_request_has_its_own_tier() -> None:
    """gemini-2.5-pro is dearer beyond 200,000 tokens of prompt: two requests of 150,000 are not one of 300,000."""
    script = [reply(usage=counted(150_000, 0)), reply("네", usage=counted(150_000, 10))]
    async with FakeGemini(script) as gemini:
        event = await ask(gemini, "gemini-2.5-pro")
    when = datetime.fromtimestamp(NOW, UTC)
    one, two = (
        float(
            calc_price(
                Counted(input_tokens=150_000, output_tokens=out),
                "gemini-2.5-pro",
                provider_id="google",
                genai_request_timestamp=when,
            ).total_price
        )
        for out in (0, 10)
    )
    assert event.usage.cost_usd == pytest.approx(one + two)
    together = calc_price(Counted(input_tokens=300_000, output_tokens=10), "gemini-2.5-pro", provider_id="google")
    assert float(together.total_price) > 1.5 * (one + two)


async def test_what_no_provider_counted_is_marked_and_priced() -> None:
    async with FakeGemini([reply("네, 있습니다.", usage={})]) as gemini:
        event = await ask(gemini)
    assert event.usage.estimated
    assert event.usage.total > 0
    assert event.usage.cost_usd is not None


@pytest.mark.parametrize("transport", ["truncate", "stall"])
async def test_a_stream_that_was_cut_off_is_paid_for(transport: str) -> None:
    """What had been written by then was read and paid for; nobody has counted it, so it is estimated."""
    cut = {"transport": transport, "body": reply("이 답은 끝까지 오지 못합니다. " * 10)}
    async with FakeGemini([cut]) as gemini:
        model = GeminiModel(
            FLASH, api_key="k", base_url=gemini.base_url, limits=Limits(http_retries=0, model_timeout_s=1)
        )
        contents = [{"role": "user", "parts": [{"text": "질문입니다. " * 100}]}]
        event = await model.respond(ModelRequest(system="", contents=contents, on_text=lambda text: None))
        await model.aclose()
    assert isinstance(event, ModelFailed)
    assert event.usage.estimated
    assert event.usage.prompt > 300
    assert event.usage.answer > 0
    assert event.usage.cost_usd is not None


async def test_the_planner_costs_nothing() -> None:
    contents = [{"role": "user", "parts": [{"text": "안녕하세요"}]}]
    event = await OfflineModel().respond(ModelRequest(system="", contents=contents))
    assert (event.usage.cost_usd, event.usage.estimated) == (None, True)


# --------------------------------------------------------------------------- budgets


async def test_a_conversation_that_costs_too_much_ends_in_a_ticket() -> None:
    """Each step costs $0.0005: the budget of $0.0012 is spent by the third, whose calls are not run."""
    thrifty = counted(1000, 80)
    script = [reply(call("look", what=str(number)), usage=thrifty) for number in range(5)]
    async with FakeGemini(script) as gemini:
        model = GeminiModel(FLASH, api_key="k", base_url=gemini.base_url, clock=FakeClock())
        async with engine(model, cost_budget_usd=0.0012) as haru:
            run = await haru.ask("주문 확인해 주세요", customer_id="C1")
    assert run.ticket is not None
    assert run.stopped_by is not None
    assert run.stopped_by.guard == "CostBudget(0.0012)"
    assert run.stopped_by.figure == pytest.approx(0.0015)
    assert (run.steps, run.tool_runs) == (3, 2)
    assert run.usage.cost_usd == pytest.approx(0.0015)
    assert not gemini.violations


async def test_a_budget_counts_failed_attempts() -> None:
    """The first reply is empty and paid for: with it the budget is spent one step earlier."""
    thrifty = counted(1000, 80)
    script = [reply(usage=thrifty), *(reply(call("look", what=str(number)), usage=thrifty) for number in range(5))]
    async with FakeGemini(script) as gemini:
        model = GeminiModel(FLASH, api_key="k", base_url=gemini.base_url, clock=FakeClock())
        async with engine(model, cost_budget_usd=0.0012) as haru:
            run = await haru.ask("주문 확인해 주세요", customer_id="C1")
    assert run.stopped_by is not None
    assert run.stopped_by.guard == "CostBudget(0.0012)"
    assert (run.steps, run.tool_runs) == (3, 1)


async def test_without_a_price_a_budget_of_money_never_trips() -> None:
    script = [*(reply(call("look", what=str(number))) for number in range(3)), reply("네")]
    async with FakeGemini(script) as gemini:
        model = GeminiModel("tuned-by-us", api_key="k", base_url=gemini.base_url, clock=FakeClock())
        async with engine(model, cost_budget_usd=0.000001) as haru:
            run = await haru.ask("주문 확인해 주세요", customer_id="C1")
    assert (run.answer, run.usage.cost_usd) == ("네", None)


# --------------------------------------------------------------------------- the worst case


@pytest.mark.parametrize(
    "spec", [f"gemini:{FLASH}", "gemini:gemini-flash-latest", "gemini:gemini-2.5-pro", "openai:gpt-4o"]
)
@given(data=st.data())
def test_no_request_costs_more_than_the_dearest(spec: str, data: st.DataObject) -> None:
    worst = dearest(spec, at=NOW, window=1_048_576)
    assert worst.tokens is not None
    assert worst.usd is not None
    assert worst.usd_per_token is not None
    kind, _, name = spec.partition(":")
    reply_room = 65_536 if kind == "gemini" else worst.tokens
    answer = data.draw(st.integers(0, reply_room))
    prompt = data.draw(
        st.integers(0, min(worst.tokens - reply_room if kind == "gemini" else worst.tokens - answer, worst.tokens))
    )
    cached = data.draw(st.integers(0, prompt))
    usage = Usage(prompt=prompt, cached=cached, answer=answer)
    paid = cost(usage, name, kind) or 0.0
    assert usage.total <= worst.tokens
    assert paid <= worst.usd * (1 + 1e-9)
    assert paid <= usage.total * worst.usd_per_token * (1 + 1e-9)


def test_what_nobody_knows_has_no_worst_case() -> None:
    assert dearest("gemini:nobody-knows-it", at=NOW) == dearest("cassette:c.jsonl", at=NOW)
    assert dearest("gemini:nobody-knows-it", at=NOW).tokens is None
    assert dearest("openai:nobody-knows-it", at=NOW, window=1000).tokens == 1000
    assert dearest("gemini:nobody-knows-it", at=NOW, window=1000).usd is None
    assert dearest("offline", at=NOW).usd == 0.0


def test_prices_are_loaded_when_they_are_needed() -> None:
    """Neither `import haru_fsm` nor the making of a model loads them."""
    code = (
        "import sys, haru_fsm, haru_fsm.models.gemini, haru_fsm.settings\n"
        "haru_fsm.models.gemini.GeminiModel('gemini-2.5-flash', api_key='k')\n"
        "assert 'genai_prices' not in sys.modules\n"
        "from haru_fsm.models.prices import dearest\n"
        "dearest('gemini:gemini-2.5-flash', at=0.0)\n"
        "assert 'genai_prices' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
