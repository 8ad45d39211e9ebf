"""A history from another loop becomes a valid one, whatever it looked like."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from haru_fsm.adoption import repaired
from haru_fsm.conversation import JSON
from haru_fsm.errors import SettingsError
from haru_fsm.pairing import LOST
from haru_fsm.testing.strict import check_contents

USER = {"role": "user", "parts": [{"text": "안녕하세요"}]}


def call(name: str, id_: str | None = None) -> JSON:
    return {"functionCall": {"name": name, **({"id": id_} if id_ else {})}}


def response(name: str, id_: str | None = None) -> JSON:
    return {"functionResponse": {"name": name, "response": {"result": 1}, **({"id": id_} if id_ else {})}}


parts = st.one_of(
    st.builds(lambda text: {"text": text}, st.text(max_size=5)),
    st.builds(call, st.sampled_from(["f", "g", ""]), st.sampled_from([None, "1"])),
    st.builds(response, st.sampled_from(["f", "1", ""]), st.sampled_from([None, "1"])),
    st.just({}),
    st.just({"function_call": {"name": "f", "args": [1]}}),
    st.just({"thought": True}),
    st.just({"text": "", "thought_signature": b"sig"}),
)
contents = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "model", "tool", "function", "assistant", None]),
        "parts": st.lists(parts, max_size=3),
    }
)


@given(st.lists(contents, max_size=8))
@settings(max_examples=400, deadline=None)
def test_any_history_becomes_valid(history: list[JSON]) -> None:
    mended, _ = repaired(history)
    assert check_contents([*mended, USER]) == []


@given(st.lists(contents, max_size=8))
@settings(max_examples=200, deadline=None)
def test_a_repaired_history_is_left_alone(history: list[JSON]) -> None:
    mended, _ = repaired(history)
    assert repaired(mended) == (mended, ())


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["role", "parts", "content", "text", "functionCall", "functionResponse", "thoughtSignature", "name",
                 "id", "args", "response", "function_call", "thought"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)  # fmt: skip


@given(anything)
@example("{")
@example([{"role": "user", "parts": "텍스트"}, "텍스트", None, 3])
@example([{"role": ["user"], "parts": [{"functionCall": "f"}, {"functionResponse": []}, {"text": 5}]}])
@example([{"role": "model", "parts": [{"functionCall": {"name": 3, "id": 7}, "thoughtSignature": "?"}]}])
@example([{"parts": {"thoughtSignature": b"", "role": False}}])
@settings(max_examples=600, deadline=None)
def test_whatever_a_checkpoint_holds_is_refused_by_name_or_becomes_valid(checkpoint: object) -> None:
    try:
        mended, _ = repaired(checkpoint)
    except SettingsError as error:
        assert "no list of turns" in str(error)  # noqa: PT017
    else:
        assert check_contents([*mended, USER]) == []
        assert repaired(mended) == (mended, ())


@pytest.mark.parametrize("checkpoint", ["{", "", b"[]", {"history": []}, {}, None, 3, True])
def test_what_is_no_list_of_turns_is_refused_by_name(checkpoint: object) -> None:
    """A text or a dictionary would otherwise be gone through letter by letter, key by key."""
    with pytest.raises(SettingsError, match="no list of turns"):
        repaired(checkpoint)


def test_names_and_ids_that_are_no_texts_still_find_each_other() -> None:
    called = {
        "role": "model",
        "parts": [{"functionCall": {"name": "f", "id": 1}}, {"functionCall": {"name": 3, "id": 2}}],
    }
    answers = [
        {"functionResponse": {"name": name, "id": id_, "response": {"r": id_}}} for name, id_ in ((["f"], 2), ("f", 1))
    ]
    found, _ = responses_of([USER, called, {"role": "tool", "parts": answers}])
    assert found == [
        {"name": "f", "id": "1", "response": {"r": 1}},
        {"name": "3", "id": "2", "response": {"r": 2}},
    ]


def test_what_is_no_turn_and_no_part_is_left_out_and_said() -> None:
    mended, repairs = repaired(
        [None, {"parts": [3, {"functionCall": "f"}, {"text": "안녕", "thoughtSignature": "?"}]}, "네"]
    )
    assert mended == ({"role": "user", "parts": [{"text": "안녕"}]}, {"role": "user", "parts": [{"text": "네"}]})
    assert set(repairs) == {
        "content 0 is nothing and was left out",
        "a part was of type int and was left out",
        "a functionCall was of type str and was left out",
        "a thought signature that is none was left out",
    }


def test_a_valid_history_is_taken_as_it_is() -> None:
    history = [
        USER,
        {"role": "model", "parts": [{**call("f", "a"), "thoughtSignature": "c2ln"}, call("f", "b")]},
        {"role": "user", "parts": [response("f", "a"), response("f", "b")]},
        {"role": "model", "parts": [{"text": "네."}]},
    ]
    assert repaired(history) == (tuple(history), ())


def test_each_mend_is_said() -> None:
    history = [
        {"role": "assistant", "parts": [call("f", "a"), call("g", "b")]},
        {"role": "tool", "parts": [response("a")]},
        {"role": "tool", "parts": [response("b")]},
        {"role": "model", "parts": []},
    ]
    mended, repairs = repaired(history)
    assert [part["functionResponse"]["name"] for part in mended[2]["parts"]] == ["f", "g"]
    assert set(repairs) == {
        "role 'assistant' became 'model'",
        "role 'tool' became 'user'",
        "a user turn was put before the first turn of the model",
        "responses in several turns were joined into one",
        "a response got the name and the id of its call",
        "a content without parts was left out",
    }


def responses_of(history: list[JSON]) -> tuple[list[JSON], tuple[str, ...]]:
    """What the calls of an adopted history are answered with, in order."""
    mended, repairs = repaired(history)
    assert check_contents([*mended, USER]) == []
    return [
        part["functionResponse"] for turn in mended for part in turn["parts"] if "functionResponse" in part
    ], repairs


def result(name: str, value: str, id_: str | None = None) -> JSON:
    return {"functionResponse": {"name": name, "response": {"result": value}, **({"id": id_} if id_ else {})}}


@pytest.mark.parametrize(
    ("calls", "given_back", "read"),
    [
        ([call("f"), call("g")], [result("g", "of g"), result("f", "of f")], ["of f", "of g"]),
        ([call("f", "1"), call("f", "2")], [result("f", "of 2", "2"), result("f", "of 1", "1")], ["of 1", "of 2"]),
        ([call("f", "1"), call("f", "2")], [result("2", "of 2"), result("1", "of 1")], ["of 1", "of 2"]),
        (
            [call("f", "d"), call("f", "d")],
            [result("f", "first", "d"), result("f", "second", "d")],
            ["first", "second"],
        ),
        ([call("f", "d"), call("g", "d")], [result("g", "of g", "d"), result("f", "of f", "d")], ["of f", "of g"]),
        ([call("f", "1"), call("g", "2")], [result("g", "of g"), result("f", "of f")], ["of f", "of g"]),
        ([call("f"), call("g")], [result("g", "of g"), result("?", "nameless")], ["nameless", "of g"]),
    ],
)
def test_each_call_gets_its_own_response_in_whatever_order_they_came(
    calls: list[JSON], given_back: list[JSON], read: list[str]
) -> None:
    """Calls that run at once end in any order; the wrong order's state is the answer to a customer."""
    found, repairs = responses_of([USER, {"role": "model", "parts": calls}, {"role": "user", "parts": given_back}])
    assert [each["response"]["result"] for each in found] == read
    assert [(each["name"], each.get("id")) for each in found] == [
        (each["functionCall"]["name"], each["functionCall"].get("id")) for each in calls
    ]
    assert all(each.get("id", "") is not None for each in found)
    assert ("responses were put into the order of their calls" in repairs) == (read not in (["first", "second"],))


def test_one_response_twice_is_not_the_response_of_another_call() -> None:
    twice = {"role": "user", "parts": [result("g", "of g"), result("g", "again")]}
    (first, second), repairs = responses_of([USER, {"role": "model", "parts": [call("f"), call("g")]}, twice])
    assert first["response"] == {"error": LOST}
    assert second["response"] == {"result": "of g"}
    assert "a response without a call was left out" in repairs


@pytest.mark.parametrize(
    "turns",
    [
        # a turn for each chunk of a stream
        [
            {"role": "model", "parts": [call("f")]},
            {"role": "model", "parts": [call("g")]},
            {"role": "model", "parts": [{"text": ""}]},
            {"role": "user", "parts": [result("f", "of f"), result("g", "of g")]},
        ],
        # a message that came while the tools ran
        [
            {"role": "model", "parts": [call("f"), call("g")]},
            {"role": "user", "parts": [result("f", "of f")]},
            {"role": "user", "parts": [{"text": "빨리요"}]},
            {"role": "user", "parts": [result("g", "of g")]},
        ],
        [
            {"role": "model", "parts": [call("f"), call("g")]},
            {"role": "user", "parts": [{"text": "빨리요"}, result("g", "of g"), result("f", "of f")]},
        ],
        # responses that name nothing
        [
            {"role": "model", "parts": [call("f")]},
            {"role": "model", "parts": [call("g")]},
            {"role": "user", "parts": [result("?", "of f"), result("?", "of g")]},
        ],
        # what the provider has run by itself
        [{"role": "model", "parts": [call("f"), call("g"), result("f", "of f"), result("g", "of g")]}],
        # words behind the calls
        [
            {"role": "model", "parts": [call("f"), call("g")]},
            {"role": "model", "parts": [{"text": "확인해 볼게요."}]},
            {"role": "user", "parts": [result("f", "of f"), result("g", "of g")]},
        ],
    ],
)
def test_a_response_is_found_wherever_it_stands_before_the_model_speaks_again(turns: list[JSON]) -> None:
    found, _ = responses_of([USER, *turns, {"role": "model", "parts": [{"text": "네."}]}])
    assert [each["response"] for each in found] == [{"result": "of f"}, {"result": "of g"}]


def test_a_call_that_was_made_again_leaves_the_one_response_to_the_last() -> None:
    again = [{"role": "model", "parts": [call("f")]}] * 2
    found, _ = responses_of([USER, *again, {"role": "user", "parts": [result("f", "of f")]}])
    assert [each["response"] for each in found] == [{"error": LOST}, {"result": "of f"}]


@pytest.mark.parametrize("ids", [("1", "2", "3"), (None, None, None)], ids=["by id", "by name"])
@pytest.mark.parametrize("came", [0, 1, 2])
def test_a_response_that_names_its_call_is_not_taken_for_that_of_a_later_call(
    ids: tuple[str | None, ...], came: int
) -> None:
    """A stream was cut off before the other responses were kept."""
    named = list(zip("fgh", ids, strict=True))
    chunks = [{"role": "model", "parts": [call(name, id_)]} for name, id_ in named]
    name, id_ = named[came]
    found, _ = responses_of([USER, *chunks, {"role": "user", "parts": [result(name, f"of {name}", id_)]}])
    expected = [{"error": LOST}] * 3
    expected[came] = {"result": f"of {name}"}
    assert [each["response"] for each in found] == expected


F, G = call("f"), call("g")


@pytest.mark.parametrize(
    ("chunks", "given_back", "read"),
    [
        ([[F, G], [call("h")]], [result("f", "of f")], ["of f", LOST, LOST]),
        ([[F], [G], [call("h")]], [result("f", "of f"), result("g", "of g")], ["of f", "of g", LOST]),
        ([[call("f", "1")], [call("f", "2")]], [result("f", "of 1", "1")], ["of 1", LOST]),
        ([[F], [G]], [result("f", "of f", "9")], ["of f", LOST]),
    ],
)
def test_what_was_kept_of_a_stream_finds_its_own_call(
    chunks: list[list[JSON]], given_back: list[JSON], read: list[str]
) -> None:
    turns = [{"role": "model", "parts": parts} for parts in chunks]
    found, repairs = responses_of([USER, *turns, {"role": "user", "parts": given_back}])
    assert [each["response"].get("result", LOST) for each in found] == read
    assert {"two turns of the model in a row were joined", "a call without a response got one that says so"} <= set(
        repairs
    )


def test_calls_that_were_made_again_and_again_stay_apart_from_each_other() -> None:
    chunks = [{"role": "model", "parts": parts} for parts in ([F], [G], [call("h"), call("i")])]
    mended, repairs = repaired([USER, *chunks, {"role": "user", "parts": [result("h", "of h"), result("i", "of i")]}])
    assert [turn for turn in mended if turn["role"] == "model"] == chunks
    assert repairs == ("a call without a response got one that says so",)


@pytest.mark.parametrize(
    ("turns", "repair"),
    [
        ([{"role": "user", "parts": [result("f", "of f")]}], "a response without a call was left out"),
        (
            [{"role": "model", "parts": [F]}, USER, {"role": "user", "parts": [result("f", "of f")]}],
            "a response was put right after its call",
        ),
    ],
)
def test_what_was_moved_or_left_out_is_said_alone(turns: list[JSON], repair: str) -> None:
    assert repaired([USER, *turns])[1] == (repair,)


def test_a_response_with_the_id_of_another_exchange_answers_no_call_of_this_one() -> None:
    late = [{"role": "model", "parts": [call("g", "2")]}, {"role": "user", "parts": [result("f", "of f", "1")]}]
    found, repairs = responses_of([USER, {"role": "model", "parts": [call("f", "1")]}, USER, *late])
    assert [each["response"] for each in found] == [{"error": LOST}, {"error": LOST}]
    assert "a response without a call was left out" in repairs


def test_bytes_become_base64_and_not_the_words_of_python() -> None:
    """As google-genai's own `model_dump` gives them."""
    picture = {"inline_data": {"data": b"\x89PNG", "mime_type": "image/png"}}
    ((turn,), _) = repaired([{"role": "user", "parts": [picture]}])
    assert turn["parts"] == [{"inlineData": {"data": "iVBORw==", "mime_type": "image/png"}}]
