"""docs/operating.md: what a log may hold, and what the first look of a newer version does."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from haru_fsm.errors import FormatTooNew
from haru_fsm.stores import FORMAT
from haru_fsm.stores.sqlite import SQLiteStore, opening
from tests.docs.reading import blocks

DOCUMENT = "docs/operating.md"


def test_a_log_is_lines_of_json_without_what_the_customer_wrote(environment: dict[str, str]) -> None:
    [block] = [block for block in blocks(DOCUMENT, "python") if "OneLine" in block.text]
    ran = subprocess.run(
        [sys.executable, "-c", block.text], env=environment, capture_output=True, text=True, check=True
    )
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    steps = [line for line in lines if line["name"] == "shop"]
    assert [(step["message"], step["seq"], step["state"]) for step in steps] == [
        ("message_received", 1, "AWAIT_MODEL"),
        ("model_answered", 2, "DONE"),
    ]
    assert "안녕하세요" not in ran.stdout + ran.stderr


async def test_the_first_look_of_a_newer_version_keeps_an_older_one_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = SQLiteStore(tmp_path / "haru.db")
    monkeypatch.setattr(opening, "FORMAT", FORMAT - 1)
    assert list(await older.conversations()) == []
    await older.aclose()
    monkeypatch.undo()
    newer = SQLiteStore(tmp_path / "haru.db")
    assert list(await newer.conversations()) == []
    await newer.aclose()
    with closing(sqlite3.connect(tmp_path / "haru.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (FORMAT,)
    monkeypatch.setattr(opening, "FORMAT", FORMAT - 1)
    with pytest.raises(FormatTooNew):
        await older.conversations()
    await older.aclose()
