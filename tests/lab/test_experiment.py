"""The command: from a file to a table, a CSV and a picture."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from haru_fsm.cli import main
from haru_fsm.errors import SettingsError
from haru_fsm.lab.plan import Plan, read_plan
from tests.lab.recorded import line, recording, written

ROOT = Path(__file__).parent.parent.parent
PLAN = """
name = "a small one"
[[sources]]
file = "recorded.jsonl.gz"
detection_only = {strategy = "oracle"}
[[settings]]
name = "default"
[grid]
loop_repeats = [2, 3]
loop_nudges = [0, 2]
"""
LIVE = """
classics = false
[live]
messages = ["HR20260725002 언제 와요?"]
customers = ["C003"]
models = ["offline", "insistent"]
faults = ["none", "tools_fail"]
"""


def plan(folder: Path, text: str) -> Path:
    lines = [line("aaaaaaa"), line("abc"), line("aaaaaaa", strategy="oracle"), line("ababababab", success=False)]
    written(folder / "recorded.jsonl.gz", lines)
    (path := folder / "plan.toml").write_text(text, encoding="utf-8")
    return path


def test_in_a_pipe_no_progress_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", str(plan(tmp_path, PLAN)), "--app", str(ROOT), "--no-plot"]) == 0
    assert all(line.startswith("wrote ") for line in capsys.readouterr().err.splitlines())


def test_table_csv_and_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = plan(tmp_path, PLAN)
    assert main(["experiment", str(path), "--out", str(tmp_path / "out"), "--app", str(ROOT)]) == 0
    shown = capsys.readouterr().out
    assert "a small one" in shown
    assert "1/2 = 50.0%" in shown
    rows = list(csv.DictReader((tmp_path / "out" / "plan.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["rule"] for row in rows][:2] == ["default", "loop_repeats=2, loop_nudges=0"]
    assert len(rows) == 1 + 4 + 4
    assert (rows[0]["successes_stopped_count"], rows[0]["successes_stopped_of"]) == ("1", "2")
    assert (tmp_path / "out" / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_live_runs_say_how_each_setting_ends_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = plan(tmp_path, LIVE)
    assert main(["experiment", str(path), "--app", str(ROOT), "--json"]) == 0
    lived = json.loads(capsys.readouterr().out)["live"]
    endings = {(one["model"], one["fault"]): one["ending"] for one in lived}
    assert endings["offline", "none"] == "answer"
    assert "NudgedInVain" in endings["insistent", "none"]
    assert set(endings) == {(model, fault) for model in ("offline", "insistent") for fault in ("none", "tools_fail")}
    assert (tmp_path / "plan-live.csv").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name = ", "cannot be read"),
        ("nme = 'x'", "nme"),
        ("[[sources]]", "either a file, a cassette or a database"),
        ("[grid]\nloop_repeats = [0]", "loop_repeats"),
        ("", "no recordings"),
    ],
)
def test_a_file_that_is_no_experiment_is_told(
    tmp_path: Path, text: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (path := tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    assert main(["experiment", str(path), "--app", str(ROOT)]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sources", "told"),
    [
        (
            '[[sources]]\nfile = "none.jsonl.gz"\n[[sources]]\ncassette = "no.tape"',
            ["none.jsonl.gz", "no.tape", "Put them"],
        ),
        ('[[sources]]\nfile = "."', ["recordings are not there"]),
        ('[[sources]]\ndatabase = "sqlite:///none.db"', ["none.db", "is not there", "haru ask"]),
        ('[[sources]]\nfile = "empty.jsonl"', ["has no recordings"]),
        ('[[sources]]\nfile = "export.jsonl"', ["line 1 is no recording: it has no 'turns'", "database = "]),
    ],
)
def test_sources_without_data_say_what_to_do(
    tmp_path: Path, sources: str, told: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.jsonl").write_text("", encoding="utf-8")
    (tmp_path / "export.jsonl").write_text('{"digest": "", "content": {}}\n', encoding="utf-8")
    (tmp_path / "plan.toml").write_text(sources, encoding="utf-8")
    assert main(["experiment", "plan.toml", "--app", str(ROOT)]) == 2
    said = capsys.readouterr()
    assert len(said.err.splitlines()) == 1
    assert all(word in said.err for word in told), said.err
    assert "Errno" not in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.jsonl", "export.jsonl", "plan.toml"]


def test_without_matplotlib_it_is_said_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    file = str(plan(tmp_path, PLAN))
    assert main(["experiment", file, "--app", str(ROOT)]) == 2
    assert "--no-plot" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.csv"))
    assert main(["experiment", file, "--app", str(ROOT), "--no-plot"]) == 0


def test_the_halves_are_each_others_rest(tmp_path: Path) -> None:
    recordings = [recording(tmp_path, "a" * n) for n in range(1, 40)]
    tune, report = (Plan(half=half).chosen(recordings) for half in ("tune", "report"))
    assert len(tune) + len(report) == len(recordings)
    assert {id(one) for one in tune}.isdisjoint(id(one) for one in report)
    assert 10 < len(tune) < 29


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    assert read_plan(plan(tmp_path, PLAN)).sources[0].file == tmp_path / "recorded.jsonl.gz"
    with pytest.raises(SettingsError):
        read_plan(tmp_path / "none.toml")


def test_the_experiment_of_the_documents_is_one() -> None:
    assert read_plan(ROOT / "docs" / "experiments" / "default.toml").half == "report"
