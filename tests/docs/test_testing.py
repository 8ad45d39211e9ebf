"""The test files of docs/testing.md are run as tests, by a pytest of their own with the plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.reading import ROOT, Block, blocks

FILES = [block for block in blocks("docs/testing.md", "python") if block.text.startswith("# test_")]


@pytest.mark.parametrize("block", FILES, ids=str)
def test_the_test_files_pass(block: Block, tmp_path: Path) -> None:
    name = block.text.splitlines()[0].removeprefix("# ")
    (tmp_path / name).write_text(block.text, "utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "haru_fsm.testing.plugin", name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{block.text.count('def test_')} passed" in ended.stdout


def test_there_are_such_files() -> None:
    assert len(FILES) == 2
