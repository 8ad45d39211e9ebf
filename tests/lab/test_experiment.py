"""The command: from a file to a table, a CSV and a picture."""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from itertools import islice
from pathlib import Path

import pytest

from haru_fsm._version import __version__
from haru_fsm.cli import main
from haru_fsm.errors import SettingsError
from haru_fsm.lab.plan import Plan, read_plan
from tests.lab.recorded import line, written

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


def plan_alone(folder: Path) -> Path:
    (path := folder / "plan.toml").write_text(SOURCE + "[[settings]]\nname = 'default'", encoding="utf-8")
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


def test_a_picture_takes_any_name_and_is_not_drawn_of_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = plan(tmp_path, PLAN.replace("a small one", r"루프 $\\fraq{$").replace("default", "기본 $^$"))
    assert main(["experiment", str(path), "--app", str(ROOT)]) == 0
    (picture := tmp_path / "plan.png").unlink()
    written(tmp_path / "recorded.jsonl.gz", [line("aaaa", success=None)])
    assert main(["experiment", str(plan_alone(tmp_path)), "--app", str(ROOT)]) == 0
    assert "no picture" in capsys.readouterr().err
    assert not picture.exists()


def test_live_runs_say_how_each_setting_ends_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = plan(tmp_path, LIVE)
    assert main(["experiment", str(path), "--app", str(ROOT), "--json"]) == 0
    lived = json.loads(capsys.readouterr().out)["live"]
    endings = {(one["model"], one["fault"]): one["ending"] for one in lived}
    assert endings["offline", "none"] == "answer"
    assert "NudgedInVain" in endings["insistent", "none"]
    assert set(endings) == {(model, fault) for model in ("offline", "insistent") for fault in ("none", "tools_fail")}
    assert (tmp_path / "plan-live.csv").exists()


SOURCE = '[[sources]]\nfile = "recorded.jsonl.gz"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name = ", "cannot be read"),
        ("sede = 2", "there is no sede. Did you mean seed?"),
        ("seed = 'a'", "seed must be a whole number"),
        ("half = 'reports'", "half must be 'all', 'tune' or 'report'"),
        ("[[sources]]", "sources.1: a source is either a file, a cassette or a database"),
        ("[[settings]]\nlimits = {}", "settings.1.name is missing"),
        ("[[settings]]\nname = 'x'\nwithuot = []", "there is no settings.1.withuot. Did you mean without?"),
        ("[[settings]]\nname = 'x'\nwithout = 'x'", "settings.1.without must be a list"),
        ("[[settings]]\nname = 'x'\n[[settings]]\nname = 'x'", "two settings are called 'x'"),
        ("[[settings]]\nname = 'x'\nlimits = {loop_repeets = 2}", "'x': there is no loop_repeets. Did you mean loop_"),
        ("settings = []\nclassics = false", "there is nothing to compare"),
        ("[grid]\nloop_repeats = 3", "grid.loop_repeats must be a list"),
        ("[grid]\nloop_repeats = []", "grid.loop_repeats must be a list with something in it"),
        ("[grid]\nloop_repeats = [0]", "loop_repeats must be 2 or more"),
        ("[live]\nmessages = []\ncustomers = ['C003']", "live.messages must be a list with something in it"),
        ("", "no recordings"),
        (SOURCE + "[[settings]]\nname = 'x'\nwithout = ['SimilarThought']", "Did you mean SimilarThoughts?"),
        (SOURCE + "detection_only = {strateegy = 'oracle'}", "No recording of"),
        (SOURCE + "[[guards]]\nguard = 'RepeatedCal'", "Did you mean RepeatedCall?"),
        (
            SOURCE + "[[guards]]\nguard = 'RepeatedCall'\narguments = {times = 3, tmes = 2}",
            "It is called as RepeatedCall(times: 'int'",
        ),
        (SOURCE + "[[guards]]\nguard = 'InDoubt'", "judges no calls: InDoubt() looks at ModelAnswered"),
        (SOURCE + "[[guards]]\nguard = 'none.py:Mine'", "guards are not there"),
    ],
)
def test_a_file_that_is_no_experiment_is_told(
    tmp_path: Path, text: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = plan(tmp_path, text)
    assert main(["experiment", str(path), "--app", str(ROOT)]) == 2
    said = capsys.readouterr().err
    assert told in said, said
    assert len(said.splitlines()) == 1
    assert not list(tmp_path.glob("*.csv"))


def test_a_plan_from_windows_is_one(tmp_path: Path) -> None:
    path = tmp_path / "계획.toml"
    path.write_bytes(b"\xef\xbb\xbfname = 'x'\r\n[[sources]]\r\nfile = 'a.jsonl'\r\n")
    assert read_plan(path).sources[0].file == tmp_path / "a.jsonl"


def test_a_place_for_results_that_is_none_is_told_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = plan(tmp_path, SOURCE)
    assert main(["experiment", str(path), "--app", str(ROOT), "--no-plot", "--out", str(path)]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_what_can_be_told_is_told_with_what_cannot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = plan(tmp_path, SOURCE + "detection_only = {strategy = 'oracle'}")
    assert main(["experiment", str(path), "--app", str(ROOT), "--no-plot"]) == 0
    shown = capsys.readouterr().out
    assert "conversations: 4 · replies with calls: 27 · true loops: 3" in shown
    assert "successes: 2 (and 1 for detection only) · failures: 1 · without a label: 0" in shown
    assert "a rule that stops none may still stop 66% of others" in shown
    written(tmp_path / "recorded.jsonl.gz", [line("aaaa", success=None), line("ab", success=None)])
    assert main(["experiment", str(plan_alone(tmp_path)), "--app", str(ROOT), "--no-plot"]) == 0
    shown = capsys.readouterr().out
    assert "true loops: 1\nsuccesses: 0 · failures: 0 · without a label: 2" in shown
    assert "None of them is known to have succeeded" in shown
    [default] = [one for one in shown.splitlines() if one.startswith("default")]
    assert default.split()[1:4] == ["0/0", "0", "–"], "nothing of nothing is no 0 %"
    written(tmp_path / "recorded.jsonl.gz", [line("")])
    assert main(["experiment", str(plan_alone(tmp_path)), "--app", str(ROOT), "--no-plot"]) == 0
    assert "None of them calls a tool" in capsys.readouterr().out


def test_json_says_what_the_figures_can_be_had_from_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = plan(tmp_path, PLAN + '[[guards]]\nguard = "RepeatedCall"\nsweep = {times = [2, 3]}')
    assert main(["experiment", str(path), "--app", str(ROOT), "--no-plot", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["experiment"]["seed"], told["experiment"]["haru_fsm"]) == (1, __version__)
    digest = hashlib.sha256((tmp_path / "recorded.jsonl.gz").read_bytes()).hexdigest()
    assert [file["sha256"] for file in told["experiment"]["files"]] == [digest]
    assert told["recordings"]["conversations"] == 4
    assert {"RepeatedCall(2)", "RepeatedCall(3)"} < {row["rule"] for row in told["rules"]}
    assert told["rules"][1]["mcnemar_p"] == 1.0
    rows = list(csv.DictReader((tmp_path / "plan.csv").read_text(encoding="utf-8").splitlines()))
    assert list(rows[0]) == list(told["rules"][0]), "the same figures under the same names"


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
        ('[[sources]]\nfile = "export.jsonl"', ["line 1 is no recording: it has none of 'turns'", "database = "]),
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


def test_the_halves_are_each_others_rest() -> None:
    tune, report = (list(islice(Plan(half=half).draws(), 40)) for half in ("tune", "report"))
    assert [not drawn for drawn in tune] == report
    assert 10 < sum(tune) < 30
    assert all(islice(Plan().draws(), 40))


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    assert read_plan(plan(tmp_path, PLAN)).sources[0].file == tmp_path / "recorded.jsonl.gz"
    [stored] = read_plan(plan(tmp_path, '[[sources]]\ndatabase = "sqlite:///haru.db"')).sources
    assert stored.database == f"sqlite:///{tmp_path / 'haru.db'}"
    with pytest.raises(SettingsError):
        read_plan(tmp_path / "none.toml")


def test_the_experiment_of_the_documents_is_one() -> None:
    assert read_plan(ROOT / "docs" / "experiments" / "default.toml").half == "report"
