"""OpenAIModel: the real client, over real HTTP, against a server that plays a script."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from haru_fsm.clock import FakeClock
from haru_fsm.conversation import JSON, ModelAnswered, ModelFailed, ToolsRequested
from haru_fsm.errors import ModelError
from haru_fsm.limits import Limits
from haru_fsm.models.openai import NO_KEY, OpenAIModel
from haru_fsm.testing.fake_openai import FakeOpenAI, call, error, reply, split_into_chunks
from haru_fsm.testing.local_http import Answer, Fault, LocalServer, Request
from tests.models.wires import OPENAI, TOOLS, USER, request

# --------------------------------------------------------------------------- what goes out, what comes in


async def test_an_answer() -> None:
    async with OPENAI.playing(reply("배송중입니다.")) as (openai, model):
        outcome = await model.respond(request())
    assert isinstance(outcome, ModelAnswered)
    assert (outcome.text, outcome.model, outcome.requests) == ("배송중입니다.", "gpt-5-mini", 1)
    assert (outcome.usage.total, outcome.usage.estimated) == (120, False)
    sent = openai.requests[0]
    assert sent["messages"] == [
        {"role": "system", "content": "친절하게"},
        {"role": "user", "content": "주문 어디쯤 왔나요?"},
    ]
    assert sent["tools"][0]["function"]["parameters"] == TOOLS[0].parameters
    # What the SDK adds by itself is `stream`; no temperature, no limit that nobody has set.
    assert sent.keys() == {"model", "messages", "tools", "stream"}
    assert openai.received[0].headers["authorization"] == f"Bearer {OPENAI.key}"
    assert openai.received[0].headers["x-stainless-retry-count"] == "0"


async def test_a_time_out_is_always_set() -> None:
    async with OPENAI.playing(reply("네."), reply("네.")) as (openai, model):
        await model.respond(request())
        await model.respond(request(timeout_s=4.5))
    assert [received.headers["x-stainless-read-timeout"] for received in openai.received] == ["60.0", "4.5"]


async def test_tools_requested_and_replayed_with_their_ids() -> None:
    two = [call("get_order", id="call_a", order_id="HR1"), call("get_order", id="call_b", order_id="HR2")]
    async with OPENAI.playing(reply("볼게요.", *two), reply("네.")) as (openai, model):
        outcome = await model.respond(request())
        assert isinstance(outcome, ToolsRequested)
        assert [(one.name, one.args, one.id) for one in outcome.calls] == [
            ("get_order", {"order_id": "HR1"}, "call_a"),
            ("get_order", {"order_id": "HR2"}, "call_b"),
        ]
        answered = [
            {"functionResponse": {"name": "get_order", "id": one.id, "response": {"result": one.args["order_id"]}}}
            for one in outcome.calls
        ]
        await model.respond(request(USER, outcome.content, {"role": "user", "parts": answered}))
    assistant, *results = openai.requests[1]["messages"][2:]
    assert assistant == {"role": "assistant", "content": "볼게요.", "tool_calls": two}
    assert results == [
        {"role": "tool", "tool_call_id": "call_a", "content": '{"result": "HR1"}'},
        {"role": "tool", "tool_call_id": "call_b", "content": '{"result": "HR2"}'},
    ]
    assert openai.violations == []


async def test_a_re_ask_says_what_was_wrong_and_lets_go_of_the_limit_that_cut_the_reply_off() -> None:
    limits = Limits(max_output_tokens=100)
    async with OPENAI.playing(
        reply("배송은", finish="length"), reply("", finish="stop"), reply("배송중입니다."), limits=limits
    ) as (
        openai,
        model,
    ):
        outcome = await model.respond(request())
    assert isinstance(outcome, ModelAnswered)
    assert [one.reason for one in outcome.incidents] == ["cut_off", "empty"]
    assert (outcome.requests, outcome.usage.total) == (3, 360)
    assert [body.get("max_tokens") for body in openai.requests] == [100, None, None]
    hints = [body["messages"][-1]["content"] for body in openai.requests]
    assert len(set(hints)) == 3
    assert all(hint.startswith("주문 어디쯤 왔나요?") for hint in hints)


async def test_tools_off() -> None:
    async with OPENAI.playing(reply(call("get_order")), reply("네.")) as (openai, model):
        outcome = await model.respond(request(tools_allowed=False))
    assert openai.requests[0]["tool_choice"] == "none"
    assert [one.reason for one in outcome.incidents] == ["unexpected_call"]


# --------------------------------------------------------------------------- servers that know less


async def test_a_field_that_is_refused_is_left_out_from_then_on() -> None:
    clock = FakeClock()
    async with OPENAI.playing(reply("네."), reply("네."), refuses={"stream_options"}, clock=clock) as (openai, model):
        outcome = await model.respond(request(on_text=[].append))
        assert isinstance(outcome, ModelAnswered)
        assert (outcome.requests, clock.slept) == (2, [0.0])
        assert outcome.usage.estimated
        again = await model.respond(request(on_text=[].append))
    assert again.requests == 1
    assert ["stream_options" in body for body in openai.requests] == [True, False, False]


@pytest.mark.parametrize(("refused", "sent"), [("max_tokens", "max_completion_tokens"), ("nothing", "max_tokens")])
async def test_the_length_is_limited_by_the_word_that_the_server_knows(refused: str, sent: str) -> None:
    limits = Limits(max_output_tokens=500)
    async with OPENAI.playing(reply("네."), refuses={refused}, limits=limits) as (openai, model):
        outcome = await model.respond(request())
    assert isinstance(outcome, ModelAnswered)
    assert openai.requests[-1][sent] == 500


async def test_a_temperature_that_is_refused_is_left_out() -> None:
    async with OPENAI.playing(reply("네."), refuses={"temperature"}, settings={"temperature": 0.2}) as (openai, model):
        assert isinstance(await model.respond(request()), ModelAnswered)
    assert [body.get("temperature") for body in openai.requests] == [0.2, None]


async def test_what_a_request_cannot_do_without_is_not_left_out() -> None:
    async with OPENAI.playing(refuses={"messages"}) as (openai, model):
        outcome = await model.respond(request())
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, len(openai.requests)) == ("bad_request", 1)


# --------------------------------------------------------------------------- set-up


@pytest.mark.parametrize("address", ["localhost:8000/v1", "ftp://x/v1", "http://", "http://[::1/v1", "api.openai.com"])
def test_an_address_that_is_none_is_said_to_be_none(address: str) -> None:
    with pytest.raises(ModelError, match="OPENAI_BASE_URL is"):
        OpenAIModel("m", api_key=OPENAI.key, base_url=address)


@pytest.mark.parametrize("key", ["열쇠-123", "sk-x\n", "sk-x\x00"])
def test_a_key_that_no_header_can_hold_is_not_repeated(key: str) -> None:
    with pytest.raises(ModelError, match="OPENAI_API_KEY") as complaint:
        OpenAIModel("m", api_key=key)
    assert key not in str(complaint.value)


async def test_key_and_address_come_from_the_environment_and_a_server_of_ones_own_needs_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with FakeOpenAI(lambda _body: reply("네.")) as openai:
        monkeypatch.setenv("OPENAI_BASE_URL", openai.base_url)
        for key in ("from-environment", ""):
            monkeypatch.setenv("OPENAI_API_KEY", key)
            model = OpenAIModel("m")
            outcome = await model.respond(request())
            assert isinstance(outcome, ModelAnswered)
            assert outcome.text == "네."
            await model.aclose()
    assert [one.headers["authorization"] for one in openai.received] == ["Bearer from-environment", f"Bearer {NO_KEY}"]


async def test_a_ready_client_can_be_given_and_does_not_retry_by_itself() -> None:
    from openai import AsyncOpenAI

    async with FakeOpenAI([error(500, "internal"), reply("네.")]) as openai:
        model = OpenAIModel(
            "m", client=AsyncOpenAI(api_key="own", base_url=openai.base_url), limits=Limits(http_retries=0)
        )
        outcome = await model.respond(request())
        await model.aclose()
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, len(openai.requests)) == ("server", 1)


def test_without_the_extra_one_line_says_how_to_install_it() -> None:
    code = (
        "import sys; sys.modules['openai'] = None\n"
        "from haru_fsm.errors import ModelError\n"
        "from haru_fsm.models.openai import OpenAIModel\n"
        "try: OpenAIModel('m', api_key='k')\n"
        "except ModelError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip().splitlines() == [
        "OpenAI's client is not installed. Install it: pip install 'haru-fsm[openai]'"
    ]


# --------------------------------------------------------------------------- refusals and broken wires


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (error(400, "An assistant message with 'tool_calls' must be followed by tool messages"), "bad_request"),
        (error(400, "This model's maximum context length is 128000 tokens."), "too_large"),
        (error(400, "too long", code="context_length_exceeded"), "too_large"),
        (error(429, "You exceeded your current quota.", type="insufficient_quota"), "quota"),
        (error(403, "denied"), "wrong_key"),
    ],
    ids=lambda item: str(item)[:40],
)
async def test_what_was_refused_is_not_sent_again(item: JSON, reason: str) -> None:
    async with OPENAI.playing(item) as (openai, model):
        outcome = await model.respond(request())
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.requests) == (reason, 1)
    assert outcome.incidents[0].http_status == item["http_status"]
    assert item["body"]["error"]["message"] in outcome.detail
    assert openai.overruns == 0


@pytest.mark.parametrize(
    ("headers", "message", "waited"),
    [
        ({"retry_after": "3"}, "slow down", 3.0),
        ({"retry_after_ms": "1500", "retry_after": "2"}, "slow down", 1.5),
        ({}, "Rate limit reached. Please try again in 1m2.5s.", 62.5),
        ({}, "Please try again in 338ms.", 0.338),
        (
            {"date": "Mon, 30 Nov 2026 08:00:00 GMT", "retry_after": "Mon, 30 Nov 2026 08:00:07 GMT"},
            "slow down",
            7.0,
        ),
    ],
)
async def test_the_wait_that_was_told_is_kept(headers: dict[str, str], message: str, waited: float) -> None:
    clock = FakeClock()
    async with OPENAI.playing(error(429, message, **headers), reply("네."), clock=clock) as (_, model):
        outcome = await model.respond(request())
    assert isinstance(outcome, ModelAnswered)
    assert clock.slept == pytest.approx([waited])


@pytest.mark.parametrize("streamed", [False, True])
async def test_json_that_is_no_chat_completion_is_said_to_be_none(streamed: bool) -> None:
    async with OPENAI.playing({"raw_text": '{"detail": "warming up"}'}, reply("네.")) as (_, model):
        outcome = await model.respond(request(on_text=[].append if streamed else None))
    assert isinstance(outcome, ModelAnswered)
    assert [one.reason for one in outcome.incidents] == ["unreadable"]
    assert "warming up" in outcome.incidents[0].detail


# --------------------------------------------------------------------------- streams


async def test_text_is_told_as_it_comes_and_counted_at_the_end() -> None:
    heard: list[str] = []
    async with OPENAI.playing(reply("주문하신 상품은 배송중입니다. 곧 도착합니다.", reasoning_content="생각 중")) as (
        openai,
        model,
    ):
        outcome = await model.respond(request(on_text=heard.append))
    assert isinstance(outcome, ModelAnswered)
    assert (outcome.text, outcome.usage.total, outcome.usage.estimated) == ("".join(heard), 120, False)
    assert outcome.text == "주문하신 상품은 배송중입니다. 곧 도착합니다."
    assert len(heard) > 2
    assert openai.requests[0]["stream_options"] == {"include_usage": True}


async def test_calls_in_pieces_are_put_together() -> None:
    body = reply("볼게요.", call("get_order", order_id="HR-2024-000123"), call("get_order", order_id="HR2"))
    async with OPENAI.playing(body) as (_, model):
        outcome = await model.respond(request(on_text=[].append))
    assert isinstance(outcome, ToolsRequested)
    assert [one.args for one in outcome.calls] == [{"order_id": "HR-2024-000123"}, {"order_id": "HR2"}]
    assert [one.id for one in outcome.calls] == ["call_get_order_0", "call_get_order_1"]


@pytest.mark.parametrize(
    "body", [reply("배송중입니다."), reply(call("get_order", order_id="HR1"))], ids=["text", "call"]
)
async def test_a_stream_cut_half_way_is_a_transport_failure_and_nothing_of_it_is_used(body: JSON) -> None:
    chunks = list(split_into_chunks(body))
    cut = [chunk for chunk in chunks if not chunk["choices"] or not chunk["choices"][0]["finish_reason"]]
    async with OPENAI.playing(cut, body) as (openai, model):
        outcome = await model.respond(request(on_text=[].append))
    assert [one.reason for one in outcome.incidents] == ["transport"]
    assert not isinstance(outcome, ModelFailed)
    assert (outcome.usage.total, len(openai.requests)) == (240, 2)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ({"message": "The server had an error", "type": "server_error", "code": None}, "server"),
        ({"message": "slow down", "code": 429}, "rate_limited"),
        ({"message": "slow down", "type": "tokens", "code": "rate_limit_exceeded"}, "rate_limited"),
        ("gateway gave up", "unreadable"),
    ],
    ids=str,
)
async def test_an_error_in_the_middle_of_a_stream(error: str | JSON, reason: str) -> None:
    chunks = list(split_into_chunks(reply("배송중입니다. 곧 도착합니다.")))[:3]
    async with OPENAI.playing([*chunks, {"error": error}], reply("네.")) as (_, model):
        outcome = await model.respond(request(on_text=[].append))
    assert isinstance(outcome, ModelAnswered)
    assert [one.reason for one in outcome.incidents] == [reason]
    assert (error if isinstance(error, str) else error["message"]) in outcome.incidents[0].detail


async def test_what_a_broken_stream_had_written_is_counted() -> None:
    item = {"transport": "truncate", "body": reply("가" * 400)}
    async with OPENAI.playing(item, limits=Limits(http_retries=0)) as (_, model):
        outcome = await model.respond(request(on_text=[].append))
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.usage.estimated) == ("transport", True)
    assert outcome.usage.answer > 50


async def test_a_server_that_does_not_stream_is_read_all_the_same() -> None:
    heard: list[str] = []
    item = {"raw_text": json.dumps(reply("배송중입니다."))}
    async with OPENAI.playing(item) as (_, model):
        outcome = await model.respond(request(on_text=heard.append))
    assert isinstance(outcome, ModelAnswered)
    assert heard == ["배송중입니다."]


@pytest.mark.parametrize("fault", [Fault.TRUNCATE, Fault.STALL])
async def test_a_connection_that_is_cut_or_left_open_after_the_end_costs_nothing(fault: Fault) -> None:
    """The body is whole; what was promised beside it (here as much again in blanks) never comes."""
    limits = Limits(model_timeout_s=2 if fault is Fault.STALL else 30, http_retries=0)

    async def answer(_request: Request) -> Answer:
        whole = b"".join(
            f"data: {json.dumps(chunk)}\n\n".encode() for chunk in split_into_chunks(reply("배송중입니다."))
        )
        return Answer(200, {"content-type": "text/event-stream"}, (whole, b" " * len(whole)), fault=fault)

    heard: list[str] = []
    async with LocalServer(answer) as server:
        model = OpenAIModel("m", api_key=OPENAI.key, base_url=f"{server.base_url}/v1", clock=FakeClock(), limits=limits)
        outcome = await model.respond(request(on_text=heard.append))
        await model.aclose()
    assert isinstance(outcome, ModelAnswered)
    assert (outcome.text, "".join(heard), outcome.incidents) == ("배송중입니다.", "배송중입니다.", ())


async def test_a_stream_without_an_end_is_asked_for_again_without_one() -> None:
    body = reply(call("get_order", order_id="HR1"))
    cut = [
        chunk for chunk in split_into_chunks(body) if not chunk["choices"] or not chunk["choices"][0]["finish_reason"]
    ]
    async with OPENAI.playing(cut, body) as (openai, model):
        outcome = await model.respond(request(on_text=[].append))
    assert isinstance(outcome, ToolsRequested)
    assert [bool(each.get("stream")) for each in openai.requests] == [True, False]
