"""Law 6: guards are folds of the journal, and each limit that one claims is kept against any history."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm.conversation import (
    Answer,
    MessageReceived,
    ObservationAppended,
    ResultStatus,
    Step,
    ToolResult,
    ToolsExecuted,
    Usage,
)
from haru_fsm.guards import (
    ApprovalBudget,
    CostBudget,
    Deadline,
    FailingCalls,
    Guard,
    InDoubt,
    Nudged,
    RepeatedCall,
    ResumeBudget,
    SimilarThoughts,
    StepBudget,
    TokenBudget,
    ToolCallBudget,
    UnfoundedTicketClaim,
)
from haru_fsm.guards.guard import Counted
from haru_fsm.guards.thoughts import similar
from haru_fsm.models.scripted import answer, calls


def journal(*events, run: int = 1) -> list[Step]:
    return [Step(seq=seq, run=run, event=event, source="AWAIT_MODEL", state="X") for seq, event in enumerate(events, 1)]


def memo_of(guard: Guard, steps) -> object:
    memo = guard.initial()
    for step in steps:
        memo = guard.fold(memo, step)
    return memo


def judged(guard: Guard, steps, event):
    return guard.judge(memo_of(guard, steps), event)


def exchange(name: str, args: dict, result: object, **facts):
    """A request for one call, and its result."""
    done = ToolResult(position=0, status=facts.pop("status", ResultStatus.DONE), response={"result": result}, **facts)
    return [calls((name, args)), ToolsExecuted(results=(done,)), ObservationAppended()]


# -- promises


BUDGETS = [StepBudget(5), ToolCallBudget(5), TokenBudget(5), Nudged(5), ResumeBudget(5), ApprovalBudget(5)]
reply = st.builds(
    lambda n, requests, tokens, took: calls(
        *[("f", {})] * n, requests=requests, usage=Usage(prompt=tokens), took_ms=took
    ),
    st.integers(1, 3),
    st.integers(0, 3),
    st.integers(0, 4),
    st.integers(0, 9),
)


@pytest.mark.parametrize("guard", BUDGETS, ids=lambda guard: guard.name)
@given(replies=st.lists(reply, min_size=5, max_size=9))
@settings(max_examples=60, deadline=None)
def test_a_claimed_limit_is_kept_against_any_history(guard: Guard, replies) -> None:
    memo, tripped = guard.initial(), False
    for count, event in enumerate(replies, 1):
        trip = guard.judge(memo, event)
        assert trip is not None or not tripped, "once tripped, a budget stays tripped"
        reached = count >= guard.limit if guard.counts else count > guard.limit
        assert trip is not None or not reached
        tripped = trip is not None
        asked = (type(guard).__name__,) if isinstance(guard, Counted) and trip is None else ()
        memo = guard.fold(memo, Step(seq=count, run=1, event=event, source="AWAIT_MODEL", state="X", asked=asked))


@pytest.mark.parametrize(
    "guard", [Deadline(1), CostBudget(1), RepeatedCall(3), FailingCalls(3), SimilarThoughts(), InDoubt()]
)
def test_what_an_adversary_can_evade_claims_nothing(guard: Guard) -> None:
    assert guard.limit is None


# -- budgets


def test_steps_count_re_asks() -> None:
    trip = judged(StepBudget(4), journal(calls(("f", {}), requests=3)), calls(("f", {})))
    assert trip is not None
    assert (trip.figure, trip.limit) == (4, 4)


def test_tool_calls_trip_on_the_reply_that_would_go_beyond() -> None:
    five = journal(calls(*[("f", {})] * 5))
    assert judged(ToolCallBudget(6), five, calls(("f", {}))) is None
    assert judged(ToolCallBudget(6), five, calls(("f", {}), ("f", {}))) is not None


def test_thoughts_are_paid_for_and_cached_tokens_once() -> None:
    usage = Usage(prompt=900, cached=800, thoughts=1200, answer=20)
    assert usage.total == 2120
    assert judged(TokenBudget(2121), [], calls(("f", {}), usage=usage)) is None
    assert judged(TokenBudget(2120), [], calls(("f", {}), usage=usage)) is not None


def test_a_deadline_sums_measured_time() -> None:
    steps = journal(calls(("f", {}), took_ms=600))
    assert judged(Deadline(1), steps, ObservationAppended(took_ms=300)) is None
    assert judged(Deadline(1), steps, ObservationAppended(took_ms=400)) is not None


def test_unknown_prices_cost_nothing() -> None:
    assert judged(CostBudget(0.5), journal(calls(("f", {}))), calls(("f", {}), usage=Usage(cost_usd=0.4))) is None
    assert judged(
        CostBudget(0.5),
        journal(calls(("f", {}), usage=Usage(cost_usd=0.4))),
        calls(("f", {}), usage=Usage(cost_usd=0.1)),
    )


# -- circles


def test_the_third_identical_call_with_the_same_observation_trips() -> None:
    once = exchange("list_orders", {"page": 1}, [])
    guard = RepeatedCall(3)
    assert judged(guard, journal(*once), calls(("list_orders", {"page": 1}))) is None
    trip = judged(guard, journal(*once, *once), calls(("list_orders", {"page": 1})))
    assert trip is not None
    assert trip.figure == 3


@pytest.mark.parametrize(
    "same", [{"page": 1.0, "q": " 주문  조회 "}, {"q": unicodedata.normalize("NFD", "주문 조회"), "page": 1}]
)
def test_key_order_number_form_spacing_and_normal_form_do_not_hide_a_repeat(same: dict) -> None:
    steps = journal(*exchange("f", {"page": 1, "q": "주문 조회"}, 0), *exchange("f", same, 0))
    assert judged(RepeatedCall(3), steps, calls(("default_api.f", same)))


def test_different_arguments_and_true_against_1_are_different_calls() -> None:
    one, yes = calls(("f", {"a": 1}), ("f", {"a": True})).meant
    assert one != yes


def test_a_changed_observation_is_progress() -> None:
    steps = journal(*exchange("f", {}, 1), *exchange("f", {}, 1), *exchange("f", {}, 2))
    assert judged(RepeatedCall(3), steps, calls(("f", {}))) is None


def test_polling_is_no_loop() -> None:
    steps = journal(*(exchange("get_refund_status", {}, "PENDING", polling=True) * 6))
    assert judged(RepeatedCall(3), steps, calls(("get_refund_status", {}))) is None


def test_a_reply_trips_only_when_every_call_in_it_repeats() -> None:
    steps = journal(*(exchange("f", {}, 1) * 3))
    assert judged(RepeatedCall(3), steps, calls(("f", {}), ("new", {}))) is None
    assert judged(RepeatedCall(3), steps, calls(("f", {}), ("f", {}))) is not None


def test_a_refusal_is_no_observation() -> None:
    steps = journal(*(exchange("f", {}, 1) * 2), calls(("f", {})), ObservationAppended(refusals={0: "no"}))
    trip = judged(RepeatedCall(3), steps, calls(("f", {})))
    assert trip is not None
    assert trip.figure == 3


def test_a_note_of_ours_does_not_make_an_observation_new() -> None:
    plain, noted = exchange("f", {}, 1), exchange("f", {}, 1)
    result = noted[1].results[0].model_copy(update={"response": {"result": 1, "note": "a fallback"}})
    noted[1] = ToolsExecuted(results=(result,))
    assert judged(RepeatedCall(3), journal(*plain, *noted), calls(("f", {})))


def test_replies_that_only_fail_are_counted_whatever_they_vary() -> None:
    failed = [exchange("f", {"n": n}, n, status=ResultStatus.FAILED) for n in range(3)]
    steps = journal(*[event for one in failed for event in one])
    assert judged(FailingCalls(3), steps, calls(("g", {})))
    assert judged(FailingCalls(3), [*steps, *journal(*exchange("f", {}, 1))], calls(("g", {}))) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("다시 확인하겠습니다. 잠시만요", "다시 확인하겠습니다. 잠시만요..", True),
        (unicodedata.normalize("NFD", "주문을 다시 확인합니다"), "주문을 다시 확인합니다!", True),
        ("I will look up the order again", "I will look up the order again, again", True),
        ("주문 목록을 조회합니다", "배송 조회를 위해 송장 번호를 확인합니다", False),
        ("", "", False),
    ],
)
def test_similar_thoughts(one: str, other: str, same: bool) -> None:
    assert (similar(one, other) > 0.85) is same


def test_only_the_last_thoughts_count() -> None:
    texts = ["같은 생각입니다", "주문을 찾습니다", "배송을 봅니다", "환불을 봅니다"]
    steps = journal(*[calls(("f", {}), text=text) for text in texts])
    assert judged(SimilarThoughts(), steps, calls(("f", {}), text="같은 생각입니다")) is None
    assert judged(SimilarThoughts(), steps[:3], calls(("f", {}), text="같은 생각입니다"))


# -- claims


@pytest.mark.parametrize(
    "text",
    [
        "접수가 완료되었습니다. 접수번호는 T-20260725-77 입니다.",
        "티켓 HT-9999999999를 만들었습니다.",
        "상담 티켓을 접수했습니다.",
        "Your ticket number is AB-1234.",
        "A ticket has been created for you.",
    ],
)
def test_a_ticket_that_nobody_opened_is_not_shown(text: str) -> None:
    assert judged(UnfoundedTicketClaim(), journal(MessageReceived(text="접수해 주세요")), answer(text))


@pytest.mark.parametrize(
    "text",
    [
        "티켓 HT-0000000001로 접수되었습니다.",
        "주문 HR20260725002는 배송중입니다. 송장 번호는 34622188536입니다.",
        "반품 신청이 접수되었습니다.",
        "필요하시면 상담 티켓을 만들어 드릴까요?",
    ],
)
def test_true_words_about_tickets_are_shown(text: str) -> None:
    steps = journal(
        MessageReceived(text="HR20260725002 접수해 주세요"),
        *exchange("create_ticket", {}, {"ticket_id": "HT-0000000001"}, effect=True),
    )
    assert judged(UnfoundedTicketClaim(), steps, answer(text)) is None


def test_what_is_in_doubt_stays_so_until_somebody_knows() -> None:
    steps = journal(*exchange("pay", {}, None, status=ResultStatus.IN_DOUBT, effect=True))
    guard = InDoubt()
    assert judged(guard, steps, answer("결제했습니다."))
    assert judged(guard, steps, answer("결제했습니다.", settled={"1.0": {"result": "paid"}})) is None
    told = [*steps, *journal(calls(("f", {}), settled={"1.0": {"result": "paid"}}))]
    assert judged(guard, told, answer("결제했습니다.")) is None


def test_an_answer_column_is_written_with_the_step() -> None:
    step = Step(seq=1, run=1, event=calls(("f", {})), source="A", state="B", answer=Answer.NUDGE)
    assert Step.model_validate_json(step.model_dump_json(exclude_unset=True)) == step
