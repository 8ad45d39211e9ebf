"""A guard of somebody's own is compared like ours, and what makes none is told."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from haru_fsm.cli import main
from haru_fsm.errors import SettingsError
from haru_fsm.guards import RepeatedCall
from haru_fsm.lab.judging import Guards, Kind
from haru_fsm.lab.single import guards_named
from tests.lab.recorded import line, recording, written

ROOT = Path(__file__).parent.parent.parent
MINE = """
from __future__ import annotations

from dataclasses import dataclass

from haru_fsm.conversation import Event, Step, ToolsRequested, Trip
from haru_fsm.guards import AllOf, Guard, RepeatedCall


@dataclass(frozen=True)
class Chatty(Guard):
    most: int = 3

    judges = folds = (ToolsRequested,)

    def initial(self) -> int:
        return 0

    def fold(self, memo: int, step: Step) -> int:
        return memo + 1

    def judge(self, memo: int, event: Event) -> Trip | None:
        return self.trip(memo + 1, "it asks and asks", self.most) if memo + 1 >= self.most else None


def both(times: int) -> Guard:
    return AllOf(Chatty(times), RepeatedCall(2))


def three() -> int:
    return 3
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (path := tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    return path


def test_guards_of_ones_own_stand_beside_ours(tmp_path: Path, mine: Path) -> None:
    written(tmp_path / "recorded.jsonl", [line("aaaa"), line("abcd", success=False)])
    (path := tmp_path / "plan.toml").write_text(
        """
        classics = false
        [[sources]]
        file = "recorded.jsonl"
        [[guards]]
        guard = "mine.py:Chatty"
        sweep = {most = [2, 4, 5]}
        [[guards]]
        guard = "mine.py:both"
        arguments = {times = 2}
        [[guards]]
        guard = "RepeatedCall"
        arguments = {times = 3}
        """,
        encoding="utf-8",
    )
    assert main(["experiment", str(path), "--app", str(ROOT), "--no-plot"]) == 0
    rows = csv.DictReader((tmp_path / "plan.csv").read_text(encoding="utf-8").splitlines())
    stopped = {row["rule"]: (row["successes_stopped_count"], row["failures_stopped_count"]) for row in rows}
    del stopped["default"]
    assert stopped == {
        "Chatty(2)": ("1", "1"),
        "Chatty(4)": ("1", "1"),
        "Chatty(5)": ("0", "0"),
        "Chatty(2) and RepeatedCall(2)": ("1", "0"),
        "RepeatedCall(3)": ("1", "0"),
    }


def test_a_single_guard_stops_at_once(tmp_path: Path) -> None:
    marks = Guards([(RepeatedCall(3), Kind.STOP)]).judge(recording(tmp_path, "abaaaa")).marks
    assert [(mark.turn, mark.kind) for mark in marks] == [(3, Kind.STOP)]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("Chaty", MINE, "Did you mean Chatty?"),
        ("three", MINE, "makes no guard, but a int"),
        ("Chatty", "class Chatty(:", "cannot be run: SyntaxError"),
        ("Chatty", "import nothing_of_that_name", "cannot be run: ModuleNotFoundError"),
    ],
)
def test_what_makes_no_guard_is_told(mine: Path, name: str, text: str, told: str) -> None:
    mine.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as refused:
        list(guards_named(f"{mine}:{name}", {}, {}))
    assert told in str(refused.value)
