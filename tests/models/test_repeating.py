"""A reply that goes round in itself is none; lists and tables are."""

from __future__ import annotations

import pytest

from haru_fsm.conversation import FailureReason
from haru_fsm.models.openai_reading import read_body as read_openai
from haru_fsm.models.reading import read_body
from haru_fsm.models.repeating import TIMES, is_repeating
from haru_fsm.models.replies import Problem, Usable
from haru_fsm.testing.fake_gemini import call, reply

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


@pytest.mark.parametrize("finish", ["STOP", "MAX_TOKENS"])
def test_such_a_reply_is_of_no_use_and_more_room_would_be_no_help(finish: str) -> None:
    read = read_body(reply(CHANT, finish=finish))
    assert isinstance(read, Problem)
    assert (read.reason, read.finish_reason) == (FailureReason.REPEATING, finish)
    wire = {"stop": "STOP", "length": "MAX_TOKENS"}
    [said] = [name for name, means in wire.items() if means == finish]
    other = read_openai({"choices": [{"message": {"content": CHANT}, "finish_reason": said}]})
    assert isinstance(other, Problem)
    assert other.reason is FailureReason.REPEATING


def test_beside_a_call_the_call_decides() -> None:
    assert isinstance(read_body(reply(CHANT, call("get_order"))), Usable)
