"""The field cases: each a fault that others have reported, played end to end and held to what is expected of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from haru_fsm.testing.fake_gemini import FakeGemini
from haru_fsm.testing.strict import check_contents
from tests.field.checks import CHECKS
from tests.field.general_plays import ways_of
from tests.field.own_checks import OWN_CHECKS
from tests.field.own_plays import OWN_PLAYS
from tests.field.playing import Case, Played, Stage, load_cases
from tests.field.plays import PLAYS, Play


def _all() -> Iterator[Any]:
    for case in load_cases().values():
        ways = (PLAYS | OWN_PLAYS).get(case.id) or ways_of(case)
        for way, play in ways.items():
            yield pytest.param(case, play, id="-".join(filter(None, (case.name, way))))


def _played_in_general() -> Iterator[Any]:
    """The given cases that have a play of their own, as one that has never seen them would play them."""
    for case in load_cases().values():
        if case.id in PLAYS:
            for way, play in ways_of(case).items():
                yield pytest.param(case, play, id="-".join(filter(None, (case.name, way))))


@pytest.mark.parametrize(("case", "play"), list(_played_in_general()))
async def test_field_case_in_general(case: Case, play: Play, tmp_path: Path) -> None:
    """What a case says is enough to play it: no play, and no check, that knows its number."""
    with FakeGemini(_script(case)) as gemini:
        come = await play(Stage(case, tmp_path, gemini.base_url), gemini)
    _requests_are_valid(come)
    _end_state(come)
    _counts(come)
    _customer_reads(come)


@pytest.mark.parametrize(("case", "play"), list(_all()))
async def test_field_case(case: Case, play: Play, tmp_path: Path) -> None:
    with FakeGemini(_script(case)) as gemini:  # in a thread of its own, so that its time is not the product's
        come = await play(Stage(case, tmp_path, gemini.base_url), gemini)
    _requests_are_valid(come)
    _end_state(come)
    _counts(come)
    _customer_reads(come)
    if (check := CHECKS.get(case.id) or OWN_CHECKS.get(case.id)) is not None:
        check(come)


def _script(case: Case) -> Any:
    """The scripted model; where conversations run side by side, each hears it from its own beginning."""
    script = case.script["model"]
    if "conversations" not in case.script.get("concurrent", {}):
        return script
    return lambda body: script[sum(content["role"] == "model" for content in body["contents"])]


def _requests_are_valid(come: Played) -> None:
    assert come.gemini.violations == []
    for number, body in enumerate(come.gemini.requests, 1):
        assert check_contents(body["contents"]) == [], f"request {number}"


def _end_state(come: Played) -> None:
    wanted = come.case.expected["end_state"]
    if come.case.id == "F014":  # a sentence for each of its two messages
        assert [run.state for run in come.runs] == ["ESCALATE_TICKET", "DONE"]
        return
    assert come.last.state in ([wanted] if isinstance(wanted, str) else wanted)
    assert come.last.finished


def _counts(come: Played) -> None:
    expected, times = come.case.expected, come.notes.get("times", 1)
    for name, wanted in expected["tool_runs"].items():
        ran = len(come.stage.log.read("begun", name))
        assert _fits(wanted, ran / times), f"{name} ran {ran} times"
    requests = len(come.gemini.requests)
    assert _fits(expected["model_requests"], requests / times), f"{requests} requests: {_said(come)}"
    tickets = len(come.tickets) + len(come.stage.log.read("done", "create_ticket"))
    assert _fits(expected["tickets_created"], tickets), f"{tickets} tickets"


def _fits(wanted: Any, number: float) -> bool:
    """An exact number, a list of allowed ones, or a range."""
    if isinstance(wanted, dict):
        return bool(wanted.get("min", 0) <= number <= wanted.get("max", number))
    return number in wanted if isinstance(wanted, list) else bool(number == wanted)


def _said(come: Played) -> str:
    return json.dumps([step.event.kind for step in come.record.steps])


def _customer_reads(come: Played) -> None:
    for what, wanted in come.case.expected["customer_reads"].items():
        turn, _, rest = what.partition("_")
        if turn.startswith("turn"):
            _reads(come, come.runs[int(turn.removeprefix("turn")) - 1].answer, rest, wanted)
        elif turn == "each":
            for run in come.runs:
                _reads(come, run.answer, "non_empty", wanted)
        else:
            _reads(come, come.last.answer, what.removeprefix("final_"), wanted)


def _reads(come: Played, answer: str, what: str, wanted: Any) -> None:
    match what:
        case "is":
            assert answer == wanted
        case "never_is":
            assert all(run.answer != wanted for run in come.runs)
        case "contains":
            assert all(text in answer for text in wanted), answer
        case "never_contains":
            assert not any(text in run.answer for text in wanted for run in come.runs), answer
        case "must_mention_one_of":
            assert any(text in answer for text in wanted), answer
        case "non_empty":
            assert bool(answer.strip()) is wanted
        case "contains_ticket_id":
            assert any(each.ticket.ticket_id in answer for each in come.tickets) is wanted, answer
        case "delivered_times":
            assert come.notes["delivered"] == wanted
        case _:
            raise AssertionError(f"no check for customer_reads.{what}")
