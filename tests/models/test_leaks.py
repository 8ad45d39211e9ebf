"""Thoughts that came as plain text never reach the customer, streamed or not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haru_fsm.models.leaks import LAYERS, certain, without_thoughts
from haru_fsm.models.speech import Speech

LEAKS = [
    (["THOUGHT: 고객이 화났다. 사과부터.\n\n불편을 드려 죄송합니다."], "불편을 드려 죄송합니다."),
    (
        ["THOUGHT: He is angry.\n\nI should apologise first.\n\n불편을 드려 죄송합니다.\n\n감사합니다."],
        "불편을 드려 죄송합니다.\n\n감사합니다.",
    ),
    (["**Thought:** I must look.\n\nAnswer: 배송중입니다."], "배송중입니다."),
    (["Thinking: hmm\n최종 답변: 배송중입니다."], "배송중입니다."),
    (["thought\nThe user asked me.\n\nNow I describe.", "배송중입니다."], "배송중입니다."),
    (["thought\nThe user asked me to look."], ""),
    (["THOUGHT: only this"], ""),
    (["생각: 하나\n\nTHOUGHT: two\n\nstill two\n\n네."], "네."),
    (["<think>secret</think>배송중입니다."], "배송중입니다."),
    (["네. <thought>secret</thought> 배송중입니다."], "네. 배송중입니다."),
    (["네.\n<thinking>secret and then nothing"], "네.\n"),
    (["secret</think>배송중입니다."], "배송중입니다."),
    (["<think>a</think>THOUGHT: b\n\n<thought>c</thought>네."], "네."),
    (["<|channel|>analysis<|message|>secret<|end|><|start|>assistant<|channel|>final<|message|>네.<|return|>"], "네."),
    (["<|channel|>analysis<|message|>secret<|end|>배송중입니다."], "배송중입니다."),
    (["<|channel|>analysis<|message|>secret and no end"], ""),
    (['<|channel|>commentary<|message|>{"secret": 1}<|end|>'], ""),
    (["<|channel|>analysis<|message|>secret<|channel|>final <|constrain|>text<|message|>네."], "네."),
    (["배송중입니다.<|im_end|>"], "배송중입니다."),
    (["배송중입니다.</s>\n<|eot_id|>\n"], "배송중입니다."),
    (["배송중입니다.<end_of_turn>"], "배송중입니다."),
    (["배송중입니다.<|im_end|>\n<|im_start|>user\nsecret<|im_end|>\n<|im_start|>assistant\n네."], "배송중입니다."),
    (["<|im_start|>assistant\n배송중입니다.<|im_end|>"], "배송중입니다."),
    (["<start_of_turn>model\n배송중입니다.<end_of_turn>\n<start_of_turn>user\nsecret"], "배송중입니다."),
    (["배송중입니다.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nsecret"], "배송중입니다."),
    (["배송중입니다.<|end|><|user|>secret"], "배송중입니다."),
    (["배송중입니다.<|endoftext|>Human: secret"], "배송중입니다."),
    (["<bos>배송중입니다.<eos>"], "배송중입니다."),
    (["<|im_end|>\n<|im_start|>assistant\n배송중입니다."], "배송중입니다."),
    (["[THINK]secret[/THINK]배송중입니다."], "배송중입니다."),
    (["[THINK]secret", "[/THINK]\n배송중입니다."], "배송중입니다."),
    (["◁think▷secret◁/think▷배송중입니다."], "배송중입니다."),
    (["<seed:think>secret</seed:think>배송중입니다."], "배송중입니다."),
    (["<|START_THINKING|>secret<|END_THINKING|>배송중입니다."], "배송중입니다."),
    (["<|begin_of_thought|>secret<|end_of_thought|>배송중입니다."], "배송중입니다."),
    (["<REASONING_SCRATCHPAD>secret</REASONING_SCRATCHPAD>배송중입니다."], "배송중입니다."),
    (["```markdown\n**배송중**입니다.\n- 한진택배\n```"], "**배송중**입니다.\n- 한진택배"),
    (["\n```text\r\n배송중입니다.```\n"], "배송중입니다."),
    (["Final Answer: 배송중입니다."], "배송중입니다."),
    (['{"answer": "배송중입니다."}'], "배송중입니다."),
    (['```json\n{"type": "text", "text": "배송중입니다."}\n```'], "배송중입니다."),
    (['<think>secret</think>{"response": "배송중\\n입니다."}'], "배송중\n입니다."),
    (["**FinalAnswer:** 배송중입니다."], "배송중입니다."),
    (["최종 답변: 배송중입니다."], "배송중입니다."),
    (["<think>secret</think>\n<answer>배송중입니다.</answer>"], "배송중입니다."),
    (["<response>\n배송중입니다.\n</response>\n"], "배송중입니다."),
    (["<think>secret: 태그 `<think>`</think>`<think>`는 태그입니다."], "`<think>`는 태그입니다."),
    (["<think>it`s secret</think>`HR1` 주문은 배송중입니다."], "`HR1` 주문은 배송중입니다."),
    (["secret `</think>` secret</think>`</think>`로 끝납니다."], "`</think>`로 끝납니다."),
    (["secret\n```\nsecret</think>배송중입니다."], "배송중입니다."),
    (["`<think>`는 태그입니다. <think>secret</think>끝."], "`<think>`는 태그입니다. 끝."),
    (["```\n<think>secret</think>배송중입니다.\n```"], "```\n배송중입니다.\n```"),
]
CLEAN = [
    "안녕하세요! 무엇을 도와드릴까요?",
    "생각해 보니 환불이 가능합니다.",
    "Thoughtful gifts are on sale.",
    '{"answer": "배송중입니다.", "order_id": "HR1"}',
    '{"answer": {"status": "배송중"}}',
    '{"answer": "배송중입니다." 라고 합니다}',
    '{"text": "a", "message": "b"}',
    '{"type": "refund", "message": "접수했습니다."}',
    "<response>첫 번째 예</response>\n<response>두 번째 예</response>",
    "```\n주문번호: HR1\n```",
    "```text\nHR1\n```\n위 번호를 쓰세요.",
    "```text\nHR1\n```\n```text\nHR2\n```",
    "```text\n" + "a" * 50_000,
    "`HR1` 주문은 배송중입니다.",
    "[THINK] 텀블러 500ml는 품절입니다.",
    "[쿠폰] 1장이 있습니다.",
    "◁ 이전 | 다음 ▷",
    "ChatML은 `<|im_start|>user`로 시작하고 `<|im_end|>`로 끝납니다.",
    "모델의 생각은 `<think>`로 시작해 `</think>`로 끝납니다.",
    "닫는 태그는 `</think>`, 미스트랄은 `[THINK]`와 `[/THINK]`, 키미는 `◁think▷`입니다.",
    "로그는 이렇습니다.\n```\n<think>\n생각\n</think>\n답\n```\n앞부분은 지우세요.",
    "`" * 50_000 + "<think>`",
    "```\n" * 20_001 + "`<think>`",
    "[THINK]" * 5_000 + "끝",
    " " * 50_000 + "끝",
    "{}" + " " * 50_000 + "끝",
    "{" + "} " * 20_000 + "끝",
    "Finally, your parcel is here.",
    "최종 답변은 내일 드리겠습니다.",
    "<answer> 태그를 쓰세요",
    "가격이 3 < 5 인 상품과 <b>굵은</b> 글씨",
    "표시는 <|이렇게|> 합니다",
    "<s>취소선</s> 옆의 글",
    "9,000원 (정가 <s>10,000원</s>",
    "</s>\n" * 300 + "끝",
    "3 < " + " " * 50_000,
    "",
    "  들여쓴 답변",
]


@pytest.mark.parametrize(("texts", "shown"), LEAKS)
def test_leaked_thoughts_are_cut(texts: list[str], shown: str) -> None:
    assert without_thoughts(texts) == shown


@pytest.mark.parametrize("text", CLEAN)
def test_ordinary_answers_are_left_alone(text: str) -> None:
    assert without_thoughts([text]) is None


@pytest.mark.parametrize("text", [*("".join(texts) for texts, _ in LEAKS), *CLEAN])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_watcher_hears_what_is_shown_and_never_a_thought(text: str, size: int) -> None:
    heard: list[str] = []
    speech = Speech(heard.append)
    size = max(size, len(text) // 1_000)
    for start in range(0, len(text), size):
        speech.hear(text[start : start + size])
    shown = without_thoughts([text])
    speech.attempt_succeeded(text if shown is None else shown)
    said = "".join(heard)
    told_too_early = text.startswith("secret")
    assert "secret" not in said or told_too_early
    if not told_too_early:  # a closing tag that nothing has announced comes too late for a stream
        assert said == (text.lstrip() if shown is None else shown)


@given(st.text(alphabet="THOUGtthinks생각:：\n *<>/ab가", max_size=40), st.text(max_size=10))
def test_what_is_certain_is_shown_whatever_follows(text: str, more: str) -> None:
    shown = without_thoughts([text + more])
    if shown is None:
        assert (text + more).startswith(certain(text))


def test_an_ordinary_answer_is_told_at_once() -> None:
    heard: list[str] = []
    speech = Speech(heard.append)
    speech.hear("안")
    assert heard == ["안"]


def test_after_an_attempt_that_was_heard_and_failed_there_is_silence() -> None:
    heard: list[str] = []
    speech = Speech(heard.append)
    speech.hear("반쪽 답")
    speech.attempt_failed()
    assert not speech.listening
    speech.hear("다른 답변")
    speech.attempt_succeeded("다른 답변")
    assert heard == ["반쪽 답"]


def test_after_an_attempt_that_nobody_heard_the_next_one_is_told() -> None:
    heard: list[str] = []
    speech = Speech(heard.append)
    speech.hear("thought\nsecret")
    speech.attempt_failed()
    speech.hear("다른 답변")
    assert heard == ["다른 답변"]


def test_a_watcher_that_raises_is_not_told_again(caplog: pytest.LogCaptureFixture) -> None:
    def raises(_piece: str) -> None:
        raise RuntimeError("the terminal has gone")

    speech = Speech(raises)
    speech.hear("안녕")
    assert not speech.listening
    assert "the terminal has gone" in caplog.text


def test_a_thousand_thoughts_one_behind_the_other_are_all_cut() -> None:
    for thought in ("THOUGHT: a\n\n", "생각: 가\n\n"):
        assert without_thoughts([thought * 5000 + "네."]) == "네."


def test_what_goes_round_in_circles_is_no_answer() -> None:
    assert without_thoughts(["Final Answer: " * (LAYERS - 2) + "네."]) == "네."
    assert without_thoughts(["Final Answer: " * 20_000 + "네."]) == ""


def test_an_arrow_is_told_at_once_and_a_mark_is_held_back() -> None:
    assert certain("앞으로 ◁ 이전") == "앞으로 ◁ 이전"
    for begun in ("◁", "◁/th", "◁think", "◁think▷비밀"):
        assert certain("네. " + begun) == "네. "
