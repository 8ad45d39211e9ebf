"""The pytest plugin: its fixtures work in somebody else's tests, and it costs those who use none of them nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.conftest import ROOT

NAME = "haru_fsm.testing.plugin"
SUITE = """
from haru_fsm import Engine
from haru_fsm.models.gemini import GeminiModel
from haru_fsm.testing.fake_gemini import reply

async def test_with_a_script(haru_app, scripted_model, memory_store):
    model = scripted_model([("get_my_orders", {})], "주문은 모두 배송되었습니다.")
    async with Engine(haru_app, model=model, store=memory_store) as engine:
        run = await engine.ask("제 주문은요?", customer_id="C003")
    assert (run.answer, run.tool_runs) == ("주문은 모두 배송되었습니다.", 1)

async def test_with_a_server(haru_app, fake_gemini, memory_store):
    server = fake_gemini([reply("안녕하세요!")])
    model = GeminiModel("gemini-flash-latest", api_key="test", base_url=server.base_url)
    async with Engine(haru_app, model=model, store=memory_store) as engine:
        run = await engine.ask("안녕하세요", customer_id="C003")
    assert run.answer == "안녕하세요!"
    assert not server.violations

def test_in_a_copy(haru_app):
    assert (haru_app.folder / ".haru-copy").exists()
"""


def pytest_of(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A pytest of its own, in a folder that knows nothing of this repository but its path."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", NAME, "-p", "no:cacheprovider", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_fixtures_work_in_a_suite_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(SUITE, "utf-8")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nasyncio_mode = auto\nharu_app = {ROOT}\n")
    ended = pytest_of(tmp_path)
    assert "3 passed" in ended.stdout, ended.stdout + ended.stderr


def test_whoever_uses_no_fixture_loads_nothing(tmp_path: Path) -> None:
    heavy = ("pydantic", "transitions", "hypothesis", "haru_fsm.engine", "haru_fsm.conversation")
    (tmp_path / "test_other.py").write_text(
        f"import sys\n\ndef test_it():\n    assert not set({heavy}) & set(sys.modules)\n"
    )
    # Other plugins of this environment (hypothesis has one itself) are left out, to see this one alone.
    ended = pytest_of(tmp_path, "-p", "no:hypothesispytest")
    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr


def test_pytest_finds_it_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {NAME: NAME}
