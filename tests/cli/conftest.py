"""The `haru` command for tests: in this process, or in one of its own; always from an empty folder, without a key."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from haru_fsm.cli import main

ROOT = Path(__file__).parents[2]
OURS = ("HARU_", "GEMINI_", "GOOGLE_", "OPENAI_", "COLUMNS")
PARCELS = "지금 배송중인 제 주문들 전부, 상품명이랑 택배사·송장번호를 정리해서 알려주세요."


@dataclass(frozen=True)
class Ended:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line on standard error."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("haru: ")
        assert "Traceback" not in self.err
        return lines[0]


Haru = Callable[..., Ended]


def clean_environment(**more: str) -> dict[str, str]:
    """The environment without settings of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **more}


def command(*words: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "haru_fsm", *words]


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in; the database is beside it."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in list(os.environ):
        if name.startswith(OURS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HARU_DATABASE_URL", f"sqlite:///{tmp_path}/haru.db")
    return folder


@pytest.fixture
def haru(empty: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Haru:
    """Runs a command in this process: quick, and able to see what was imported."""

    def run(*words: str, typed: str | bytes = "") -> Ended:
        raw = typed.encode() if isinstance(typed, str) else typed
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), "utf-8"))
        capsys.readouterr()
        code = main(words)
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return run


@pytest.fixture
def in_korea(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The time zone of whoever reads, in the form that needs no database of zones."""
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "KST-9")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def process(empty: Path, tmp_path: Path) -> Haru:
    """Runs a command in a process of its own, as users do."""

    def run(*words: str, typed: str = "", **environment: str) -> Ended:
        environment.setdefault("HARU_DATABASE_URL", f"sqlite:///{tmp_path}/haru.db")
        done = subprocess.run(
            command(*words),
            input=typed.encode(),
            capture_output=True,
            env=clean_environment(**environment),
            cwd=empty,
            timeout=60,
            check=False,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
