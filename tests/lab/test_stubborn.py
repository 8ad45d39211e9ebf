"""A loop that goes on for three more turns after its nudge is stopped by then, whatever it is made of."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from haru_fsm import Limits
from haru_fsm.conversation import Event, MessageReceived, ObservationAppended, ResultStatus, ToolResult, ToolsExecuted
from haru_fsm.lab.judging import Kind, Table
from haru_fsm.lab.loops import goes_on, true_loops
from haru_fsm.lab.recordings import Recording, in_order
from haru_fsm.models.scripted import calls
from tests.engine.shopless import bare

TABLE = Table(bare(Limits(max_steps=1000, max_tool_calls=1000)).workflow)


def recorded(letters: str, thoughts: bool = False) -> Recording:
    """A run that makes the call of each letter. Each brings the same each time: a failure, where it is a capital."""
    events: list[Event] = [MessageReceived(text="?")]
    for letter in letters:
        status = ResultStatus.FAILED if letter.isupper() else ResultStatus.DONE
        said = f"I look for {letter} in the list of all orders" if thoughts else ""
        result = ToolResult(position=0, status=status, response={"result": f"{letter} is {letter}"})
        events += [
            calls((letter, {"which": letter}), text=said),
            ToolsExecuted(results=(result,)),
            ObservationAppended(),
        ]
    return Recording(tuple(in_order(events)))


@given(st.text("abcABxyz", min_size=7, max_size=15), st.booleans())
@example("abacaabaca", False)
@example("aaabaabba", False)
@example("aaabaabba", True)
@settings(max_examples=600, deadline=None)
def test_a_loop_that_goes_on_is_stopped(letters: str, thoughts: bool) -> None:
    run = recorded(letters, thoughts)
    marks = TABLE.judge(run).marks
    stop = next((mark.turn for mark in marks if mark.kind is Kind.STOP), len(letters))
    for loop in true_loops(run):
        assert any(mark.turn <= loop.third for mark in marks), "every loop is nudged at its third turn"
        told = next((mark.turn for mark in marks if goes_on(run, loop, mark.turn)), None)
        assert told is None or stop <= told + 3


def test_who_has_heeded_a_nudge_is_told_of_the_next_loop_at_its_third_turn() -> None:
    """Thoughts alone make a second request suspicious, but not that of a model which has shown that it listens."""
    early, later = TABLE.judge(recorded("aab", thoughts=True)), TABLE.judge(recorded("aabccc", thoughts=True))
    assert [mark.turn for mark in early.marks] == [1]
    assert [mark.turn for mark in later.marks] == [1, 5]
