"""fork, settle, verify, export, import, prune, through the command."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import PARCELS, Haru


@pytest.fixture
def conversation(haru: Haru) -> str:
    """A conversation that has been answered."""
    return str(haru("ask", PARCELS, "--customer", "C003", "--json").json["conversation_id"])


def test_a_fork_is_a_conversation_of_its_own(haru: Haru, conversation: str) -> None:
    forked = haru("fork", conversation, "--at", "4", "--model", "offline", "--json")
    assert forked.code == 0
    assert forked.json["conversation_id"] != conversation
    listed = haru("list").out
    assert "DONE (rehearsal)" in listed
    assert f"forked from {conversation}, a rehearsal" in haru("show", forked.json["conversation_id"]).out
    refused = haru("fork", conversation, "--at", "99")
    assert refused.code == 2
    assert "--at 99" in refused.complaint


def test_only_what_is_in_doubt_can_be_settled(haru: Haru, conversation: str) -> None:
    for how in (("--not-done",), ("--done", "ok")):
        refused = haru("settle", conversation, "2.0", *how)
        assert refused.code == 2
        assert "2.0" in refused.complaint
    undecided = haru("settle", conversation, "2.0")
    assert undecided.code == 2
    assert "--not-done" in undecided.complaint


def test_verify_names_what_is_damaged(haru: Haru, empty: Path, conversation: str) -> None:
    assert haru("verify").out == "1 conversations, 0 damaged\n"
    with closing(sqlite3.connect(empty.parent / "haru.db")) as connection, connection:
        connection.execute("DELETE FROM steps WHERE seq = 3")
    found = haru("verify", "--json")
    assert found.code == 1
    assert found.json[0]["conversation_id"] == conversation
    assert found.json[0]["damage"]


def test_export_and_import(haru: Haru, empty: Path, conversation: str) -> None:
    exported = haru("export")
    assert exported.code == 0
    (empty / "all.jsonl").write_text(exported.out, "utf-8")
    moved = ("--db", "sqlite:///moved.db")
    assert haru("import", "all.jsonl", *moved, "--json").json == {"imported": 1, "already_there": 0}
    assert haru("import", "all.jsonl", *moved, "--json").json == {"imported": 0, "already_there": 1}
    there, here = (haru("show", conversation, *where, "--json").json["steps"] for where in (moved, ()))
    assert [step["event"]["kind"] for step in there] == [step["event"]["kind"] for step in here]
    (empty / "cut.jsonl").write_text(exported.out[:-40], "utf-8")
    refused = haru("import", "cut.jsonl", "--db", "sqlite:///other.db")
    assert refused.code == 2
    assert haru("import", "nothing.jsonl").code == 2


def test_line_breaks_of_other_kinds_break_no_export(haru: Haru, empty: Path) -> None:
    text = "첫 줄\u2028둘째 줄\x85셋째\x1c넷째\r다섯째"
    asked = haru("ask", "-", "--customer", "C003", "--json", typed=text).json["conversation_id"]
    (empty / "all.jsonl").write_bytes(haru("export").out.encode())
    assert haru("import", "all.jsonl", "--db", "sqlite:///moved.db").code == 0
    assert haru("show", asked, "--db", "sqlite:///moved.db", "--json").json["steps"][0]["event"]["text"] == text


def test_prune_forgets_only_what_rested_long(haru: Haru, conversation: str) -> None:
    assert haru("prune", "--older-than", "90d", "--json").json == {"forgotten": 0}
    refused = haru("prune", "--older-than", "soon")
    assert refused.code == 2
    assert "90d" in refused.complaint
    assert haru("prune", "--older-than", "0s", "--json").json == {"forgotten": 1}
    assert haru("show", conversation).code == 2
