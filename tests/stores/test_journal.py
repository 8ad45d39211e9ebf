"""A line of the journal: what the ledger holds is not held twice, and what says nothing is not written."""

from __future__ import annotations

import json

from haru_fsm.conversation import ResultStatus, Step, ToolResult, ToolsExecuted
from haru_fsm.stores.journal import write

LONG = {"result": "가" * 10_000}


def test_a_result_that_the_ledger_holds_is_not_written_again_and_others_are() -> None:
    here = ToolResult(position=0, status=ResultStatus.FAILED, response=LONG)
    noted = ToolResult(position=1, status=ResultStatus.DONE, response=LONG, noted=True, effect=True)
    step = Step(3, 1, ToolsExecuted(results=(here, noted)), "ACT", "THINK", False)
    [line] = write([step], b"")
    first, second = json.loads(line.event)["results"]
    assert first == {"position": 0, "status": "failed", "response": LONG}
    assert second == {"position": 1, "status": "done", "noted": True, "effect": True}
    assert step.event == ToolsExecuted(results=(here, noted)), "the step itself is left as it is"
