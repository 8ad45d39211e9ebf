"""A copy of an app is the whole app, and what is done to it is not done to the app."""

from __future__ import annotations

import shutil
from pathlib import Path

from haru_fsm import load_app
from haru_fsm.testing import load_copy
from haru_fsm.testing.copies import clean

ROOT = Path(__file__).parent.parent.parent
TOOLS = '''
from pathlib import Path
from haru_fsm import tool
from ..prices import PRICE
from ..rules import RULE

def make_tools(session):
    @tool(read_only=False)
    def note(text: str) -> str:
        """Write something down."""
        Path(__file__).parent.parent.joinpath("notes.txt").write_text(text, "utf-8")
        return f"{RULE} {PRICE}"

    return [note]
'''


def _app(folder: Path) -> Path:
    """An app with a module and a package of its own beside the three folders."""
    shutil.copytree(ROOT / "states", folder / "states", ignore=shutil.ignore_patterns("__pycache__"))
    for file, text in {
        "tools/__init__.py": TOOLS,
        "rules.py": 'RULE = "규칙"\n',
        "prices/__init__.py": "PRICE = 12900\n",
        "notes.txt": "원래 메모",
        ".env": "GEMINI_API_KEY=not-for-a-copy\n",
        "memory_store/haru.db": "what it remembers",
    }.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, "utf-8")
    return folder


async def test_a_copy_runs_with_all_that_its_tools_import(tmp_path: Path) -> None:
    app = _app(tmp_path / "app")
    copied = load_copy(app, tmp_path / "copy")
    assert copied.folder == tmp_path / "copy"
    made = copied.make_tools(copied.session("C1"))
    assert isinstance(made, list)
    (note,) = made
    assert note("새 메모") == "규칙 12900"
    assert (app / "notes.txt").read_text("utf-8") == "원래 메모"
    assert (tmp_path / "copy" / "notes.txt").read_text("utf-8") == "새 메모"
    assert not (tmp_path / "copy" / ".env").exists()


def test_a_copy_remembers_nothing_and_may_be_cleaned(tmp_path: Path) -> None:
    app = _app(tmp_path / "app")
    copied = load_copy(app, tmp_path / "copy")
    memory = tmp_path / "copy" / "memory_store"
    assert list(memory.iterdir()) == []
    (memory / "haru.db").write_text("something", "utf-8")
    clean(copied.folder)
    assert list(memory.iterdir()) == []
    clean(load_app(app).folder)
    assert (app / "memory_store" / "haru.db").read_text("utf-8") == "what it remembers"
