"""The built wheel and the development install are the same product, from any folder."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import PARCELS, ROOT, clean_environment

Installed = Callable[..., str]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel holds, as an installer lays it out."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(build, cwd=ROOT, env=clean_environment(), check=True, capture_output=True, timeout=120)
    (built,) = (folder / "dist").iterdir()
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


@pytest.fixture(params=["wheel", "development"])
def installed(request: pytest.FixtureRequest, wheel: Path, tmp_path: Path) -> Installed:
    """Runs Python on one of the two, from an empty folder; gives what it printed."""
    where = wheel if request.param == "wheel" else ROOT
    folder = tmp_path / "empty"
    folder.mkdir()
    environment = clean_environment(PYTHONPATH=str(where), HARU_DATABASE_URL=f"sqlite:///{tmp_path}/haru.db")

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-W", "error", *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    assert str(where) in run("-c", "import haru_fsm; print(haru_fsm.__file__)")
    return run


def test_haru_answers_from_an_empty_folder(installed: Installed) -> None:
    answered = installed("-m", "haru_fsm", "ask", PARCELS, "--customer", "C003")
    assert all(number in answered for number in ("34622188536", "56102174598", "90937026152"))
    assert "5 states, 22 rows" in installed("-m", "haru_fsm", "check")


def test_the_starter_is_written_out_whole_and_runs(installed: Installed, tmp_path: Path) -> None:
    installed("-m", "haru_fsm", "new", "shop")
    written = {path.relative_to(tmp_path / "empty/shop") for path in (tmp_path / "empty/shop").rglob("*.*")}
    ours = {
        path.relative_to(ROOT)
        for part in ("states", "tools", "data")
        for path in (ROOT / part).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert ours <= written
    answered = installed("-m", "haru_fsm", "ask", PARCELS, "--customer", "C003", "--app", "shop")
    assert "34622188536" in answered


def test_the_wheel_names_the_command_and_the_plugin_and_holds_no_tests(wheel: Path) -> None:
    (entries,) = wheel.glob("*.dist-info/entry_points.txt")
    assert "haru = haru_fsm.cli:main" in entries.read_text()
    assert "haru_fsm.testing.plugin = haru_fsm.testing.plugin" in entries.read_text()
    assert {path.name for path in wheel.iterdir()} == {"haru_fsm", entries.parent.name}
    assert (wheel / "haru_fsm/py.typed").is_file()
