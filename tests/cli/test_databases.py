"""fork, settle, verify, export, import, prune, through the command."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import PARCELS, Haru, clean_environment, command


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
    assert haru("verify").out == "1 conversation, 0 damaged\n"
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


@pytest.mark.parametrize("text", ["# Notes\n", "", "[]\n", '{"digest": 1}\n'])
def test_what_is_no_export_is_said_to_be_none(haru: Haru, empty: Path, text: str) -> None:
    (empty / "notes.md").write_text(text, "utf-8")
    refused = haru("import", "notes.md")
    assert refused.code == 2
    assert "This is no export of haru_fsm" in refused.complaint


@pytest.fixture
def broken(haru: Haru, empty: Path, conversation: str) -> str:
    """Another conversation, whose journal has lost a step."""
    lost = str(haru("ask", PARCELS, "--customer", "C003", "--json").json["conversation_id"])
    with closing(sqlite3.connect(empty.parent / "haru.db")) as connection, connection:
        connection.execute(
            "DELETE FROM steps WHERE seq = 3 AND conversation ="
            " (SELECT number FROM conversations WHERE conversation_id = ?)",
            (lost,),
        )
    return lost


def test_an_export_goes_on_past_what_is_damaged(haru: Haru, empty: Path, conversation: str, broken: str) -> None:
    after = haru("ask", PARCELS, "--customer", "C003", "--json").json["conversation_id"]
    exported = haru("export")
    assert exported.code == 1
    named = [line for line in exported.err.splitlines() if broken in line]
    assert len(named) == 1
    assert exported.err.endswith("2 conversations exported, 1 left out\n")
    (empty / "all.jsonl").write_text(exported.out, "utf-8")
    assert haru("import", "all.jsonl", "--db", "sqlite:///moved.db").code == 0
    moved = haru("list", "--db", "sqlite:///moved.db", "--json").json
    assert {each["conversation_id"] for each in moved} == {conversation, after}
    assert broken not in exported.out


@pytest.mark.parametrize("others", [(), ("known",)])
def test_an_export_of_what_is_not_there_writes_nothing(haru: Haru, conversation: str, others: tuple[str, ...]) -> None:
    ids = [conversation for _ in others]
    for words in ([*ids, "c-nope"], ["c-nope", *ids], [*ids, "no id"]):
        refused = haru("export", *words)
        assert (refused.code, refused.out) == (2, "")
        assert words[-1] in refused.complaint or words[0] in refused.complaint


def test_an_imported_conversation_keeps_its_times(haru: Haru, empty: Path, conversation: str) -> None:
    """So what has rested for long can be pruned there too, and what is listed first is what moved last."""
    haru("ask", PARCELS, "--customer", "C003")
    (empty / "all.jsonl").write_text(haru("export").out, "utf-8")
    moved = ("--db", "sqlite:///moved.db")
    assert haru("import", "all.jsonl", *moved).code == 0
    for here, there in zip(haru("list", "--json").json, haru("list", *moved, "--json").json, strict=True):
        steps = haru("show", here["conversation_id"], "--json").json["steps"]
        assert there["conversation_id"] == here["conversation_id"]
        assert (there["created_at"], there["updated_at"]) == (steps[0]["event"]["at"], steps[-1]["event"]["at"])


def test_line_breaks_of_other_kinds_break_no_export(haru: Haru, empty: Path) -> None:
    text = "첫 줄\u2028둘째 줄\x85셋째\x1c넷째\r다섯째"
    asked = haru("ask", "-", "--customer", "C003", "--json", typed=text).json["conversation_id"]
    (empty / "all.jsonl").write_bytes(haru("export").out.encode())
    assert haru("import", "all.jsonl", "--db", "sqlite:///moved.db").code == 0
    assert haru("show", asked, "--db", "sqlite:///moved.db", "--json").json["steps"][0]["event"]["text"] == text


def test_an_export_may_come_by_a_pipe(haru: Haru, empty: Path, conversation: str) -> None:
    """As from `zcat`: it is read twice, and a pipe only once."""
    exported = haru("export").out.encode()
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"), os.fdopen(writing, "wb") as pipe:
        pipe.write(exported)
        pipe.close()
        imported = haru("import", f"/dev/fd/{reading}", "--db", "sqlite:///moved.db", "--json")
    assert imported.json == {"imported": 1, "already_there": 0}


def test_an_export_that_is_no_text_is_refused(haru: Haru, empty: Path, conversation: str) -> None:
    (empty / "all.jsonl").write_bytes(haru("export").out.encode() + b"\xff\n")
    refused = haru("import", "all.jsonl", "--db", "sqlite:///moved.db")
    assert (refused.code, "no UTF-8 text" in refused.complaint) == (2, True)
    assert haru("list", "--db", "sqlite:///moved.db", "--json").json == []


def test_an_export_ends_where_nobody_reads_it_any_more(haru: Haru, empty: Path, conversation: str) -> None:
    """A gigabyte is not read for nothing; and what has been written is not taken for the whole."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nobody:
        environment = clean_environment(HARU_DATABASE_URL=f"sqlite:///{empty.parent / 'haru.db'}")
        ended = subprocess.run(
            command("export"), stdout=nobody, stderr=subprocess.PIPE, env=environment, timeout=60, check=False
        )
    assert ended.returncode == 1
    assert ended.stderr.decode().splitlines() == ["haru: Whoever read the export went away; it is not whole."]


def test_prune_forgets_only_what_rested_long(haru: Haru, conversation: str) -> None:
    assert haru("prune", "--older-than", "90d", "--json").json == {"forgotten": 0}
    refused = haru("prune", "--older-than", "soon")
    assert refused.code == 2
    assert "90d" in refused.complaint
    assert haru("prune", "--older-than", "0s", "--json").json == {"forgotten": 1}
    assert haru("show", conversation).code == 2
