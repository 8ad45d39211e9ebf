"""A recording is judged as the table would have judged it, and what comes after a nudge is marked as a bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from haru_fsm import Limits
from haru_fsm.conversation import (
    Answer,
    MessageReceived,
    ObservationAppended,
    ToolsExecuted,
    ToolsRequested,
)
from haru_fsm.errors import SettingsError
from haru_fsm.guards import AllOf, Nudged, RepeatedCall
from haru_fsm.lab.classics import CLASSICS
from haru_fsm.lab.judging import Kind, Rule, Table
from haru_fsm.lab.lines import from_json_lines
from haru_fsm.lab.loops import true_loops
from haru_fsm.lab.outcomes import Case, Outcome, Tally
from haru_fsm.lab.recordings import Recording, from_steps
from haru_fsm.lab.shares import Share
from haru_fsm.machine import Row, Workflow
from tests.engine.shopless import bare
from tests.lab.recorded import line, recording, turn, written
from tests.tables import SMALL

DEFAULT = bare(Limits(max_steps=1000, max_tool_calls=1000)).workflow
TABLE = Table(DEFAULT)


def told(recorded: Recording) -> list[tuple[int, str]]:
    return [(mark.turn, mark.kind.value) for mark in TABLE.judge(recorded).marks]


@pytest.mark.parametrize(
    ("letters", "marks"),
    [
        ("abc", []),
        ("aabb", []),
        ("aaa", [(2, "nudge")]),
        ("aaaaaaa", [(2, "nudge"), (3, "nudge"), (4, "stop")]),
        ("aaa!aaa", [(2, "nudge"), (4, "nudge"), (5, "nudge"), (6, "nudge")]),
        ("ababab", [(3, "nudge"), (4, "nudge"), (5, "stop")]),
        ("abcabcabc", [(5, "nudge"), (6, "nudge"), (7, "stop")]),
        ("!!!!!!!!!", []),
    ],
)
def test_what_the_default_table_does(tmp_path: Path, letters: str, marks: list[tuple[int, str]]) -> None:
    assert told(recording(tmp_path, letters)) == marks


@pytest.mark.parametrize("letters", ["aaaaaa", "abababab", "abcabcabc", "aaabbbab", "a!aa!aaab"])
def test_the_lab_judges_as_the_machine_does(tmp_path: Path, letters: str) -> None:
    """The same conversation through the whole machine: same rows, same turns."""
    recorded = recording(tmp_path, letters)
    conversation = DEFAULT.advance(DEFAULT.begin("c", "C1"), MessageReceived(text="?"))
    marks = []
    for place, each in enumerate(recorded.runs[0]):
        conversation = DEFAULT.advance(conversation, each.asked.event)
        step = conversation.steps[-1]
        if step.state == "ESCALATE_TICKET":
            marks.append((place, "stop"))
            break
        if step.answer is not None:
            marks.append((place, "nudge"))
            conversation = DEFAULT.advance(conversation, ObservationAppended(refusals={0: "no"}))
            continue
        for brought in each.brought:
            conversation = DEFAULT.advance(conversation, brought.event)
    assert told(recorded) == marks


def test_guards_can_be_left_out_to_see_what_they_contribute(tmp_path: Path) -> None:
    cycle, loop = recording(tmp_path, "abcabc"), recording(tmp_path, "aaa")
    bare_table = Table(DEFAULT, without=["CallCycle"])
    assert TABLE.judge(cycle).first(0) == 5
    assert bare_table.judge(cycle).first(0) is None
    assert bare_table.judge(loop).first(0) == 2
    nothing = ["CallCycle", "RepeatedCall", "NoProgress", "FailingCalls", "UnusableCalls"]
    assert Table(DEFAULT, without=nothing).judge(loop).marks == ()


def test_counted_guards_count_in_the_lab_as_in_the_machine(tmp_path: Path) -> None:
    loop = RepeatedCall(2)
    rows = [
        Row(ToolsRequested, "ASK", "ESCALATE", when=AllOf(loop, Nudged(2))),
        Row(ToolsRequested, "ASK", "OBSERVE", when=loop, answer=Answer.NUDGE),
    ]
    table = Table(Workflow([*rows, *SMALL.rows], work=SMALL.work, initial="DONE"))
    marks = table.judge(recording(tmp_path, "aaaaaa")).marks
    assert [(mark.turn, mark.kind.value) for mark in marks] == [(1, "nudge"), (2, "nudge"), (3, "stop")]


def test_each_message_begins_a_run_of_its_own(tmp_path: Path) -> None:
    turns = [*line("aa")["turns"], *line("aa")["turns"]]
    [recorded] = from_json_lines(written(tmp_path / "two.jsonl.gz", [{"turns": turns, "success": True}]))
    assert [len(run) for run in recorded.runs] == [2, 2]
    assert told(recorded) == []


def test_labels_thoughts_errors_and_tokens_are_read(tmp_path: Path) -> None:
    told_turns = [{"role": "user", "text": "?"}, *turn("a", "no", thought="I look.", failed=True)]
    told_turns[1]["usage"] = {"prompt_tokens": 7, "completion_tokens": 2}
    lines = [{"turns": told_turns, "success": None, "source": "x"}]
    [recorded] = from_json_lines(written(tmp_path / "one.jsonl", lines))
    asked, executed = recorded.steps[1].event, recorded.steps[2].event
    assert isinstance(asked, ToolsRequested)
    assert isinstance(executed, ToolsExecuted)
    assert (asked.text, asked.usage.total, recorded.success, recorded.facts["source"]) == ("I look.", 9, None, "x")
    assert executed.results[0].response == {"error": "no"}


@pytest.mark.parametrize("text", ["{", "[]", '{"turns": [{"role": "robot"}]}', '{"turns": 3}', '{"steps": []}'])
def test_what_is_no_recording_is_told_with_its_line(tmp_path: Path, text: str) -> None:
    (path := tmp_path / "bad.jsonl").write_text(text)
    with pytest.raises(SettingsError, match="line 1"):
        list(from_json_lines(path))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        list(from_json_lines(tmp_path / "none.jsonl.gz"))


def test_our_own_conversations_are_recordings_too(tmp_path: Path) -> None:
    steps = recording(tmp_path, "aaa").steps
    ours = from_steps(steps)
    assert ours.turns == 3
    assert ours.success is None, "it has not come to its end"


# -- true loops


@pytest.mark.parametrize(
    ("letters", "third"),
    [("aaa", 2), ("ab!ab!a", 6), ("abab", None), ("ababa", 4), ("aa!a", 3), ("!!!!", None), ("aabb", None)],
)
def test_true_loops_are_known_from_the_recording(tmp_path: Path, letters: str, third: int | None) -> None:
    assert [loop.third for loop in true_loops(recording(tmp_path, letters))] == ([third] if third is not None else [])


# -- classics


@pytest.mark.parametrize(
    ("name", "letters", "stop"),
    [
        ("3 same calls in a row", "baaab", 3),
        ("5 same calls in a row", "aaaa!a", None),
        ("4 pairs, 3 errors, 6 alternating", "aaaa", 3),
        ("4 pairs, 3 errors, 6 alternating", "ababab", 5),
        ("4 pairs, 3 errors, 6 alternating", "aabbaa", None),
    ],
)
def test_classic_rules_stop_where_they_say(tmp_path: Path, name: str, letters: str, stop: int | None) -> None:
    assert CLASSICS[name].judge(recording(tmp_path, letters)).first(0, Kind.STOP) == stop


# -- figures


def outcome(name: str, family: str, cases: list[Case], rule: Rule) -> Outcome:
    tally = Tally(name, family)
    for case in cases:
        tally.add(case, rule.judge(case.recording))
    return tally.outcome()


def test_counts_of_an_outcome(tmp_path: Path) -> None:
    lines = ["aaaaaaa", "!!!!", "aaa!!", "abab"]
    goods = [Case(recording(tmp_path, letters)) for letters in lines]
    oracle = Case(recording(tmp_path, "aaaaaaa"), counts=False)
    bad = Case(recording(tmp_path, "aaaaaaaaaa", success=False))
    cases = [*goods, oracle, bad]
    found = outcome("default", "app", cases, TABLE)
    assert (found.successes_stopped, found.successes_nudged) == (Share(1, 4), Share(3, 4))
    assert (found.failures_stopped, found.loops_on_time) == (Share(1, 1), Share(4, 4))
    assert found.loops_ended == Share(3, 3), "those that go on for three more turns; one stops after the nudge"
    assert (found.loops_stopped, found.loops_stopped_after) == (Share(3, 4), 2)
    assert found.steps_saved.count == 2 + 2 + 5
    assert found.steps_saved.independent is not None
    assert found.steps_saved.independent < found.steps_saved.of == 37, "steps of one conversation come together"
    assert found.stops_that_are_facts == Share(0, 3), "each came after a nudge, so it is a bound"
    assert found.destroyed == {0}


def test_pairs(tmp_path: Path) -> None:
    cases = [Case(recording(tmp_path, letters)) for letters in ("aaa", "aaaaaaa", "aaab", "!")]
    ours = outcome("default", "app", cases, TABLE)
    classic = outcome("classic", "classic", cases, CLASSICS["3 same calls in a row"])
    assert classic.against(ours) == (2, 0, 0.5)
