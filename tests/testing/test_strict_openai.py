"""The rule book of chat completions: what is refused, and with which words."""

import pytest

from haru_fsm.conversation import JSON
from haru_fsm.testing.strict_openai import check_messages, check_request

USER = {"role": "user", "content": "안녕"}


def calling(*ids: str, **more: object) -> JSON:
    calls = [{"id": id_, "type": "function", "function": {"name": "a", "arguments": "{}"}} for id_ in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def result(id_: str, content: str = "{}") -> JSON:
    return {"role": "tool", "tool_call_id": id_, "content": content}


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [{"role": "system", "content": "s"}, USER],
        [USER, calling("x", "y"), result("y"), result("x")],
        [USER, calling("x"), result("x"), calling("y"), result("y"), {"role": "assistant", "content": "네"}, USER],
        [USER, calling("x", content="볼게요"), result("x"), USER],
        [
            {
                "role": "user",
                "content": [{"type": "text", "text": "이거"}, {"type": "image_url", "image_url": {"url": "x"}}],
            }
        ],
    ],
)
def test_what_is_taken(messages: object) -> None:
    assert check_messages(messages) == []


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "too short"),
        (None, "too short"),
        ([USER, "x"], "no object"),
        ([{"role": "model", "content": "x"}, USER], "is not one of"),
        ([{"role": "user", "content": ""}], "is empty"),
        ([{"role": "user", "content": None}], "expected a string"),
        ([{"role": "user", "content": []}], "expected a string"),
        ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "without data"),
        ([{"role": "user", "content": "\ud800"}], "surrogate"),
        ([USER, {"role": "assistant", "content": None}, USER], "expected a string"),
        ([USER, {"role": "assistant", "content": "a"}], "last message"),
        ([USER, calling()], "too short"),
        ([USER, calling("x")], "must be followed"),
        ([USER, calling("x"), USER], "must be followed"),
        ([USER, calling("x", "y"), result("x"), USER, result("y")], "must be followed"),
        ([USER, calling("x"), result("y")], "must be a response"),
        ([USER, result("x")], "must be a response"),
        ([USER, calling("x"), result("x"), result("x")], "must be a response"),
        ([USER, calling("x", "x"), result("x"), result("x")], "duplicate"),
        ([USER, calling("x"), result("x"), calling("x"), result("x")], "duplicate"),
        ([USER, calling("x"), result("x", "")], "is empty"),
        ([USER, calling("x" * 41), result("x" * 41)], "too long"),
        ([USER, calling("x") | {"role": "user"}, result("x")], "tool_calls in role user"),
        ([USER, {"role": "assistant", "content": None, "tool_calls": [{"id": "x"}]}, result("x")], "parameter type"),
    ],
)
def test_what_is_refused(messages: object, said: str) -> None:
    assert any(said in violation for violation in check_messages(messages))


@pytest.mark.parametrize(
    ("function", "said"),
    [({"name": "a b"}, "pattern"), ({"name": "a" * 65}, "pattern"), ({}, "pattern"), ({"name": "a", "arguments": {}}, "JSON"),
     ({"name": "a", "arguments": "[]"}, "JSON"), ({"name": "a", "arguments": '{"n": NaN}'}, "JSON")],
)  # fmt: skip
def test_calls_are_looked_into(function: JSON, said: str) -> None:
    message = calling("x")
    message["tool_calls"][0]["function"] = {"arguments": "{}", **function}
    assert any(said in violation for violation in check_messages([USER, message, result("x")]))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "model"),
        ({"tools": []}, "1 to 128"),
        ({"tool_choice": "none"}, "only allowed"),
        ({"stream_options": {}}, "stream_options"),
        ({"max_tokens": 1, "max_completion_tokens": 1}, "at once"),
        ({"tools": [{"type": "function"}]}, "no function"),
    ],
)
def test_the_rest_of_a_request(body: JSON, said: str) -> None:
    given = {"messages": [USER], **({"model": "m"} if body else {}), **body}
    assert any(said in violation for violation in check_request(given))


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({}, "type 'object'"),
        ({"type": "array"}, "type 'object'"),
        ({"type": "object", "anyOf": []}, "top level"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, "missing items"),
        ({"type": "object", "properties": {"a": {"type": ["array", "null"]}}}, "missing items"),
        ({"type": "object", "properties": {"a": {"anyOf": [{"type": "any"}]}}}, "no type"),
        ({"type": "object", "properties": {"a": None}}, "not of type"),
        ({"type": "object", "$defs": {"a": {"type": "array"}}}, "missing items"),
    ],
)
def test_schemas_are_looked_into(parameters: JSON, said: str) -> None:
    tool = {"type": "function", "function": {"name": "a", "parameters": parameters}}
    found = check_request({"model": "m", "messages": [USER], "tools": [tool]})
    assert any(said in violation for violation in found)
