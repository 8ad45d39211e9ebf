"""Every body has one meaning, and none raises."""

import json

import pytest
from google.genai.types import FinishReason
from hypothesis import given
from hypothesis import strategies as st

from haru_fsm.conversation import JSON, FailureReason, content_calls, content_text
from haru_fsm.models.gemini_reading import COMPLETE, PROBLEMS, read_body, read_text, read_usage
from haru_fsm.models.replies import Problem, Usable
from haru_fsm.testing.fake_gemini import call, reply
from haru_fsm.testing.strict import check_contents

USER: JSON = {"role": "user", "parts": [{"text": "주문 어디쯤 왔나요?"}]}


def usable(body: object) -> Usable:
    read = read_body(body)
    assert isinstance(read, Usable), read
    return read


def problem(body: object) -> Problem:
    read = read_body(body)
    assert isinstance(read, Problem), read
    return read


def assert_replayable(content: JSON) -> None:
    """The content may stand in a next request, its calls answered."""
    calls = content_calls(content)
    answers: list[JSON] = [
        {"functionResponse": {"name": one.name, "response": {}} | ({"id": one.id} if one.id is not None else {})}
        for one in calls
    ]
    after = {"role": "user", "parts": answers or [{"text": "고마워요"}]}
    assert check_contents([USER, content, after]) == []


# --------------------------------------------------------------------------- answers


def test_text_is_an_answer_and_its_parts_are_kept_verbatim() -> None:
    parts: list[JSON] = [
        {"text": "요약 생각", "thought": True},
        {"text": "3,000원입니다."},
        {"text": "", "thoughtSignature": "c2Vjb25kLXNpZ25hdHVyZS37774="},
    ]
    read = usable(reply(*parts))
    assert read.content == {"role": "model", "parts": parts}
    assert content_text(read.content) == "3,000원입니다."
    assert (read.shown, read.calls) == (None, 0)


def test_fields_that_nobody_knows_are_kept() -> None:
    part = {"text": "네.", "partMetadata": {"a": 1}, "somethingNew": [1, 2]}
    assert usable(reply(part)).content["parts"] == [part]


def test_a_leaked_thought_is_replayed_but_not_shown() -> None:
    read = usable(reply("THOUGHT: 보상은 말하지 말 것\n\n불편을 드려 죄송합니다."))
    assert read.shown == "불편을 드려 죄송합니다."
    assert "보상" in content_text(read.content)


def test_a_role_that_is_missing_or_wrong_becomes_model() -> None:
    body = reply("네.")
    for content in ({"parts": [{"text": "네."}]}, {"role": "assistant", "parts": [{"text": "네."}]}):
        body["candidates"][0]["content"] = content
        assert usable(body).content["role"] == "model"


def test_only_the_first_candidate_counts() -> None:
    body = reply("첫째")
    body["candidates"].append(reply("둘째")["candidates"][0])
    assert content_text(usable(body).content) == "첫째"


@pytest.mark.parametrize("finish", [None, "STOP", "stop", "FINISH_REASON_UNSPECIFIED"])
def test_a_whole_reply_may_leave_out_why_it_ended(finish: str | None) -> None:
    assert content_text(usable(reply("네.", finish=finish)).content) == "네."


# --------------------------------------------------------------------------- nothing usable


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"candidates": []},
        {"candidates": None},
        {"candidates": [{"index": 0}]},
        {"candidates": [None]},
        {"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]},
        {"candidates": [{"content": None, "finishReason": "STOP"}]},
        reply(),
        reply({}),
        reply(""),
        reply("  \n"),
        reply({"text": None}),
        reply({"text": 5}),
        reply({"text": "생각만", "thought": True}),
        reply({"thoughtSignature": "AAAA"}),
        reply("THOUGHT: 생각만"),
        reply({"executableCode": {"code": "1+1"}}),
        {"usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9}},
    ],
    ids=lambda body: json.dumps(body)[:60],
)
def test_a_reply_without_an_answer_is_empty_however_it_is_worded(body: JSON) -> None:
    assert problem(body).reason is FailureReason.EMPTY


@pytest.mark.parametrize(
    "text", ["<html><body>Error 502</body></html>", "", "  ", "[]", "null", "3", '"x"', "{", "[" * 100_000]
)
def test_what_is_no_object_is_unreadable(text: str) -> None:
    read = read_text(text)
    assert isinstance(read, Problem)
    assert read.reason is FailureReason.UNREADABLE


def test_every_finish_reason_of_the_sdk_is_known() -> None:
    assert {reason.value for reason in FinishReason} <= PROBLEMS.keys() | COMPLETE


@pytest.mark.parametrize(("finish", "reason"), [*PROBLEMS.items(), ("SOMETHING_NEW", FailureReason.UNKNOWN_FINISH)])
def test_a_reply_that_stopped_for_another_reason_is_never_used(finish: str, reason: FailureReason) -> None:
    for body in (reply("반쪽 문장이", finish=finish), reply(call("get_order"), finish=finish), reply(finish=finish)):
        read = problem(body)
        assert (read.reason, read.finish_reason) == (reason, finish)
        assert read.detail == "the provider gave no message"


def test_the_providers_own_words_are_kept() -> None:
    said = 'Malformed function call: print(default_api.get_order(order_id="HR1"))'
    assert problem(reply(finish="MALFORMED_FUNCTION_CALL", finishMessage=said)).detail == said


def test_the_tool_that_was_wanted_is_named_by_the_call_or_by_the_message() -> None:
    said = "Unexpected tool call: Model tried to call an undeclared function: get_points"
    by_call = problem(reply(call("get_points"), finish="UNEXPECTED_TOOL_CALL"))
    by_message = problem(reply(finish="UNEXPECTED_TOOL_CALL", finishMessage=said))
    assert by_call.wanted == by_message.wanted == "get_points"
    assert "get_points" in by_call.incident().detail


def test_a_blocked_prompt_says_why() -> None:
    read = problem({"promptFeedback": {"blockReason": "MODEL_ARMOR", "blockReasonMessage": "jailbreak"}})
    assert (read.reason, read.detail) == (FailureReason.PROMPT_BLOCKED, "MODEL_ARMOR: jailbreak")


@pytest.mark.parametrize(
    "candidate",
    [
        {"content": {"role": "model"}, "finishReason": "SAFETY"},
        {"content": {"role": "model", "parts": [{"text": "고객님의 주문은"}]}, "finishReason": "SAFETY"},
        {"content": {"role": "model", "parts": [{"text": "고객님의 주문은"}]}},
    ],
)
def test_a_blocked_prompt_is_one_whatever_else_a_gateway_has_put_there(candidate: JSON) -> None:
    """Asking for a politer answer changes nothing, and what was written before the block is half a sentence."""
    read = problem({"promptFeedback": {"blockReason": "SAFETY"}, "candidates": [candidate]})
    assert (read.reason, read.finish_reason) == (FailureReason.PROMPT_BLOCKED, None)


def test_a_whole_answer_was_not_blocked() -> None:
    blocked = {"promptFeedback": {"blockReason": "OTHER"}}
    assert content_text(usable({**reply("배송중입니다."), **blocked}).content) == "배송중입니다."


def test_a_block_reason_that_is_none_blocks_nothing() -> None:
    assert problem({"promptFeedback": {"blockReason": "BLOCK_REASON_UNSPECIFIED"}}).reason is FailureReason.EMPTY


def test_an_error_in_a_body_with_status_200_is_that_error() -> None:
    read = problem({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}})
    assert (read.reason, read.http_status) == (FailureReason.SERVER, 503)
    assert problem([{"error": {"code": 404, "message": "no such model"}}]).reason is FailureReason.UNKNOWN_MODEL


# --------------------------------------------------------------------------- calls


def test_calls_decide_and_the_text_beside_them_stays() -> None:
    read = usable(reply("확인해 보겠습니다.", call("get_order", order_id="HR1")))
    assert read.calls == 1
    assert content_text(read.content) == "확인해 보겠습니다."


@pytest.mark.parametrize(
    "made",
    [
        {"name": "a"},
        {"name": "a", "args": {}},
        {"name": "a", "args": {"x": [1, {"y": None}], "z": None}},
        {"id": "1", "name": "default_api.a", "args": {"x": 3.0}},
        {"id": "1", "name": "아무 이름", "args": {"big": 2**80}},
    ],
)
def test_a_readable_call_is_kept_verbatim(made: JSON) -> None:
    part = {"functionCall": made, "thoughtSignature": "AQID"}
    read = usable(reply(part))
    assert read.content["parts"] == [part]
    assert read.unusable == {}
    assert_replayable(read.content)


def test_calls_with_equal_ids_are_two_calls() -> None:
    made = {"functionCall": {"id": "same", "name": "a", "args": {}}}
    read = usable(reply(made, made))
    assert read.calls == 2
    assert_replayable(read.content)


@pytest.mark.parametrize("args", [[], ["x"], "{}", '{"a": 1}', 3, True, 0.5])
def test_arguments_that_are_no_object_are_emptied_and_their_position_noted(args: object) -> None:
    read = usable(reply(call("a"), {"functionCall": {"name": "b", "args": args}, "thoughtSignature": "AQID"}))
    assert [one.args for one in content_calls(read.content, read.unusable)] == [{}, {}]
    assert read.unusable.keys() == {1}
    assert read.content["parts"][1]["thoughtSignature"] == "AQID"
    assert_replayable(read.content)


@pytest.mark.parametrize(
    ("made", "kept"),
    [
        ({"name": "a", "args": None}, {"name": "a"}),
        ({"name": "a", "id": None}, {"name": "a"}),
        ({"name": "a", "id": ""}, {"name": "a"}),
        ({"name": "a", "id": 7}, {"name": "a", "id": "7"}),
        ({"name": "a", "willContinue": False}, {"name": "a"}),
        ({"name": "a", "args": {"x": float("nan")}}, {"name": "a", "args": {"x": "NaN"}}),
        ({"name": "a", "args": {"x": "\ud800"}}, {"name": "a", "args": {"x": "\ufffd"}}),
    ],
)
def test_what_could_not_be_replayed_is_mended_as_little_as_possible(made: JSON, kept: JSON) -> None:
    read = usable(reply({"functionCall": made}))
    assert read.content["parts"] == [{"functionCall": kept}]
    assert_replayable(read.content)


@pytest.mark.parametrize("made", [{}, {"args": {}}, {"name": ""}, {"name": " "}, {"name": 5}, "call", [1]])
def test_one_call_without_a_name_spoils_the_reply(made: object) -> None:
    assert problem(reply(call("a"), {"functionCall": made})).reason is FailureReason.MALFORMED_CALL


@pytest.mark.parametrize(
    "made",
    [{"name": "a", "willContinue": True}, {"name": "a", "partialArgs": [{"jsonPath": "$.x", "stringValue": "y"}]}],
)
def test_one_call_that_is_not_whole_spoils_the_reply(made: JSON) -> None:
    read = problem(reply(call("b"), {"functionCall": made}))
    assert read.reason is FailureReason.PARTIAL_CALL
    assert "a" in read.detail


@pytest.mark.parametrize(
    "text", ["tool_code\nprint(get_order())", "```tool_code\nx\n```", "print(default_api.get_order(order_id='HR1'))"]
)
def test_a_call_written_as_text_is_malformed(text: str) -> None:
    assert problem(reply(text)).reason is FailureReason.MALFORMED_CALL


def test_a_call_that_the_provider_has_run_itself_is_not_ours() -> None:
    ran = {"functionResponse": {"name": "weather", "response": {"c": 3}}}
    read = usable(reply(call("weather"), ran, "3도입니다."))
    assert read.content["parts"] == [{"text": "3도입니다."}]
    read = usable(reply({"functionCall": {"name": "weather", "args": []}}, call("b"), ran))
    assert [one.name for one in content_calls(read.content)] == ["b"]
    assert read.unusable == {}


OURS: JSON = {"contents": [USER], "tools": [{"functionDeclarations": [{"name": "weather"}, {"name": "b"}]}]}


def test_nobody_but_us_can_have_run_a_tool_that_we_declared() -> None:
    made_up = {"functionResponse": {"name": "weather", "response": {"c": 3}}}
    read = read_body(reply("볼게요.", call("weather"), made_up, "3도입니다.", call("b"), "끝."), OURS)
    assert isinstance(read, Usable)
    assert read.content["parts"] == [{"text": "볼게요."}, call("weather"), call("b")]
    assert read.calls == 2
    read = read_body(reply(made_up, "3도입니다."), OURS)
    assert isinstance(read, Problem)
    assert read.reason is FailureReason.MALFORMED_CALL
    assert "weather" in read.detail


@pytest.mark.parametrize("response", [{"name": "theirs", "response": {}}, {"name": ["weather"]}, {}, "weather"])
def test_a_response_that_is_none_of_ours_leaves_the_words_beside_it(response: object) -> None:
    read = read_body(reply({"functionResponse": response}, "3도입니다."), OURS)
    assert isinstance(read, Usable)
    assert content_text(read.content) == "3도입니다."


def test_an_error_behind_half_an_answer_is_the_error() -> None:
    """With a finish reason the answer is whole, whatever stands beside it."""
    error = {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}
    half = reply("고객님의 주문은", finish=None)
    for body in ({**half, "error": error}, [half, {"error": error}]):
        read = problem(body)
        assert (read.reason, read.http_status) == (FailureReason.SERVER, 503)
        assert read.usage.total
    alone = read_body({"error": error}, OURS)
    assert isinstance(alone, Problem)
    assert alone.usage.total == 0
    assert content_text(usable({**reply("네."), "error": error}).content) == "네."
    assert content_text(usable({**reply("네.", finish=None), "error": None}).content) == "네."


def _events(*chunks: JSON, line: str = "\n") -> str:
    return "".join(f"data: {json.dumps(chunk, ensure_ascii=False)}{line}{line}" for chunk in chunks)


@pytest.mark.parametrize("line", ["\n", "\r\n"])
@pytest.mark.parametrize("before", ["", ": ping\n\n", "event: message\nid: 1\n", "data:\n\n"])
@pytest.mark.parametrize("after", ["", "data: [DONE]\n\n", ": bye\n"])
def test_a_stream_that_was_not_asked_for_is_read_as_one(before: str, after: str, line: str) -> None:
    text = before + _events(reply("배송\u2028중", finish=None), reply("입니다."), line=line) + after
    read = read_text(text)
    assert isinstance(read, Usable)
    assert content_text(read.content) == "배송\u2028중입니다."
    assert isinstance(cut := read_text(before + _events(reply("배송중", finish=None), line=line)), Problem)
    assert cut.reason is FailureReason.TRANSPORT


@pytest.mark.parametrize("text", ["data: {", "data: <html>", "event: error\n\n", "data:\n\n", ": ping\n\n"])
def test_a_stream_that_says_nothing_is_unreadable(text: str) -> None:
    read = read_text(text)
    assert isinstance(read, Problem)
    assert read.reason is FailureReason.UNREADABLE


@pytest.mark.parametrize("signature", ["???", "A", 5, ""])
def test_a_signature_that_is_none_is_left_out(signature: object) -> None:
    assert usable(reply({"text": "네.", "thoughtSignature": signature})).content["parts"] == [{"text": "네."}]


@pytest.mark.parametrize("signature", ["AQID", "AQI=", "AQI", "_-8=", "/+8"])
def test_signatures_of_either_alphabet_are_kept_as_they_came(signature: str) -> None:
    part = {"text": "네.", "thoughtSignature": signature}
    assert usable(reply(part)).content["parts"] == [part]


def test_text_and_call_in_one_part_become_two() -> None:
    read = usable(reply({"text": "볼게요", "functionCall": {"name": "a"}, "thoughtSignature": "AQID"}))
    assert read.content["parts"] == [{"text": "볼게요"}, {"functionCall": {"name": "a"}, "thoughtSignature": "AQID"}]


def test_parts_without_data_and_texts_without_letters_are_left_out() -> None:
    read = usable(reply({}, "네.", {"text": ""}, {"thought": True}, {"inlineData": None}))
    assert read.content["parts"] == [{"text": "네."}]


# --------------------------------------------------------------------------- streams


def test_the_chunks_of_a_stream_are_one_reply() -> None:
    chunks = [
        reply("배송", finish=None, usage={}),
        reply({"text": "생각", "thought": True}, finish=None, usage={}),
        reply({"text": "중", "thought": True}, finish=None, usage={"promptTokenCount": 5, "thoughtsTokenCount": 3}),
        reply("중입", finish=None, usage={}),
        reply("니다.", finish=None, usage={}),
        reply({"text": "", "thoughtSignature": "AQID"}, usage={"promptTokenCount": 5, "candidatesTokenCount": 7}),
    ]
    read = usable(chunks)
    assert read.content["parts"] == [
        {"text": "배송"},
        {"text": "생각중", "thought": True},
        {"text": "중입니다."},
        {"text": "", "thoughtSignature": "AQID"},
    ]
    assert (read.usage.prompt, read.usage.thoughts, read.usage.answer) == (5, 3, 7)  # what was thought stays thought


@pytest.mark.parametrize(
    ("counted", "expected"),
    [
        ([{"promptTokenCount": 900, "totalTokenCount": 900}, {"candidatesTokenCount": 7}], (900, 0, 7)),
        ([{"promptTokenCount": 900}, {"candidatesTokenCount": 7, "totalTokenCount": 907}], (900, 0, 7)),
        (
            # The last count is the whole, and has the thoughts of the first in its answer.
            [
                {"promptTokenCount": 5, "thoughtsTokenCount": 3, "totalTokenCount": 8},
                {"promptTokenCount": 5, "candidatesTokenCount": 10, "totalTokenCount": 15},
            ],
            (5, 0, 10),
        ),
        (
            [
                {"promptTokenCount": 5, "thoughtsTokenCount": 3, "totalTokenCount": 8},
                {"promptTokenCount": 5, "thoughtsTokenCount": 3, "candidatesTokenCount": 7, "totalTokenCount": 15},
            ],
            (5, 3, 7),
        ),
        (
            [{"promptTokenCount": 5, "candidatesTokenCount": 7}, {"promptTokenCount": 0, "totalTokenCount": 0}],
            (5, 0, 7),
        ),
        ([{"promptTokenCount": 5, "candidatesTokenCount": 7}, {"trafficType": "ON_DEMAND"}], (5, 0, 7)),
        ([{"promptTokenCount": 5, "candidatesTokenCount": 7}, None], (5, 0, 7)),
    ],
)
def test_what_a_stream_has_counted_stays_counted(counted: list[JSON | None], expected: tuple[int, int, int]) -> None:
    last = len(counted) - 1
    chunks = [
        {**reply("네", finish="STOP" if place == last else None), "usageMetadata": counts}
        for place, counts in enumerate(counted)
    ]
    usage = usable(chunks).usage
    assert (usage.prompt, usage.thoughts, usage.answer, usage.estimated) == (*expected, False)


def test_no_more_of_a_prompt_was_cached_than_there_was() -> None:
    usage = read_usage({"usageMetadata": {"promptTokenCount": 10, "cachedContentTokenCount": 500}})
    assert usage is not None
    assert (usage.prompt, usage.cached) == (10, 10)


def test_a_stream_that_does_not_say_that_it_is_over_was_cut() -> None:
    read = problem([reply("반쪽", finish=None), reply(" 문장", finish=None)])
    assert (read.reason, read.usage.prompt) == (FailureReason.TRANSPORT, 100)


# --------------------------------------------------------------------------- tokens


def test_thoughts_are_counted_and_cached_tokens_only_once() -> None:
    counts = {
        "promptTokenCount": 900,
        "cachedContentTokenCount": 800,
        "candidatesTokenCount": 20,
        "thoughtsTokenCount": 1200,
        "totalTokenCount": 2120,
    }
    usage = usable(reply("네.", usage=counts)).usage
    assert (usage.total, usage.cached, usage.thoughts, usage.estimated) == (2120, 800, 1200, False)


def ran(name: str, id_: str | None = None) -> JSON:
    return {"functionResponse": {"name": name, "response": {"result": 1}} | ({"id": id_} if id_ else {})}


def called(name: str, id_: str | None = None, args: object = None) -> JSON:
    return {"functionCall": {"name": name, "args": {} if args is None else args} | ({"id": id_} if id_ else {})}


@pytest.mark.parametrize(
    ("parts", "left"),
    [
        ([called("a"), called("b"), ran("b")], [("a", None)]),
        ([called("a"), called("b"), ran("a")], [("b", None)]),
        ([called("a"), called("a"), called("a"), ran("a")], [("a", None), ("a", None)]),
        ([called("a", "1"), called("a", "2"), ran("a", "2")], [("a", "1")]),
        ([called("a", "1"), ran("a", "2")], [("a", "1")]),
        ([called("a"), ran("b")], [("a", None)]),
        (["네, ", called("a"), called("b"), called("c"), ran("b"), ran("a")], [("c", None)]),
    ],
    ids=range(7),
)
def test_only_the_call_that_the_provider_has_run_is_taken_back(
    parts: list[str | JSON], left: list[tuple[str, str | None]]
) -> None:
    read = usable(reply(*parts))
    assert [(one.name, one.id) for one in content_calls(read.content)] == left


@pytest.mark.parametrize(("run", "unusable"), [("a", [1]), ("b", [0, 1]), ("c", [0])])
def test_a_call_that_is_taken_back_takes_nothing_else_with_it(run: str, unusable: list[int]) -> None:
    body = reply("네, ", called("a", args=[1]), called("b"), called("c", args=[1]), ran(run))
    assert sorted(usable(body).unusable) == unusable


def test_a_block_counts_where_nothing_came_and_an_error_has_the_status_it_came_with() -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}}
    assert usable(reply("네.") | blocked).content["parts"] == [{"text": "네."}]
    assert problem(reply() | blocked).reason is FailureReason.PROMPT_BLOCKED
    assert problem({"error": {"message": "down"}}).http_status == 200
    alone = reply()
    alone["candidates"][0]["content"]["parts"] = {"text": "네."}
    assert usable(alone).content["parts"] == [{"text": "네."}]


COUNTS: JSON = {
    "promptTokenCount": 90,
    "toolUsePromptTokenCount": 10,
    "thoughtsTokenCount": 5,
    "candidatesTokenCount": 15,
    "totalTokenCount": 130,
}


@pytest.mark.parametrize(
    ("body", "finish", "wanted"),
    [
        (reply(finish=None, usage=COUNTS) | {"promptFeedback": {"blockReason": "SAFETY"}}, None, None),
        (reply(call("a"), finish="MAX_TOKENS", usage=COUNTS), "MAX_TOKENS", "a"),
        (reply(call("a"), call(" "), usage=COUNTS), "STOP", "a,"),
        (reply(call("a"), call(" "), finish="", usage=COUNTS), None, "a,"),
        (reply(" ", usage=COUNTS), "STOP", None),
        (reply(" ", finish="", usage=COUNTS), None, None),
        (reply("반쯤", finish=None, usage=COUNTS) | {"error": {"code": 503, "message": "down"}}, None, None),
        (reply(finish="UNEXPECTED_TOOL_CALL", usage=COUNTS, finishMessage="x"), "UNEXPECTED_TOOL_CALL", None),
    ],
    ids=range(8),
)
def test_what_is_of_no_use_is_paid_for_and_told(body: JSON, finish: str | None, wanted: str | None) -> None:
    found = problem(body)
    assert (found.finish_reason, found.wanted) == (finish, wanted)
    usage = found.usage
    assert (usage.prompt, usage.tool, usage.thoughts, usage.answer, usage.total) == (90, 10, 5, 25, 130)


@pytest.mark.parametrize("count", [12, 12.0, "12"])
def test_counts_are_read_however_a_gateway_writes_them(count: float | str) -> None:
    usage = read_usage({"usageMetadata": {"promptTokenCount": count}})
    assert usage is not None
    assert usage.prompt == 12


@pytest.mark.parametrize("count", [-1, True, "x", None, [], 1.5, 10**30])
def test_counts_that_are_none_count_nothing(count: object) -> None:
    assert read_usage({"usageMetadata": {"promptTokenCount": count}}) is None


def test_tokens_of_a_kind_that_is_not_known_are_paid_for() -> None:
    usage = read_usage({"usageMetadata": {"promptTokenCount": 10, "totalTokenCount": 30}})
    assert usage is not None
    assert (usage.prompt, usage.answer, usage.total) == (10, 20, 30)


def test_missing_counts_are_estimated_and_marked() -> None:
    read = read_body(reply("안녕하세요, 무엇을 도와드릴까요?", usage={}), {"contents": [USER]})
    assert read.usage.estimated
    assert read.usage.prompt > 10
    assert read.usage.answer > 10


# --------------------------------------------------------------------------- anything at all

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=[]), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def mostly(known: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """The value that the API would send, or any other."""
    return st.one_of(known, known, known, json_values)


texts = st.sampled_from(["네.", "", " ", "THOUGHT: x\n\n네.", "<think>a", "tool_code"])
calls = st.fixed_dictionaries(
    {},
    optional={
        "name": mostly(st.sampled_from(["get_order", "", "default_api.x"])),
        "args": mostly(st.just({"a": 1})),
        "id": mostly(st.just("1")),
        "willContinue": mostly(st.just(False)),
        "partialArgs": mostly(st.just([])),
    },
)
parts = st.fixed_dictionaries(
    {},
    optional={
        "text": mostly(texts),
        "thought": mostly(st.booleans()),
        "thoughtSignature": mostly(st.just("AQID")),
        "functionCall": mostly(calls),
        "functionResponse": mostly(st.just({"name": "get_order", "response": {}})),
        "inlineData": mostly(st.just({"data": "AA==", "mimeType": "image/png"})),
    },
)
candidates = st.fixed_dictionaries(
    {},
    optional={
        "content": mostly(
            st.fixed_dictionaries(
                {}, optional={"role": mostly(st.just("model")), "parts": mostly(st.lists(mostly(parts)))}
            )
        ),
        "finishReason": mostly(st.sampled_from(["STOP", "STOP", "MAX_TOKENS", "NEW"])),
        "finishMessage": mostly(st.just("undeclared function: x")),
        "index": mostly(st.just(0)),
    },
)
bodies = st.fixed_dictionaries(
    {},
    optional={
        "candidates": mostly(st.lists(mostly(candidates), max_size=2)),
        "promptFeedback": mostly(st.fixed_dictionaries({}, optional={"blockReason": mostly(st.just("SAFETY"))})),
        "usageMetadata": mostly(st.fixed_dictionaries({}, optional={"promptTokenCount": mostly(st.integers(0, 99))})),
        "error": json_values,
    },
)


@given(mostly(bodies) | st.lists(mostly(bodies), max_size=3))
def test_no_body_raises_and_what_is_usable_may_be_replayed(body: object) -> None:
    read = read_body(body)
    json.dumps(read.usage.model_dump(), allow_nan=False)
    if isinstance(read, Problem):
        assert read.incident().reason in set(FailureReason)
        json.dumps(read.incident().model_dump(), allow_nan=False).encode()
        return
    json.dumps(read.content, allow_nan=False, ensure_ascii=False).encode()
    assert_replayable(read.content)
    made = content_calls(read.content, read.unusable)
    assert len(made) == read.calls
    assert all(not one.args for one in made if one.unusable)
    shown = content_text(read.content) if read.shown is None else read.shown
    assert made or shown.strip()


@given(st.text(max_size=30) | st.binary(max_size=30).map(lambda raw: raw.decode("latin-1")))
def test_no_text_raises(text: str) -> None:
    read_text(text)


def test_a_mark_of_byte_order_is_no_part_of_a_reply() -> None:
    assert isinstance(read_text("\ufeff" + json.dumps(reply("네."))), Usable)
