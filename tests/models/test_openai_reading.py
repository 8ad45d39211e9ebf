"""Every chat completion has one meaning, and none raises."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haru_fsm.conversation import JSON, FailureReason, content_calls, content_text
from haru_fsm.models.gemini_signatures import UNSIGNED, unsigned
from haru_fsm.models.openai_chunks import merge_chunks
from haru_fsm.models.openai_messages import messages_of
from haru_fsm.models.openai_reading import COMPLETE, PROBLEMS, read_body, read_chunks, read_text, read_usage
from haru_fsm.models.replies import Problem, Usable
from haru_fsm.testing.fake_openai import call, reply, split_into_chunks
from haru_fsm.testing.strict import check_contents
from haru_fsm.testing.strict_openai import check_messages

USER: JSON = {"role": "user", "parts": [{"text": "주문 어디쯤 왔나요?"}]}


def usable(body: object) -> Usable:
    read = read_body(body)
    assert isinstance(read, Usable), read
    return read


def problem(body: object) -> Problem:
    read = read_body(body)
    assert isinstance(read, Problem), read
    return read


def with_arguments(arguments: object) -> JSON:
    body = reply(call("get_order"))
    body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = arguments
    return body


def assert_replayable(content: JSON) -> None:
    """The content may stand in a next request to either kind of model, its calls answered."""
    answers: list[JSON] = [
        {"functionResponse": {"name": one.name, "response": {}} | ({"id": one.id} if one.id is not None else {})}
        for one in content_calls(content)
    ]
    contents = [USER, content, {"role": "user", "parts": answers or [{"text": "고마워요"}]}]
    assert check_contents(contents) == []
    assert check_messages(messages_of("", contents)) == []


# --------------------------------------------------------------------------- answers and calls


def test_text_is_an_answer() -> None:
    read = usable(reply("3,000원입니다."))
    assert read.content == {"role": "model", "parts": [{"text": "3,000원입니다."}]}
    assert (read.shown, read.calls) == (None, 0)


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content", "reasoning_details", "annotations"])
def test_reasoning_is_no_part_of_the_answer(field: str) -> None:
    beside: JSON = {field: "비밀 생각"}
    body = reply("네.", **beside)
    assert "비밀" not in repr(usable(body).content)
    assert "비밀" not in repr(usable(merge_chunks(split_into_chunks(body))).content)


def test_thoughts_in_tags_are_not_shown() -> None:
    assert usable(reply("<think>고객이 화났다.</think>\n죄송합니다.")).shown == "죄송합니다."
    assert problem(reply("<think>고객이 화났다.</think>")).reason is FailureReason.EMPTY


def test_content_in_parts() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "음"}]}, {"type": "text", "text": "네, "}]
    body = reply(content=[*parts, {"type": "text", "text": "그렇습니다."}])
    assert content_text(usable(body).content) == "네, 그렇습니다."


def test_text_beside_calls_goes_before_them() -> None:
    read = usable(reply("볼게요.", call("get_order", id="x", order_id="HR1")))
    assert read.content["parts"] == [
        {"text": "볼게요."},
        unsigned({"functionCall": {"name": "get_order", "id": "x", "args": {"order_id": "HR1"}}}),
    ]


def test_the_first_call_says_that_nobody_has_signed_it() -> None:
    read = usable(reply("볼게요.", call("a"), call("b")))
    assert [part.get("thoughtSignature") for part in read.content["parts"]] == [None, UNSIGNED, None]


def test_calls_without_ids_have_none_and_doubled_ids_stay() -> None:
    read = usable(reply(call("a", id=None), call("b", id="same"), call("c", id="same")))
    assert [one.id for one in content_calls(read.content)] == [None, "same", "same"]
    assert_replayable(read.content)


@pytest.mark.parametrize("finish", ["stop", "function_call", None, ""])
def test_the_older_function_call(finish: str | None) -> None:
    body = reply(function_call={"name": "get_order", "arguments": '{"order_id": "HR1"}'})
    body["choices"][0]["finish_reason"] = finish
    (found,) = content_calls(usable(body).content)
    assert (found.name, found.args, found.id) == ("get_order", {"order_id": "HR1"}, None)


@pytest.mark.parametrize(
    ("arguments", "args", "why"),
    [
        ('{"n": 3.0, "big": 1180591620717411303424}', {"n": 3.0, "big": 2**70}, None),
        ("", {}, None),
        ("  ", {}, None),
        (None, {}, None),
        ("null", {}, None),
        ({"n": 1}, {"n": 1}, None),
        (json.dumps('{"n": 1}'), {"n": 1}, None),
        ("[1, 2]", {}, "a list"),
        ('"HR1"', {}, "no valid JSON"),
        ("3", {}, "a number"),
        ("true", {}, "true or false"),
        ('{"order_id": "HR', {}, "no valid JSON"),
        ("{'order_id': 'HR1'}", {}, "no valid JSON"),
        (3, {}, "a number"),
        (json.dumps(json.dumps('{"n": 1}')), {}, "a string"),
        ("[" * 100_000, {}, "no valid JSON"),
        ('{"a":' * 100_000, {}, "no valid JSON"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_arguments_as_they_come(arguments: object, args: JSON, why: str | None) -> None:
    read = usable(with_arguments(arguments))
    assert read.content["parts"][0]["functionCall"]["args"] == args
    assert (why in read.unusable[0]) if why else not read.unusable
    assert_replayable(read.content)


def test_only_the_calls_that_cannot_be_read_are_unusable() -> None:
    body = reply(call("a"), call("b"), call("c"))
    body["choices"][0]["message"]["tool_calls"][1]["function"]["arguments"] = "{"
    assert list(usable(body).unusable) == [1]


def test_a_call_without_a_name_spoils_the_reply() -> None:
    body = reply(call("a"), call("b"))
    del body["choices"][0]["message"]["tool_calls"][1]["function"]["name"]
    assert (problem(body).reason, problem(body).wanted) == (FailureReason.MALFORMED_CALL, "a")


# --------------------------------------------------------------------------- problems


@pytest.mark.parametrize(("finish", "reason"), [*PROBLEMS.items(), ("something_new", FailureReason.UNKNOWN_FINISH)])
def test_each_finish_reason_is_one_problem(finish: str, reason: FailureReason) -> None:
    for body in (reply("반쯤 쓴", finish=finish), reply(call("a"), finish=finish.upper())):
        found = problem(body)
        assert (found.reason, found.finish_reason) == (reason, finish)
        assert found.usage.total == 120


@pytest.mark.parametrize("finish", sorted(COMPLETE))
def test_gateways_say_stop_in_their_own_words(finish: str) -> None:
    assert usable(reply(call("a"), finish=finish)).calls == 1


def test_a_refusal_is_no_answer() -> None:
    for body in (
        reply(refusal="도와드릴 수 없습니다."),
        reply(content=[{"type": "refusal", "refusal": "도와드릴 수 없습니다."}]),
        reply(refusal="도와드릴 수 없습니다.", finish="content_filter"),
    ):
        found = problem(body)
        assert found.reason is FailureReason.ANSWER_BLOCKED
        assert "도와드릴 수 없습니다." in found.detail


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (reply(), FailureReason.EMPTY),
        (reply(" \n"), FailureReason.EMPTY),
        ({"choices": []}, FailureReason.EMPTY),
        ({"choices": [{}]}, FailureReason.EMPTY),
        ({"choices": [{"message": None, "finish_reason": "stop"}]}, FailureReason.EMPTY),
        ({"choices": None}, FailureReason.UNREADABLE),
        ({}, FailureReason.UNREADABLE),
        ([], FailureReason.UNREADABLE),
        (None, FailureReason.UNREADABLE),
        (reply("그럼 tool_code를 쓰죠 default_api.get_order(1)"), FailureReason.MALFORMED_CALL),
        (reply("", finish="tool_calls"), FailureReason.MALFORMED_CALL),
        ({"error": {"code": 502, "message": "Provider returned error"}}, FailureReason.SERVER),
        ({"error": {"code": "rate_limit_exceeded", "message": "slow"}, "choices": []}, FailureReason.RATE_LIMITED),
        ({"choices": [{"finish_reason": "error", "error": {"code": 503, "message": "down"}}]}, FailureReason.SERVER),
    ],
    ids=str,
)
def test_odd_bodies(body: object, reason: FailureReason) -> None:
    assert problem(body).reason is reason


def nameless() -> JSON:
    body = reply(call("a"), call(" "))
    body["choices"][0]["finish_reason"] = ""
    return body


@pytest.mark.parametrize(
    ("body", "finish", "wanted"),
    [
        ({**reply("네."), "choices": []}, None, None),
        (reply("반쯤", call("get_order"), finish="length"), "length", "get_order"),
        (reply(refusal="도와드릴 수 없습니다."), "stop", None),
        (reply(refusal="도와드릴 수 없습니다.", finish=""), None, None),
        (nameless(), None, "a,"),
        (reply("", finish="tool_calls"), "tool_calls", None),
        (reply(" \n"), "stop", None),
        (reply(" \n", finish=""), None, None),
        ({**reply("반쯤"), "error": {"code": 502, "message": "Provider returned error"}}, None, None),
    ],
    ids=range(9),
)
def test_what_is_of_no_use_is_paid_for_and_told(body: JSON, finish: str | None, wanted: str | None) -> None:
    found = problem(body)
    assert (found.usage.prompt, found.usage.answer, found.finish_reason, found.wanted) == (100, 20, finish, wanted)


def test_what_came_before_an_error_is_paid_for_also_where_nobody_has_counted_it() -> None:
    choice = {"message": {"content": "가" * 400}, "error": {"code": 503, "message": "down"}}
    found = read_body({"choices": [choice]}, {"messages": "x" * 400})
    assert isinstance(found, Problem)
    assert (found.reason, found.usage.prompt > 90, found.usage.answer > 250) == (FailureReason.SERVER, True, True)
    nothing_came = read_body({"error": {"code": 503, "message": "down"}}, {"messages": "x" * 400})
    assert nothing_came.usage.total == 0
    half = read_chunks([{"choices": [{"delta": {"content": "가" * 400}}]}], {"messages": "x" * 400})
    assert (half.usage.prompt > 90, half.usage.answer > 250) == (True, True)


def test_how_a_reply_ended_is_told_where_it_says_nothing_itself() -> None:
    assert "the reply ended with length" in problem(reply("반쯤", finish="length")).detail
    assert usable(reply("네.", refusal="  ")).content["parts"] == [{"text": "네."}]
    assert (
        problem(reply(content=["x", {"type": "refusal", "refusal": "아니요"}])).reason is FailureReason.ANSWER_BLOCKED
    )


def test_calls_of_tools_of_another_kind_and_ids_of_another_type() -> None:
    body = reply(call("a", id=None), call("b", id=None), call("c", id=None))
    first, second, third = body["choices"][0]["message"]["tool_calls"]
    first["id"], second["id"] = 7, ""
    third["custom"] = third.pop("function")
    found = content_calls(usable(body).content)
    assert [(one.name, one.id) for one in found] == [("a", "7"), ("b", None), ("c", None)]


def test_text_that_is_no_json() -> None:
    odd, read = read_text("<html>"), read_text(json.dumps(reply("네.")))
    assert isinstance(odd, Problem)
    assert odd.reason is FailureReason.UNREADABLE
    assert isinstance(read, Usable)
    assert read.content["parts"] == [{"text": "네."}]


# --------------------------------------------------------------------------- tokens


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}, (100, 0, 0, 20)),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 50,
                "total_tokens": 150,
                "prompt_tokens_details": {"cached_tokens": 64},
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            (100, 64, 30, 20),
        ),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 50,
                "total_tokens": 180,
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            (100, 0, 30, 50),
        ),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            (100, 0, 30, 20),
        ),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 30,
                "total_tokens": 130,
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            (100, 0, 30, 0),
        ),
        ({"prompt_tokens": 100, "completion_tokens": 20, "prompt_cache_hit_tokens": 40}, (100, 40, 0, 20)),
        ({"prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": "x"}, (100, 0, 0, 20)),
        ({"prompt_tokens": "100", "completion_tokens": 20.0, "cached_tokens": 500}, (100, 100, 0, 20)),
        ({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 150}, (100, 0, 0, 50)),
    ],
)
def test_tokens_are_counted_once(counts: JSON, expected: tuple[int, int, int, int]) -> None:
    usage = read_usage({"usage": counts})
    assert usage is not None
    assert (usage.prompt, usage.cached, usage.thoughts, usage.answer) == expected
    assert not usage.estimated


@pytest.mark.parametrize(
    ("counted", "expected"),
    [
        ([{"prompt_tokens": 900, "completion_tokens": 1, "total_tokens": 901}, {"completion_tokens": 9}], (900, 9)),
        ([{"prompt_tokens": 900}, {"completion_tokens": 9, "total_tokens": 909}], (900, 9)),
        ([{"prompt_tokens": 900, "completion_tokens": 9}, {"prompt_tokens": 0, "total_tokens": 0}], (900, 9)),
        ([{"prompt_tokens": 900, "completion_tokens": 9}, None], (900, 9)),
        ([{"prompt_tokens": 900, "completion_tokens": 9}, {"prompt_tokens_details": {"cached_tokens": 0}}], (900, 9)),
    ],
)
def test_what_a_stream_has_counted_stays_counted(counted: list[JSON | None], expected: tuple[int, int]) -> None:
    said: list[JSON] = [
        {"choices": [{"index": 0, "delta": {"content": "네"}, "finish_reason": "stop"}]},
        {"choices": []},
    ]
    chunks = [{**chunk, "usage": usage} for chunk, usage in zip(said, counted, strict=True)]
    usage = read_chunks(chunks).usage
    assert (usage.prompt, usage.answer, usage.estimated) == (*expected, False)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 0}, "none", []])
def test_missing_usage_is_estimated_and_marked(usage: object) -> None:
    body = reply("배송중입니다.") | {"usage": usage}
    read = read_body(body, {"messages": [{"role": "user", "content": "가" * 400}]})
    assert read.usage.estimated
    assert read.usage.prompt > 250
    assert read.usage.answer > 0


# --------------------------------------------------------------------------- chunks


def delta(**said: Any) -> JSON:
    finish = said.pop("finish_reason", None)
    return {"choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


def piece(
    index: int | None, id_: str | None = None, name: str | None = None, arguments: str | JSON | None = None
) -> JSON:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    given = {key: value for key, value in (("index", index), ("id", id_)) if value is not None}
    return delta(tool_calls=[{**given, "function": function}])


@pytest.mark.parametrize(
    "pieces",
    [
        [piece(0, "x", "a", ""), piece(0, None, None, '{"n"'), piece(1, "y", "b", "{"), piece(0, None, None, ": 1}"),
         piece(1, None, None, "}")],
        [piece(0, "x", "a", '{"n": 1}'), piece(0, "y", "b", "{}")],
        [piece(None, "x", "a", '{"n"'), piece(None, None, None, ": 1}"), piece(None, "y", "b", "{}")],
        [piece(0, "x", "a", '{"n"'), piece(0, "x", "a", ": 1}"), piece(1, "y", "b", {})],
        [piece(5, None, "a", '{"n"'), piece(5, "x", None, ": 1}"), piece(7, "y", "b", None)],
        [piece(None, "x", "a", '{"n"'), piece(None, "x", "a", ": 1}"), piece(None, "y", "b", "{}")],
        [piece(None, "x", None, ""), piece(None, None, "a", '{"n": 1}'), piece(None, "y", "b", "")],
    ],
)  # fmt: skip
def test_pieces_of_calls_are_told_apart(pieces: list[JSON]) -> None:
    read = read_chunks([*pieces, delta(finish_reason="tool_calls")])
    assert isinstance(read, Usable)
    assert [(one.name, one.args, one.id) for one in content_calls(read.content)] == [
        ("a", {"n": 1}, "x"),
        ("b", {}, "y"),
    ]


def heard(chunks: list[JSON]) -> Usable:
    read = read_chunks(chunks)
    assert isinstance(read, Usable), read
    return read


@pytest.mark.parametrize(
    "pieces",
    [
        [piece(0, "x", "a", ""), piece(0, "y", "b", "")],
        [piece(None, "x", "a"), piece(None, "y", "b")],
        [piece(None, None, "a", ""), piece(None, None, "b", "")],
        [piece(0, "x", "a", "{}"), piece(0, None, "b", "{}")],
    ],
)
def test_calls_without_arguments_are_told_apart_as_well(pieces: list[JSON]) -> None:
    read = heard([*pieces, delta(finish_reason="tool_calls")])
    assert [(one.name, one.args) for one in content_calls(read.content)] == [("a", {}), ("b", {})]


def test_what_is_said_again_whole_behind_its_pieces_is_one_call() -> None:
    for said in ({"tool_calls": [{"function": {"name": "a", "arguments": "{}"}}]},
                 {"function_call": {"name": "a", "arguments": "{}"}}):  # fmt: skip
        read = heard([delta(**said), {"choices": [{"message": said, "finish_reason": "stop"}]}])
        assert [(one.name, one.args) for one in content_calls(read.content)] == [("a", {})]


def test_arguments_in_pieces_that_look_whole_and_are_not_are_one_call() -> None:
    said = [at_zero("get", '{"order_id": "{x}'), at_zero(None, '{y}"}'), ENDED]
    assert [one.args for one in content_calls(heard(said).content)] == [{"order_id": "{x}{y}"}]
    deep = [at_zero("get", '{"a":' * 100_000 + "}"), at_zero(None, '{"b": 1}'), ENDED]
    assert list(heard(deep).unusable) == [0]
    again = [at_zero("get", A, id="x"), at_zero(None, B), ENDED]
    assert isinstance(read_chunks(again), Problem), "whose arguments these are nobody can tell"


def test_what_the_chunks_say_beside_their_choices_is_heard() -> None:
    begun = delta(content="반쯤")
    failed = read_chunks([begun, {"error": {"code": 503, "message": "down"}}])
    assert isinstance(failed, Problem)
    assert failed.reason is FailureReason.SERVER
    cut = read_chunks([{**begun, "error": None}, {**delta(content=" 쓴"), "error": None}])
    assert isinstance(cut, Problem)
    assert cut.reason is FailureReason.TRANSPORT
    parts = [{"type": "reasoning", "text": "비밀"}, {"type": "text", "text": "네"}, {"text": "."}]
    said = read_chunks([delta(content=parts), delta(finish_reason="stop")])
    assert isinstance(said, Usable)
    assert content_text(said.content) == "네."


def test_whole_calls_that_nothing_tells_apart_but_their_names() -> None:
    read = read_chunks(
        [piece(None, None, "a", '{"n": 1}'), piece(None, None, "a", '{"n": 2}'), delta(finish_reason="stop")]
    )
    assert isinstance(read, Usable)
    assert [one.args for one in content_calls(read.content)] == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        ([piece(0, "x", "a", '{"n": 1}'), piece(1, "x", "a", '{"n": 1}'), piece(1, None, None, "")], [1]),
        ([piece(0, "x", "a", '{"n": 1}'), piece(1, "x", "a", ""), piece(1, None, None, '{"n": 1}')], [1]),
        ([piece(0, "x", "a", '{"n": 1}'), piece(1, "x", "a", '{"n": 2}')], [1, 2]),
        ([piece(0, "", "a", '{"n": 1}'), piece(1, "", "a", '{"n": 1}')], [1, 1]),
        ([piece(0, "x", "a", ""), piece(1, "x", "a", ""), piece(0, None, None, '{"n": 1}'),
          piece(1, None, None, '{"n": 2}')], [1, 2]),
    ],
)  # fmt: skip
def test_a_call_told_again_under_another_index_is_one(pieces: list[JSON], calls: list[int]) -> None:
    read = read_chunks([*pieces, delta(finish_reason="tool_calls")])
    assert isinstance(read, Usable)
    assert [one.args["n"] for one in content_calls(read.content)] == calls


@pytest.mark.parametrize("indexes", [(0, 1), (0, 0)])
@pytest.mark.parametrize("signed_at", [0, 1])
def test_a_call_told_again_keeps_the_signature_of_either(signed_at: int, indexes: tuple[int, int]) -> None:
    pieces = [piece(index, "x", "a", '{"n": 1}') for index in indexes]
    told = pieces[signed_at]["choices"][0]["delta"]["tool_calls"][0]
    told["extra_content"] = {"google": {"thought_signature": "AQID"}}
    read = read_chunks([*pieces, delta(finish_reason="tool_calls")])
    assert isinstance(read, Usable)
    assert [part["thoughtSignature"] for part in read.content["parts"]] == ["AQID"]


A, B = '{"order_id": "A"}', '{"order_id": "B"}'


def at_zero(name: str | None, arguments: str | JSON, **more: str) -> JSON:
    """A chunk with one piece of a call, at index 0 whichever call it is."""
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **more, "function": function}]}}]}


ENDED = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        ([at_zero("get", A), at_zero("get", B)], [("get", "A"), ("get", "B")]),
        ([at_zero("get", A, id=""), at_zero("put", B, id="")], [("get", "A"), ("put", "B")]),
        ([at_zero("get", A, id="x"), at_zero("put", B, id="x")], [("get", "A"), ("put", "B")]),
        ([at_zero("get", A), at_zero("get", A)], [("get", "A"), ("get", "A")]),
        ([at_zero("get", A), at_zero("get", A, id="x")], [("get", "A"), ("get", "A")]),
        ([at_zero("get", A), at_zero("get", f" {B}")], [("get", "A"), ("get", "B")]),
        ([at_zero("get", f"{A}\n", id="x"), at_zero("get", A, id="x")], [("get", "A")]),
        ([at_zero("get", A, id="x"), at_zero("get", f"{A}\n", id="x")], [("get", "A")]),
        ([at_zero("get", "{} ", id="x"), at_zero(None, A)], [("get", "A")]),
        ([at_zero("get", A, id="x"), at_zero("get", A, id="x")], [("get", "A")]),
        ([at_zero("get", A, id="x"), at_zero(None, A, id="x")], [("get", "A")]),
        ([at_zero("get", A), at_zero("put", ""), at_zero(None, B)], [("get", "A"), ("put", "B")]),
        ([at_zero("get", "{}", id="x"), at_zero(None, A[:7]), at_zero(None, A[7:])], [("get", "A")]),
        ([at_zero("get", json.loads(A)), at_zero("put", json.loads(B))], [("get", "A"), ("put", "B")]),
        ([at_zero("get", json.loads(A)), at_zero("put", B)], [("get", "A"), ("put", "B")]),
        ([at_zero("get", json.loads(A), id="x"), at_zero("get", A, id="x")], [("get", "A")]),
        ([at_zero("get", {}, id="x"), at_zero(None, A)], [("get", "A")]),
        ([at_zero("get", A[:7]), at_zero("get", A[7:]), at_zero("get", "")], [("get", "A")]),
    ],
    ids=str,
)
def test_whole_calls_under_one_index_are_told_apart(pieces: list[JSON], calls: list[tuple[str, str]]) -> None:
    """They had become one call of the last name, with arguments that were no JSON."""
    read = read_chunks([*pieces, ENDED])
    assert isinstance(read, Usable)
    assert [(one.name, one.args["order_id"]) for one in content_calls(read.content)] == calls
    assert read.unusable == {}
    assert_replayable(read.content)


@pytest.mark.parametrize(
    ("arguments", "calls"),
    [
        (f"{A}{B}", ["A", "B"]),
        (f"{A}\n{B} ", ["A", "B"]),
        (f"{A}{A}{A}", ["A"]),
        (f"{A}{B}{A}", ["A", "B"]),
        ('{"order_id": "A", "n": 1}{"n": 1, "order_id": "A"}', ["A"]),
    ],
)
def test_arguments_that_were_run_together_are_those_of_several_calls(arguments: str, calls: list[str]) -> None:
    read = usable(with_arguments(arguments))
    assert [one.args["order_id"] for one in content_calls(read.content)] == calls
    assert read.calls == len(calls)
    assert_replayable(read.content)


@pytest.mark.parametrize("arguments", [f"{A}[1]", f"{A}x", f"{A}{B[:5]}"])
def test_arguments_with_anything_else_behind_them_are_not_read(arguments: str) -> None:
    assert usable(with_arguments(arguments)).unusable == {0: "the arguments are no valid JSON"}


def test_what_is_not_finite_in_arguments_that_were_run_together_is_made_safe() -> None:
    read = usable(with_arguments('{"a": NaN}{"a": 1}'))
    assert [one.args for one in content_calls(read.content)] == [{"a": "NaN"}, {"a": 1}]


def test_a_call_without_the_level_between_and_one_that_is_no_list() -> None:
    flat = {"id": "x", "name": "get_order", "arguments": A}
    for calls in ([flat], flat, {"id": "x", "type": "function", "function": {"name": "get_order", "arguments": A}}):
        (one,) = content_calls(usable(reply(tool_calls=calls, finish="tool_calls")).content)
        assert (one.name, one.id, one.args) == ("get_order", "x", {"order_id": "A"})


def test_a_call_that_is_told_in_the_older_field_as_well_is_one() -> None:
    body = reply(call("get_order", order_id="A"), function_call={"name": "get_order", "arguments": A})
    assert usable(body).calls == 1


def test_a_whole_message_behind_its_pieces_is_not_heard_twice() -> None:
    whole = {"choices": [{"index": 0, "message": {"content": "안녕하세요"}, "finish_reason": "stop"}]}
    begun = {"choices": [{"index": 0, "delta": {"content": "안녕하세요"}}]}
    for chunks in ([begun, whole], [whole]):
        read = read_chunks(chunks)
        assert isinstance(read, Usable)
        assert content_text(read.content) == "안녕하세요"


def test_the_older_function_call_in_pieces() -> None:
    read = read_chunks(
        [
            delta(function_call={"name": "get_order", "arguments": ""}),
            delta(function_call={"arguments": '{"order_id": '}),
            delta(function_call={"arguments": '"HR1"}'}),
            delta(finish_reason="function_call"),
        ]
    )
    assert isinstance(read, Usable)
    (found,) = content_calls(read.content)
    assert (found.name, found.args) == ("get_order", {"order_id": "HR1"})


@pytest.mark.parametrize("chunks", [[], [{}], [delta(content="배송")], [piece(0, "x", "a", "{}")], [{"choices": []}]])
def test_chunks_without_an_end_are_a_transport_failure(chunks: list[JSON]) -> None:
    read = read_chunks(chunks)
    assert isinstance(read, Problem)
    assert read.reason is FailureReason.TRANSPORT


texts = st.text(max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
BODIES: list[JSON] = [
    reply("네."),
    reply("볼게요.", call("a", n=1), call("b", id=None)),
    reply(function_call={"name": "a", "arguments": "{}"}),
    {"error": {"message": "m", "code": 500}},
]


@st.composite
def spoiled(draw: st.DrawFn) -> JSON:
    """A proper body in which something was replaced or taken away."""
    body = copy.deepcopy(draw(st.sampled_from(BODIES)))
    for _ in range(draw(st.integers(1, 3))):
        place, keys = body, None
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(place[key], dict | list) and draw(st.booleans()):
                place = place[key]
                continue
            if draw(st.booleans()):
                place[key] = draw(json_values)
            else:
                del place[key]
            break
    return body


@given(spoiled() | json_values)
def test_any_body_has_a_meaning_and_what_is_usable_can_be_replayed(body: object) -> None:
    for read in (read_body(body), read_chunks(body if isinstance(body, list) else [body])):
        if isinstance(read, Usable):
            assert_replayable(read.content)
        else:
            assert isinstance(read.reason, FailureReason)
            assert len(read.incident().detail) < 1500


@given(st.sampled_from(BODIES[:2]), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60))
def test_a_stream_means_what_its_body_means(body: JSON, text: str) -> None:
    body = copy.deepcopy(body)
    body["choices"][0]["message"]["content"] = text
    whole, streamed = read_body(body), read_chunks(list(split_into_chunks(body)))
    assert whole == streamed
