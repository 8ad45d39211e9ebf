"""A reply that goes round in itself until it is cut off wants no more room; lists and tables go round in nothing."""

from __future__ import annotations

import pytest

from haru_fsm.conversation import FailureReason
from haru_fsm.models.gemini_reading import read_body
from haru_fsm.models.openai_reading import read_body as read_openai
from haru_fsm.models.repeating import TIMES, is_repeating
from haru_fsm.models.replies import Problem, Usable
from haru_fsm.testing.fake_gemini import reply

CHANT = "확인이 어렵습니다. " * 40


@pytest.mark.parametrize(
    "text",
    [
        CHANT,
        "고객님의 주문은 현재 배송 중이며 7월 28일에 도착합니다. " + "감사합니다. " * 40,
        "I'll do it. I'll execute. " * TIMES,
        "Other; " * 200,
        "배송중\n" * TIMES,
        "".join(f"{number}. 다시 확인하겠습니다. " for number in range(40)),
    ],
)
def test_what_is_said_over_and_over_is_repeating(text: str) -> None:
    assert is_repeating(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "네.",
        "ㅋㅋㅋㅋㅋㅋㅋㅋㅋㅋㅋㅋㅋㅋ",
        "배송중\n" * (TIMES - 1),
        "".join(f"{number}. 주문 HR202607{number:05}: 배송중입니다.\n" for number in range(60)),
        "".join(f"| HR202607{number:05} | 배송중 | 12,900원 |\n" for number in range(60)),
        "".join(f"- HR202607{number:05}, 배송중\n" for number in range(60)),
        "안내\n" + "-" * 300 + "\n본문입니다.",
    ],
)
def test_lists_and_tables_are_not(text: str) -> None:
    assert not is_repeating(text)


def test_for_such_a_reply_more_room_would_be_no_help() -> None:
    read = read_body(reply(CHANT, finish="MAX_TOKENS"))
    assert isinstance(read, Problem)
    assert (read.reason, read.finish_reason) == (FailureReason.REPEATING, "MAX_TOKENS")
    other = read_openai({"choices": [{"message": {"content": CHANT}, "finish_reason": "length"}]})
    assert isinstance(other, Problem)
    assert other.reason is FailureReason.REPEATING


def test_one_that_has_come_to_its_end_is_an_answer() -> None:
    assert isinstance(read_body(reply(CHANT)), Usable)
