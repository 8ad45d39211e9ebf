"""What a ticket says to the person who takes over: what was asked, why it stopped, what was done, and what was not.

A call counts as tried only where the tool's own code was started. What the model asked for beyond that stands apart: a
person who reads that a refund was tried will look for one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from haru_fsm.conversation import (
    Conversation,
    FailureReason,
    MessageReceived,
    ModelFailed,
    Step,
    ToolCall,
    ToolResult,
    ToolsRequested,
    executed,
)
from haru_fsm.progress import Doubts
from haru_fsm.reasons import in_korean

QUOTE_CHARS = 200
FOUND_CHARS = 300
NOTHING = "없음"


@dataclass(slots=True)
class _Calls:
    """The calls of a run, by `seq.position`, and what became of them."""

    asked: dict[str, ToolCall] = field(default_factory=dict)
    results: dict[str, ToolResult] = field(default_factory=dict)
    doubtful: frozenset[str] = frozenset()

    @classmethod
    def of(cls, steps: tuple[Step, ...]) -> _Calls:
        doubts = Doubts()
        calls = cls()
        for step in steps:
            doubts = doubts.fold(step)
            if isinstance(step.event, ToolsRequested):
                calls.asked |= {f"{step.seq}.{call.position}": call for call in step.event.calls}
        calls.results = {key: result for key, _, result in executed(steps)}
        calls.doubtful = doubts.calls
        return calls

    def ran(self, key: str) -> bool:
        """Whether the tool's own code was started, as far as anybody knows."""
        result = self.results.get(key)
        return key in self.doubtful or (result is not None and result.ran)

    def written(self, *, ran: bool) -> Iterator[str]:
        """The calls that ran, or those that did not, in their order."""
        return (_written(call, QUOTE_CHARS) for key, call in self.asked.items() if self.ran(key) is ran)

    def found(self) -> Iterator[str]:
        """What came of those that were dealt with."""
        for key, result in self.results.items():
            said = result.response.get("result", result.response.get("error"))
            yield f"{self.asked[key].name}: {shorten(_json(said), FOUND_CHARS)}"

    def in_doubt(self) -> Iterator[str]:
        """The calls of which nobody knows whether they took place, whole, with what `haru settle` wants to know."""
        return (f"{_written(call, None)} [{key}]" for key, call in self.asked.items() if key in self.doubtful)


def summarise(conversation: Conversation) -> str:
    """The summary for the person who takes over, in Korean."""
    steps = conversation.run_steps
    question = next((step.event.text for step in steps if isinstance(step.event, MessageReceived)), "")
    calls = _Calls.of(steps)
    lines = {
        "질문": shorten(question, QUOTE_CHARS),
        "멈춘 이유": why_stopped(steps),
        "시도한 일": "; ".join(calls.written(ran=True)) or NOTHING,
        "확인된 내용": " / ".join(calls.found()) or NOTHING,
        "요청되었으나 실행하지 않은 일": "; ".join(calls.written(ran=False)),
        "처리 여부를 확인해야 하는 작업": "; ".join(calls.in_doubt()),
    }
    return "\n".join(f"{name}: {said}" for name, said in lines.items() if said)


def why_stopped(steps: tuple[Step, ...]) -> str:
    """Why a run came to a person, in one line: the guard that tripped, or what the model failed of."""
    for step in reversed(steps):
        if step.trip is not None and step.stops:
            return in_korean(step.trip)
        if isinstance(step.event, ModelFailed):
            words = FAILURES.get(step.event.reason, "모델이 답하지 못했습니다")
            return f"{words} [{step.event.reason}] {step.event.detail}".strip()
    return "사람의 확인이 필요합니다"


FAILURES: dict[str, str] = {
    FailureReason.EMPTY: "모델이 빈 답을 보냈습니다",
    FailureReason.MALFORMED_CALL: "모델이 도구 호출을 잘못된 형식으로 보냈습니다",
    FailureReason.UNEXPECTED_CALL: "모델이 허용되지 않은 도구 호출을 보냈습니다",
    FailureReason.PARTIAL_CALL: "모델이 도구 호출을 끝까지 보내지 않았습니다",
    FailureReason.CUT_OFF: "모델의 답이 길이 제한으로 잘렸습니다",
    FailureReason.UNFINISHED: "모델의 답이 중간에 끊겼습니다",
    FailureReason.REPEATING: "모델이 같은 말만 되풀이했습니다",
    FailureReason.RECITATION: "모델이 저작권 문제로 답을 멈추었습니다",
    FailureReason.LANGUAGE: "모델이 지원하지 않는 언어입니다",
    FailureReason.UNKNOWN_FINISH: "모델이 알 수 없는 이유로 답을 멈추었습니다",
    FailureReason.UNREADABLE: "모델의 답을 읽을 수 없습니다",
    FailureReason.TOO_LARGE: "대화가 모델이 읽을 수 있는 길이를 넘었습니다",
    FailureReason.REPLAY: "재생할 답이 기록에 없습니다",
    FailureReason.PROMPT_BLOCKED: "메시지가 안전 정책에 의해 차단되었습니다",
    FailureReason.ANSWER_BLOCKED: "답변이 안전 정책에 의해 차단되었습니다",
    FailureReason.BAD_REQUEST: "모델이 요청을 거절했습니다",
    FailureReason.WRONG_KEY: "모델의 인증에 실패했습니다",
    FailureReason.UNKNOWN_MODEL: "설정된 모델을 찾을 수 없습니다",
    FailureReason.QUOTA: "모델의 사용 한도를 넘었습니다",
    FailureReason.RATE_LIMITED: "모델이 혼잡합니다",
    FailureReason.SERVER: "모델 서버에 장애가 있습니다",
    FailureReason.TRANSPORT: "모델에 연결하지 못했습니다",
    FailureReason.TIMEOUT: "모델이 제시간에 답하지 않았습니다",
    FailureReason.DEADLINE: "제한 시간이 지났습니다",
}


def _written(call: ToolCall, chars: int | None) -> str:
    args = _json(call.args)
    return f"{call.name}({args if chars is None else shorten(args, chars)})"


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def shorten(text: str, chars: int) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= chars else line[: chars - 1] + "…"
