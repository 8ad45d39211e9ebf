"""JSON from outside is made safe once, and proper JSON is left as it is."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haru_fsm.json_safe import MAX_DEPTH, TOO_DEEP, json_safe, safe_text

proper = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=[]))
    | st.binary(max_size=5)
    | st.complex_numbers(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@given(proper)
def test_proper_json_comes_back_equal(value: object) -> None:
    assert json_safe(value) == value


@given(anything)
def test_whatever_comes_out_every_json_parser_reads(value: object) -> None:
    safe = json_safe(value)
    text = json.dumps(safe, allow_nan=False, ensure_ascii=False)
    assert json.loads(text.encode("utf-8")) == safe


@pytest.mark.parametrize(
    ("value", "safe"),
    [
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        ("주문 \ud83d", "주문 \ufffd"),
        ("\x00 stays", "\x00 stays"),
        ({"\udc00": 1}, {"\ufffd": 1}),
        ({2: "a", None: "b", True: "c"}, {"2": "a", "null": "b", "true": "c"}),
        ({1.5: {2: 3}}, {"1.5": {"2": 3}}),
        ((1, (2,)), [1, [2]]),
        (2**4095 - 1, 2**4095 - 1),
        ([10**5000], [hex(10**5000)]),
    ],
)
def test_what_is_no_json_becomes_the_nearest_that_is(value: object, safe: object) -> None:
    assert json_safe(value) == safe


def test_nesting_without_end_is_cut() -> None:
    deep: object = "bottom"
    for _ in range(2000):
        deep = [deep]
    safe, depth = json_safe(deep), 0
    while isinstance(safe, list):
        safe, depth = safe[0], depth + 1
    assert (safe, depth) == (TOO_DEEP, MAX_DEPTH)


def test_text_with_a_proper_emoji_is_untouched() -> None:
    assert safe_text("문 앞에 놓아주세요 👍🏽") == "문 앞에 놓아주세요 👍🏽"
