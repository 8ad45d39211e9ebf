"""What is approved is one call with exactly its arguments, its tool as declared, in its conversation; the first word counts."""

from __future__ import annotations

import dataclasses

from hypothesis import assume, given
from hypothesis import strategies as st

from haru_fsm.approvals import Approvals, Asked, expired
from haru_fsm.conversation import ApprovalDecided, ApprovalRequested, Awaited, Event, Step, ToolsRequested

NOW, TTL_S = 1000.0, 60.0
words = st.text("ab2.\x1f가", max_size=3)
arguments = st.sampled_from(["{}", '{"a":1}', '{"a":2}', '{"a":"1"}'])
asked = st.builds(Asked, st.just(0), words, words, arguments, words)


def steps(*events: Event) -> list[Step]:
    return [Step(seq=seq, run=1, event=event, source="X", state="X") for seq, event in enumerate(events, 1)]


def waiting(one: Asked) -> Awaited:
    found = Approvals("c", TTL_S).judge(one, NOW)
    assert isinstance(found, Awaited)
    return found


def after(one: Asked, *decisions: tuple[bool, str]) -> Approvals:
    """The approvals of a journal in which this call was asked about, and decided so often."""
    call = waiting(one)
    decided = [
        ApprovalDecided(call=call.call, digest=call.digest, approved=approved, reason=reason)
        for approved, reason in decisions
    ]
    journal = steps(ToolsRequested(content={}), ApprovalRequested(waiting=(call,), results=()), *decided)
    return Approvals.of("c", journal, TTL_S)


@given(asked, asked, st.sets(st.sampled_from(["call", "tool", "arguments", "declaration"]), min_size=1))
def test_an_approval_is_of_use_for_what_was_shown_and_for_nothing_else(
    one: Asked, two: Asked, changed: set[str]
) -> None:
    approvals = after(one, (True, ""))
    assert approvals.judge(one, NOW) is None
    other = dataclasses.replace(one, **{name: getattr(two, name) for name in changed})
    assume(other != one)
    found = approvals.judge(other, NOW)
    assert isinstance(found, Awaited)
    assert found.digest != waiting(one).digest


def test_the_first_decision_counts() -> None:
    one = Asked(0, "2.0", "wipe", "{}", "")
    assert after(one, (True, ""), (False, "no")).judge(one, NOW) is None
    assert "no" in str(after(one, (False, "no"), (True, "")).judge(one, NOW))


def test_asking_again_gives_no_more_time() -> None:
    one = Asked(0, "2.0", "wipe", "{}", "")
    again = after(one).judge(one, NOW + 30)
    assert again == waiting(one)
    assert expired([again], NOW + TTL_S - 1) == ()
    [denial] = expired([again], NOW + TTL_S)
    assert (denial.approved, denial.expired, denial.digest) == (False, True, again.digest)


def test_an_approval_lasts_as_long_as_its_request() -> None:
    one = Asked(0, "2.0", "wipe", "{}", "")
    assert after(one, (True, "")).judge(one, NOW + TTL_S - 1) is None
    assert "expired" in str(after(one, (True, "")).judge(one, NOW + TTL_S))


def test_approvals_of_an_earlier_reply_are_none() -> None:
    one = Asked(0, "2.0", "wipe", "{}", "")
    call = waiting(one)
    decided = ApprovalDecided(call=call.call, digest=call.digest, approved=True)
    journal = steps(
        ToolsRequested(content={}),
        ApprovalRequested(waiting=(call,), results=()),
        decided,
        ToolsRequested(content={}),
    )
    assert isinstance(Approvals.of("c", journal, TTL_S).judge(one, NOW), Awaited)
