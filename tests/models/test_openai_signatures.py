"""A Gemini in chat completions gets back the signatures of its calls, and nobody else does."""

from __future__ import annotations

from typing import Any

import pytest

from haru_fsm.conversation import JSON
from haru_fsm.models import Declaration, ModelRequest
from haru_fsm.models.gemini_signatures import UNSIGNED
from haru_fsm.models.openai_reading import read_body, read_chunks
from haru_fsm.models.openai_request import build_body
from haru_fsm.models.openai_signatures import signs
from haru_fsm.models.replies import Usable
from haru_fsm.models.retrying import Amendment
from haru_fsm.testing.strict import check_contents
from haru_fsm.testing.strict_openai import check_request

SIGNATURE = "AY89a18IwQsQ8in/+A=="
BESIDE = {"google": {"thought_signature": SIGNATURE}}
USER = {"role": "user", "parts": [{"text": "어디예요?"}]}


def made(id_: str, **more: Any) -> JSON:
    return {"id": id_, "type": "function", "function": {"name": "get_order", "arguments": "{}"}, **more}


def parts_of(*calls: JSON) -> list[JSON]:
    read = read_body({"choices": [{"message": {"tool_calls": list(calls)}, "finish_reason": "tool_calls"}]})
    assert isinstance(read, Usable)
    parts: list[JSON] = read.content["parts"]
    return parts


def sent(name: str, parts: list[JSON]) -> list[JSON]:
    answers = [{"functionResponse": {**part["functionCall"], "response": {"r": 1}}} for part in parts]
    for answer in answers:
        del answer["functionResponse"]["args"]
    contents: list[JSON] = [USER, {"role": "model", "parts": parts}, {"role": "user", "parts": answers}]
    assert check_contents(contents) == []
    request = ModelRequest(system="", contents=tuple(contents), declarations=(Declaration("get_order", "x", None),))
    body = build_body(request, Amendment(), name=name)
    assert list(check_request(body)) == []
    calls: list[JSON] = body["messages"][1]["tool_calls"]
    return calls


@pytest.mark.parametrize("seller", ["google", "vertex"])
def test_a_signature_is_kept_where_the_journal_has_geminis_own(seller: str) -> None:
    beside = {seller: {"thought_signature": SIGNATURE}}
    first, second = parts_of(made("a", extra_content=beside), made("b"))
    assert first["thoughtSignature"] == SIGNATURE
    assert "thoughtSignature" not in second


@pytest.mark.parametrize(
    "beside",
    [None, "x", {}, {"google": None}, {"google": {"thought_signature": 3}}, {"google": {"thought_signature": "?"}}],
)
def test_without_one_nobody_has_signed(beside: object) -> None:
    (part,) = parts_of(made("a", extra_content=beside))
    assert part["thoughtSignature"] == UNSIGNED


@pytest.mark.parametrize("late", [False, True])
def test_in_a_stream_it_may_come_behind_the_call(late: bool) -> None:
    whole = {"index": 0, **made("a", **({} if late else {"extra_content": BESIDE}))}
    pieces: list[JSON] = [whole, {"extra_content": BESIDE}] if late else [whole]
    chunks: list[JSON] = [{"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in pieces]
    read = read_chunks([*chunks, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}])
    assert isinstance(read, Usable)
    (part,) = read.content["parts"]
    assert part["thoughtSignature"] == SIGNATURE


def test_it_goes_back_to_a_gemini() -> None:
    parts = parts_of(made("a", extra_content=BESIDE), made("b"))
    first, second = sent("google/gemini-3.5-flash", parts)
    assert first["extra_content"] == BESIDE
    assert "extra_content" not in second
    (unsigned,) = sent("gemini-flash-latest", parts_of(made("a")))
    assert unsigned["extra_content"] == {"google": {"thought_signature": UNSIGNED}}


@pytest.mark.parametrize("name", ["gpt-5.4-mini", "gemini-2.5-flash", "models/gemini-2.0-flash", "mistral/gemini"])
def test_and_to_nobody_else(name: str) -> None:
    assert not signs(name)
    assert all("extra_content" not in call for call in sent(name, parts_of(made("a", extra_content=BESIDE))))


@pytest.mark.parametrize(
    "name", ["gemini-3-flash", "models/gemini-3.5-flash", "vertex_ai/gemini-3-pro", "a/b/gemini-flash-latest"]
)
def test_names_as_gateways_write_them(name: str) -> None:
    assert signs(name)
