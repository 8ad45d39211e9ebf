"""The test files of docs/testing.md and docs/migrate.md are run as tests, by a pytest of their own with the plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.reading import ROOT, Block, blocks, write_files

DOCUMENTS = ("docs/testing.md", "docs/migrate.md")
FILES = [block for name in DOCUMENTS for block in blocks(name, "python") if block.text.startswith("# test_")]


@pytest.mark.parametrize("block", FILES, ids=str)
def test_the_test_files_pass(block: Block, tmp_path: Path) -> None:
    write_files(block.document, tmp_path)
    name = block.text.splitlines()[0].removeprefix("# ")
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
    assert [block.document for block in FILES] == ["docs/testing.md"] * 2 + ["docs/migrate.md"]
