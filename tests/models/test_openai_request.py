"""What the journal holds, as chat completions take it."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm.conversation import JSON
from haru_fsm.models import Declaration, ModelRequest
from haru_fsm.models.openai_messages import SILENCE, messages_of
from haru_fsm.models.openai_request import build_body
from haru_fsm.models.openai_schema import DESCRIPTION_CHARS, declared
from haru_fsm.models.retrying import Amendment
from haru_fsm.testing.strict import check_contents
from haru_fsm.testing.strict_openai import check_messages, check_request
from tests.toolbox.strategies import Signature, signatures


def user(*texts: str) -> JSON:
    return {"role": "user", "parts": [{"text": text} for text in texts]}


def model(*parts: str | JSON) -> JSON:
    return {"role": "model", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def call(name: str, id_: str | None = None, **args: object) -> JSON:
    return {"functionCall": {"name": name, "args": args} | ({"id": id_} if id_ is not None else {})}


def results(*named: tuple[str, str | None, JSON]) -> JSON:
    parts = [
        {"functionResponse": {"name": name, "response": response} | ({"id": id_} if id_ is not None else {})}
        for name, id_, response in named
    ]
    return {"role": "user", "parts": parts}


def sent(*contents: JSON, system: str = "") -> list[JSON]:
    messages = messages_of(system, contents)
    assert check_messages(messages) == []
    return messages


# --------------------------------------------------------------------------- messages


def test_system_user_assistant() -> None:
    assert sent(user("안녕"), model("네."), user("주문이요"), system="친절하게") == [
        {"role": "system", "content": "친절하게"},
        {"role": "user", "content": "안녕"},
        {"role": "assistant", "content": "네."},
        {"role": "user", "content": "주문이요"},
    ]


def test_ids_are_minted_where_there_are_none_in_nine_letters_and_digits() -> None:
    two = model(call("a", n=1), call("a", n=2))
    *_, said, first, second = sent(user("?"), two, results(("a", None, {"result": 1}), ("a", None, {"result": 2})))
    ids = [one["id"] for one in said["tool_calls"]]
    assert ids == ["call00001", "call00002"]
    assert [(one["tool_call_id"], one["content"]) for one in (first, second)] == [
        ("call00001", '{"result": 1}'),
        ("call00002", '{"result": 2}'),
    ]


@pytest.mark.parametrize("given", [("same", "same"), ("call00002", None), ("x" * 41, "x" * 41), ("", "call00001")])
def test_ids_are_unique_in_a_request_whatever_the_providers_gave(given: tuple[str | None, ...]) -> None:
    turns = []
    for _ in range(3):
        turns += [
            user("?"),
            model(*(call("a", id_) for id_ in given)),
            results(*(("a", id_, {"result": id_}) for id_ in given)),
        ]
    messages = sent(*turns)
    answers = [message["content"] for message in messages if message["role"] == "tool"]
    assert len(answers) == 6


def test_a_longer_history_begins_as_a_shorter_one() -> None:
    turns = [user("?"), model(call("a")), results(("a", None, {})), model("네."), user("또?"), model(call("b", "id"))]
    shorter = messages_of("s", turns[:5])
    assert messages_of("s", turns)[: len(shorter)] == shorter


def test_thoughts_and_signatures_of_another_provider_stay_behind() -> None:
    thought = {"text": "비밀", "thought": True, "thoughtSignature": "QUJD"}
    signed = {**call("a"), "thoughtSignature": "REVG"}
    messages = sent(
        user("?"), model(thought, signed), results(("a", None, {})), model({"text": "", "thoughtSignature": "eA"})
    )
    assert "비밀" not in repr(messages)
    assert "REVG" not in repr(messages)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]


def test_neighbours_of_one_speaker_are_one_message() -> None:
    assert sent(
        user("안녕", "하세요"), user("주문이요"), model("네."), model("접수 번호는 HT-1입니다."), user("고마워요")
    ) == [
        {"role": "user", "content": "안녕\n\n하세요\n\n주문이요"},
        {"role": "assistant", "content": "네.\n\n접수 번호는 HT-1입니다."},
        {"role": "user", "content": "고마워요"},
    ]


def test_what_is_said_beside_results_comes_after_them() -> None:
    turn = results(("a", "x", {"result": 1}))
    turn["parts"].append({"text": "힌트"})
    assert [message["role"] for message in sent(user("?"), model(call("a", "x")), turn)] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]


def test_names_that_a_model_has_made_up_are_told_in_letters_that_are_allowed() -> None:
    odd = ("default_api.get_order", "주문 조회", "x" * 80)
    messages = sent(user("?"), model(*map(call, odd)), results(*((name, None, {"error": "unknown"}) for name in odd)))
    names = [one["function"]["name"] for one in messages[1]["tool_calls"]]
    assert names == ["default_api_get_order", "_____", "x" * 64]


def test_what_shows_nothing_is_left_out_and_a_turn_that_shows_nothing_is_not() -> None:
    assert sent(user(" ", "네", ""), system="  ") == [{"role": "user", "content": "네"}]
    assert sent(user(" ")) == [{"role": "user", "content": SILENCE}]
    called = sent(user("?"), model(" ", call("look")), results(("look", None, {"result": 1})))[1]
    assert called["content"] is None
    picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    (shown,) = sent({"role": "user", "parts": [{"text": ""}, picture]})
    assert [item["type"] for item in shown["content"]] == ["image_url"]
    said = model({"executableCode": {"code": "1 + 1"}, "thoughtSignature": "QUJD"}, {"thoughtSignature": "QUJD"})
    assert sent(user("?"), said, user("!"))[1]["content"] == '{"executableCode": {"code": "1 + 1"}}'


def test_a_call_that_lacks_something_is_told_as_one_that_has_it() -> None:
    ids = ["a" * 40, "a" * 41, None]
    wanted = [{"functionCall": {"id": one} if one else {}} for one in ids]
    answers = [{"functionResponse": {"name": "x", "response": {}}} for _ in ids]
    told = sent(user("?"), {"role": "model", "parts": wanted}, {"role": "user", "parts": answers})[1]["tool_calls"]
    assert [one["function"] for one in told] == [{"name": "_", "arguments": "{}"}] * 3
    assert [one["id"] for one in told] == ["a" * 40, "call00002", "call00003"]


def test_hangul_is_written_as_it_is() -> None:
    messages = sent(user("?"), model(call("look", what="가방")), results(("look", None, {"result": "빨강"})))
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == '{"what": "가방"}'
    assert messages[2]["content"] == '{"result": "빨강"}'


def test_pictures_and_other_data() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    paper = {"inlineData": {"mimeType": "application/pdf", "data": "AAAA"}}
    first, second = sent({"role": "user", "parts": [{"text": "이거요"}, picture]}, {"role": "user", "parts": [paper]})
    assert first["content"][1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert "application/pdf" in second["content"]
    ran = {"executableCode": {"language": "PYTHON", "code": "1 + 1"}}
    assert "1 + 1" in sent(user("?"), model(ran), user("!"))[1]["content"]


letters = st.text('ab가 ."', max_size=5)
json_objects = st.dictionaries(letters, st.none() | st.integers() | letters, max_size=2)
calls = st.builds(
    lambda name, id_, args: {"functionCall": {"name": name, "args": args} | ({"id": id_} if id_ else {})},
    st.text("ab가. ", min_size=1, max_size=5),
    st.sampled_from([None, "a", "call00001", "call00003", "a" * 40, "a" * 41]),
    json_objects,
)
said = st.builds(lambda text: {"text": text}, letters)
thoughts = st.builds(lambda text: {"text": text, "thought": True, "thoughtSignature": "QUJD"}, letters)
rounds = st.tuples(
    st.lists(said, min_size=1, max_size=2),
    st.lists(thoughts | said, max_size=2),
    st.lists(calls, max_size=3),
    json_objects,
    st.lists(said, max_size=1),
)


Round = tuple[list[JSON], list[JSON], list[JSON], JSON, list[JSON]]


def history(rounds: Sequence[Round]) -> list[JSON]:
    """Contents that are valid for Gemini: in each round a question, a reply, and what came of its calls."""
    contents = []
    for asked, replied, wanted, response, beside in rounds:
        contents.append({"role": "user", "parts": asked})
        if replied or wanted:
            contents.append({"role": "model", "parts": [*replied, *wanted]})
        if wanted:
            named = [{key: value for key, value in one["functionCall"].items() if key != "args"} for one in wanted]
            answers = [{"functionResponse": {**one, "response": response}} for one in named]
            contents.append({"role": "user", "parts": [*answers, *beside]})
    return contents if contents[-1]["role"] == "user" else [*contents, user("그래서요?")]


@given(st.lists(rounds, min_size=1, max_size=4), letters)
def test_any_history_is_valid_for_both(rounds: list[Round], system: str) -> None:
    contents = history(rounds)
    assert check_contents(contents) == []
    assert check_messages(messages_of(system, contents)) == []


# --------------------------------------------------------------------------- declarations


def parameters(schema: JSON | None) -> Any:
    return declared(Declaration("a", "", schema))["function"]["parameters"]


@pytest.mark.parametrize(
    "schema", [None, {}, {"type": "object"}, {"anyOf": [{"type": "object"}]}, {"type": ["object"]}]
)
def test_parameters_are_an_object_with_properties(schema: JSON | None) -> None:
    assert parameters(schema) == {"type": "object", "properties": {}}


def test_arrays_say_what_they_hold() -> None:
    pair = {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2}
    schema = {
        "type": "object",
        "properties": {"pair": pair, "any": {"type": "array"}, "deep": {"anyOf": [{"type": ["array", "null"]}]}},
        "required": ["pair"],
    }
    assert parameters(schema) == {
        "type": "object",
        "properties": {
            "pair": {
                "type": "array",
                "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "minItems": 2,
                "maxItems": 2,
            },
            "any": {"type": "array", "items": {}},
            "deep": {"anyOf": [{"type": ["array", "null"], "items": {}}]},
        },
        "required": ["pair"],
    }


def test_what_stands_inside_of_a_schema_is_told_in_the_same_way_and_what_is_none_as_it_is() -> None:
    bare: JSON = {"type": "array"}
    schema = {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": bare},
            "words": {"type": "array", "items": {"type": "string"}},
            "table": {"type": "object", "additionalProperties": bare},
            "closed": {"type": "object", "properties": {}, "additionalProperties": False},
            "other": {"not": bare},
        },
    }
    whole = {**bare, "items": {}}
    assert parameters(schema)["properties"] == {
        "rows": {"type": "array", "items": whole},
        "words": {"type": "array", "items": {"type": "string"}},
        "table": {"type": "object", "additionalProperties": whole},
        "closed": {"type": "object", "properties": {}, "additionalProperties": False},
        "other": {"not": whole},
    }


def test_a_description_is_as_long_as_it_may_be() -> None:
    fits = declared(Declaration("a", "가" * DESCRIPTION_CHARS))["function"]
    assert fits["description"] == "가" * DESCRIPTION_CHARS
    function = declared(Declaration("a", "가" * 2000))["function"]
    assert len(function["description"]) == DESCRIPTION_CHARS


@settings(max_examples=60, deadline=None)
@given(signatures)
def test_every_tool_that_can_be_declared_is_declared_as_openai_takes_it(signature: Signature) -> None:
    asked = ModelRequest("", (user("?"),), [signature.tool.declaration])
    assert check_request(build_body(asked, Amendment(), name="m")) == []


def body(**more: Any) -> JSON:
    given = {"name": "gpt-5-mini", **more}
    return build_body(
        ModelRequest("", (user("?"),), [Declaration("a", "b")]), given.pop("amendment", Amendment()), **given
    )


def test_the_length_of_a_reply() -> None:
    assert body(max_output_tokens=9)["max_completion_tokens"] == 9
    cut = body(max_output_tokens=9, amendment=Amendment("더 짧게", 1, thought=True))
    assert cut.keys().isdisjoint({"max_completion_tokens", "reasoning_effort"})
    again = body(max_output_tokens=9, amendment=Amendment("더 짧게", 2, thought=True))
    assert again["reasoning_effort"] == "low"
    assert body(amendment=Amendment("더 짧게", 1, thought=True))["reasoning_effort"] == "low"
    assert "reasoning_effort" not in body(amendment=Amendment("더 짧게", 1))


def test_without_tools_there_is_no_word_of_them() -> None:
    bare = build_body(ModelRequest("", (user("?"),), tools_allowed=False), Amendment(), name="m")
    assert bare.keys() == {"model", "messages"}
    assert check_request(bare) == []
