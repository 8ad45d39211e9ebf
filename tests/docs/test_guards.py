"""What docs/guards.md says of experiments is one: its plan, its lines and its guard are read as they stand there."""

from __future__ import annotations

from pathlib import Path

from haru_fsm.lab.lines import from_json_lines
from haru_fsm.lab.plan import read_plan
from haru_fsm.lab.single import guards_named
from tests.docs.reading import ROOT, blocks

DOCUMENT = "docs/guards.md"


def test_the_plan_and_its_guards_are_such(tmp_path: Path) -> None:
    [plan], [mine] = blocks(DOCUMENT, "toml"), blocks(DOCUMENT, "python")
    (path := tmp_path / "mine.toml").write_text(plan.text, encoding="utf-8")
    (tmp_path / "my_guards.py").write_text(mine.text, encoding="utf-8")
    read = read_plan(path)
    assert len(read.all_settings()) == 2 + 3 * 2
    made = [guard.name for one in read.guards for guard in guards_named(one.guard, one.arguments, one.sweep)]
    assert made == ["RepeatedCall(2)", "RepeatedCall(3)", "RepeatedCall(4)", "Chatty(12)"]


def test_the_lines_are_recordings(tmp_path: Path) -> None:
    [lines] = blocks(DOCUMENT, "json")
    (path := tmp_path / "runs.jsonl").write_text(lines.text, encoding="utf-8")
    read = list(from_json_lines(path))
    assert [(recording.turns, recording.success) for recording in read] == [(1, True), (1, False), (1, None)]


def test_the_experiments_beside_it_are_such() -> None:
    folder = ROOT / "docs" / "experiments"
    alone = read_plan(folder / "alone.toml")
    assert read_plan(folder / "default.toml").sources == alone.sources
    made = [guard.name for one in alone.guards for guard in guards_named(one.guard, one.arguments, one.sweep)]
    text = (ROOT / DOCUMENT).read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in made if " and " not in name)
