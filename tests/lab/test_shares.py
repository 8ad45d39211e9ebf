"""Intervals: of what is counted one by one, and of what comes by the conversation."""

from __future__ import annotations

import random

import pytest

from haru_fsm.lab.shares import Clustered, Share


def test_wilson_intervals() -> None:
    low, high = Share(3, 819).interval
    assert (round(low, 5), round(high, 5)) == (0.00125, 0.01071)
    assert Share(0, 0).interval == (0.0, 1.0)
    assert (str(Share(0, 0)), Share(0, 0).briefly) == ("0/0", "–")


def clustered(*pairs: tuple[int, int]) -> Clustered:
    made = Clustered()
    for count, of in pairs:
        made.add(count, of)
    return made


def test_one_conversation_of_many_tokens_is_one() -> None:
    """2 conversations of 1,000 tokens, one saved: Wilson of 1,000 of 2,000 would be 48 to 52 %."""
    low, high = clustered((1_000, 1_000), (0, 1_000)).share.interval
    assert low < 0.1
    assert high > 0.9


@pytest.mark.parametrize(("count", "conversations"), [(0, 40), (50, 40)])
def test_where_all_are_alike_the_conversations_are_counted(count: int, conversations: int) -> None:
    share = clustered(*[(count, 50)] * conversations).share
    assert share.interval == Share(conversations if count else 0, conversations).interval


def test_of_one_conversation_nothing_can_be_told() -> None:
    low, high = clustered((500, 1_000)).share.interval
    assert high - low > 0.8


def test_single_steps_are_what_wilson_counts() -> None:
    low, high = clustered(*[(place % 4 == 0, 1) for place in range(400)]).share.interval
    assert (low, high) == pytest.approx(Share(100, 400).interval, abs=0.001)


def test_empty_conversations_tell_nothing() -> None:
    assert clustered((1, 2), (0, 0), (0, 2)).share == clustered((1, 2), (0, 2)).share


def test_it_holds_the_truth_nineteen_times_of_twenty() -> None:
    """Conversations of 1 to 40 steps, of which one in four saves a part: drawn often, against what is true of all."""
    draw = random.Random(7)
    pairs = [
        (draw.randint(0, of) if draw.random() < 0.25 else 0, of) for of in (draw.randint(1, 40) for _ in range(999))
    ]
    truth = sum(count for count, _ in pairs) / sum(of for _, of in pairs)
    intervals = [clustered(*draw.choices(pairs, k=150)).share.interval for _ in range(400)]
    held = sum(low <= truth <= high for low, high in intervals) / len(intervals)
    assert 0.92 <= held <= 0.98
