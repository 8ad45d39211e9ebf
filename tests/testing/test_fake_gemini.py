"""The fake server plays its script, keeps the rules of the API, and breaks the wire where it is told to."""

import asyncio
import json
import urllib.error
import urllib.request

import pytest

from haru_fsm.conversation import JSON
from haru_fsm.testing.fake_gemini import FakeGemini, call, error, reply, split_into_chunks

USER = {"contents": [{"role": "user", "parts": [{"text": "안녕하세요"}]}]}


def post(
    gemini: FakeGemini,
    body: JSON | bytes = USER,
    *,
    method: str = "generateContent",
    key: str = "test",
    model: str = "m",
) -> tuple[int, str]:
    """Status and text of one request, sent by the plainest of clients."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{gemini.base_url}/v1beta/models/{model}:{method}",
        raw,
        {"x-goog-api-key": key, "content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def test_bodies_errors_and_raw_texts_are_sent_as_the_script_says() -> None:
    script = [reply("네."), error(503, "overloaded"), {"raw_text": "<html>"}, {"http_status": 418, "body": "teapot"}]
    with FakeGemini(script) as gemini:
        status, text = post(gemini)
        assert (status, json.loads(text)) == (200, reply("네."))
        status, text = post(gemini)
        assert (status, json.loads(text)["error"]["status"]) == (503, "UNAVAILABLE")
        assert post(gemini) == (200, "<html>")
        assert post(gemini) == (418, "teapot")
    assert gemini.requests == [USER] * 4
    assert gemini.received[0].model == "m"
    assert gemini.overruns == 0


def test_after_the_script_there_is_a_clear_error() -> None:
    with FakeGemini([]) as gemini:
        status, text = post(gemini)
    assert status == 500
    assert "has ended" in text
    assert gemini.overruns == 1


def test_a_script_may_be_a_function_of_the_request() -> None:
    with FakeGemini(lambda body: reply(f"{len(body['contents'])} turns")) as gemini:
        assert "1 turns" in post(gemini)[1]
    with FakeGemini([lambda body: reply(body["contents"][0]["parts"][0]["text"])]) as gemini:
        assert "안녕하세요" in json.loads(post(gemini)[1])["candidates"][0]["content"]["parts"][0]["text"]


MIXED = [
    *USER["contents"],
    {"role": "model", "parts": [call("look")]},
    {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {}}}, {"text": "and?"}]},
]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"contents": []}, "contents empty"),
        ({"contents": [{"role": "tool", "parts": [{"text": "a"}]}]}, "role"),
        ({**USER, "temprature": 1}, 'Unknown name "temprature"'),
        (b'{"contents": [{"role": "user", "parts": [{"text": NaN}]}]}', "Invalid JSON"),
        (b"nothing", "Invalid JSON"),
        ({"contents": MIXED}, "shares its content"),
    ],
)
def test_a_request_that_breaks_a_rule_gets_400_and_uses_up_nothing(body: JSON | bytes, said: str) -> None:
    with FakeGemini([reply("네.")]) as gemini:
        status, text = post(gemini, body)
        assert status == 400
        assert said in json.loads(text)["error"]["message"]
        assert gemini.violations
        assert post(gemini)[0] == 200


def test_keys_and_models_can_be_checked() -> None:
    with FakeGemini([reply("네.")], api_key="right", models={"m"}) as gemini:
        assert "API_KEY_INVALID" in post(gemini, key="wrong")[1]
        assert post(gemini, key="right", model="n")[0] == 404
        assert post(gemini, key="right")[0] == 200
        assert post(gemini, method="countTokens", key="right")[0] == 404


def test_signatures_can_be_required_and_checked() -> None:
    signed = {**call("get_order"), "thoughtSignature": "AQID"}
    answer = {"role": "user", "parts": [{"functionResponse": {"name": "get_order", "response": {}}}]}
    with FakeGemini([reply(signed), reply("네.")], require_signatures=True, check_signatures=True) as gemini:
        post(gemini)
        history = [*USER["contents"], {"role": "model", "parts": [signed]}, answer]
        forged = [*USER["contents"], {"role": "model", "parts": [{**signed, "thoughtSignature": "AQIE"}]}, answer]
        bare = [*USER["contents"], {"role": "model", "parts": [call("get_order")]}, answer]
        assert post(gemini, {"contents": forged})[0] == 400
        assert post(gemini, {"contents": bare})[0] == 400
        assert post(gemini, {"contents": history})[0] == 200


def test_a_streamed_body_comes_in_chunks_that_make_it_whole_again() -> None:
    body = reply({"text": "생각이 조금 길어지는 중", "thought": True}, "배송중입니다. 곧 도착해요.", call("a"))
    with FakeGemini([body, [body, body]]) as gemini:
        _, text = post(gemini, method="streamGenerateContent")
        chunks = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line]
        assert chunks == list(split_into_chunks(body))
        assert len(post(gemini, method="streamGenerateContent")[1].split()) > 2
    said = [chunk["candidates"][0]["content"]["parts"][0].get("text", "") for chunk in chunks]
    assert "".join(said) == "생각이 조금 길어지는 중배송중입니다. 곧 도착해요."
    assert [chunk["candidates"][0].get("finishReason") for chunk in chunks] == [None] * (len(chunks) - 1) + ["STOP"]


@pytest.mark.parametrize("body", [{}, {"candidates": []}, reply(), {"candidates": [{"content": {"parts": "x"}}]}])
def test_a_body_without_parts_is_one_chunk(body: JSON) -> None:
    assert list(split_into_chunks(body)) == [body]


@pytest.mark.parametrize("fault", ["close", "reset", "truncate"])
def test_the_wire_breaks_where_it_should(fault: str) -> None:
    with FakeGemini([{"transport": fault, "body": reply("네.")}, reply("네.")]) as gemini:
        with pytest.raises((OSError, urllib.error.URLError, Exception)) as broken:
            post(gemini)
        assert "HTTPError" not in repr(broken.value)
        assert post(gemini)[0] == 200


@pytest.mark.parametrize("fault", ["hang", "stall"])
async def test_a_hanging_request_is_noticed_when_it_is_given_up(fault: str) -> None:
    async with FakeGemini([{"transport": fault, "body": reply("네.")}]) as gemini:
        host, port = gemini.base_url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        body = json.dumps(USER).encode()
        head = f"POST /v1beta/models/m:generateContent HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        while not gemini.requests:
            await asyncio.sleep(0)
        writer.close()
        await writer.wait_closed()
        while not gemini.abandoned:
            await asyncio.sleep(0)
        del reader
    assert gemini.abandoned == 1


async def test_requests_may_share_a_connection_and_the_server_may_stop_in_the_middle_of_one() -> None:
    async with FakeGemini(lambda _body: {"transport": "hang"}) as gemini:
        host, port = gemini.base_url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /x:generateContent HTTP/1.1\r\ncontent-length: 99\r\n\r\nhalf")
        await writer.drain()
        writer.close()
        await writer.wait_closed()
