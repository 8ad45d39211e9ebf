"""What a ticket says of a guard: in Korean, with the guard, its figure and its limit."""

from __future__ import annotations

import re

import pytest

from haru_fsm import guards
from haru_fsm.conversation import FailureReason, Step, Trip
from haru_fsm.guards import AllOf, AnyOf, Guard, Not
from haru_fsm.machine import CHANGED, RESUMED_TOO_OFTEN
from haru_fsm.models.scripted import calls
from haru_fsm.reasons import REASONS, in_korean
from haru_fsm.ticket_summary import FAILURES, why_stopped

OURS = [
    guard
    for name in guards.__all__
    if issubclass(guard := getattr(guards, name), Guard) and guard not in (Guard, AllOf, AnyOf, Not)
]
BRACKETED = re.compile(r"\[[^\]]*\]|\([^)]*\)")


def trip(guard: str, because: str, figure: float = 3, limit: float = 3) -> Trip:
    return Trip(guard=guard, figure=figure, limit=limit, because=because)


@pytest.mark.parametrize("kind", [*(guard.__name__ for guard in OURS), RESUMED_TOO_OFTEN])
def test_no_english_outside_the_guards_name(kind: str) -> None:
    told = in_korean(trip(f"{kind}(3)", "it was asked three times"))
    assert kind in REASONS
    assert f"[{kind}(3)]" in told
    assert not re.search("[A-Za-z]", BRACKETED.sub("", told)), told


@pytest.mark.parametrize(
    ("tripped", "told"),
    [
        (
            trip("StepBudget(8)", "the model was asked 8 times, the limit is 8", 8, 8),
            "모델에 요청한 횟수가 한도에 이르렀습니다 (8회, 한도 8회) [StepBudget(8)]",
        ),
        (
            trip("CostBudget(0.05)", "$0.0512 were spent, the limit is $0.0500", 0.0512, 0.05),
            "사용한 비용이 한도에 이르렀습니다 (0.0512달러, 한도 0.05달러) [CostBudget(0.05)]",
        ),
        (
            trip("SimilarThoughts(0.85, 3)", "the thought resembles an earlier one by 90%", 0.9, 0.85),
            "모델이 앞에서 한 말을 되풀이했습니다 (90%, 한도 85%) [SimilarThoughts(0.85, 3)]",
        ),
        (
            trip("NudgedInVain(2) and RepeatedCall(3)", "told, and went on; the same call", 4, 3),
            "같은 일을 되풀이한다고 알린 뒤에도 새로운 시도가 없었습니다; 같은 호출을 되풀이했고 매번 결과가 같았습니다 "
            "(4회, 한도 3회) [NudgedInVain(2) and RepeatedCall(3)]",
        ),
        (
            trip("InDoubt()", "nobody knows whether 1 effect(s) took place: 2.0", 1, 0),
            "처리되었는지 알 수 없는 작업이 있습니다 [InDoubt()]",
        ),
        (
            trip(CHANGED, "the app was changed while the run was open: no longer has the state ACT", 0, 0),
            "처리하는 동안 설정이 변경되어 이어서 진행할 수 없습니다 [definition_changed] "
            "the app was changed while the run was open: no longer has the state ACT",
        ),
    ],
)
def test_the_guard_the_figure_and_the_limit(tripped: Trip, told: str) -> None:
    assert in_korean(tripped) == told


@pytest.mark.parametrize(
    ("guard", "because", "told"),
    [
        ("TooAngry(2)", "고객이 두 번 화를 냈습니다", "정해 둔 조건에 따라 멈추었습니다: 고객이 두 번 화를 냈습니다"),
        ("not (Calm(1))", "not (Calm(1))", "정해 둔 조건에 따라 멈추었습니다"),
        ("One(now and then)", "a; b", "정해 둔 조건에 따라 멈추었습니다: a; b"),
    ],
)
def test_a_guard_of_ones_own_keeps_its_authors_words(guard: str, because: str, told: str) -> None:
    assert in_korean(trip(guard, because, 2, 2)) == f"{told} (2회, 한도 2회) [{guard}]"


def test_every_failure_of_a_model_has_its_words() -> None:
    assert {*FAILURES} == {str(reason) for reason in FailureReason}
    assert len({*FAILURES.values()}) == len(FAILURES)


def test_a_ticket_says_it() -> None:
    step = Step(
        seq=2,
        run=1,
        event=calls(("look", {})),
        source="AWAIT_MODEL",
        state="ESCALATE_TICKET",
        trip=trip("ToolCallBudget(40)", "41 tool calls were requested, the limit is 40", 41, 40),
    )
    assert why_stopped((step,)) == "모델이 요청한 도구 호출이 한도를 넘었습니다 (41회, 한도 40회) [ToolCallBudget(40)]"
