"""Why a guard handed a run over, in Korean: for the person who reads the ticket.

A trip's own sentence is English, for developers and for models, and stays in the journal and in `run.stopped_by`.
A guard of somebody's own keeps the sentence that its author wrote: they know who reads it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from haru_fsm.conversation import Trip


class Reason(NamedTuple):
    """A sentence, and what its figure and limit count. Without a unit they say nothing to anybody, and are left out."""

    sentence: str
    unit: str = ""


REASONS: Mapping[str, Reason] = {
    "StepBudget": Reason("모델에 요청한 횟수가 한도에 이르렀습니다", "회"),
    "ToolCallBudget": Reason("모델이 요청한 도구 호출이 한도를 넘었습니다", "회"),
    "TokenBudget": Reason("사용한 토큰이 한도에 이르렀습니다", "토큰"),
    "CostBudget": Reason("사용한 비용이 한도에 이르렀습니다", "달러"),
    "Deadline": Reason("처리 시간이 한도에 이르렀습니다", "초"),
    "Nudged": Reason("같은 일을 되풀이한다고 알려도 달라지지 않았습니다", "회"),
    "NudgedInVain": Reason("같은 일을 되풀이한다고 알린 뒤에도 새로운 시도가 없었습니다", "회"),
    "LastWord": Reason("마지막 답변을 요청했으나 다시 도구를 쓰려 했습니다"),
    "LastWordGiven": Reason("마지막 답변을 요청한 상태입니다"),
    "ResumeBudget": Reason("처리가 여러 번 중단되어 끝까지 진행되지 못했습니다", "회"),
    "ApprovalBudget": Reason("담당자의 승인이 필요한 작업이 한도를 넘었습니다", "건"),
    "RepeatedCall": Reason("같은 호출을 되풀이했고 매번 결과가 같았습니다", "회"),
    "RepeatedEffect": Reason("이미 처리된 작업을 다시 요청했습니다"),
    "CallCycle": Reason("같은 호출들을 차례로 되풀이했고 매번 결과가 같았습니다", "회"),
    "NoProgress": Reason("비슷한 호출이 이어졌으나 새로 확인된 내용이 없었습니다", "회"),
    "FailingCalls": Reason("실패한 호출만 이어졌습니다", "회"),
    "UnusableCalls": Reason("잘못된 인자(invalid arguments)나 없는 도구의 호출만 이어졌습니다", "회"),
    "SimilarThoughts": Reason("모델이 앞에서 한 말을 되풀이했습니다", "%"),
    "InDoubt": Reason("처리되었는지 알 수 없는 작업이 있습니다"),
    "UnfoundedTicketClaim": Reason("답변이 실제로 하지 않은 접수나 처리를 했다고 했습니다"),
    "definition_changed": Reason("처리하는 동안 설정이 변경되어 이어서 진행할 수 없습니다"),
    "resumed_too_often": Reason("처리가 여러 번 중단되어 끝까지 진행되지 못했습니다"),
}
"""The engine's own guards by their kind, and the two ways in which a run leaves the table."""

OTHER = "정해 둔 조건에 따라 멈추었습니다"
TELLS_MORE = frozenset({"definition_changed"})
"""What only the trip's own sentence can say, for whoever looks after the app."""
_MADE_UP = re.compile(r"\(([^()]+)\)\Z")
"""The number of a ticket that does not exist, at the end of the sentence that says so."""


def in_korean(trip: Trip) -> str:
    """Why, which guard, the figure that it saw and its limit, on one line."""
    names, said = _parts(trip.guard), trip.because.split("; ")
    if len(names) != len(said):
        names, said = [trip.guard], [trip.because]
    told = [_sentence(name, because) for name, because in zip(names, said, strict=True)]
    figures = _figures(trip, REASONS.get(_kind(names[-1]), Reason(OTHER, "회")).unit)
    more = f" {trip.because}" if trip.guard in TELLS_MORE else ""
    return f"{'; '.join(told)}{figures} [{trip.guard}]{more}"


def _sentence(name: str, because: str) -> str:
    """The words for a guard; for one that is not the engine's, its author's own."""
    reason = REASONS.get(_kind(name))
    if reason is not None:
        named = _MADE_UP.search(because) if _kind(name) == "UnfoundedTicketClaim" else None
        return f"{reason.sentence}: {named[1]}" if named else reason.sentence
    return OTHER if because == name else f"{OTHER}: {because}"


def _figures(trip: Trip, unit: str) -> str:
    if not unit or not (trip.figure or trip.limit):
        return ""
    scale = 100 if unit == "%" else 1
    return f" ({_number(trip.figure * scale)}{unit}, 한도 {_number(trip.limit * scale)}{unit})"


def _number(figure: float) -> str:
    return f"{figure:,.4f}".rstrip("0").rstrip(".") if figure % 1 else f"{figure:,.0f}"


def _kind(name: str) -> str:
    return name.partition("(")[0]


def _parts(guard: str) -> list[str]:
    """The names in a trip of several guards, which are joined by `and`; none is split inside its own brackets."""
    names, depth = [""], 0
    for piece in re.split(r"(\(|\)| and )", guard):
        depth += (piece == "(") - (piece == ")")
        if piece == " and " and not depth:
            names.append("")
        else:
            names[-1] += piece
    return names
