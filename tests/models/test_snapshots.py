"""What a stream says again is said once, and what only looks like it stays."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haru_fsm.conversation import JSON, content_text
from haru_fsm.models import openai_reading
from haru_fsm.models.gemini_reading import read_body
from haru_fsm.models.replies import Usable
from haru_fsm.models.snapshots import LEAST, said_again

WHOLE = "주문하신 무선 이어폰은 배송중입니다. 내일 도착합니다."
CUTS = [WHOLE[:4], WHOLE[4:15], WHOLE[15:]]


def said(texts: list[str]) -> str:
    again = said_again(texts)
    return "".join(text for index, text in enumerate(texts) if index not in again)


@pytest.mark.parametrize(
    "texts",
    [CUTS, list(accumulate(CUTS)), [*CUTS, WHOLE], ["", *accumulate(CUTS), "", WHOLE, ""], [WHOLE, WHOLE], [WHOLE]],
)
def test_a_text_comes_in_pieces_or_each_time_whole_or_once_more(texts: list[str]) -> None:
    assert said(texts) == WHOLE


@pytest.mark.parametrize(
    "texts", [[], [""], ["1", "1월 25일에 도착합니다."], ["네", "네"], ["하", "하하", "하하하"], ["-" * 5, "-" * 20]]
)
def test_pieces_that_are_alike_are_pieces(texts: list[str]) -> None:
    assert said(texts) == "".join(texts)


@given(st.lists(st.text(max_size=30), max_size=6))
def test_nothing_is_left_out_that_is_not_said_elsewhere(texts: list[str]) -> None:
    rest = said(texts)
    assert "".join(texts).startswith(rest) or any(text == rest for text in texts)
    if all(len(text) < LEAST for text in texts):
        assert rest == "".join(texts)


def _gemini(*parts: JSON, finish: str | None = None) -> JSON:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}]}


def test_thoughts_and_answers_are_told_apart_and_signatures_stay() -> None:
    thought = {"text": "고객은 배송 상태를 알고 싶어 한다.", "thought": True}
    signed = {"text": WHOLE, "thoughtSignature": "AQID"}
    read = read_body([_gemini(thought), _gemini({"text": WHOLE}), _gemini(thought, signed, finish="STOP")])
    assert isinstance(read, Usable)
    assert read.content["parts"] == [thought, signed]
    pieces = [_gemini(thought, {"text": cut}, finish="STOP") for cut in CUTS]
    read = read_body(pieces)
    assert isinstance(read, Usable)
    assert content_text(read.content) == WHOLE
    read = read_body([*(_gemini({"text": cut}) for cut in CUTS), _gemini(signed, finish="STOP")])
    assert isinstance(read, Usable)
    assert content_text(read.content) == WHOLE
    assert read.content["parts"][-1] == {"text": "", "thoughtSignature": "AQID"}


def test_a_stream_of_completions_says_things_once_as_well() -> None:
    for texts in (CUTS, list(accumulate(CUTS)), [*CUTS, WHOLE]):
        chunks: list[JSON] = [{"choices": [{"delta": {"content": text}}]} for text in texts]
        read = openai_reading.read_chunks([*chunks, {"choices": [{"delta": {}, "finish_reason": "stop"}]}])
        assert isinstance(read, Usable)
        assert content_text(read.content) == WHOLE
