"""Re-asks change something, retries wait, and neither goes on for ever."""

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haru_fsm.clock import FakeClock
from haru_fsm.conversation import JSON, FailureReason, ModelAnswered, ModelFailed, ToolsRequested, Usage
from haru_fsm.limits import Limits
from haru_fsm.models import Declaration, ModelOutcome, ModelRequest
from haru_fsm.models.hints import is_worth_asking_again
from haru_fsm.models.replies import Problem, Reply, Usable
from haru_fsm.models.retrying import FIRST_WAIT_S, LONGEST_WAIT_S, Asking, Attempt, Persistence
from haru_fsm.testing.fake_gemini import call

SPENT = Usage(prompt=100, answer=20)
ANSWER = Usable({"role": "model", "parts": [{"text": "배송중입니다."}]}, usage=SPENT)
CALL = Usable({"role": "model", "parts": [call("get_order")]}, calls=1, usage=SPENT)
FINAL = [reason for reason in FailureReason if reason not in ("rate_limited", "server", "timeout", "transport", "unreadable")
         and not is_worth_asking_again(Problem(reason))]  # fmt: skip


class Scripted:
    """Plays replies and exceptions, and keeps the attempts."""

    def __init__(self, *replies: Reply | BaseException, clock: FakeClock | None = None, takes_s: float = 0.0) -> None:
        self.replies = list(replies)
        self.attempts: list[Attempt] = []
        self.clock = clock
        self.takes_s = takes_s

    async def __call__(self, attempt: Attempt) -> Reply:
        self.attempts.append(attempt)
        if self.clock:
            self.clock.advance(self.takes_s)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, BaseException):
            raise reply
        return reply

    @property
    def hints(self) -> list[str]:
        return [attempt.amendment.hint for attempt in self.attempts]


def problem(reason: str, **more: Any) -> Problem:
    return Problem(FailureReason(reason), **more)


async def ask(
    asking: Asking,
    *,
    clock: FakeClock | None = None,
    request: dict[str, Any] | None = None,
    keys: tuple[str, ...] = (),
    **limits: float,
) -> ModelOutcome:
    persistence = Persistence(
        model="m",
        limits=Limits(**limits),
        clock=clock or FakeClock(),
        translate=lambda error: problem("transport", detail=str(error)),
        keys=keys,
        rng=random.Random(1),
    )
    given = {"system": "", "contents": (), "declarations": [Declaration("get_order", "")], "requests_left": 100}
    return await persistence.ask(ModelRequest(**{**given, **(request or {})}), asking)


async def test_a_usable_reply_is_the_outcome() -> None:
    answered = await ask(Scripted(ANSWER))
    assert isinstance(answered, ModelAnswered)
    assert (answered.text, answered.requests, answered.usage, answered.model) == ("배송중입니다.", 1, SPENT, "m")
    requested = await ask(Scripted(CALL))
    assert isinstance(requested, ToolsRequested)
    assert requested.calls[0].name == "get_order"


async def test_an_unusable_reply_is_asked_for_again_in_other_words_and_everything_is_counted() -> None:
    asking = Scripted(
        problem("empty", usage=SPENT, finish_reason="STOP", detail="an empty reply"), problem("recitation"), ANSWER
    )
    outcome = await ask(asking)
    assert isinstance(outcome, ModelAnswered)
    assert (outcome.requests, outcome.usage.total) == (3, 240)
    assert [incident.reason for incident in outcome.incidents] == ["empty", "recitation"]
    assert (outcome.incidents[0].finish_reason, outcome.incidents[0].detail) == ("STOP", "an empty reply")
    assert len(set(asking.hints)) == 3


@pytest.mark.parametrize("reason", [reason for reason in FailureReason if is_worth_asking_again(Problem(reason))])
@pytest.mark.parametrize("retries", [0, 1, 2])
async def test_re_asks_are_bounded_and_each_is_different(reason: FailureReason, retries: int) -> None:
    asking = Scripted(Problem(reason))
    outcome = await ask(asking, model_retries=retries)
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.requests, len(outcome.incidents)) == (reason, retries + 1, retries + 1)
    assert len(set(asking.hints)) == retries + 1


@pytest.mark.parametrize(("left", "requests"), [(1, 1), (2, 2), (9, 3)])
async def test_re_asks_stay_within_what_the_run_has_left(left: int, requests: int) -> None:
    outcome = await ask(Scripted(problem("empty")), request={"requests_left": left})
    assert outcome.requests == requests


@pytest.mark.parametrize("reason", FINAL)
async def test_what_cannot_get_better_is_final_at_once(reason: FailureReason) -> None:
    clock = FakeClock()
    outcome = await ask(Scripted(Problem(reason, "so it is")), clock=clock)
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.detail, outcome.requests, clock.slept) == (reason, "so it is", 1, [])


def test_the_reasons_that_are_final() -> None:
    assert {"prompt_blocked", "bad_request", "too_large", "wrong_key", "unknown_model", "quota", "deadline"} <= set(
        FINAL
    )


async def test_hints_about_calls_name_the_tools() -> None:
    asking = Scripted(problem("unexpected_call", wanted="get_points"), ANSWER)
    await ask(asking)
    assert "get_points" in asking.hints[1]
    assert "get_order" in asking.hints[1]


async def test_no_hint_says_that_anything_was_lost() -> None:
    asking = Scripted(problem("empty"), ANSWER)
    await ask(asking)
    assert "되풀이하지 말고" in asking.hints[1]


async def test_a_cut_off_reply_gets_more_room_each_time() -> None:
    asking = Scripted(problem("cut_off", usage=Usage(thoughts=1024)), problem("cut_off"), problem("empty"), ANSWER)
    await ask(asking, model_retries=3)
    assert [attempt.amendment.cut_off for attempt in asking.attempts] == [0, 1, 2, 2]
    assert [attempt.amendment.thought for attempt in asking.attempts] == [False, True, False, False]


async def test_a_call_although_tools_are_off_is_no_reply() -> None:
    outcome = await ask(Scripted(CALL, ANSWER), request={"tools_allowed": False})
    assert isinstance(outcome, ModelAnswered)
    assert [incident.reason for incident in outcome.incidents] == ["unexpected_call"]
    assert outcome.usage.total == 240


async def test_who_may_call_nothing_is_told_so_and_what_it_has_called() -> None:
    thought: JSON = {"text": "...", "thought": True}
    called = Usable({"role": "model", "parts": [thought, call("get_order")]}, calls=1)
    asking = Scripted(called, ANSWER)
    await ask(asking, request={"tools_allowed": False})
    assert "(functions): 없음 (none)." in asking.hints[1]
    assert "(called): get_order." in asking.hints[1]


async def test_only_a_reply_that_was_cut_off_gets_more_room() -> None:
    asking = Scripted(problem("cut_off", usage=Usage(thoughts=1)), problem("recitation"), ANSWER)
    await ask(asking)
    assert [attempt.amendment.cut_off for attempt in asking.attempts] == [0, 1, 1]
    assert asking.attempts[1].amendment.thought


async def test_what_words_do_not_help_with_is_asked_for_in_another_form() -> None:
    asking = Scripted(problem("empty"), problem("empty"), problem("recitation"), ANSWER)
    await ask(asking, model_retries=3)
    assert [attempt.amendment.adapted for attempt in asking.attempts] == [False, False, True, True]


async def test_what_is_shown_of_an_answer_and_which_calls_cannot_be_read_is_kept() -> None:
    heard = list[str]()
    leaked = Usable({"role": "model", "parts": [{"text": "THOUGHT: x\n\n배송중"}]}, shown="배송중")
    answered = await ask(Scripted(leaked), request={"on_text": heard.append})
    assert isinstance(answered, ModelAnswered)
    assert (answered.text, heard) == ("배송중", ["배송중"])
    requested = await ask(Scripted(replace(CALL, unusable={0: "a list"})))
    assert isinstance(requested, ToolsRequested)
    assert requested.unusable == {0: "a list"}


# --------------------------------------------------------------------------- retries


async def test_retries_wait_longer_each_time_with_jitter() -> None:
    clock = FakeClock()
    asking = Scripted(problem("server"))
    outcome = await ask(asking, clock=clock, http_retries=8)
    assert outcome.requests == 9
    for number, slept in enumerate(clock.slept):
        full = min(FIRST_WAIT_S * 2**number, LONGEST_WAIT_S)
        assert full / 2 <= slept <= full
    assert set(asking.hints) == {""}


async def test_the_wait_that_was_told_is_kept() -> None:
    clock = FakeClock()
    outcome = await ask(Scripted(problem("rate_limited", retry_after_s=2.0), ANSWER), clock=clock)
    assert isinstance(outcome, ModelAnswered)
    assert clock.slept == [2.0]


async def test_what_was_refused_is_left_out_at_once_and_from_then_on() -> None:
    clock = FakeClock()
    asking = Scripted(problem("bad_request", adapted=True), problem("server"), problem("empty"), ANSWER)
    outcome = await ask(asking, clock=clock)
    assert (outcome.requests, len(clock.slept), clock.slept[0]) == (4, 2, 0)
    assert [attempt.amendment.adapted for attempt in asking.attempts] == [False, True, True, True]


@pytest.mark.parametrize(
    ("begun", "reason", "streamed"),
    [
        (True, "transport", [True, False, False]),
        (True, "unreadable", [True, False, False]),
        (False, "transport", [True, True, True]),
        (True, "empty", [True, True, True]),
    ],
)
async def test_a_stream_that_has_broken_off_is_not_asked_for_again(
    begun: bool, reason: str, streamed: list[bool]
) -> None:
    attempts = list[Attempt]()
    replies: list[Reply] = [problem(reason), problem("server"), ANSWER]

    async def asking(attempt: Attempt) -> Reply:
        attempts.append(attempt)
        if len(attempts) == 1 and begun:
            attempt.hear("")
        return replies[len(attempts) - 1]

    await ask(asking, request={"on_text": lambda _: None})
    assert [attempt.streamed for attempt in attempts] == streamed
    await ask(asking := Scripted(ANSWER))
    assert not asking.attempts[0].streamed, "nobody listens"


async def test_after_a_stream_that_was_heard_and_broke_off_nothing_is_told() -> None:
    heard, lines = list[str](), ["배송이 ", "주문은 "]

    async def asking(attempt: Attempt) -> Reply:
        attempt.hear(lines.pop(0))
        return ANSWER if not lines else problem("transport")

    outcome = await ask(asking, request={"on_text": heard.append})
    assert isinstance(outcome, ModelAnswered)
    assert heard == ["배송이 "]


async def test_what_a_stream_had_spent_before_it_raised_is_counted() -> None:
    async def breaks(attempt: Attempt) -> Reply:
        attempt.spent = SPENT
        raise OSError("gone")

    outcome = await ask(breaks, http_retries=1)
    assert outcome.usage == SPENT + SPENT


@pytest.mark.parametrize(("wait", "timeout"), [(58.0, 20.0), (20.0, 20.0), (3600.0, None)])
async def test_a_wait_that_would_end_too_late_is_not_begun(wait: float, timeout: float | None) -> None:
    clock = FakeClock()
    asking = Scripted(problem("rate_limited", retry_after_s=wait, detail="slow down"))
    outcome = await ask(asking, clock=clock, request={"timeout_s": timeout})
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.requests, clock.slept) == ("rate_limited", 1, [])
    assert "slow down" in outcome.detail
    assert "not waited for" in outcome.detail


async def test_retries_and_re_asks_are_counted_apart() -> None:
    asking = Scripted(
        problem("server"), problem("empty"), problem("server"), problem("empty"), problem("server"), ANSWER
    )
    outcome = await ask(asking, model_retries=2, http_retries=3)
    assert isinstance(outcome, ModelAnswered)
    assert outcome.requests == 6
    assert asking.hints[1] == ""
    assert asking.hints[2] == asking.hints[3] != ""


async def test_exceptions_are_translated_and_keys_taken_out(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    outcome = await ask(Scripted(ValueError("key topsecret1 refused")), keys=("topsecret1",), http_retries=0)
    assert isinstance(outcome, ModelFailed)
    assert "topsecret1" not in repr(outcome) + caplog.text
    assert outcome.detail == "key [key] refused"


async def test_what_is_too_short_for_a_key_is_no_secret() -> None:
    outcome = await ask(Scripted(ValueError("the key 1234 is abc")), keys=("", "abc", "1234"), http_retries=0)
    assert isinstance(outcome, ModelFailed)
    assert outcome.detail == "the key [key] is abc"


# --------------------------------------------------------------------------- time


async def test_an_attempt_has_the_smaller_of_the_two_times() -> None:
    asking = Scripted(ANSWER)
    await ask(asking, model_timeout_s=60, request={"timeout_s": 7.5})
    await ask(asking, model_timeout_s=5, request={"timeout_s": 7.5})
    await ask(asking, model_timeout_s=5)
    assert [attempt.timeout_s for attempt in asking.attempts] == [7.5, 5, 5]


@pytest.mark.parametrize(
    ("retries", "left", "given"),
    [(1, 20, [10, 10]), (1, 100, [50, 50]), (2, 100, [50, 25, 25]), (0, 20, [20]), (1, 12, [10, 2])],
)
async def test_a_silent_server_leaves_time_for_another_attempt(retries: int, left: float, given: list[float]) -> None:
    clock = FakeClock()
    seen = []

    async def silent(attempt: Attempt) -> Problem:
        seen.append(attempt.timeout_s)
        clock.advance(attempt.timeout_s)
        return problem("timeout")

    await ask(silent, clock=clock, http_retries=retries, request={"timeout_s": left})
    assert seen == pytest.approx(given, abs=2)


async def test_no_attempt_begins_after_the_deadline() -> None:
    clock = FakeClock()
    asking = Scripted(problem("empty"), clock=clock, takes_s=6)
    outcome = await ask(asking, clock=clock, request={"timeout_s": 10})
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.requests) == ("deadline", 2)
    outcome = await ask(Scripted(ANSWER), request={"timeout_s": 0.0})
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.requests) == ("deadline", 0)


@pytest.mark.parametrize(("timeout", "reason"), [(None, "timeout"), (0.005, "deadline")])
async def test_an_attempt_that_hangs_is_given_up_and_what_it_spent_counts(timeout: float | None, reason: str) -> None:
    async def hangs(attempt: Attempt) -> Reply:
        attempt.spent = SPENT
        return await asyncio.Future[Reply]()

    outcome = await ask(hangs, model_timeout_s=0.01, http_retries=0, request={"timeout_s": timeout})
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.usage) == (reason, SPENT)


async def test_a_cancellation_goes_through() -> None:
    begun = asyncio.Event()

    async def hangs(_attempt: Attempt) -> Reply:
        begun.set()
        return await asyncio.Future[Reply]()

    task = asyncio.create_task(ask(hangs))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# --------------------------------------------------------------------------- whatever comes

outcomes = st.lists(
    st.sampled_from([ANSWER, CALL, OSError("gone"), *(Problem(reason, usage=SPENT) for reason in FailureReason)]),
    min_size=1,
    max_size=12,
)


@given(outcomes, st.integers(0, 3), st.integers(0, 3), st.integers(1, 6), st.none() | st.floats(0, 5), st.floats(0, 2))
def test_whatever_comes_it_ends_within_its_limits(
    replies: list[Reply | OSError],
    model_retries: int,
    http_retries: int,
    left: int,
    timeout: float | None,
    takes: float,
) -> None:
    clock = FakeClock()
    asking = Scripted(*replies, clock=clock, takes_s=takes)
    outcome = asyncio.run(
        ask(
            asking,
            clock=clock,
            request={"requests_left": left, "timeout_s": timeout},
            model_retries=model_retries,
            http_retries=http_retries,
        )
    )
    assert outcome.requests == len(asking.attempts) <= 1 + model_retries + http_retries
    assert len(outcome.incidents) == outcome.requests - (not isinstance(outcome, ModelFailed))
    assert timeout is None or sum(clock.slept) <= timeout
