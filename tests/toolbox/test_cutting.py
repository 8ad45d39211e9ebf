"""Cutting for the model: within its length, with keys and order kept, and never through a character."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm.toolbox import cut_for_model
from haru_fsm.toolbox.cutting import cut_text
from tests.toolbox.strategies import json_values

FAMILY = "👨\u200d👩\u200d👧"
THUMB = "👍🏽"
KOREA = "🇰🇷"
SCOTLAND = "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
LETTERS = "각"  # one syllable in three letters
ACCENT = "e\u0301"
CHARACTERS = [FAMILY, THUMB, KOREA, SCOTLAND, LETTERS, ACCENT, "❤\ufe0f", "한", "a", "\r\n", "👍"]

responses = st.fixed_dictionaries({"result": json_values}) | st.fixed_dictionaries({"error": st.text()})


def size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


@settings(max_examples=100, deadline=None)
@given(responses, st.integers(1, 400))
def test_what_fits_stays_and_what_is_cut_fits(response: Any, chars: int) -> None:
    cut = cut_for_model(response, chars)
    assert cut == cut_for_model(response, chars)
    json.dumps(cut, allow_nan=False)
    if size(response) <= chars:
        assert cut is response
    else:
        assert cut["note"].startswith("Cut: ")
        assert size(cut) <= max(chars, 300)


def large() -> list[Any]:
    return [
        {"result": "가" * 50_000},
        {"result": {"a": "x" * 9_000, "b": "y" * 9_000, "status": "배송중", "n": 3}},
        {"result": [{"order_id": f"HR{n}", "items": ["컵"] * 5} for n in range(2_000)]},
        {"result": {f"key{n}": n for n in range(5_000)}},
        {"result": ["x" * 50_000, "y"]},
        {"result": '"\\\n\x00' * 20_000},
        {"result": {"deep": {"deeper": {"deepest": ["z" * 100] * 1_000, "last": 1}}}},
        {"error": "boom " * 10_000, "note": "a note"},
        {"result": 1, "note": "n" * 50_000},
        {"result": {"가" * 30_000: 1}},
    ]


@pytest.mark.parametrize("response", large(), ids=range(len(large())))
@pytest.mark.parametrize("chars", [300, 1_000, 5_000])
def test_large_ones_are_cut_to_their_length(response: Any, chars: int) -> None:
    cut = cut_for_model(response, chars)
    assert isinstance(cut, dict)
    assert size(cut) <= chars
    assert f"{size(response):,} characters" in cut["note"]
    assert "ask for less" in cut["note"]
    json.dumps(cut).encode()


@settings(max_examples=60, deadline=None)
@given(st.lists(json_values, min_size=5, max_size=60), st.integers(300, 600))
def test_a_list_keeps_its_first_items_in_order_and_counts_the_rest(items: list[Any], chars: int) -> None:
    cut = cut_for_model({"result": [*items, "x" * 1_000]}, chars)["result"]
    *kept, more = cut
    assert kept == items[: len(kept)] or len(kept) == 1
    assert more == f"({len(items) + 1 - len(kept):,} more)"


@pytest.mark.parametrize(
    ("response", "spare"),
    [
        ({"result": "가" * 50_000}, 1),
        ({"result": "가" * 50_000, "note": "n" * 50_000}, 1),
        ({"result": '"\\\n\x00' * 20_000}, 9),
        ({"result": list(range(1_000, 9_999))}, 6),
        ({"result": ["x" * 50_000, "y"]}, 1),
        ({"result": ["x" * 50_000]}, 12),
        ({"result": {"a": "x" * 9_000, "b": "y" * 9_000, "status": "배송중", "n": 3}}, 3),
        ({"result": {f"k{n}": n for n in range(1_000, 9_000)}}, 16),
        ({"error": "x" * 9_000, "note": "a note"}, 1),
    ],
    ids=range(9),
)
def test_what_is_cut_takes_the_room_there_is(response: Any, spare: int) -> None:
    for chars in range(400, 408):
        assert chars - spare <= size(cut_for_model(response, chars)) <= chars


def test_what_just_fits_is_not_cut() -> None:
    for response in ({"result": "가" * 400}, {"result": "x" * 400}, {"result": 1, "note": "가" * 400}):
        assert cut_for_model(response, size(response)) is response
        assert cut_for_model(response, size(response) - 1) is not response


def test_lists_and_objects_say_how_much_more_there_is() -> None:
    numbers, keys = list(range(1_000, 1_200)), {f"k{n}": n for n in range(1_000, 1_200)}
    *first, more = cut_for_model({"result": numbers}, 400)["result"]
    assert first == numbers[: len(first)]
    assert more == f"({200 - len(first)} more)"
    kept = cut_for_model({"result": keys}, 400)["result"]
    more = kept.pop("…")
    assert list(kept.items()) == list(keys.items())[: len(kept)]
    assert more == f"({200 - len(kept)} more)"
    assert (len(first), len(kept)) == (41, 15)
    (begun,) = cut_for_model({"result": ["x" * 900]}, 400)["result"]
    assert begun == "x" * (len(begun) - 1) + "…"
    begun, more = cut_for_model({"result": ["x" * 900, 1]}, 400)["result"]
    assert (begun, more) == ("x" * (len(begun) - 1) + "…", "(1 more)")
    assert cut_for_model({"result": 10**500}, 400)["result"] == "…"


def test_long_siblings_have_the_same_share_and_what_is_shorter_stays_whole() -> None:
    response = {"result": {"a": "x" * 9_000, "b": "y" * 100, "c": ["z"] * 900, "d": 1, "e": "w" * 9_000}}
    cut = cut_for_model(response, 1_000)["result"]
    assert (cut["b"], cut["d"]) == ("y" * 100, 1)
    assert len(cut["a"]) == len(cut["e"])
    assert abs(size(cut["a"]) - size(cut["c"])) < 5


@pytest.mark.parametrize(
    ("said", "stays"), [("n" * 98, True), ("n" * 99, False), ("가" * 98, True), (["a list"], False), (None, False)]
)
def test_a_short_note_stays_before_the_note_of_the_cut(said: Any, stays: bool) -> None:
    note = cut_for_model({"result": "x" * 900, "note": said}, 400)["note"]
    assert note.startswith(f"{said} Cut: " if stays else "Cut: ")


def test_siblings_of_a_long_value_stay_whole() -> None:
    cut = cut_for_model({"result": {"before": "배송중", "long": "x" * 10_000, "after": [1, 2]}}, 1_000)["result"]
    assert list(cut) == ["before", "long", "after"]
    assert (cut["before"], cut["after"]) == ("배송중", [1, 2])
    assert cut["long"].endswith("…")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(CHARACTERS), max_size=12), st.integers(0, 60))
def test_no_character_is_cut_through(characters: list[str], length: int) -> None:
    # Joined neighbours may form one character (two letters and a skin tone), so pieces are kept apart.
    text = " ".join(characters)
    cut = cut_text(text, length)
    assert len(cut) <= length
    assert text.startswith(cut)
    rest = cut.split(" ")
    assert rest == [] or rest[-1] in ("", *CHARACTERS)


@pytest.mark.parametrize(
    "character",
    [
        *CHARACTERS, "👍🏻", "👍🏿", "🇦🇿", "🇿🇦", "ᄀᅠ", "ᄀᇿ", "कि", "1\ufe0f\u20e3", "🏴\U000e0020\U000e007f",
        "👩\u200d❤\ufe0f\u200d👨",
    ],
    ids=ascii,
)  # fmt: skip
@pytest.mark.parametrize("before", ["", "한", KOREA])
def test_a_character_stays_whole_or_goes_as_a_whole(before: str, character: str) -> None:
    text = before + character + "b"
    whole = len(before) + len(character)
    for length in range(len(before), whole):
        assert cut_text(text, length) == before
    assert [cut_text(text, length) for length in (whole, whole + 1, whole + 2)] == [before + character, text, text]


@pytest.mark.parametrize("pair", ["👍🏺", "👍🐀", "\ra", "a\n", "ᄀᄀ", "a🇦", "🇿a", "🏴a", "한글"], ids=ascii)
def test_characters_that_only_stand_together_are_two(pair: str) -> None:
    assert cut_text(pair, 1) == pair[0]


def test_nothing_is_left_where_there_is_no_room() -> None:
    for text in ("abc", "\u0301\u0301", KOREA):
        assert [cut_text(text, length) for length in (0, -1, -5)] == ["", "", ""]


def test_flags_are_kept_in_pairs() -> None:
    assert cut_text(KOREA * 3, 3) == KOREA
    assert cut_text(KOREA * 3, 4) == KOREA * 2


def test_a_run_of_marks_without_end_is_cut_all_the_same() -> None:
    assert 0 < len(cut_text("a" + "\u0301" * 10_000, 5_000)) <= 5_000


def test_three_megabytes_take_no_time_to_speak_of() -> None:
    response = {"result": {"orders": [{"memo": "한글 👍🏽 " * 100, "n": n} for n in range(4_000)]}}
    begun = time.perf_counter()
    cut = cut_for_model(response, 20_000)
    assert time.perf_counter() - begun < 2
    assert size(cut) <= 20_000
