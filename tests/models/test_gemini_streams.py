"""Streamed, a reply means what it means unstreamed; it is told as it comes, and half of it is no answer."""

import asyncio
import json
import random
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from itertools import pairwise
from typing import Never

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haru_fsm.clock import FakeClock
from haru_fsm.conversation import JSON, ModelAnswered, ModelFailed, ToolsRequested
from haru_fsm.limits import Limits
from haru_fsm.models import Declaration, ModelOutcome, ModelRequest
from haru_fsm.models.gemini import UNSTREAMED, GeminiModel
from haru_fsm.models.gemini_lines import data_lines
from haru_fsm.testing.fake_gemini import FakeGemini, call, error, reply
from haru_fsm.testing.local_http import Answer, Fault, LocalServer, Request
from haru_fsm.testing.scripted_http import Item

USER = {"role": "user", "parts": [{"text": "주문 어디쯤 왔나요?"}]}
ANSWER = "고객님의 주문은 지금 배송중이며, 내일 도착할 예정입니다."


async def streamed(
    script: Sequence[Item],
    heard: Callable[[str], None] | None,
    *,
    limits: Limits | None = None,
    clock: FakeClock | None = None,
) -> tuple[FakeGemini, ModelOutcome]:
    async with FakeGemini(script) as gemini:
        model = GeminiModel(
            "gemini-flash-latest",
            api_key="test",
            base_url=gemini.base_url,
            limits=limits or Limits(),
            clock=clock or FakeClock(),
            rng=random.Random(1),
        )
        asked = ModelRequest("", (USER,), [Declaration("get_order", "")], requests_left=8, on_text=heard)
        try:
            return gemini, await model.respond(asked)
        finally:
            await model.aclose()


async def test_text_is_told_piece_by_piece() -> None:
    heard: list[str] = []
    gemini, outcome = await streamed([reply(ANSWER)], heard.append)
    assert gemini.received[0].streamed
    assert isinstance(outcome, ModelAnswered)
    assert outcome.text == "".join(heard) == ANSWER
    assert len(heard) > 3


@pytest.mark.parametrize(
    "body",
    [
        reply(ANSWER),
        reply({"text": "요약 생각", "thought": True}, ANSWER, {"text": "", "thoughtSignature": "AQID"}),
        reply("확인할게요.", {**call("get_order", order_id="HR1"), "thoughtSignature": "AQID"}, call("get_order")),
        reply({"functionCall": {"name": "get_order", "args": "{}"}}),
        reply({"functionCall": {"name": "get_order"}, "thoughtSignature": "not base64!"}),
        reply("THOUGHT: 사과부터\n\n죄송합니다."),
        reply("새 필드", finish="STOP", groundingMetadata={"x": 1}),
    ],
    ids=str,
)
async def test_streamed_or_not_a_reply_means_the_same(body: JSON) -> None:
    outcomes = [(await streamed([body], heard))[1] for heard in (None, list[str]().append)]
    assert outcomes[0] == outcomes[1]
    assert isinstance(outcomes[0], ModelAnswered | ToolsRequested)


@pytest.mark.parametrize("finish", ["MAX_TOKENS", "MALFORMED_FUNCTION_CALL", "SAFETY", "SOMETHING_NEW"])
async def test_streamed_or_not_a_reply_fails_the_same(finish: str) -> None:
    body = reply("반쪽", finish=finish, finishMessage="왜냐하면")
    outcomes = [
        (await streamed([body], heard, limits=Limits(model_retries=0)))[1] for heard in (None, list[str]().append)
    ]
    assert outcomes[0] == outcomes[1]
    assert isinstance(outcomes[0], ModelFailed)
    assert outcomes[0].detail == "왜냐하면"


@pytest.mark.parametrize("signed_at", [0, 1])
async def test_a_call_that_is_told_in_two_chunks_is_one_call_and_keeps_its_signature(signed_at: int) -> None:
    made = call("get_order", order_id="HR1")
    made["functionCall"]["id"] = "one"
    signed, other = {**made, "thoughtSignature": "AQID"}, call("get_order", order_id="HR1")
    told = [signed if at == signed_at else made for at in range(3)]
    chunks = [reply(told[0], finish=None), reply(told[1], other, finish=None), reply("볼게요.", told[2], finish="STOP")]
    _, outcome = await streamed([chunks], list[str]().append)
    assert isinstance(outcome, ToolsRequested)
    assert outcome.content["parts"] == [signed, other, {"text": "볼게요."}]


async def test_a_blocked_prompt_ends_a_stream_too() -> None:
    _, outcome = await streamed([{"promptFeedback": {"blockReason": "SAFETY"}}], list[str]().append)
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.requests) == ("prompt_blocked", 1)


async def test_a_stream_that_is_blocked_half_way_gives_no_half_answer() -> None:
    half = [reply("고객님의 주문은", finish=None), {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}]
    _, outcome = await streamed([half], list[str]().append)
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.requests) == ("prompt_blocked", 1)


async def test_a_stream_that_ends_half_way_is_a_broken_wire_and_what_it_spent_counts() -> None:
    half = [reply("고객님의 주문은", finish=None, usage={"promptTokenCount": 70, "totalTokenCount": 70})]
    heard: list[str] = []
    gemini, outcome = await streamed([half, reply(ANSWER)], heard.append)
    assert isinstance(outcome, ModelAnswered)
    assert [incident.reason for incident in outcome.incidents] == ["transport"]
    assert outcome.usage.total == 70 + 120
    # What was heard stays heard; the second attempt is not streamed, and the outcome holds.
    assert heard == ["고객님의 주문은"]
    assert [received.streamed for received in gemini.received] == [True, False]


async def test_a_stream_that_breaks_before_anything_was_heard_is_streamed_again() -> None:
    heard: list[str] = []
    script = [{"transport": "close"}, error(503, "overloaded"), reply(ANSWER)]
    gemini, outcome = await streamed(script, heard.append)
    assert isinstance(outcome, ModelAnswered)
    assert "".join(heard) == ANSWER
    assert all(received.streamed for received in gemini.received)


async def test_an_error_in_the_middle_of_a_stream_is_that_error() -> None:
    broken = [reply("고객님", finish=None), {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}]
    _, outcome = await streamed([broken], list[str]().append, limits=Limits(http_retries=0))
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.incidents[0].http_status) == ("server", 503)
    assert outcome.usage.total == 120


async def test_a_stream_that_is_cut_in_the_middle_of_a_chunk() -> None:
    item = {"transport": "truncate", "body": reply(ANSWER)}
    _, outcome = await streamed([item], list[str]().append, limits=Limits(http_retries=0))
    assert isinstance(outcome, ModelFailed)
    assert outcome.reason == "transport"


async def test_a_call_in_pieces_is_not_run() -> None:
    pieces = [
        reply({"functionCall": {"name": "get_order", "willContinue": True}}, finish=None),
        reply({"functionCall": {"partialArgs": [{"jsonPath": "$.order_id", "stringValue": "HR"}]}}),
    ]
    _, outcome = await streamed([pieces, reply(call("get_order", order_id="HR1"))], list[str]().append)
    assert isinstance(outcome, ToolsRequested)
    assert [incident.reason for incident in outcome.incidents] == ["partial_call"]


async def test_leaked_thoughts_are_not_told() -> None:
    heard: list[str] = []
    _, outcome = await streamed([reply("THOUGHT: 보상은 말하지 말 것\n\n죄송합니다.")], heard.append)
    assert isinstance(outcome, ModelAnswered)
    assert "".join(heard) == outcome.text == "죄송합니다."


async def test_a_watcher_that_raises_does_not_cost_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    def raises(_piece: str) -> Never:
        raise RuntimeError("the terminal has gone")

    _, outcome = await streamed([reply(ANSWER)], raises)
    assert isinstance(outcome, ModelAnswered)
    assert outcome.text == ANSWER
    assert "the terminal has gone" in caplog.text


async def test_text_is_told_before_the_reply_is_complete() -> None:
    first, last = asyncio.Event(), asyncio.Event()

    async def script() -> list[JSON]:
        return [reply("안녕하세요. ", finish=None), reply("끝.")]

    def heard(piece: str) -> None:
        (last if first.is_set() else first).set()

    async with FakeGemini([script()], pause_s=0.02) as gemini:
        model = GeminiModel("m", api_key="test", base_url=gemini.base_url, clock=FakeClock())
        task = asyncio.create_task(model.respond(ModelRequest("", (USER,), on_text=heard)))
        await first.wait()
        assert not last.is_set()
        assert not task.done()
        outcome = await task
        assert isinstance(outcome, ModelAnswered)
        assert outcome.text == "안녕하세요. 끝."
        await model.aclose()


# --------------------------------------------------------------------------- streams of other servers


def events(*lines: str | JSON) -> JSON:
    """A stream as somebody else's server writes it: chunks as events, and lines of its own."""
    said = (line if isinstance(line, str) else f"data: {json.dumps(line)}\r\n\r\n" for line in lines)
    return {"raw_text": "".join(said), "headers": {"content-type": "text/event-stream"}}


CHUNKS = (reply("고객님의 주문은 ", finish=None), reply("배송중입니다."))
CALL = reply(call("get_order", order_id="HR1"))


@pytest.mark.parametrize("after", ["data: [DONE]\r\n\r\n", ": bye\r\n\r\n", "event: end\r\ndata: {}\r\n\r\n"])
@pytest.mark.parametrize("chunks", [CHUNKS, (CALL,)], ids=["text", "call"])
async def test_what_a_server_adds_after_the_end_costs_nothing(chunks: tuple[JSON, ...], after: str) -> None:
    heard: list[str] = []
    gemini, outcome = await streamed([events(*chunks, after)], heard.append)
    assert isinstance(outcome, ModelAnswered | ToolsRequested)
    assert (outcome.requests, outcome.incidents) == (1, ())
    assert "".join(heard) == outcome.text
    assert gemini.overruns == 0


def on_the_wire(*lines: str | JSON) -> str:
    text: str = events(*lines)["raw_text"]
    return text


ODD = {
    "comments": events(": OPENROUTER PROCESSING\r\n\r\n", ":\n\n", CHUNKS[0], ": keep-alive\n", CHUNKS[1], ": bye\n\n"),
    "fields": events("id: 1\nevent: message\nretry: 3000\n", CHUNKS[0], "event: message\r\n", CHUNKS[1]),
    "no blank behind the colon": {
        "raw_text": on_the_wire(*CHUNKS).replace("data: ", "data:"),
        "headers": {"content-type": "text/event-stream"},
    },
    "empty events": events("data:\n\n", CHUNKS[0], "data: \r\n\r\n", CHUNKS[1]),
    "a mark of its byte order": events("\ufeff", *CHUNKS),
    "carriage returns": {
        "raw_text": on_the_wire(": ping\r\n\r\n", *CHUNKS).replace("\r\n", "\r"),
        "headers": {"content-type": "text/event-stream;charset=UTF-8"},
    },
}
"""Streams that the standard allows (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""


@pytest.mark.parametrize("odd", ODD.values(), ids=list(ODD))
async def test_what_else_may_stand_in_a_stream_costs_no_request(odd: JSON) -> None:
    heard: list[str] = []
    _, outcome = await streamed([odd], heard.append)
    assert isinstance(outcome, ModelAnswered)
    assert (outcome.requests, outcome.incidents) == (1, ())
    assert outcome.text == "".join(heard) == "고객님의 주문은 배송중입니다."


@given(
    st.lists(st.sampled_from(["data: 가", "data:나", ": ㅎ", "id: 1", "", "data:", '{"error":']), max_size=8), st.data()
)
async def test_lines_are_the_same_however_the_wire_cuts_them(lines: list[str], data: st.DataObject) -> None:
    ends = data.draw(st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=len(lines), max_size=len(lines)))
    whole = "".join(line + end for line, end in zip(lines, ends, strict=True)).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [whole[a:b] for a, b in pairwise([0, *cuts, len(whole)])]

    async def wire() -> AsyncGenerator[bytes, None]:
        for piece in pieces:
            yield piece

    read = b"".join([piece async for piece in data_lines(wire)]).decode()
    kept = {"data: 가": "data: 가", "data:나": "data: 나", "": "", '{"error":': '{"error":'}
    assert [line for line in re.split("\r\n|\r|\n", read) if line] == [kept[line] for line in lines if kept.get(line)]


async def test_of_a_comment_whose_end_the_wire_cuts_in_two_nothing_is_left() -> None:
    """An empty line would be left of it, and end the event that the comment stands in."""

    async def wire() -> AsyncGenerator[bytes, None]:
        for piece in (b"data: 1\r\n: ping\r", b"\n: ping\r", b"\ndata: 2\r\n\r\n"):
            yield piece

    assert b"".join([piece async for piece in data_lines(wire)]) == b"data: 1\r\ndata: 2\r\n\r\n"


async def test_a_long_line_whose_beginning_comes_with_another_line_is_read_once() -> None:
    """A picture, say. To look for its end from every byte of it took twelve seconds for forty kilobytes."""
    long = b"data: " + b"9" * 2_000_000

    async def wire() -> AsyncGenerator[bytes, None]:
        yield b"data: 1\n\n" + long
        yield b"\n\n"

    assert b"".join([piece async for piece in data_lines(wire)]) == b"data: 1\n\n" + long + b"\n\n"


@pytest.mark.parametrize("charset", ["utf-8", "euc-kr"])
async def test_a_second_http_library_that_happens_to_be_installed_changes_nothing(
    charset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """google-genai takes aiohttp wherever it is installed, and asks none of our hooks how a reply is to be read."""
    monkeypatch.setattr("google.genai._api_client.has_aiohttp", True)
    raw = {**ODD["comments"], "headers": {"content-type": f"text/event-stream; charset={charset}"}}
    heard: list[str] = []
    _, outcome = await streamed([raw], heard.append)
    assert isinstance(outcome, ModelAnswered)
    assert (outcome.requests, "".join(heard)) == (1, outcome.text)


@pytest.mark.parametrize("fault", [Fault.TRUNCATE, Fault.STALL])
async def test_a_connection_that_is_not_closed_as_it_should_after_the_end_costs_nothing(fault: Fault) -> None:
    limits = Limits(model_timeout_s=2 if fault is Fault.STALL else 30, http_retries=0)
    async with BadlyClosed(events(*CHUNKS)["raw_text"], fault) as server:
        model = GeminiModel("m", api_key="test", base_url=server.base_url, clock=FakeClock(), limits=limits)
        outcome = await model.respond(ModelRequest("", (USER,), requests_left=8, on_text=list[str]().append))
        await model.aclose()
    assert isinstance(outcome, ModelAnswered)
    assert (outcome.text, outcome.incidents) == ("고객님의 주문은 배송중입니다.", ())


class BadlyClosed(LocalServer):
    """Sends everything of a stream, and less than it has promised. Then it closes the connection, or never does."""

    def __init__(self, text: str, fault: Fault) -> None:
        async def answer(_request: Request) -> Answer:
            whole = text.encode()
            return Answer(200, {"content-type": "text/event-stream"}, (whole, b" " * len(whole)), fault=fault)

        super().__init__(answer)


@pytest.mark.parametrize(
    "odd",
    [events("hello\r\n\r\n", CALL), events(json.dumps([CALL], indent=1))],
    ids=["a line that is none", "a JSON list"],
)
async def test_a_server_whose_streams_cannot_be_read_is_asked_without_them_for_a_while(odd: JSON) -> None:
    def script(body: JSON) -> JSON:
        return CALL if not asked[-1] else odd

    asked: list[bool] = []

    class Noting(FakeGemini):
        def _asked(self, request: Request, body: JSON) -> tuple[str, bool] | None:
            seen = super()._asked(request, body)
            assert seen is not None
            asked.append(seen[1])
            return seen

    async with Noting(script) as gemini:
        model = GeminiModel("m", api_key="test", base_url=gemini.base_url, clock=FakeClock())
        said = ModelRequest("", (USER,), [Declaration("get_order", "")], requests_left=8, on_text=list[str]().append)
        outcomes = [await model.respond(said) for _ in range(1 + UNSTREAMED)]
        await model.aclose()
    assert all(isinstance(outcome, ToolsRequested) for outcome in outcomes)
    assert asked == [True, *[False] * UNSTREAMED, True, False]
    assert [outcome.requests for outcome in outcomes] == [2, *[1] * (UNSTREAMED - 1), 2]


async def test_a_stream_that_never_says_why_it_stopped_is_asked_for_again_without_one() -> None:
    """Nothing was heard of a call, so that the second attempt would be a stream as well, and as broken."""
    endless = [reply(call("get_order", order_id="HR1"), finish=None)]
    gemini, outcome = await streamed([endless, CALL], list[str]().append)
    assert isinstance(outcome, ToolsRequested)
    assert [received.streamed for received in gemini.received] == [True, False]
