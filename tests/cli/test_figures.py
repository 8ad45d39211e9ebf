"""The figures of `haru stats` are sums and ranks of what the journal says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from haru_fsm.cli.figures import Figures, day, ending, percentile, shared_with
from haru_fsm.cli.timeline import money
from haru_fsm.conversation import (
    Event,
    HistoryAdopted,
    MessageReceived,
    ModelFailed,
    ObservationAppended,
    ResultStatus,
    Share,
    Step,
    Ticket,
    TicketClosed,
    TicketOpened,
    ToolResult,
    ToolsExecuted,
    Usage,
)
from haru_fsm.models.scripted import answer, calls


def step(seq: int, run: int, event: Event, **notes: object) -> Step:
    place = {"seq": seq, "run": run, "event": event, "source": "S", "state": "S"}
    return TypeAdapter(Step).validate_python({**place, **notes})


@given(st.lists(st.integers(0, 1000), min_size=1), st.sampled_from([0.5, 0.95]))
def test_a_percentile_is_a_value_that_enough_do_not_exceed(values: list[int], share: float) -> None:
    rank = percentile(values, share)
    assert rank in values
    assert sum(value <= rank for value in values) >= share * len(values)
    assert sum(value < rank for value in values) < share * len(values)


def test_no_values_have_no_rank() -> None:
    assert percentile([], 0.95) == 0


def test_endings() -> None:
    asked = step(1, 1, MessageReceived(text="?"))
    assert ending([asked, step(2, 1, answer("!"), rests=True)]) == "answer"
    assert ending([asked, step(2, 1, calls(("f", {})))]) == "unfinished"
    assert ending([]) == "unfinished"
    closed = TicketClosed(ticket_id="HT-1", reply="네")
    assert ending([asked, step(2, 1, answer("!"), rests=True), step(3, 1, closed, rests=True)]) == "answer", (
        "a ticket of a run before it was closed since"
    )


def test_what_several_models_have_spent_on_one_answer_is_told_of_each() -> None:
    shares = (
        Share(model="cheap", requests=3, usage=Usage(prompt=30, cost_usd=0.1)),
        Share(model="dear", requests=1, usage=Usage(prompt=10)),
    )
    spent = {"usage": Usage(prompt=40, cost_usd=0.1), "requests": 4, "model": "dear"}
    figures = Figures()
    figures.add([step(1, 1, MessageReceived(text="?")), step(2, 1, answer("!", **spent, shares=shares), rests=True)])
    told = figures.as_object()
    by_model = {name: (each["requests"], each["tokens"], each["cost_usd"]) for name, each in told["models"].items()}
    assert by_model == {"cheap": (3, 30, 0.1), "dear": (1, 10, None)}
    assert (told["model"]["requests"], told["tokens_per_run"]["total"], told["usd_per_run"]["total"]) == (4, 40, 0.1)


def test_an_adopted_history_is_no_run() -> None:
    figures = Figures()
    figures.add([step(1, 0, HistoryAdopted(contents=()), rests=True), step(2, 1, MessageReceived(text="?"))])
    assert (figures.as_object()["runs"], figures.endings, figures.per_run) == (1, {"unfinished": 1}, [0])


def test_what_a_fork_shares_with_its_parent_was_spent_once() -> None:
    done = ToolResult(position=0, status=ResultStatus.DONE, response={"result": 1})
    parent = [
        step(1, 1, MessageReceived(text="?")),
        step(2, 1, answer("!", usage=Usage(prompt=10), at=1.0), rests=True),
        step(3, 2, MessageReceived(text="?")),
        step(4, 2, calls(("f", {}), usage=Usage(prompt=10), at=2.0)),
        step(5, 2, ToolsExecuted(results=(done.model_copy(update={"noted": True}),))),
        step(6, 2, ObservationAppended()),
        step(7, 2, answer("!", usage=Usage(prompt=10), at=3.0), rests=True),
    ]
    fork = [*parent[:6], step(7, 2, answer("!", usage=Usage(prompt=5), at=9.0), rests=True)]
    fork[4] = step(5, 2, ToolsExecuted(results=(done,)))
    shared = shared_with(parent, fork)
    figures = Figures()
    figures.add(parent)
    figures.add(fork, shared=shared)
    told = figures.as_object()
    assert shared == 6
    assert (told["conversations"], told["endings"]) == (2, {"answer": 3})
    assert (told["model"]["tokens"], told["model"]["requests"], told["tokens_per_run"]["total"]) == (35, 4, 35)
    assert told["tools"]["f"]["calls"] == 1
    assert told["states"]["S"]["steps"] == 6


@pytest.mark.usefixtures("in_korea")
def test_a_day_is_the_readers() -> None:
    assert [day(at) for at in (0.0, 15 * 3600.0)] == ["1970-01-01", "1970-01-02"]


def test_a_day_that_cannot_be() -> None:
    assert [day(at) for at in (-1.0, 1e20, float("nan"))] == ["?", "?", "?"]


def test_every_request_is_counted_once_in_each_sum() -> None:
    usage = Usage(prompt=100, cached=40, thoughts=7, answer=3, cost_usd=0.5)
    figures = Figures()
    figures.add(
        [
            step(1, 1, MessageReceived(text="?")),
            step(2, 1, answer("!", usage=usage, requests=2, model="m"), rests=True),
            step(3, 2, MessageReceived(text="?")),
            step(4, 2, ModelFailed(reason="empty", usage=usage, model="n", at=86400.0)),
        ]
    )
    told = figures.as_object()
    assert (told["runs"], told["failures"]) == (2, {"empty": 1})
    assert (told["model"]["requests"], told["model"]["tokens"], told["model"]["cost_usd"]) == (3, 220, 1.0)
    assert {name: each["requests"] for name, each in told["models"].items()} == {"m": 2, "n": 1}
    assert {name: each["tokens"] for name, each in told["days"].items()} == {day(0.0): 110, day(86400.0): 110}
    assert told["tokens_per_run"] == {"total": 220, "p50": 110, "p95": 110}


def test_what_runs_cost_and_why_they_ended_in_tickets() -> None:
    ticket = Ticket(
        ticket_id="HT-1", key="c/1", conversation_id="c", customer_id="C1", category="", urgency="", summary=""
    )
    opened = TicketOpened(ticket=ticket, notice="")
    spent = {"guard": "StepBudget(2)", "figure": 2, "limit": 2, "because": "the model was asked 2 times"}
    figures = Figures()
    figures.add(
        [
            step(1, 1, MessageReceived(text="?")),
            step(2, 1, calls(("f", {}), usage=Usage(prompt=10, cost_usd=0.1)), trip=spent),
            step(3, 1, opened, rests=True),
            step(4, 2, MessageReceived(text="?")),
            step(5, 2, ModelFailed(reason="empty", detail="no: text", usage=Usage(prompt=10, cost_usd=0.2))),
            step(6, 2, opened, rests=True),
            step(7, 3, MessageReceived(text="?")),
            step(8, 3, answer("!", usage=Usage(prompt=5)), rests=True),
        ]
    )
    told = figures.as_object()
    assert told["endings"] == {"ticket": 2, "answer": 1}
    assert told["tickets"] == {"StepBudget(2)": 1, "model_failed: empty": 1}
    assert told["usd_per_run"] == {"total": 0.3, "p50": 0.1, "p95": 0.2}
    assert told["model"]["cost_usd"] == 0.3


@pytest.mark.parametrize(
    ("usd", "shown"),
    [
        (None, ""),
        (0.0, "$0.0000"),
        (1234.5, "$1,234.5000"),
        (0.0123, "$0.0123"),
        (0.000496, "$0.000496"),
        (1.5e-7, "$1.5e-07"),
    ],
)
def test_money_is_shown_as_fine_as_it_takes(usd: float | None, shown: str) -> None:
    assert money(usd) == shown
