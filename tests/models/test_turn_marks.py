"""A reply holds one turn of the model: what was made up behind it is neither shown nor sent back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haru_fsm.conversation import JSON, FailureReason
from haru_fsm.models.gemini_reading import read_body
from haru_fsm.models.replies import Problem, Usable
from haru_fsm.models.turn_marks import own_turn, without_made_up_turns
from haru_fsm.testing.fake_gemini import call, reply

MADE_UP = "<|im_end|>\n<|im_start|>user\n환불해 주세요"


def kept(*parts: str | JSON) -> list[JSON]:
    read = read_body(reply(*parts))
    assert isinstance(read, Usable), read
    parts_kept: list[JSON] = read.content["parts"]
    return parts_kept


def test_turns_behind_the_first_are_not_sent_back() -> None:
    assert kept("배송중입니다." + MADE_UP) == [{"text": "배송중입니다."}]
    assert kept("배송중", "입니다." + MADE_UP, "네.") == [{"text": "배송중"}, {"text": "입니다."}]
    signed = {"text": "배송중입니다." + MADE_UP, "thoughtSignature": "AQID"}
    assert kept(signed) == [{"text": "배송중입니다.", "thoughtSignature": "AQID"}]


def test_calls_and_thoughts_stay() -> None:
    thought = {"text": "생각" + MADE_UP, "thought": True}
    assert kept(thought, "볼게요." + MADE_UP, call("a"), "네.") == [thought, {"text": "볼게요."}, call("a")]
    assert kept(MADE_UP, call("a")) == [call("a")], "no part is empty"


def test_a_turn_may_begin_and_end_in_any_part() -> None:
    assert kept("<|im_start|>assistant\n", "배송중입니다.") == [{"text": "배송중입니다."}]
    assert kept("<|im_end|>\n<|im_start|>assistant\n배송", "중입니다.") == [{"text": "배송"}, {"text": "중입니다."}]
    assert kept("배송중입니다.", MADE_UP, call("a")) == [{"text": "배송중입니다."}, call("a")]
    assert kept("배송중입니다.<|im_", "end|>\n환불해 주세요") == [{"text": "배송중입니다."}]


@pytest.mark.parametrize(
    "text",
    [
        "ChatML은 `<|im_start|>user`로 시작하고 `<|im_end|>`로 끝납니다. 그다음이 모델의 차례입니다.",
        "문장의 끝은 ``<eos>``로 표시합니다.",
        "이렇게 씁니다.\n```\n<|im_start|>user\n안녕하세요<|im_end|>\n```\n`<start_of_turn>`은 Gemma의 것입니다.",
    ],
)
def test_a_mark_in_code_is_quoted(text: str) -> None:
    assert kept(text) == [{"text": text}]
    assert own_turn(text) == text
    assert own_turn(text + MADE_UP) == text, "and one behind it is none"


def test_code_that_is_not_closed_quotes_nothing() -> None:
    for begun in ("```\nprint(1)", "`print(1)"):
        assert own_turn(begun + MADE_UP) == begun


def test_what_begins_with_another_turn_is_no_answer() -> None:
    read = read_body(reply("<|im_start|>user\n환불해 주세요"))
    assert isinstance(read, Problem)
    assert read.reason is FailureReason.EMPTY


def test_a_reply_without_marks_is_kept_as_it_is() -> None:
    parts: list[JSON] = [{"text": "  9,000원 (정가 <s>10,000원</s>) "}, {"text": "<|이렇게|> 쓰세요. "}, call("a")]
    assert without_made_up_turns(parts) == parts


marks = st.sampled_from(
    [
        "<|im_start|>",
        "<|im_end|>",
        "<bos>",
        "<eos>",
        "</s>",
        "<|end|>",
        "<|user|>",
        "assistant",
        "model",
        "`",
        "```",
        "\n",
        "네.",
        " ",
    ]
)


@given(st.lists(marks, max_size=8).map("".join))
def test_the_first_turn_of_a_first_turn_is_itself(text: str) -> None:
    turn = own_turn(text)
    assert own_turn(turn) == turn
    assert turn in text
    assert all(part["text"] for part in without_made_up_turns([{"text": text}]) if text)
