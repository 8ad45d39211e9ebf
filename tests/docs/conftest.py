"""What the tests of the documents share: a shell of their own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.docs.reading import ROOT


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A shell of its own: `haru` and `python` on its path, no keys, no settings, a database in its folder."""
    haru = tmp_path / "bin" / "haru"
    haru.parent.mkdir()
    haru.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m haru_fsm "$@"\n')
    haru.chmod(0o755)
    (haru.parent / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (haru.parent / "python").chmod(0o755)
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HARU_", "GEMINI_", "GOOGLE_", "OPENAI_"))
    }
    return {
        **kept,
        "PATH": f"{haru.parent}{os.pathsep}{kept.get('PATH', '')}",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": "140",
        "HARU_DATABASE_URL": f"sqlite:///{tmp_path / 'haru.db'}",
    }
