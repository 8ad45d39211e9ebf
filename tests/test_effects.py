"""What becomes of a call, by what the ledger knows of it."""

from __future__ import annotations

from typing import Any

import pytest

from haru_fsm.conversation import ResultStatus
from haru_fsm.effects import Decision, decide, same_effect
from haru_fsm.stores import LedgerEntry, Outcome, Started

BEGUN = Started(run=1, name="pay", digest="d", declared=True)
DONE, NOT_DONE = (Outcome(status=status, response={}) for status in (ResultStatus.DONE, ResultStatus.NOT_DONE))


@pytest.mark.parametrize("accepts_key", [True, False])
@pytest.mark.parametrize("begun_with_key", [True, False])
def test_only_a_call_begun_under_a_key_that_its_tool_still_takes_runs_again(
    accepts_key: bool, begun_with_key: bool
) -> None:
    entry = LedgerEntry("2.0", BEGUN.model_copy(update={"keyed": begun_with_key}))
    again = Decision.RUN_AGAIN if accepts_key and begun_with_key else Decision.IN_DOUBT
    assert decide(entry, accepts_key=accepts_key) is again
    assert decide(None, accepts_key=accepts_key) is Decision.RUN
    assert decide(LedgerEntry("2.0", entry.started, DONE), accepts_key=accepts_key) is Decision.USE
    assert decide(LedgerEntry("2.0", None, DONE), accepts_key=accepts_key) is Decision.USE


@pytest.mark.parametrize(
    ("facts", "outcome", "same"),
    [
        ({}, DONE, True),
        ({}, None, True),
        ({}, NOT_DONE, False),
        ({"declared": False}, DONE, False),
        ({"run": 2}, DONE, False),
        ({"name": "book"}, DONE, False),
        ({"digest": "other"}, DONE, False),
    ],
)
def test_the_same_effect_is_one_of_this_run_that_may_have_taken_place(
    facts: dict[str, Any], outcome: Outcome | None, same: bool
) -> None:
    entry = LedgerEntry("2.0", BEGUN.model_copy(update=facts), outcome)
    others = [LedgerEntry("2.1", None, DONE)]  # a read that was kept
    found = same_effect([*others, entry], run=1, name="pay", digest="d")
    assert found == (entry if same else None)
