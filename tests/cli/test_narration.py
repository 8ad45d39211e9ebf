"""What is told of a step, and under which number."""

from __future__ import annotations

from typing import Any

import pytest

from haru_fsm.cli.narration import Narration
from haru_fsm.cli.output import printable
from haru_fsm.conversation import (
    Answer,
    Event,
    MessageReceived,
    ModelAnswered,
    ModelFailed,
    ObservationAppended,
    ResultStatus,
    Resumed,
    Step,
    ToolResult,
    ToolsExecuted,
    Trip,
)
from haru_fsm.models.scripted import answer, calls

TRIP = Trip(guard="RepeatedCall(3)", figure=3, limit=3, because="the same call came 3 times")


def step(event: Event, **notes: Any) -> Step:
    return Step(1, 1, event, "A", "B", **notes)


def told(*steps: Step, earlier: tuple[Step, ...] = ()) -> list[str]:
    narration = Narration(earlier)
    return [line for each in steps for line in narration.lines(each)]


def test_calls_are_told_as_python() -> None:
    asked = calls(("f", {"id": "A-1", "n": 1}), ("g", {}))
    assert told(step(MessageReceived(text="?")), step(asked)) == [
        "[step 1] Action: f({'id': 'A-1', 'n': 1})",
        "[step 1] Action: g({})",
    ]


def test_steps_count_requests_of_the_run() -> None:
    once, thrice = step(calls(("f", {}))), step(calls(("f", {}), requests=3))
    assert told(thrice, once)[-1].startswith("[step 4]")
    assert told(once, earlier=(thrice,))[0].startswith("[step 4]")
    assert told(step(MessageReceived(text="?")), once, earlier=(thrice,))[0].startswith("[step 1]")


@pytest.mark.parametrize(("answered", "word"), [(Answer.NUDGE, "Nudged"), (None, "Stopped")])
def test_a_guard_that_trips_is_told_with_the_calls_it_stopped(answered: Answer | None, word: str) -> None:
    lines = told(step(calls(("f", {})), trip=TRIP, answer=answered))
    assert lines == [
        "[step 1] Not run: f({})",
        f"[step 1] {word}: the same call came 3 times [RepeatedCall(3)]",
    ]


def test_an_answer_that_may_not_be_shown_is_no_final_answer() -> None:
    assert told(step(answer("안녕하세요"), rests=True)) == ["[step 1] 최종 답변"]
    assert told(step(answer("HT-1"), trip=TRIP)) == ["[step 1] Stopped: the same call came 3 times [RepeatedCall(3)]"]
    assert isinstance(answer(""), ModelAnswered)


def test_what_went_well_is_silent_and_the_rest_is_not() -> None:
    results = (
        ToolResult(position=0, status=ResultStatus.DONE, response={"result": 1}),
        ToolResult(position=1, status=ResultStatus.FAILED, response={"error": "no such order"}),
        ToolResult(position=2, status=ResultStatus.IN_DOUBT, response={"error": "timeout after 10s"}),
        ToolResult(position=3, status=ResultStatus.NOT_DONE, response={"error": "already shipped"}),
        ToolResult(position=4, status=ResultStatus.DONE, response={"result": 1}, repeated=True),
        ToolResult(position=5, status=ResultStatus.DONE, response={"result": 1}, repairs=("n was a string",)),
    )
    asked = calls(*((name, {}) for name in "abcdef"))
    assert told(step(ToolsExecuted(results=results)), earlier=(step(asked),)) == [
        "[step 1] Failed: b({}): no such order",
        "[step 1] In doubt: c({}): timeout after 10s",
        "[step 1] Not done: d({}): already shipped",
        "[step 1] Repeated: e({}) was answered from the ledger",
        "[step 1] Repaired: f: n was a string",
    ]


def test_arguments_that_could_not_be_read_are_told_so() -> None:
    asked = calls(("f", {}), unusable={0: "they came as a list"})
    assert told(step(asked)) == ["[step 1] Action: f(unreadable: they came as a list)"]


def test_failures_and_resumes() -> None:
    assert told(step(ModelFailed(reason="quota", detail="per day"))) == ["[step 1] Model failed: quota: per day"]
    assert told(step(ModelFailed(reason="empty"))) == ["[step 1] Model failed: empty"]
    assert told(step(Resumed(worker="host:1"))) == ["[step 0] Resumed by host:1"]
    assert told(step(ObservationAppended())) == []


def test_nothing_moves_the_cursor() -> None:
    assert printable("a\x1b[2J\r\nb\tc\x9b31m") == "a\ufffd[2J\nb\tc\ufffd31m"
