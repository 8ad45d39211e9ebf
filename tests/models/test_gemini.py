"""GeminiModel: the real client, over real HTTP, against a server that plays a script."""

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from haru_fsm.clock import FakeClock
from haru_fsm.conversation import JSON, ModelAnswered, ModelFailed, ToolsRequested
from haru_fsm.errors import ModelError
from haru_fsm.limits import Limits
from haru_fsm.models import Declaration, ModelRequest
from haru_fsm.models.gemini import GeminiModel
from haru_fsm.testing.fake_gemini import FakeGemini, call, error, reply
from haru_fsm.testing.scripted_http import Item

KEY = "AIzaSyTEST0000000000000000000000000000"
USER = {"role": "user", "parts": [{"text": "주문 어디쯤 왔나요?"}]}
TOOLS = [
    Declaration("get_order", "주문을 찾습니다.", {"type": "object", "properties": {"order_id": {"type": "string"}}})
]


@asynccontextmanager
async def playing(
    *script: Item,
    clock: FakeClock | None = None,
    settings: dict[str, Any] | None = None,
    limits: Limits | None = None,
    **server: Any,
) -> AsyncIterator[tuple[FakeGemini, GeminiModel]]:
    """A server that plays the script, and a model that talks to it."""
    async with FakeGemini(script, **server) as gemini:
        model = GeminiModel(
            "gemini-flash-latest",
            base_url=gemini.base_url,
            limits=limits or Limits(),
            clock=clock or FakeClock(),
            rng=random.Random(1),
            **{"api_key": KEY, **(settings or {})},
        )
        try:
            yield gemini, model
        finally:
            await model.aclose()


def request(*contents: JSON, **more: Any) -> ModelRequest:
    given = {"system": "친절하게", "declarations": TOOLS, "requests_left": 8}
    return ModelRequest(contents=contents or (USER,), **{**given, **more})


# --------------------------------------------------------------------------- what goes out, what comes in


async def test_an_answer() -> None:
    async with playing(reply("배송중입니다.")) as (gemini, model):
        outcome = await model.respond(request())
    assert isinstance(outcome, ModelAnswered)
    assert (outcome.text, outcome.model, outcome.requests) == ("배송중입니다.", "gemini-flash-latest", 1)
    assert outcome.usage.total == 120
    sent = gemini.requests[0]
    assert sent["contents"] == [USER]
    assert sent["systemInstruction"] == {"parts": [{"text": "친절하게"}]}
    assert sent["generationConfig"] == {"temperature": 1.0}
    assert sent["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] == TOOLS[0].parameters
    assert sent.keys() == {"contents", "systemInstruction", "generationConfig", "tools"}
    assert gemini.received[0].model == "gemini-flash-latest"
    assert gemini.received[0].headers["x-goog-api-key"] == KEY


async def test_a_time_out_is_always_set() -> None:
    async with playing(reply("네."), reply("네.")) as (gemini, model):
        await model.respond(request())
        await model.respond(request(timeout_s=4.5))
    assert [received.headers["x-server-timeout"] for received in gemini.received] == ["60", "5"]


async def test_tools_requested_and_replayed_verbatim() -> None:
    odd = {"functionCall": {"name": "get_order"}, "thoughtSignature": "A-_8", "newField": {"x": [1.0, 2**70]}}
    async with playing(reply("볼게요.", odd), reply("네.")) as (gemini, model):
        outcome = await model.respond(request())
        assert isinstance(outcome, ToolsRequested)
        answered = {"role": "user", "parts": [{"functionResponse": {"name": "get_order", "response": {"result": 1}}}]}
        await model.respond(request(USER, outcome.content, answered))
    assert gemini.requests[1]["contents"] == [USER, {"role": "model", "parts": [{"text": "볼게요."}, odd]}, answered]
    assert gemini.violations == []


async def test_no_call_is_run_behind_our_back_and_no_continuation_is_followed() -> None:
    going_on = reply("안내 ", finish="CONTINUATION", continuationToken="dG9rMQ==")
    limits = Limits(model_retries=0)
    async with playing(reply(call("get_order", order_id="HR1")), going_on, limits=limits) as (gemini, model):
        await model.respond(request())
        outcome = await model.respond(request())
    assert isinstance(outcome, ModelFailed)
    assert outcome.reason == "unfinished"
    assert len(gemini.requests) == 2


async def test_what_is_not_finite_never_goes_out_bare() -> None:
    async with playing({"raw_text": json.dumps(reply(call("a", n=float("nan"))))}) as (_, model):
        outcome = await model.respond(request())
    assert isinstance(outcome, ToolsRequested)
    assert outcome.calls[0].args == {"n": "NaN"}


async def test_tools_off() -> None:
    async with playing(reply("네.")) as (gemini, model):
        await model.respond(request(tools_allowed=False))
    assert gemini.requests[0]["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}


async def test_one_model_serves_many_conversations_at_once() -> None:
    async with FakeGemini(lambda body: reply(body["contents"][0]["parts"][0]["text"])) as gemini:
        model = GeminiModel("m", api_key=KEY, base_url=gemini.base_url, clock=FakeClock())
        asked = [request({"role": "user", "parts": [{"text": f"{number}번"}]}) for number in range(20)]
        answers = await asyncio.gather(*map(model.respond, asked))
        await model.aclose()
    assert [answer.text for answer in answers if isinstance(answer, ModelAnswered)] == [
        f"{number}번" for number in range(20)
    ]


# --------------------------------------------------------------------------- set-up


def test_without_a_key_there_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelError, match="GEMINI_API_KEY"):
        GeminiModel("m")


async def test_the_key_and_a_ready_client_can_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    from google.genai import Client
    from google.genai.types import HttpOptions

    monkeypatch.setenv("GEMINI_API_KEY", "from-environment")
    async with FakeGemini([reply("네."), reply("네.")]) as gemini:
        for model in (
            GeminiModel("m", base_url=gemini.base_url, api_version="v1alpha"),
            GeminiModel("m", client=Client(api_key="own", http_options=HttpOptions(base_url=gemini.base_url))),
        ):
            outcome = await model.respond(request())
            assert isinstance(outcome, ModelAnswered)
            assert outcome.text == "네."
            await model.aclose()
    assert [one.headers["x-goog-api-key"] for one in gemini.received] == ["from-environment", "own"]


def test_the_sdk_is_imported_only_when_a_model_is_made() -> None:
    code = "import sys, haru_fsm.models.gemini; sys.exit(any(name.startswith('google.genai') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0


# --------------------------------------------------------------------------- refusals and broken wires


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (error(400, "Please ensure that the number of function response parts is equal..."), "bad_request"),
        (
            error(400, "The input token count (21000) exceeds the maximum number of tokens allowed (20000)."),
            "too_large",
        ),
        (error(403, "denied"), "wrong_key"),
        (error(404, "models/gemini-flash-latest is not found"), "unknown_model"),
    ],
)
async def test_what_was_refused_is_not_sent_again(item: JSON, reason: str) -> None:
    async with playing(item) as (gemini, model):
        outcome = await model.respond(request())
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.requests) == (reason, 1)
    assert outcome.incidents[0].http_status == item["http_status"]
    assert item["body"]["error"]["message"] in outcome.detail
    assert gemini.overruns == 0


async def test_a_wrong_key_and_a_wrong_name_are_told_apart_and_no_key_is_told() -> None:
    async with playing(api_key="right") as (_, model):
        outcome = await model.respond(request())
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, KEY in repr(outcome)) == ("wrong_key", False)
    async with playing(models={"gemini-pro"}) as (_, model):
        outcome = await model.respond(request())
    assert isinstance(outcome, ModelFailed)
    assert outcome.reason == "unknown_model"
    assert "HARU_MODEL" in outcome.detail


async def test_a_server_that_repeats_the_key_is_not_repeated(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="haru_fsm")
    async with playing(error(403, f"key {KEY} and own-secret are suspended")) as (_, model):
        outcome = await model.respond(request())
    async with playing(error(403, "own-secret is suspended"), settings={"api_key": "own-secret"}) as (_, model):
        other = await model.respond(request())
    assert KEY not in repr(outcome) + caplog.text
    assert "own-secret" not in repr(other)


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"transport": "close"}, "transport"),
        ({"transport": "reset"}, "transport"),
        ({"transport": "truncate", "body": reply("x" * 500)}, "transport"),
        ({"raw_text": "<html><body>Error 502</body></html>", "headers": {"content-type": "text/html"}}, "unreadable"),
        ({"raw_text": ""}, "unreadable"),
        ({"raw_text": "[]"}, "unreadable"),
        (error(500, "internal"), "server"),
        (error(503, "overloaded"), "server"),
        ({"http_status": 502, "body": "<html>Bad gateway</html>"}, "server"),
        (error(429, "slow down"), "rate_limited"),
    ],
    ids=str,
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_broken_wire_is_tried_again_and_not_for_ever(item: Item, reason: str, streamed: bool) -> None:
    clock = FakeClock()
    asked = request(on_text=[].append if streamed else None)
    async with playing(item, item, reply("네."), *[item] * 4, clock=clock) as (gemini, model):
        outcome = await model.respond(asked)
        assert isinstance(outcome, ModelAnswered)
        assert outcome.requests == 3
        assert [incident.reason for incident in outcome.incidents] == [reason] * 2
        assert len(clock.slept) == 2
        outcome = await model.respond(asked)
        assert isinstance(outcome, ModelFailed)
        assert (outcome.reason, outcome.requests) == (reason, 4)
    assert gemini.overruns == 0
    assert all(body == gemini.requests[0] for body in gemini.requests)


async def test_nobody_listening_at_all() -> None:
    async with FakeGemini() as gone:
        pass
    model = GeminiModel("m", api_key=KEY, base_url=gone.base_url, clock=FakeClock(), limits=Limits(http_retries=1))
    outcome = await model.respond(request())
    await model.aclose()
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.requests) == ("transport", 2)


@pytest.mark.parametrize("fault", ["hang", "stall"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_hanging_connection_is_given_up(fault: str, streamed: bool) -> None:
    item = {"transport": fault, "body": reply("가나다라마바사아자차카타파하" * 2)}
    limits = Limits(model_timeout_s=0.3, http_retries=0)
    async with playing(item, limits=limits) as (gemini, model):
        outcome = await model.respond(request(on_text=[].append if streamed else None))
        assert isinstance(outcome, ModelFailed)
        assert outcome.reason == "timeout"
        while gemini.requests and not gemini.abandoned:  # on a busy machine it may never have come there
            await asyncio.sleep(0)


@pytest.mark.parametrize("fault", ["hang", "stall"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_cancelled_run_closes_its_request(fault: str, streamed: bool) -> None:
    item = {"transport": fault, "body": reply("가나다라마바사아자차카타파하" * 2)}
    async with playing(item) as (gemini, model):
        task = asyncio.create_task(model.respond(request(on_text=[].append if streamed else None)))
        while not gemini.requests:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not gemini.abandoned:
            await asyncio.sleep(0)


async def test_contents_that_are_no_json_are_a_bad_request() -> None:
    async with playing() as (gemini, model):
        outcome = await model.respond(request({"role": "user", "parts": [{"text": {1, 2}}]}))
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, gemini.requests) == ("bad_request", [])


@pytest.mark.parametrize("charset", ["euc-kr", "iso-8859-1", "utf-16", "nonsense"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_hangul_is_read_as_it_was_written_whatever_charset_stands_beside_it(charset: str, streamed: bool) -> None:
    item = {
        "raw_text": json.dumps(reply("배송중입니다. 곧 도착합니다."), ensure_ascii=False),
        "headers": {"content-type": f"application/json; charset={charset}"},
    }
    async with playing(item) as (_, model):
        outcome = await model.respond(request(on_text=[].append if streamed else None))
    assert isinstance(outcome, ModelAnswered)
    assert outcome.text == "배송중입니다. 곧 도착합니다."
