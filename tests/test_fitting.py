"""When a history is too long, and how much room there is: by what providers have counted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from haru_fsm import Limits
from haru_fsm.contents import History
from haru_fsm.conversation import Compaction, Event, MessageReceived, Step, Usage
from haru_fsm.fitting import room_after_refusal, room_for, threshold, tokens_per_byte
from haru_fsm.models.scripted import answer
from haru_fsm.models.windows import window_of
from haru_fsm.toolbox.cutting import size_of
from tests.journals import JOURNALS, journaled

KOREAN = "주문하신 상품은 지금 옥천 허브를 지나 내일 도착할 예정입니다. " * 40


def told(*events: Event) -> History:
    history = History()
    for seq, event in enumerate(events, 1):
        history = history.fold(Step(seq=seq, run=1, event=event, source="A", state="B"))
    return history


def asked(text: str, **more: Any) -> History:
    return told(MessageReceived(text=text), answer("네.", **more))


@pytest.mark.parametrize(
    ("limits", "model", "tokens"),
    [
        ({}, "gemini-flash-latest", 0.8 * 1_048_576),
        ({}, "unheard-of", None),
        ({"max_input_tokens": 1_000}, "unheard-of", 800),
        ({"max_input_tokens": 1_000, "compact_at": 0.5}, "gemini-flash-latest", 500),
        ({"max_input_tokens": 1_000, "compact_at_tokens": 30}, "gemini-flash-latest", 30),
    ],
)
def test_the_threshold_is_a_share_of_the_window(limits: dict[str, Any], model: str, tokens: float | None) -> None:
    assert threshold(Limits(**limits), model) == tokens


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("gemini-3-flash", 1_048_576),
        ("models/gemini-2.5-pro", 1_048_576),
        ("google/gemini-1.5-pro-002", 2_097_152),
        ("gpt-4o-mini", 111_616),
        ("openai/GPT-4.1", 1_014_808),
        ("gpt-5-mini", 272_000),
        ("o3-mini", 100_000),
        ("google/gemini-3-flash > openai/gpt-4o", 111_616),
        ("gemini-3-flash + unheard-of", 1_048_576),
        ("offline", None),
        ("", None),
        ("gemini-3-flash > google/gpt-4o > offline", 111_616),
        ("gpt-5-mini + o3", 100_000),
    ],
)
def test_windows_are_known_by_family(name: str, tokens: int | None) -> None:
    assert window_of(name) == tokens


def test_before_the_first_count_a_token_has_four_bytes() -> None:
    assert tokens_per_byte(told(MessageReceived(text=KOREAN)), 5_000) == 0.25


def test_korean_is_counted_as_the_provider_counts_it() -> None:
    counted = 1_900
    history = asked(KOREAN, usage=Usage(prompt=counted, answer=3))
    asked_bytes = size_of(history.contents[0])
    assert tokens_per_byte(history, 0) == pytest.approx(counted / asked_bytes, rel=0.05)
    assert tokens_per_byte(history, 2_000) == pytest.approx(counted / (2_000 + asked_bytes), rel=0.05)


@pytest.mark.parametrize(
    "more",
    [
        {"usage": Usage(prompt=900, estimated=True)},
        {"usage": Usage(prompt=900), "requests": 2},
        {"usage": Usage()},
    ],
)
def test_what_is_no_count_of_one_prompt_teaches_nothing(more: dict[str, Any]) -> None:
    assert asked(KOREAN, **more).counted is None


def test_the_prompt_of_a_summary_is_not_the_prompt() -> None:
    summary = Compaction(until=0, requests=1, usage=Usage(prompt=500))
    history = asked(KOREAN, usage=Usage(prompt=2_400), requests=2, compaction=summary)
    assert history.counted is not None
    assert history.counted[0] == 1_900


@pytest.mark.parametrize("prompt", [1, 10**9])
def test_nonsense_is_not_believed(prompt: int) -> None:
    assert 1 / 16 <= tokens_per_byte(asked(KOREAN, usage=Usage(prompt=prompt)), 0) <= 1


def test_there_is_room_until_the_threshold_and_then_for_half_of_it() -> None:
    history = asked(KOREAN, usage=Usage(prompt=1_900))
    tokens = tokens_per_byte(history, 1_000) * (1_000 + history.size)
    fits = Limits(compact_at_tokens=int(tokens) + 2)
    assert room_for(history, 1_000, fits, "any") is None
    room = room_for(history, 1_000, Limits(compact_at_tokens=int(tokens) - 2, keep_recent_contents=3), "any")
    assert room is not None
    assert room.aim == pytest.approx(history.size / 2, rel=0.01)
    assert (room.keep_recent, room.recent_chars) == (3, None)


def test_a_refusal_teaches_the_window() -> None:
    refused = Compaction(until=0, refused=9_000)
    history = asked("가" * 2_000, compaction=refused)
    assert room_for(history, 0, Limits(), "unheard-of") is None
    more = asked("가" * 2_600, compaction=refused)
    room = room_for(more, 0, Limits(), "unheard-of")
    assert room is not None
    assert room.aim == 3_600
    assert room_after_refusal(9_000).aim < room.aim


@given(JOURNALS)
@settings(max_examples=150, deadline=None)
def test_the_size_is_kept_without_measuring_the_whole(events: list[Event]) -> None:
    history = told(*(step.event for step in journaled(events)))
    real = sum(map(size_of, history.contents))
    assert abs(history.size - real) <= 60 * (1 + len(history.contents)) + real // 10
