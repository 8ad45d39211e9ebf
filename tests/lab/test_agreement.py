"""The lab judges with the engine's guards: on any journal it says what the machine says, turn by turn."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm import Limits
from haru_fsm.conversation import (
    Answer,
    Conversation,
    Event,
    MessageReceived,
    ObservationAppended,
    ToolsExecuted,
    ToolsRequested,
)
from haru_fsm.guards import AllOf, FailingCalls, Nudged, RepeatedCall, ResumeBudget, SimilarThoughts, ToolCallBudget
from haru_fsm.lab.judging import Table
from haru_fsm.lab.recordings import Recording, in_order
from haru_fsm.machine import Row, Workflow
from tests.engine.shopless import bare
from tests.guards.strategies import requests, results
from tests.tables import SMALL

LOOP = RepeatedCall(2)
COUNTED = [
    Row(ToolsRequested, "ASK", "ESCALATE", when=AllOf(LOOP, Nudged(2))),
    Row(ToolsRequested, "ASK", "OBSERVE", when=LOOP, answer=Answer.NUDGE),
    Row(ToolsRequested, "ASK", "ESCALATE", when=ResumeBudget(4)),
]
LASTING = [
    Row(ToolsRequested, "ASK", "ESCALATE", when=ToolCallBudget(9, scope="conversation")),
    Row(ToolsRequested, "ASK", "OBSERVE", when=RepeatedCall(2, scope="conversation"), answer=Answer.NUDGE),
    Row(ToolsRequested, "ASK", "OBSERVE", when=AllOf(SimilarThoughts(), FailingCalls(1)), answer=Answer.NUDGE),
]
TABLES = {
    "default": bare(Limits(max_steps=1000, max_tool_calls=1000)).workflow,
    "eager": bare(Limits(max_steps=1000, max_tool_calls=1000, loop_repeats=2, loop_nudges=0)).workflow,
    "counted": Workflow([*COUNTED, *SMALL.rows], work=SMALL.work, initial="DONE"),
    "lasting": Workflow([*LASTING, *SMALL.rows], work=SMALL.work, initial="DONE"),
}
Turns = list[tuple[ToolsRequested, ToolsExecuted]]
turns = st.lists(
    st.tuples(requests, st.lists(results, max_size=3).map(lambda found: ToolsExecuted(results=tuple(found)))),
    min_size=1,
    max_size=4,
)


@st.composite
def runs(draw: st.DrawFn) -> list[Turns]:
    """Runs that go through a few turns, over and over."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        few = draw(turns)
        found.append([few[place % len(few)] for place in draw(st.lists(st.integers(0, 3), max_size=9))])
    return found


def driven(workflow: Workflow, recorded: list[Turns]) -> list[tuple[int, int, str, str]]:
    """What the machine does on it: run, turn, what the row does, and why."""
    marks, conversation = [], workflow.begin("c", "C1")
    for number, found in enumerate(recorded):
        conversation = workflow.advance(_resting(workflow, conversation), MessageReceived(text="?"))
        for place, (asked, brought) in enumerate(found):
            conversation = workflow.advance(conversation, asked)
            step = conversation.steps[-1]
            if step.trip is None:
                conversation = workflow.advance(workflow.advance(conversation, brought), ObservationAppended())
                continue
            marks.append((number, place, "stop" if step.stops else "nudge", step.trip.because))
            if step.stops:
                break
            refusals = dict.fromkeys(range(len(asked.calls)), "no")
            conversation = workflow.advance(conversation, ObservationAppended(refusals=refusals))
    return marks


def _resting(workflow: Workflow, conversation: Conversation) -> Conversation:
    """As if its run had come to an end: what follows is a message."""
    return dataclasses.replace(conversation, state=workflow.initial, resting=True)


@pytest.mark.parametrize("name", TABLES)
@given(recorded=runs())
@settings(max_examples=250, deadline=None)
def test_on_any_journal_the_lab_marks_what_the_machine_marks(name: str, recorded: list[Turns]) -> None:
    events: list[Event] = []
    for found in recorded:
        events.append(MessageReceived(text="?"))
        events += [event for asked, brought in found for event in (asked, brought, ObservationAppended())]
    recording, table = Recording(tuple(in_order(events))), Table(TABLES[name])
    for _ in range(2):  # the second time all is prepared
        marks = [(m.run, m.turn, m.kind.value, m.trip.because if m.trip else "") for m in table.judge(recording).marks]
        assert marks == driven(TABLES[name], recorded)
