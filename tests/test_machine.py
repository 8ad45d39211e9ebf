"""The heart: the first row whose guard passes, noted with everything that decided it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from haru_fsm.conversation import (
    Answer,
    Conversation,
    HistoryAdopted,
    MessageHeld,
    MessageReceived,
    ModelAnswered,
    Resumed,
    ToolsRequested,
    Trip,
)
from haru_fsm.errors import NoTransition, WorkflowError
from haru_fsm.given_events import events_of
from haru_fsm.guards import AllOf, AnyOf, Not, Nudged, RepeatedCall, StepBudget, TokenBudget, ToolCallBudget
from haru_fsm.machine import Row, Workflow
from haru_fsm.models.scripted import answer, calls
from tests.tables import SMALL, act, ask, received, stepped


def test_a_new_conversation_rests_in_the_first_state_with_an_empty_journal() -> None:
    conversation = SMALL.begin("c-1", "C003")
    assert (conversation.state, conversation.resting, conversation.seq, conversation.run) == ("DONE", True, 0, 0)


def test_a_step_says_what_happened_and_where_it_led() -> None:
    step = received().steps[-1]
    assert (step.seq, step.run, step.source, step.state, step.rests) == (1, 1, "DONE", "ASK", False)


def test_a_message_begins_a_run() -> None:
    conversation = SMALL.advance(received(), answer("네."))
    conversation = SMALL.advance(conversation, MessageReceived(text="하나 더요"))
    assert [step.run for step in conversation.steps] == [1, 1, 2]
    assert [step.event.kind for step in conversation.run_steps] == ["message_received"]


def test_an_event_without_a_row_is_refused_and_changes_nothing() -> None:
    conversation = received()
    with pytest.raises(NoTransition, match="tools_executed came in state ASK"):
        SMALL.advance(conversation, act(None, None))
    assert conversation.seq == 1


def test_only_guarded_rows_are_refused_when_none_trips() -> None:
    table = Workflow(
        [
            Row(MessageReceived, "DONE", "ASK"),
            Row(ModelAnswered, "ASK", "DONE", when=StepBudget(9, visits=frozenset({"ASK"}))),
        ],
        work={"ASK": ask},
    )
    with pytest.raises(NoTransition, match="no guard tripped"):
        table.advance(table.advance(table.begin("c", "C"), MessageReceived(text="x")), answer("y"))


def guarded(*rows: Row) -> Workflow:
    return Workflow(
        [Row(MessageReceived, "DONE", "ASK"), Row(ModelAnswered, "ASK", "DONE", rests=True), *rows], work={"ASK": ask}
    )


def test_the_first_row_whose_guard_trips_fires_and_is_noted() -> None:
    table = guarded(
        Row(ToolsRequested, "ASK", "DONE", when=StepBudget(3, visits=frozenset({"ASK"})), rests=True),
        Row(ToolsRequested, "ASK", "ASK", when=StepBudget(2, visits=frozenset({"ASK"})), answer=Answer.NUDGE),
        Row(ToolsRequested, "ASK", "ASK"),
    )
    conversation = table.advance(table.begin("c", "C"), MessageReceived(text="x"))
    for _ in range(3):
        conversation = table.advance(conversation, calls(("f", {})))
    plain, nudge, stop = conversation.steps[1:]
    assert (plain.trip, plain.answer) == (None, None)
    assert nudge.trip is not None
    assert (nudge.trip.figure, nudge.trip.limit, nudge.answer) == (2, 2, Answer.NUDGE)
    assert (stop.rests, stop.state) == (True, "DONE")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("tools_requested", "ASK", "ASK"), "'tools_requested' is a text. Write the class of the event"),
        ((ToolsRequested(content={}), "ASK", "ASK"), "write Row(event, source, target"),
    ],
)
def test_what_is_no_row_is_refused_with_the_way_out(row: Any, words: str) -> None:
    with pytest.raises(WorkflowError, match=re.escape(words)):
        guarded(Row(*row))


@pytest.mark.parametrize(
    ("when", "words"),
    [
        (lambda event: True, "is no guard"),
        (StepBudget, "is a class and no guard. Write StepBudget(...)"),
        (AnyOf([StepBudget(2)]), "is no guard"),  # type: ignore[arg-type]
        (Not(RepeatedCall), "Write RepeatedCall(...)"),  # type: ignore[arg-type]
        (StepBudget("8"), "its limit is '8'"),  # type: ignore[arg-type]
        (StepBudget(8, visits="ASK"), "frozenset({'ASK'})"),  # type: ignore[arg-type]
        (StepBudget(8, visits={"ASK"}), "frozenset({'ASK'})"),  # type: ignore[arg-type]
        (TokenBudget(8, visits=["ASK"]), "frozenset({'ASK'})"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_guard_is_refused_with_the_way_out(when: Any, words: str) -> None:
    with pytest.raises(WorkflowError, match=re.escape(words)) as refused:
        guarded(Row(ToolsRequested, "ASK", "ASK", when=when))
    assert "tools_requested" in str(refused.value)


def test_replaying_a_journal_gives_the_same_conversation() -> None:
    conversation = stepped(stepped(received(), "a"), "b")
    assert SMALL.replay(SMALL.begin("c-1", "C003"), conversation.steps) == conversation


GUARDED = guarded(Row(ToolsRequested, "ASK", "DONE", when=Nudged(2), rests=True), Row(ToolsRequested, "ASK", "ASK"))


def test_what_a_guard_remembers_is_what_its_journal_says_whoever_has_written_it() -> None:
    begun = GUARDED.begin("c", "C", parent="c-0", rehearsal=True)
    assert GUARDED.replay(begun, ()) is begun
    asked = GUARDED.advance(GUARDED.advance(begun, MessageReceived(text="x")), calls(("f", {})))
    for conversation in (asked, GUARDED.stay(asked, Resumed()), GUARDED.hold(asked, MessageHeld(text="y"))):
        assert GUARDED.replay(begun, conversation.steps) == conversation
        assert (conversation.parent, conversation.rehearsal) == ("c-0", True)
        assert [step.seq for step in conversation.steps] == list(range(1, conversation.seq + 1))
    held = GUARDED.hold(asked, MessageHeld(text="y"))
    assert (held.state, held.resting, held.run) == ("ASK", True, 1)
    stayed = GUARDED.stay(asked, Resumed())
    assert (stayed.state, stayed.resting, stayed.run) == ("ASK", False, 1)


def test_a_run_that_cannot_go_on_goes_where_tickets_are_opened_and_says_why() -> None:
    stranded = SMALL.strand(received(), Resumed(), "changed", "the app was changed")
    step = stranded.steps[-1]
    assert (step.state, step.rests, step.run, step.trip) == (
        "ESCALATE", False, 1, Trip(guard="changed", figure=0, limit=0, because="the app was changed"),
    )  # fmt: skip
    again = SMALL.strand(SMALL.advance(received(), answer("네.")), MessageReceived(text="또"), "changed", "so")
    assert again.run == 2, "a message begins a run, wherever it leads"
    with pytest.raises(NoTransition, match="opens no tickets, and the app was changed"):
        GUARDED.strand(GUARDED.begin("c", "C"), Resumed(), "changed", "the app was changed")


def test_a_history_from_elsewhere_is_no_run() -> None:
    adopted = SMALL.adopt(SMALL.begin("c", "C"), HistoryAdopted(contents=()))
    (step,) = adopted.steps
    assert (step.seq, step.run, step.source, step.state, step.rests) == (1, 0, "DONE", "DONE", True)
    assert (adopted.run, adopted.resting) == (0, True)


def test_a_message_gets_in_where_a_row_says_so_and_where_the_state_is_gone() -> None:
    assert [SMALL.lets_in(state) for state in ("DONE", "ASK", "of an earlier version")] == [True, False, True]
    assert SMALL.rows_for("ESCALATE", MessageReceived) == SMALL.rows[:1]
    assert SMALL.rows_for("ASK", MessageReceived) == ()


@pytest.mark.parametrize(
    "rows",
    [[], ["x"], [Row(int, "DONE", "ASK")]],  # type: ignore[arg-type]
    ids=["none", "a text", "another class"],
)
def test_what_is_no_table_is_refused(rows: list[Row]) -> None:
    with pytest.raises(WorkflowError, match=r"no rows|is not a row"):
        Workflow(rows, work={})


def test_a_conversation_begins_where_the_table_says_or_at_its_first_row() -> None:
    rows = [Row(MessageReceived, ("DONE", "OPEN"), "ASK"), Row(ModelAnswered, "ASK", "DONE", rests=True)]
    assert Workflow(rows, work={"ASK": ask}).initial == "DONE"
    assert Workflow(rows, work={"ASK": ask}, initial="OPEN").begin("c", "C").state == "OPEN"
    guard = Nudged(2)
    told = [str(row) for row in (*rows, Row(ModelAnswered, "ASK", "DONE", when=guard))]
    assert told == [
        "message_received: DONE | OPEN -> ASK",
        "model_answered: ASK -> DONE (rests)",
        f"model_answered: ASK -> DONE when {guard.name}",
    ]


def test_counted_guards_count_what_they_let_pass() -> None:
    table = guarded(
        Row(ToolsRequested, "ASK", "DONE", when=AllOf(RepeatedCall(2), Nudged(2)), rests=True),
        Row(ToolsRequested, "ASK", "ASK", when=Not(AnyOf(Nudged(2), StepBudget(9, visits=frozenset({"ASK"}))))),
        Row(ToolsRequested, "ASK", "DONE", rests=True),
    )
    conversation = table.advance(table.begin("c", "C"), MessageReceived(text="x"))
    states = []
    for _ in range(3):
        conversation = table.advance(conversation, calls(("f", {})))
        states.append((conversation.state, conversation.steps[-1].asked))
    assert states == [("ASK", ("Nudged",)), ("ASK", ("Nudged",)), ("DONE", ())]


def test_guards_that_trip_together_say_so_together() -> None:
    both = AllOf(StepBudget(1, visits=frozenset({"ASK"})), ToolCallBudget(2))
    table = guarded(Row(ToolsRequested, "ASK", "DONE", when=both, rests=True), Row(ToolsRequested, "ASK", "ASK"))
    conversation = table.advance(table.begin("c", "C"), MessageReceived(text="x"))
    trip = table.advance(conversation, calls(("f", {}), ("f", {}), ("f", {}))).steps[-1].trip
    assert trip is not None
    assert (trip.guard, trip.figure, trip.limit) == ("StepBudget(1) and ToolCallBudget(2)", 3, 2)
    assert trip.because.count("; ") == 1
    alone = table.advance(conversation, calls(("f", {}), ("f", {}))).steps[-1]
    assert (alone.trip, alone.state) == (None, "ASK")


def test_a_guard_is_not_asked_about_events_that_it_cannot_judge() -> None:
    with pytest.raises(WorkflowError, match="cannot judge model_answered"):
        guarded(Row(ModelAnswered, "ASK", "DONE", when=RepeatedCall(3)))


def test_work_says_which_events_it_gives() -> None:
    assert [event.__name__ for event in events_of(ask)] == ["ModelAnswered", "ToolsRequested", "ModelFailed"]

    # That it does not say so is what is tried.
    def silent(conversation: Conversation, services: object):  # type: ignore[no-untyped-def]
        return answer("")

    with pytest.raises(WorkflowError, match="does not say which events it gives"):
        events_of(silent)


def test_there_are_no_shortcuts_around_the_table() -> None:
    assert not [name for name in SMALL._machine.events if name.startswith("to_")]
