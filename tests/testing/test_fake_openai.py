"""The fake server plays its script as chat completions, keeps their rules, and streams as they do."""

import json
import urllib.error
import urllib.request

import pytest

from haru_fsm.conversation import JSON
from haru_fsm.testing.fake_openai import FakeOpenAI, call, error, reply, split_into_chunks

USER = {"model": "m", "messages": [{"role": "user", "content": "안녕하세요"}]}


def post(
    openai: FakeOpenAI, body: JSON | bytes = USER, *, key: str = "test", path: str = "/chat/completions"
) -> tuple[int, str]:
    """Status and text of one request, sent by the plainest of clients."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = urllib.request.Request(openai.base_url + path, raw, headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def test_bodies_errors_and_raw_texts_are_sent_as_the_script_says() -> None:
    script = [reply("네."), error(503, "overloaded"), {"raw_text": "<html>"}, lambda body: reply(body["model"])]
    with FakeOpenAI(script) as openai:
        assert openai.base_url.endswith("/v1")
        status, text = post(openai)
        assert (status, json.loads(text)) == (200, reply("네."))
        status, text = post(openai)
        assert (status, json.loads(text)["error"]["type"]) == (503, "server_error")
        assert post(openai) == (200, "<html>")
        assert json.loads(post(openai)[1])["choices"][0]["message"]["content"] == "m"
        status, text = post(openai)
        assert (status, "has ended" in text, openai.overruns) == (500, True, 1)
        assert post(openai, path="/responses")[0] == 404
    assert openai.requests == [USER] * 5


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({**USER, "messages": []}, "too short"),
        ({**USER, "messages": [{"role": "user", "content": ""}]}, "empty"),
        (b'{"model": "m", "messages": [NaN]}', "no object"),
        (b"nothing", "no object"),
    ],
)
def test_a_request_that_breaks_a_rule_gets_400_and_uses_up_nothing(body: JSON | bytes, said: str) -> None:
    with FakeOpenAI([reply("네.")]) as openai:
        status, text = post(openai, body)
        assert status == 400
        assert said in json.loads(text)["error"]["message"]
        assert openai.violations
        assert post(openai)[0] == 200


def test_keys_models_and_fields_can_be_checked() -> None:
    with FakeOpenAI([reply("네.")], api_key="right", models={"m"}, refuses={"temperature"}) as openai:
        assert post(openai, key="wrong")[0] == 401
        assert post(openai, {**USER, "model": "n"}, key="right")[0] == 404
        assert "temperature" in post(openai, {**USER, "temperature": 1}, key="right")[1]
        assert post(openai, key="right")[0] == 200


def test_a_streamed_body_comes_in_chunks_with_its_usage_last_if_it_was_asked_for() -> None:
    body = reply("배송중입니다. 곧 도착해요.", call("a", n=1))
    with FakeOpenAI([body, body]) as openai:
        _, bare = post(openai, {**USER, "stream": True})
        _, text = post(openai, {**USER, "stream": True, "stream_options": {"include_usage": True}})
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line]
    assert lines[-1] == "[DONE]"
    assert [json.loads(line) for line in lines[:-1]] == list(split_into_chunks(body))
    assert json.loads(lines[-2])["usage"] == body["usage"]
    assert "usage" not in bare


@pytest.mark.parametrize("body", [{}, {"choices": []}, {"choices": [None]}])
def test_a_body_without_choices_is_one_chunk(body: JSON) -> None:
    assert list(split_into_chunks(body)) == [body]
