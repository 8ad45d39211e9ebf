"""A history from another loop becomes a valid one, whatever it looked like."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from haru_fsm.adoption import repaired
from haru_fsm.conversation import JSON
from haru_fsm.errors import SettingsError
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
