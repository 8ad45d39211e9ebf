"""What a model is told when it is asked again: one short note for each way in which a reply can be unusable.

The notes are in Korean, the language of the answer that is wanted, and in English, in which models follow
instructions best. None of them says that something got lost: a model that is told so performs its last action again
(field case F003).
"""

from __future__ import annotations

from collections.abc import Sequence

from haru_fsm.conversation import JSON, FailureReason
from haru_fsm.models import ModelRequest
from haru_fsm.models.replies import Problem, said

_NOTES: dict[FailureReason, str] = {
    FailureReason.EMPTY: (
        "위의 도구 결과는 모두 유효합니다. 같은 호출을 되풀이하지 말고 고객에게 보낼 답변만 작성해 주세요. "
        "(All tool results above stand. Do not repeat calls that were made; write only the answer to the customer.)"
    ),
    FailureReason.MALFORMED_CALL: (
        "함수 호출의 형식이 올바르지 않습니다. 코드를 쓰지 말고 선언된 함수를 이름과 JSON 인수로 호출해 주세요. "
        "(The function call was malformed. Write no code; call a declared function by its name, with JSON arguments.)"
    ),
    FailureReason.UNEXPECTED_CALL: (
        "지금은 쓸 수 없는 함수를 호출했습니다. 쓸 수 있는 함수만 쓰거나, 함수 없이 답변해 주세요. "
        "(That function cannot be called here. Use only the functions you have, or answer without one.)"
    ),
    FailureReason.PARTIAL_CALL: (
        "함수 호출이 중간에 끊겼습니다. 인수를 모두 갖추어 한 번에 호출해 주세요. "
        "(The function call was incomplete. Make it whole, with all its arguments, in one piece.)"
    ),
    FailureReason.CUT_OFF: (
        "답변이 길이 제한을 넘었습니다. 더 짧게, 완결된 답변을 처음부터 작성해 주세요. "
        "(The reply was over the limit of length. Write a shorter and complete one, from the beginning.)"
    ),
    FailureReason.REPEATING: (
        "같은 말을 되풀이하지 말고, 짧은 답변을 한 번만 작성해 주세요. "
        "(The reply said the same thing over and over. Write a short answer, and each thing once.)"
    ),
    FailureReason.ANSWER_BLOCKED: (
        "답변이 안전 정책에 걸렸습니다. 정중하고 중립적인 표현으로, 꼭 필요한 내용만 답변해 주세요. "
        "(The reply was stopped by a safety policy. Answer politely and neutrally, with what is necessary only.)"
    ),
    FailureReason.RECITATION: (
        "원문을 그대로 옮기지 말고, 요점을 자신의 말로 풀어서 답변해 주세요. "
        "(Do not quote the source; paraphrase the main points in your own words.)"
    ),
    FailureReason.LANGUAGE: (
        "지원되는 언어로, 가능하면 한국어로 답변해 주세요. (Answer in a supported language, in Korean if you can.)"
    ),
    FailureReason.UNKNOWN_FINISH: (
        "답변이 완성되지 않았습니다. 완결된 답변을 작성해 주세요. (The reply was not completed. Write a complete one.)"
    ),
}
_NOTES[FailureReason.UNFINISHED] = _NOTES[FailureReason.CUT_OFF]

_ABOUT_CALLS = (FailureReason.MALFORMED_CALL, FailureReason.UNEXPECTED_CALL, FailureReason.PARTIAL_CALL)


def hint_for(problem: Problem, names: Sequence[str], number: int) -> str:
    """The note that goes with the `number`-th re-ask after this problem; `names` are the tools that may be called."""
    note = f"[시스템 안내 {number}] {_NOTES[problem.reason]}"
    if problem.reason in _ABOUT_CALLS:
        listed = ", ".join(names) if names else "없음 (none)"
        note += f" 쓸 수 있는 함수 (functions): {listed}."
        if problem.wanted:
            note += f" 호출하려던 함수 (called): {said(problem.wanted)[:100]}."
    return note


def is_worth_asking_again(problem: Problem) -> bool:
    """Whether another reply to a changed request may be better; elsewhere asking again is useless, or no answer."""
    return problem.reason in _NOTES


def hinted(request: ModelRequest, hint: str) -> list[JSON]:
    """The contents, with the hint as one more part of the last user turn. Who may not hear it there (Gemini, beside
    a function's response) is told it right after, where the request is put into its provider's form."""
    contents = list(request.contents)
    if hint:
        last = contents[-1]
        contents[-1] = {**last, "parts": [*last["parts"], {"text": hint}]}
    return contents
