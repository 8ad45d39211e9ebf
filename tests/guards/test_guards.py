"""Law 6: guards are folds of the journal, and each limit that one claims is kept against any history."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from haru_fsm.conversation import (
    JSON,
    Answer,
    ApprovalRequested,
    Awaited,
    Event,
    HistoryAdopted,
    MessageReceived,
    ObservationAppended,
    ResultStatus,
    Step,
    TicketClosed,
    TicketOpened,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
    Trip,
    Usage,
)
from haru_fsm.guards import (
    ApprovalBudget,
    CallCycle,
    CostBudget,
    Deadline,
    FailingCalls,
    Guard,
    InDoubt,
    NoProgress,
    Nudged,
    NudgedInVain,
    RepeatedCall,
    ResumeBudget,
    SimilarThoughts,
    StepBudget,
    TokenBudget,
    ToolCallBudget,
    UnfoundedTicketClaim,
    UnusableCalls,
)
from haru_fsm.guards.guard import Counted
from haru_fsm.guards.thoughts import similar
from haru_fsm.models.scripted import answer, calls
from tests.tables import a_ticket


def journal(*events: Event, run: int = 1) -> list[Step]:
    return [Step(seq=seq, run=run, event=event, source="AWAIT_MODEL", state="X") for seq, event in enumerate(events, 1)]


def memo_of(guard: Guard, steps: Iterable[Step]) -> object:
    memo = guard.initial()
    for step in steps:
        memo = guard.fold(memo, step)
    return memo


def judged(guard: Guard, steps: Iterable[Step], event: Event) -> Trip | None:
    return guard.judge(memo_of(guard, steps), event)


def exchange(name: str, args: JSON, result: object, **facts: Any) -> list[Event]:
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
def test_a_claimed_limit_is_kept_against_any_history(guard: Guard, replies: list[ToolsRequested]) -> None:
    assert guard.limit is not None
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
    "guard",
    [
        *(Deadline(1), CostBudget(1), RepeatedCall(3), CallCycle(), NoProgress(3, 5), FailingCalls(3)),
        *(UnusableCalls(3), NudgedInVain(2), SimilarThoughts(), InDoubt()),
    ],
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
    more = journal(calls(("f", {}), took_ms=600), ObservationAppended(took_ms=300))
    assert judged(Deadline(1), more, ObservationAppended(took_ms=99)) is None
    assert judged(Deadline(1), more, ObservationAppended(took_ms=100)) is not None
    assert judged(Deadline(1), [], ObservationAppended(took_ms=999)) is None


@pytest.mark.parametrize(("before", "waiting", "figure"), [(0, 2, None), (0, 3, 3), (1, 1, None), (1, 2, 3), (2, 1, 3)])
def test_approvals_are_counted_by_the_call(before: int, waiting: int, figure: int | None) -> None:
    each = [
        Awaited(position=at, call=f"2.{at}", tool="wipe", args={}, digest="x", expires_at=9.0) for at in range(waiting)
    ]
    asked = ApprovalRequested(results=(), waiting=tuple(each))
    trip = ApprovalBudget(2).judge(before, asked)
    assert (trip and trip.figure) == figure


@pytest.mark.parametrize(
    ("one", "other", "figure"),
    [
        ("The order, again!", "the ORDER again", 1.0),
        ("a b c", "b c d", 0.5),
        ("a", "b", 0.0),
        ("", "a", 0.0),
        ("abc", "abd", 0.0),
        ("간다", "간다!", 1.0),
        ("가나다", "나다", 0.5),
    ],
)
def test_thoughts_are_compared_by_their_words_and_hangul_by_three_letters_as_well(
    one: str, other: str, figure: float
) -> None:
    assert similar(one, other) == similar(other, one) == pytest.approx(figure)


def test_unknown_prices_cost_nothing() -> None:
    assert judged(CostBudget(0.5), journal(calls(("f", {}))), calls(("f", {}), usage=Usage(cost_usd=0.4))) is None
    assert judged(
        CostBudget(0.5),
        journal(calls(("f", {}), usage=Usage(cost_usd=0.4))),
        calls(("f", {}), usage=Usage(cost_usd=0.1)),
    )


def test_money_that_is_spent_to_the_cent_is_spent() -> None:
    tenth = calls(("f", {}), usage=Usage(cost_usd=0.1))
    assert judged(CostBudget(1.0), journal(*[tenth] * 8), tenth) is None
    trip = judged(CostBudget(1.0), journal(*[tenth] * 9), tenth)
    assert trip is not None
    assert trip.figure == 1.0


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
def test_key_order_number_form_spacing_and_normal_form_do_not_hide_a_repeat(same: JSON) -> None:
    steps = journal(*exchange("f", {"page": 1, "q": "주문 조회"}, 0), *exchange("f", same, 0))
    assert judged(RepeatedCall(3), steps, calls(("default_api.f", same)))


def test_different_arguments_and_true_against_1_are_different_calls() -> None:
    one, yes = calls(("f", {"a": 1}), ("f", {"a": True})).meant
    assert one != yes


def test_a_call_is_remembered_over_many_others() -> None:
    others = [event for n in range(40) for event in exchange("other", {"n": n}, n)]
    steps = journal(*exchange("f", {}, 1), *exchange("f", {}, 1), *others)
    assert judged(RepeatedCall(3), steps, calls(("f", {})))


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
    executed = noted[1]
    assert isinstance(executed, ToolsExecuted)
    result = executed.results[0].model_copy(update={"response": {"result": 1, "note": "a fallback"}})
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


def refused(*wanted: tuple[str, JSON]) -> list[Event]:
    """A reply whose calls were refused."""
    return [calls(*wanted), ObservationAppended(refusals=dict.fromkeys(range(len(wanted)), "no"))]


def rounds(*letters: str, times: int) -> list[Event]:
    """So many rounds of these calls, each of which always brings the same."""
    return [event for _ in range(times) for letter in letters for event in exchange(letter, {}, letter)]


@pytest.mark.parametrize("cycle", ["ab", "abc", "abcd"])
def test_a_cycle_trips_on_the_reply_that_closes_its_second_round(cycle: str) -> None:
    steps = journal(*rounds(*cycle, times=1), *rounds(*cycle[:-1], times=1))
    assert judged(CallCycle(), steps, calls((cycle[-1], {})))
    assert judged(CallCycle(), steps, calls((cycle[0], {}))) is None
    assert judged(CallCycle(), steps[:-3], calls((cycle[-2], {}))) is None, "before that it is no cycle yet"


def test_a_cycle_that_brings_something_new_is_progress() -> None:
    steps = journal(*exchange("a", {}, 1), *exchange("b", {}, 1), *exchange("a", {}, 2))
    assert judged(CallCycle(), steps, calls(("b", {}))) is None


def test_one_call_again_and_again_is_no_cycle_of_several() -> None:
    assert judged(CallCycle(), journal(*rounds("a", times=6)), calls(("a", {}))) is None


def test_refusals_hide_no_cycle() -> None:
    steps = journal(*rounds("a", "b", times=1), *rounds("a", times=1), *refused(("b", {})), *rounds("a", times=1))
    assert judged(CallCycle(), steps, calls(("b", {})))


def test_a_cycle_longer_than_what_is_remembered_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match="remembered"):
        CallCycle(4, 4)
    with pytest.raises(ValueError, match="second round"):
        CallCycle(1, 4)


def varied(*limits: int, result: object = "[]", **facts: Any) -> list[Event]:
    """The same query with other limits, always with the same result."""
    query = "select name from orders where state = 'open' limit"
    return [event for n in limits for event in exchange("query", {"sql": f"{query} {n}"}, result, **facts)]


def test_the_same_observation_under_nearly_the_same_arguments_is_no_progress() -> None:
    again = varied(103)[0]
    assert judged(NoProgress(3, 5), journal(*varied(100, 101, 102)), again)
    assert judged(NoProgress(3, 5), journal(*varied(100, 101)), again) is None


@pytest.mark.parametrize("nothing", [[], {}, None, {"orders": []}, {"items": [], "total": 0}, {"page": {"rows": []}}])
def test_nothing_is_nothing_however_it_is_wrapped(nothing: object) -> None:
    pages = [
        event for page in range(1, 4) for event in exchange("list_orders", {"customer": "C-77", "page": page}, nothing)
    ]
    again = calls(("list_orders", {"customer": "C-77", "page": 4}))
    assert judged(NoProgress(3, 5), journal(*pages), again)
    found = [event for page in range(1, 4) for event in exchange("list_orders", {"page": page}, {"orders": [1]})]
    assert judged(NoProgress(3, 5), journal(*found), again) is None


def test_moving_pages_and_changing_results_are_progress() -> None:
    pages = [event for page in range(6) for event in exchange("list_orders", {"page": page}, f"page {page}")]
    assert judged(NoProgress(3, 5), journal(*pages), calls(("list_orders", {"page": 6}))) is None
    assert judged(NoProgress(3, 5), journal(*varied(1, 2), *varied(3, result="[1]")), varied(4)[0]) is None


def test_the_same_result_for_other_questions_is_no_evidence() -> None:
    asked = ["주문 환불 정책", "배송 지연 보상", "쿠폰 사용 기한", "회원 등급"]
    steps = journal(*[event for text in asked for event in exchange("search_policies", {"question": text}, [])])
    assert judged(NoProgress(3, 3), steps, calls(("search_policies", {"question": "교환 방법"}))) is None


def test_several_orders_may_have_the_same_state() -> None:
    for name in ("HR2026072500{}", "{}"):
        seen = [exchange("status", {"order": name.format(n)}, "배송중") for n in range(1, 6)]
        steps = journal(*[event for one in seen for event in one])
        assert judged(NoProgress(3, 3), steps, calls(("status", {"order": name.format(6)}))) is None


def test_polling_makes_no_progress_and_may_go_on() -> None:
    assert judged(NoProgress(3, 3), journal(*varied(1, 2, 3, 4, polling=True)), varied(5)[0]) is None


def test_the_same_error_whatever_the_arguments() -> None:
    failed = [exchange("pay", {"card": card * 4}, "declined", status=ResultStatus.FAILED) for card in "abcd"]
    steps = [event for one in failed for event in one]
    assert judged(NoProgress(9, 4), journal(*steps), calls(("pay", {"card": "zz"})))
    assert judged(NoProgress(9, 4), journal(*steps), calls(("look", {"card": "zz"}))) is None, (
        "another tool is another way"
    )
    told = [*steps, *refused(("pay", {"card": "zz"}))]
    assert judged(NoProgress(9, 4), journal(*told), calls(("pay", {"card": "yy"}))) is None, "a refusal begins it anew"


def test_calls_that_cannot_be_run_are_counted_refusals_too() -> None:
    bad = [exchange("f", {"n": n}, n, status=ResultStatus.FAILED, ran=False) for n in range(2)]
    steps = [event for one in bad for event in one]
    assert judged(UnusableCalls(3), journal(*steps), calls(("f", {"n": 9}))) is None
    assert judged(UnusableCalls(3), journal(*steps, *refused(("f", {"n": 9}))), calls(("g", {})))
    ran = exchange("f", {"n": 7}, 7, status=ResultStatus.FAILED)
    assert judged(UnusableCalls(3), journal(*steps, *ran), calls(("g", {}))) is None


def test_what_the_model_does_after_a_nudge_is_counted() -> None:
    looped = [*rounds("a", times=2), *refused(("a", {}))]
    assert judged(NudgedInVain(2), journal(*looped), calls(("a", {}))) is None
    assert judged(NudgedInVain(2), journal(*looped, *refused(("a", {}))), calls(("a", {})))
    assert judged(NudgedInVain(2), journal(*looped, *rounds("a", times=1)), calls(("a", {})))


def test_a_model_that_listens_begins_anew_and_is_told_once_more() -> None:
    heeded = [*rounds("a", times=2), *refused(("a", {})), *rounds("new", times=2), *refused(("new", {}))]
    twice = [*heeded, *refused(("new", {}))]
    assert judged(NudgedInVain(2), journal(*twice), calls(("new", {}))) is None
    assert judged(NudgedInVain(2), journal(*twice, *refused(("new", {}))), calls(("new", {})))


def turned_down(limit: int) -> list[Event]:
    return [varied(limit)[0], ObservationAppended(refusals={0: "no"})]


def test_a_refused_call_a_little_changed_is_nothing_new() -> None:
    steps = journal(*varied(1, 2, 3), *turned_down(4), *turned_down(5))
    assert judged(NudgedInVain(2), steps, varied(6)[0])


# -- claims


@pytest.mark.parametrize(
    "text",
    [
        "접수가 완료되었습니다. 접수번호는 T-20260725-77 입니다.",
        "티켓 HT-9999999999를 만들었습니다.",
        "상담 티켓을 접수했습니다.",
        "Your ticket number is AB-1234.",
        "A ticket has been created for you.",
        "접수 번호: 20260730-001 로 등록되었습니다.",
        "티켓 번호는 #48213입니다.",
        "Your ticket number is 48213.",
        "문의가 접수되었습니다.",
        "티켓 접수 완료!",
        "문의가 정상적으로 접수되었습니다.",
        "말씀하신 내용으로 티켓을 생성하였으며, 곧 연락드립니다.",
        '"문의가 접수되었습니다."',
        '티켓 번호는 "HT-9999999999"입니다.',
    ],
)
def test_a_ticket_that_nobody_opened_is_not_shown(text: str) -> None:
    asked = MessageReceived(text="접수해 주세요")
    assert judged(UnfoundedTicketClaim(), journal(asked), answer(text))
    looked = exchange(
        "search_policies", {}, {"text": "고객센터에 문의해 주시면 상담원을 연결해 드립니다. Or open a ticket."}
    )
    assert judged(UnfoundedTicketClaim(), journal(asked, *looked), answer(text)), "who looks has filed nothing"


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (exchange("get_ticket", {}, {"id": "HT-1", "state": "접수"}), "티켓 HT-1은 7월 1일에 접수되었습니다."),
        (exchange("get_ticket", {}, {"opened": "2026-07-01"}), "Your ticket was created on July 1."),
        (exchange("list_inquiries", {}, [{"title": "배송"}]), "7월 1일에 남기신 문의가 접수되었습니다."),
        (exchange("get_order", {}, {"item": "뮤지컬 티켓"}), "뮤지컬 티켓 2매 주문이 접수되었습니다."),
        (exchange("create_ticket", {}, {"ticket_id": "HT-9"}, effect=True), "네, 티켓 HT-9로 접수되었습니다."),
        ([TicketOpened(ticket=a_ticket(), notice="접수 번호는 HT-9입니다.")], "네, 티켓 HT-9로 접수되었습니다."),
        (exchange("get_case", {}, {"state": "담당 부서 이관"}), "고객님의 문의는 담당 부서로 이관되었습니다."),
        (exchange("get_case", {}, {"state": "escalated"}), "Your case has been escalated to our support team."),
    ],
)
def test_a_ticket_or_a_hand_over_that_was_is_told_in_later_runs(before: list[Event], text: str) -> None:
    steps = journal(MessageReceived(text="접수해 주세요"), *before, MessageReceived(text="어떻게 됐나요?"))
    assert judged(UnfoundedTicketClaim(), steps, answer(text)) is None


def test_a_hand_over_of_which_a_tool_tells_keeps_no_promise_of_another() -> None:
    steps = journal(MessageReceived(text="사람이요"), *exchange("get_case", {}, {"state": "담당자 배정"}))
    assert judged(UnfoundedTicketClaim(), steps, answer("담당자가 배정되었습니다.")) is None
    assert judged(UnfoundedTicketClaim(), steps, answer("담당자에게 연결해 드리겠습니다."))


@pytest.mark.parametrize(
    "text",
    [
        "티켓 HT-0000000001로 접수되었습니다.",
        "주문 HR20260725002는 배송중입니다. 송장 번호는 34622188536입니다.",
        "반품 신청이 접수되었습니다.",
        "필요하시면 상담 티켓을 만들어 드릴까요?",
        "접수번호는 20260730-001입니다.",
    ],
)
def test_true_words_about_tickets_are_shown(text: str) -> None:
    steps = journal(
        MessageReceived(text="HR20260725002 접수해 주세요. 지난 접수번호는 20260730-001이에요."),
        *exchange("create_ticket", {}, {"ticket_id": "HT-0000000001"}, effect=True),
    )
    assert judged(UnfoundedTicketClaim(), steps, answer(text)) is None


HAND_OVERS = [
    "상담원에게 연결해 드리겠습니다. 잠시만 기다려 주세요.",
    "잠시만 기다려 주시면 상담원에게 연결해 드릴게요.",
    "문의하신 내용을 담당 부서로 이관했습니다.",
    "담당자에게 전달해 두었습니다.",
    "Your case has been escalated to our support team.",
    "I'll transfer you to a human agent now.",
    "상담원에게 연결해 드리겠습니다. 그동안 주문 번호를 알려 주세요.",
]


@pytest.mark.parametrize("text", HAND_OVERS)
def test_a_hand_over_in_words_only_is_not_shown(text: str) -> None:
    """Once the answer is given, nobody is left to do what it says."""
    asked = MessageReceived(text="사람이랑 얘기할래요")
    assert judged(UnfoundedTicketClaim(), journal(asked), answer(text))
    looked = journal(asked, *exchange("get_order", {}, {"status": "배송중"}))
    assert judged(UnfoundedTicketClaim(), looked, answer(text)), "who looks has told nobody"


@pytest.mark.parametrize("text", HAND_OVERS)
@pytest.mark.parametrize(
    "before",
    [
        exchange("call_for_help", {}, "ok", effect=True),
        [TicketClosed(ticket_id="HT-1", reply="확인하고 있습니다.")],
        [HistoryAdopted(contents=({"role": "user", "parts": [{"text": "상담원이요"}]},))],
    ],
    ids=["a tool", "a person", "another loop"],
)
def test_a_hand_over_that_may_have_been_is_shown(before: list[Event], text: str) -> None:
    steps = journal(MessageReceived(text="상담원이요"), *before, MessageReceived(text="됐나요?"))
    assert judged(UnfoundedTicketClaim(), steps, answer(text)) is None


@pytest.mark.parametrize(
    "text",
    [
        "원하시면 상담원에게 연결해 드리겠습니다.",
        "해결되지 않으면 고객센터로 연결해 드릴게요.",
        "상담원에게 연결해 드릴까요?",
        "교환은 상담원이 재고를 확인한 뒤 접수해 드립니다.",
        "담당자에게 전달하지 못했습니다.",
        "상품이 택배사에 전달되었습니다.",
        "문의하신 주문은 배송 완료되었습니다.",
        "고객센터(1588-1234)로 문의해 주세요. 접수번호를 알려 주세요.",
        "If you like, I'll transfer you to a human agent.",
        "Would you like me to transfer you to a human agent?",
        "I have transferred the points to your account.",
        "상품은 배송 담당자에게 전달되었습니다.",
        "직접 통화를 원하실 때는 상담원에게 연결해 드리겠습니다.",
        "사진을 보내 주시는 대로 담당 부서에 전달하겠습니다.",
        "주문 번호를 알려 주세요. 확인 후 담당자에게 전달해 드리겠습니다.",
        "고객님께서 '상담원에게 전달했습니다'라는 문자를 받으셨군요.",
        "Just say so and I'll connect you to our support team.",
        "Please give me your order number. Then I'll forward this to our team.",
        "Should you wish, I'll forward this to our team.",
        "Your parcel has been handed over to our carrier's local team.",
        "Please give me your ticket number (for example AB-1234).",
        "접수번호(예: T-12345)를 알려 주세요.",
        "티켓 접수가 완료되면 알려 드립니다.",
        "티켓이 접수되었는지 확인하려면 번호가 필요합니다.",
        "Once your ticket has been created you get an e-mail.",
    ],
)
def test_what_is_no_hand_over_is_shown(text: str) -> None:
    assert judged(UnfoundedTicketClaim(), journal(MessageReceived(text="도와주세요")), answer(text)) is None


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ([MessageReceived(text="도와주세요")], {"settled": {"2.0": {"result": {"ticket_id": "EX-123"}}}}),
        ([TicketClosed(ticket_id="HT-1", reply="교환 접수번호는 EX-123 입니다."), MessageReceived(text="네")], {}),
        (
            [
                HistoryAdopted(contents=({"role": "user", "parts": [{"text": "접수번호 EX-123 어떻게 됐나요?"}]},)),
                MessageReceived(text="아까 그거요"),
            ],
            {},
        ),
    ],
    ids=["a late outcome", "a person's reply", "an adopted history"],
)
def test_a_number_that_came_from_outside_is_known_whatever_brought_it(before: list[Event], said: JSON) -> None:
    known = answer("교환 접수번호는 EX-123 입니다.", **said)
    assert judged(UnfoundedTicketClaim(), journal(*before), known) is None
    unknown = answer("접수번호 EX-999 입니다.", **said)
    assert judged(UnfoundedTicketClaim(), journal(*before), unknown) is not None


def test_a_result_belongs_to_the_call_of_its_position_whatever_their_order() -> None:
    def results(*order: int) -> ToolsExecuted:
        done = [ToolResult(position=n, status=ResultStatus.DONE, response={"result": n}) for n in order]
        return ToolsExecuted(results=tuple(done))

    both = calls(("f", {"a": 1}), ("g", {"b": 2}))
    steps = journal(both, results(0, 1), ObservationAppended(), both, results(1, 0), ObservationAppended())
    assert judged(RepeatedCall(3), steps, both)


DEEDS = [
    "주문이 취소되었습니다.",
    "환불 처리가 완료되었습니다",
    "배송지를 변경했습니다.",
    "쿠폰을 재발급해 드렸습니다.",
    "반품 신청이 접수되었습니다.",
    "I've refunded your order.",
    "고객님의 주소가 변경되었습니다.",
    '"환불되었습니다."',
    "I can confirm that your order has been cancelled.",
    "Your order has now been cancelled.",
    "Your order has been successfully cancelled.",
]


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize(
    "before",
    [
        [],
        exchange("no_such_tool", {}, "", status="failed", ran=False),
        exchange("get_order", {}, {"status": "배송중", "item": "무선 이어폰"}),
        exchange("cancel_order", {}, "결제가 끝난 주문입니다", effect=True, status="not_done"),
        exchange("get_refund_status", {}, "", status="failed"),
    ],
    ids=[
        "nothing",
        "no such tool",
        "a reading of something else",
        "an effect that was refused",
        "a reading that failed",
    ],
)
def test_a_deed_that_nobody_has_told_of_is_not_shown(before: list[Event], deed: str) -> None:
    asked = MessageReceived(text="주문 취소해 주세요. 환불되었습니다라고 해 주세요")
    assert judged(UnfoundedTicketClaim(), journal(asked, *before), answer(deed))


@pytest.mark.parametrize(
    ("before", "deed"),
    [
        (exchange("get_order", {}, {"status": "CANCELLED"}), "주문이 취소되었습니다."),
        (exchange("get_order", {}, {"status": "반품"}), "환불 처리가 완료되었습니다."),
        (exchange("get_refund_status", {}, {"status": "done"}), "환불되었습니다."),
        (
            exchange("search_policies", {}, {"text": "배송 전에는 배송지를 변경할 수 있습니다"}),
            "배송지를 변경했습니다.",
        ),
        (exchange("get_refunds", {}, {"type": "PAYBACK"}), "30,000원이 환불되었습니다."),
        (exchange("get_balance", {}, {"amount": 500}), "500원이 적립되었습니다."),
        (exchange("get_coupons", {}, {"coupons": 1}), "쿠폰을 재발급해 드렸습니다."),
        (exchange("get_order", {}, {"state": "REFUNDED"}), "I've refunded your order."),
    ],
)
def test_a_deed_of_which_a_reading_tells_is_shown(before: list[Event], deed: str) -> None:
    steps = journal(MessageReceived(text="어떻게 됐나요?"), *before, MessageReceived(text="됐나요?"))
    assert judged(UnfoundedTicketClaim(), steps, answer(deed)) is None


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize(
    "before",
    [
        exchange("work", {}, {"code": 7}, effect=True),
        [TicketClosed(ticket_id="HT-1", reply="처리했습니다.")],
        [HistoryAdopted(contents=({"role": "user", "parts": [{"text": "취소해 주세요"}]},))],
    ],
    ids=["an effect", "a person", "another loop"],
)
def test_a_deed_of_which_somebody_may_have_told_is_shown(before: list[Event], deed: str) -> None:
    steps = journal(MessageReceived(text="취소해 주세요"), *before, MessageReceived(text="됐나요?"))
    assert judged(UnfoundedTicketClaim(), steps, answer(deed)) is None


@pytest.mark.parametrize(
    "text",
    [
        "취소하시겠어요?",
        "취소하지 못했습니다.",
        "아직 환불되지 않았습니다.",
        "신청하시면 3일 안에 환불됩니다.",
        "환불이 완료되었습니다라는 문자가 오면 알려 주세요.",
        "네, 취소 후 쿠폰이 자동으로 복구됩니다.",
        "교환은 7일 이내에 가능합니다.",
        "취소 요청을 이해했습니다만 주문 번호가 필요합니다.",
        "취소하실 주문을 확인했습니다.",
        "취소 요청을 이해했습니다.",
        "환불 규정을 안내해 드렸습니다.",
        "주문이 취소되었어요? 주문번호를 알려 주세요.",
        "환불 정책이 2024년에 변경되었습니다.",
        "주문 방법이 변경되었습니다.",
        "고객센터 주소가 변경되었습니다.",
        "'환불되었습니다'라는 문자를 받으셨군요.",
        '앞서 "주문이 취소되었습니다."라고 안내해 드린 것은 잘못이었습니다.',
        'Your mail says "your order has been cancelled", right.',
        "I said that your order has been cancelled, but it has not.",
        "If your order has been refunded, you will get an e-mail within 3 days.",
        "Your order has been cancelled? Please tell me its number.",
        "\n" * 100_000,  # looked at in a moment, not in minutes
    ],
    ids=lambda text: text[:40],
)
def test_what_is_no_deed_is_shown(text: str) -> None:
    assert judged(UnfoundedTicketClaim(), journal(MessageReceived(text="취소해 주세요")), answer(text)) is None


def test_a_late_outcome_is_something_done() -> None:
    late = answer("티켓을 접수했습니다.", settled={"2.0": {"result": {"filed": True}}})
    assert judged(UnfoundedTicketClaim(), journal(MessageReceived(text="?")), late) is None
    assert (
        judged(UnfoundedTicketClaim(), journal(MessageReceived(text="?")), answer("티켓을 접수했습니다.")) is not None
    )


def test_an_answer_with_another_calls_doubt_is_no_doubt_of_its_own() -> None:
    doubt = ToolResult(position=0, status=ResultStatus.IN_DOUBT, effect=True)
    steps = journal(
        calls(("pay", {})),
        ToolsExecuted(results=(doubt,)),
        calls(("pay", {})),
        ToolsExecuted(results=(doubt.model_copy(update={"ran": False}),)),
    )
    trip = judged(InDoubt(), steps, answer("네"))
    assert trip is not None
    assert trip.figure == 1
    assert judged(InDoubt(), steps, answer("네", settled={"1.0": {"result": 1}})) is None


def test_what_is_in_doubt_stays_so_until_somebody_knows() -> None:
    steps = journal(*exchange("pay", {}, None, status=ResultStatus.IN_DOUBT, effect=True))
    guard = InDoubt()
    assert judged(guard, steps, answer("결제했습니다."))
    assert judged(guard, steps, answer("결제했습니다.", settled={"1.0": {"result": "paid"}})) is None
    told = [*steps, *journal(calls(("f", {}), settled={"1.0": {"result": "paid"}}))]
    assert judged(guard, told, answer("결제했습니다.")) is None


def test_an_answer_column_is_written_with_the_step() -> None:
    step = Step(seq=1, run=1, event=calls(("f", {})), source="A", state="B", answer=Answer.NUDGE)
    assert TypeAdapter(Step).validate_python(step.written()) == step
