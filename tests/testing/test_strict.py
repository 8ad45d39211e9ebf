"""Our rule book says what the shared one says, about histories of any shape."""

import importlib.util
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haru_fsm.conversation import JSON
from haru_fsm.testing.strict import check_contents, check_responses_alone

USER = {"role": "user", "parts": [{"text": "a"}]}


def model(*parts: JSON) -> JSON:
    return {"role": "model", "parts": list(parts)}


def user(*parts: JSON) -> JSON:
    return {"role": "user", "parts": list(parts)}


def called(name: str = "x", **more: object) -> JSON:
    return {"functionCall": {"name": name, **more}}


def answered(name: str = "x", **more: object) -> JSON:
    return {"functionResponse": {"name": name, "response": {}, **more}}


VALID = [
    [USER],
    [USER, USER],
    [USER, model({"text": "b"}), USER],
    [USER, model({"text": "b"}, called()), user(answered(), {"text": "and?"})],
    [USER, model(called(id="1"), called(id="2")), user(answered(id="1"), answered(id="2"))],
    [USER, model(called()), user(answered()), model(called()), user(answered())],
    [USER, model({"text": "", "thoughtSignature": "AQI"}), USER],
]
BROKEN = [
    [],
    None,
    "contents",
    [None],
    [USER, model(called())],
    [USER, model(called()), user(answered(), answered())],
    [model(called()), user(answered())],
    [USER, model({"text": "b"}), model(called()), user(answered())],
    [USER, model(), USER],
    [USER, model({}), USER],
    [USER, model({"thoughtSignature": "AQID"}), USER],
    [USER, model({"text": "a", "thoughtSignature": "A"}), USER],
    [USER, model(called()), {"role": "tool", "parts": [answered()]}],
    [USER, model({"text": "b"})],
    [USER, model(called("x", id="1")), user(answered("1", id="1"))],
    [USER, model(called()), USER],
    [user(answered())],
    [user({"text": "a\ud800"})],
    [USER, model(called(args={"n": float("nan")})), user(answered())],
    [USER, model(called(args=[])), user(answered())],
    [USER, model(called("")), user(answered(""))],
    [USER, model(called()), user({"functionResponse": {"name": "x", "response": "done"}})],
    [USER, model(called()), user(answered()), user(answered())],
    [user(called()), USER],
    [USER, model(answered()), USER],
]


@pytest.mark.parametrize("contents", VALID)
def test_valid_histories_pass(contents: object) -> None:
    assert check_contents(contents) == []


@pytest.mark.parametrize("contents", BROKEN)
def test_broken_histories_do_not(contents: object) -> None:
    assert check_contents(contents)


def test_signatures_can_be_required_and_must_be_known() -> None:
    signed = [USER, model({**called(), "thoughtSignature": "AQI"}), user(answered())]
    assert check_contents(signed, known_signatures={b"\x01\x02"}, require_signatures=True) == []
    assert check_contents(signed, known_signatures={b"\x01"})
    assert check_contents([USER, model(called()), user(answered())], require_signatures=True)


def test_responses_stand_alone_on_the_wire() -> None:
    mixed = [USER, model(called()), user(answered(), {"text": "and?"})]
    assert check_responses_alone(mixed) == ["contents[2]: a function response shares its content with something else"]
    assert check_responses_alone([USER, model(called()), user(answered(), answered()), USER, None]) == []


# --------------------------------------------------------------------------- beside the shared rule book

SHARED = Path(__file__).parents[3] / "shared" / "field" / "strict.py"

parts = st.sampled_from(
    [
        {"text": "a"},
        {"text": ""},
        {},
        {"thought": True},
        {"text": "a", "thoughtSignature": "AQI"},
        {"text": "a", "thoughtSignature": "A"},
        {"text": "\ud800"},
        called(),
        called(id="1"),
        called("y", args={}),
        called("y", args=[]),
        called(""),
        answered(),
        answered(id="1"),
        answered("y"),
        {"functionResponse": {"name": "x"}},
    ]
)
turns = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "model", "user", "model", "tool", None]), "parts": st.lists(parts, max_size=3)}
)


@pytest.mark.skipif(not SHARED.is_file(), reason="the shared rule book is not beside this repository")
@given(st.lists(turns, max_size=6))
def test_it_agrees_with_the_shared_rule_book(contents: object) -> None:
    spec = importlib.util.spec_from_file_location("shared_strict", SHARED)
    assert spec is not None
    assert spec.loader is not None
    shared = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shared)
    for more in ({}, {"require_signatures": True}, {"known_signatures": {b"\x01\x02"}}):
        assert len(check_contents(contents, **more)) == len(shared.check_contents(contents, **more))
