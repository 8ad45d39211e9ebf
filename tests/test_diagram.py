"""The diagram says what the table says, and Mermaid can read it."""

from __future__ import annotations

import re

from haru_fsm.conversation import Answer, MessageReceived, ModelAnswered, ToolsRequested
from haru_fsm.diagram import mermaid
from haru_fsm.guards import AnyOf, StepBudget
from haru_fsm.machine import Row, Workflow


def _ask(_conversation: object, _services: object) -> ModelAnswered | ToolsRequested:
    raise AssertionError("never called")


def _workflow(await_model: str = "AWAIT_MODEL", done: str = "DONE") -> Workflow:
    rows = [
        Row(MessageReceived, done, await_model),
        Row(ModelAnswered, await_model, done, rests=True),
        Row(ToolsRequested, await_model, done, when=AnyOf(StepBudget(8)), answer=Answer.NUDGE, rests=True),
        Row(ToolsRequested, await_model, await_model),
    ]
    return Workflow(rows, work={await_model: _ask})


def test_every_row_is_an_arrow_in_the_order_of_the_table() -> None:
    assert mermaid(_workflow()) == (
        "stateDiagram-v2\n"
        "    classDef rest stroke-width:3px\n"
        "    [*] --> DONE\n"
        "    DONE --> AWAIT_MODEL: message_received\n"
        "    AWAIT_MODEL --> DONE: model_answered (rests)\n"
        "    AWAIT_MODEL --> DONE: tools_requested [StepBudget(8)] / nudge (rests)\n"
        "    AWAIT_MODEL --> AWAIT_MODEL: tools_requested [else]\n"
        "    class DONE rest\n"
    )


def test_the_same_workflow_gives_the_same_text() -> None:
    assert mermaid(_workflow()) == mermaid(_workflow())


def test_names_that_mermaid_does_not_take_stand_behind_an_identifier() -> None:
    text = mermaid(_workflow(await_model="모델: 기다림", done="end"))
    assert 'state "모델#58; 기다림" as state2' in text
    assert 'state "end" as state1' in text
    arrows = [line for line in text.splitlines() if "-->" in line]
    assert all(re.fullmatch(r" {4}(\[\*\]|\w+) --> \w+(: [^:;]+)?", line) for line in arrows)


def test_an_identifier_is_never_the_name_of_another_state() -> None:
    assert "as state_2" in mermaid(_workflow(await_model="a b", done="state2"))
