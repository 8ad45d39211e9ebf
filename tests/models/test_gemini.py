"""GeminiModel: the real client, over real HTTP, against a server that plays a script."""

import pytest

from haru_fsm.conversation import JSON, ModelAnswered, ModelFailed, ToolsRequested
from haru_fsm.limits import Limits
from haru_fsm.models.gemini import GeminiModel
from haru_fsm.testing.fake_gemini import FakeGemini, call, error, reply
from tests.models.wires import GEMINI, TOOLS, USER, request

# --------------------------------------------------------------------------- what goes out, what comes in


async def test_an_answer() -> None:
    async with GEMINI.playing(reply("배송중입니다.")) as (gemini, model):
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
    assert gemini.received[0].headers["x-goog-api-key"] == GEMINI.key


async def test_a_time_out_is_always_set() -> None:
    async with GEMINI.playing(reply("네."), reply("네.")) as (gemini, model):
        await model.respond(request())
        await model.respond(request(timeout_s=4.5))
    assert [received.headers["x-server-timeout"] for received in gemini.received] == ["60", "5"]


async def test_tools_requested_and_replayed_verbatim() -> None:
    odd = {"functionCall": {"name": "get_order"}, "thoughtSignature": "A-_8", "newField": {"x": [1.0, 2**70]}}
    async with GEMINI.playing(reply("볼게요.", odd), reply("네.")) as (gemini, model):
        outcome = await model.respond(request())
        assert isinstance(outcome, ToolsRequested)
        answered = {"role": "user", "parts": [{"functionResponse": {"name": "get_order", "response": {"result": 1}}}]}
        await model.respond(request(USER, outcome.content, answered))
    assert gemini.requests[1]["contents"] == [USER, {"role": "model", "parts": [{"text": "볼게요."}, odd]}, answered]
    assert gemini.violations == []


async def test_no_call_is_run_behind_our_back_and_no_continuation_is_followed() -> None:
    going_on = reply("안내 ", finish="CONTINUATION", continuationToken="dG9rMQ==")
    limits = Limits(model_retries=0)
    async with GEMINI.playing(reply(call("get_order", order_id="HR1")), going_on, limits=limits) as (gemini, model):
        await model.respond(request())
        outcome = await model.respond(request())
    assert isinstance(outcome, ModelFailed)
    assert outcome.reason == "unfinished"
    assert len(gemini.requests) == 2


async def test_tools_off() -> None:
    async with GEMINI.playing(reply("네.")) as (gemini, model):
        await model.respond(request(tools_allowed=False))
    assert gemini.requests[0]["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}


# --------------------------------------------------------------------------- set-up


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
    async with GEMINI.playing(item) as (gemini, model):
        outcome = await model.respond(request())
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.requests) == (reason, 1)
    assert outcome.incidents[0].http_status == item["http_status"]
    assert item["body"]["error"]["message"] in outcome.detail
    assert gemini.overruns == 0
