"""Bad input gets one clear line on standard error, the right exit code, no traceback, and loses nothing."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "HARU_MODEL", "HARU_DATABASE_URL")


def haru(folder: Path, *arguments: str, stdin: str | None = None, **environment: str):
    """The command, as a process of its own in this folder."""
    env = {name: value for name, value in os.environ.items() if name not in KEYS}
    env |= {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **environment}
    return subprocess.run(
        [sys.executable, "-m", "haru_fsm", *arguments],
        cwd=folder,
        env=env,
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )


def refused(done, code: int, *words: str) -> None:
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr


DB = ("--db", "sqlite:///x.db")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ask", "안녕하세요", "--customer", "C999", *DB), ("C999",)),
        (("ask", "  ", "--customer", "C003", *DB), ("empty",)),
        (("ask", "하이", "--customer", "C003", "--conversation", "nope", *DB), ("nope", "haru list")),
        (("resume", "nope", *DB), ("nope",)),
        (("ask", "하이", "--customer", "C003", "--model", "gemini:x", *DB), ("GEMINI_API_KEY",)),
        (("ask", "하이", "--customer", "C003", "--model", "gpt", *DB), ("gpt",)),
        (("ask", "하이", "--customer", "C003", "--db", "mysql://x"), ("mysql://x",)),
        (("ask", "하이", "--customer", "C003", "--app", ".", *DB), ("states/", "haru new")),
        (("ask", "하이"), ("--customer",)),
        (("settle", "nope", "1.0", *DB), ("--done",)),
        (("prune", "--older-than", "soon", *DB), ("soon",)),
        (("ticket", "close", "HT-1", "--reply", "네", *DB), ("HT-1",)),
    ],
)
def test_wrong_usage_and_bad_input(tmp_path: Path, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    refused(haru(tmp_path, *arguments), 2, *words)


def test_a_message_of_200_kb(tmp_path: Path) -> None:
    refused(haru(tmp_path, "ask", "-", "--customer", "C003", *DB, stdin="가" * 70_000), 2, "70,000", "20,000")


def test_a_limit_that_is_no_number(tmp_path: Path) -> None:
    refused(
        haru(tmp_path, "ask", "하이", "--customer", "C003", *DB, HARU_LIMITS__MAX_STEPS="zero"),
        2,
        "HARU_LIMITS__MAX_STEPS",
    )


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("not a database at all, and long enough to see that")
    refused(haru(tmp_path, "ask", "하이", "--customer", "C003", *DB), 1, "not a database")
    assert (tmp_path / "x.db").read_text().startswith("not a database")


def test_a_database_of_another_program(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as other:
        other.execute("CREATE TABLE theirs (x)")
    refused(haru(tmp_path, "ask", "하이", "--customer", "C003", *DB), 1, "another program")


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(haru(tmp_path, "ask", "하이", "--customer", "C003", "--db", "sqlite:///file/x.db"), 1, "file/x.db")


def test_a_hand_edited_journal_is_set_aside_and_the_others_go_on(tmp_path: Path) -> None:
    one, two = (
        json.loads(haru(tmp_path, "ask", "쿠폰 있나요?", "--customer", "C003", "--json", *DB).stdout) for _ in range(2)
    )
    with sqlite3.connect(tmp_path / "x.db") as hand:
        hand.execute("UPDATE steps SET event = replace(event, '쿠폰', '쿠키') WHERE conversation = 1 AND seq = 1")
    refused(haru(tmp_path, "show", one["conversation_id"], *DB), 1, one["conversation_id"], "set aside")
    assert haru(tmp_path, "show", two["conversation_id"], *DB).returncode == 0
    verified = haru(tmp_path, "verify", *DB)
    assert verified.returncode == 1
    assert "1 damaged" in verified.stdout


@pytest.mark.parametrize(
    "cut",
    [
        "DELETE FROM steps WHERE seq = (SELECT max(seq) FROM steps)",
        "UPDATE conversations SET state = 'AWAIT_MODEL'",
        "DELETE FROM steps",
    ],
)
def test_a_journal_that_was_cut_off_is_never_read_as_a_shorter_one(tmp_path: Path, cut: str) -> None:
    run = json.loads(haru(tmp_path, "ask", "쿠폰 있나요?", "--customer", "C003", "--json", *DB).stdout)
    with sqlite3.connect(tmp_path / "x.db") as hand:
        hand.execute(cut)
    refused(haru(tmp_path, "show", run["conversation_id"], *DB), 1, "set aside")


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    haru(tmp_path, "ask", "쿠폰 있나요?", "--customer", "C003", *DB)
    with sqlite3.connect(tmp_path / "x.db") as hand:
        hand.execute("PRAGMA user_version = 99")
    refused(haru(tmp_path, "list", *DB), 1, "format 99", "Update")


@pytest.mark.parametrize(
    ("states", "tools", "words"),
    [
        ("1/0", "", ("states/__init__.py, line 1", "ZeroDivisionError")),
        ("def workflow(:", "", ("SyntaxError",)),
        ("x = 1", "", ("does not export workflow",)),
    ],
)
def test_a_broken_app(tmp_path: Path, states: str, tools: str, words: tuple[str, ...]) -> None:
    for part, text in (("states", states), ("tools", tools)):
        (tmp_path / "app" / part).mkdir(parents=True)
        (tmp_path / "app" / part / "__init__.py").write_text(text)
    refused(haru(tmp_path, "ask", "하이", "--customer", "C003", "--app", "app", *DB), 2, *words)


@pytest.mark.parametrize(
    ("tool", "words"), [("def f(x):\n    'Does.'", ("f", "x")), ("def f(x: int):\n    pass", ("f", "docstring"))]
)
def test_a_tool_that_cannot_be_declared(tmp_path: Path, tool: str, words: tuple[str, ...]) -> None:
    assert haru(tmp_path, "new", "app").returncode == 0
    (tmp_path / "app" / "tools" / "__init__.py").write_text(f"{tool}\ndef make_tools(session):\n    return [f]\n")
    refused(haru(tmp_path, "ask", "하이", "--customer", "C003", "--app", "app", *DB), 2, *words)


def test_no_network_ends_in_a_ticket(tmp_path: Path) -> None:
    done = haru(
        tmp_path,
        "ask",
        "배송 언제 와요?",
        "--customer",
        "C003",
        "--json",
        *DB,
        GEMINI_API_KEY="a-secret-key",
        GOOGLE_GEMINI_BASE_URL="http://127.0.0.1:9",
        HARU_LIMITS__HTTP_RETRIES="0",
    )
    run = json.loads(done.stdout)
    assert (done.returncode, run["state"]) == (0, "ESCALATE_TICKET")
    assert run["ticket"]["ticket_id"] in run["answer"]
    assert "a-secret-key" not in done.stdout + done.stderr


def test_the_starter_that_was_written_out_runs(tmp_path: Path) -> None:
    assert haru(tmp_path, "new", "app").returncode == 0
    refused(haru(tmp_path, "new", "app"), 2, "not empty")
    asked = haru(tmp_path / "app", "ask", "HR20260725002 언제 와요?", "--customer", "C003", "--json")
    assert json.loads(asked.stdout)["state"] == "DONE"
    assert (tmp_path / "app" / "memory_store" / "haru.db").exists()
