"""list, show, tickets, ticket close, stats: what is stored, for people and as JSON."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from rich.cells import cell_len

from haru_fsm.stores import Started
from haru_fsm.stores.sqlite import SQLiteStore
from tests.cli.conftest import PARCELS, Haru, clean_environment, command
from tests.tables import received


@pytest.fixture
def asked(haru: Haru) -> dict[str, object]:
    """A conversation that has been answered."""
    run: dict[str, object] = haru("ask", PARCELS, "--customer", "C003", "--json").json
    return run


@pytest.fixture
def escalated(haru: Haru) -> dict[str, object]:
    """A conversation that came to a person."""
    run: dict[str, object] = haru("ask", PARCELS, "--customer", "C003", "--max-steps", "1", "--json").json
    return run


@pytest.mark.parametrize("words", [("list",), ("tickets",), ("stats",)])
def test_looking_makes_no_database(haru: Haru, empty: Path, words: tuple[str, ...]) -> None:
    looked = haru(*words)
    assert looked.code == 0
    assert "no database" in looked.complaint
    assert not (empty.parent / "haru.db").exists()
    assert haru(*words, "--json").json in ([], haru("stats", "--json").json)


def test_list(haru: Haru, asked: dict[str, object]) -> None:
    [summary] = haru("list", "--json").json
    assert summary["conversation_id"] == asked["conversation_id"]
    assert (summary["customer_id"], summary["state"], summary["resting"]) == ("C003", "DONE", True)
    assert str(asked["conversation_id"]) in haru("list").out
    assert haru("list", "--unfinished", "--json").json == []
    assert haru("list", "--customer", "C001", "--json").json == []
    assert haru("list", "--unfinished").out == "No unfinished conversations.\n"


ELSEWHERE = "shop-2/1|7|1|token"


def left_by(owner: str | None, lease_until: float, database: Path) -> None:
    """A run that is under way, as this worker has left it."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE conversations SET resting = 0, owner = ?, lease_until = ?", (owner, lease_until))


@pytest.mark.parametrize(
    ("owner", "until", "says"),
    [
        (None, 0.0, "nobody works on it: haru resume c-1\n"),
        (ELSEWHERE, 1.0, "nobody works on it: haru resume c-1\n"),
        (
            ELSEWHERE,
            4e9,
            "process 7 on shop-2 works on it; others may from 2096-10-02 16:06:40 KST, if it is not heard of",
        ),
    ],
)
@pytest.mark.usefixtures("in_korea")
def test_whose_turn_it_is_stands_in_what_is_shown(
    haru: Haru, empty: Path, owner: str | None, until: float, says: str
) -> None:
    store = SQLiteStore(empty.parent / "haru.db")
    asyncio.run(store.append(received(), expected_seq=0, owner=None, over=None, lease_s=15))
    store.close()
    left_by(owner, until, empty.parent / "haru.db")
    assert says in haru("show", "c-1").out


def test_who_resumes_all_hears_of_what_others_hold(haru: Haru, empty: Path, asked: dict[str, object]) -> None:
    store = SQLiteStore(empty.parent / "haru.db")
    asyncio.run(store.append(received(), expected_seq=0, owner=ELSEWHERE, over=None, lease_s=1e9))
    store.close()
    rest = haru("resume", "--all")
    assert (rest.code, rest.out) == (0, "Nothing was left to carry on.\n")
    assert "waiting: 1 run for a worker that is alive" in rest.err
    assert haru("resume", "c-1").complaint == (
        "haru: Conversation c-1: another worker has it (process 7 on shop-2). Nothing was changed."
    )


@pytest.mark.parametrize(("words", "stands_for"), [(("list",), "conversation_id"), (("tickets",), "ticket_id")])
def test_a_list_that_is_cut_off_says_so(
    haru: Haru, escalated: dict[str, object], words: tuple[str, ...], stands_for: str
) -> None:
    haru("ask", PARCELS, "--customer", "C003", "--max-steps", "1")
    whole = haru(*words, "--json", "--limit", "2")
    assert (len(whole.json), whole.err) == (2, "")
    cut = haru(*words, "--json", "--limit", "1")
    assert [each[stands_for] for each in cut.json] == [whole.json[0][stands_for]]
    assert cut.complaint == "haru: there are more; these are the latest 1. Ask for more with --limit."


def test_what_is_in_doubt_is_found_among_all(haru: Haru, empty: Path, asked: dict[str, object]) -> None:
    assert haru("list", "--in-doubt").out == "No conversations with anything in doubt.\n"
    store, mine = SQLiteStore(empty.parent / "haru.db"), str(asked["conversation_id"])
    asyncio.run(store.note(mine, "9.0", Started(run=1, name="pay", digest="d")))
    store.close()
    haru("ask", PARCELS, "--customer", "C003")
    assert [each["conversation_id"] for each in haru("list", "--in-doubt", "--json").json] == [mine]
    assert haru("list", "--in-doubt", "--unfinished").out == "No unfinished conversations with anything in doubt.\n"


def test_show_as_json_is_the_journal(haru: Haru, asked: dict[str, object]) -> None:
    shown = haru("show", str(asked["conversation_id"]), "--json").json
    kinds = [step["event"]["kind"] for step in shown["steps"]]
    assert kinds[0] == "message_received"
    assert kinds[-1] == "model_answered"
    assert shown["seq"] == len(kinds)
    assert (shown["in_doubt"], shown["tickets"]) == ([], [])


def test_show_for_people_lines_up_in_korean(haru: Haru, asked: dict[str, object]) -> None:
    shown = haru("show", str(asked["conversation_id"])).out
    assert "get_order_status → {" in shown
    assert "무선 블루투스 이어폰" in shown
    lines = shown.splitlines()
    rule = next(line for line in lines if line.startswith("─"))
    assert max(map(cell_len, lines)) <= cell_len(rule)
    # The last column begins in the same cell, whatever stands before it.
    head = next(line for line in lines if line.startswith("seq"))
    at = cell_len(head[: head.index("what happened")])
    first = next(line for line in lines if line.startswith("  1"))
    assert cell_len(first[: first.index("지금")]) == at


def test_a_narrow_terminal_cuts_nothing(
    haru: Haru, escalated: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    ticket = escalated["ticket"]
    assert isinstance(ticket, dict)
    assert str(escalated["conversation_id"]) in haru("list").out
    assert ticket["ticket_id"] in haru("tickets").out
    assert "ESCALATE_TICKET (rests)" in haru("show", str(escalated["conversation_id"])).out
    assert "AWAIT_MODEL" in haru("stats").out


def test_show_tells_guards_and_tickets(haru: Haru, escalated: dict[str, object]) -> None:
    ticket = escalated["ticket"]
    assert isinstance(ticket, dict)
    shown = haru("show", str(escalated["conversation_id"])).out
    assert "Stopped: " in shown
    assert "[StepBudget(1)]" in shown
    assert f"ticket {ticket['ticket_id']} (기타, 보통): open" in shown


def test_a_person_closes_a_ticket(haru: Haru, escalated: dict[str, object]) -> None:
    ticket = escalated["ticket"]
    assert isinstance(ticket, dict)
    number = ticket["ticket_id"]
    [listed] = haru("tickets", "--open", "--json").json
    assert listed == {**ticket, "notes": [], "reply": None, "closed_at": None}
    closed = haru("ticket", "close", number, "--reply", "내일 도착합니다.")
    assert closed.code == 0
    assert "DONE" in closed.out
    assert haru("tickets", "--open", "--json").json == []
    [listed] = haru("tickets", "--json").json
    assert listed["reply"] == "내일 도착합니다."
    assert "answered: 내일 도착합니다." in haru("show", str(escalated["conversation_id"])).out
    assert "내일 도착합니다." in haru("tickets").out
    again = haru("ticket", "close", number, "--reply", "?")
    assert again.code == 2
    assert number in again.complaint


def test_options_before_the_command_reach_groups(haru: Haru, escalated: dict[str, object]) -> None:
    ticket = escalated["ticket"]
    assert isinstance(ticket, dict)
    closed = haru("--json", "ticket", "close", ticket["ticket_id"], "--reply", "네")
    assert json.loads(closed.out)["conversation_id"] == escalated["conversation_id"]


def test_stats(haru: Haru, asked: dict[str, object], escalated: dict[str, object]) -> None:
    figures = haru("stats", "--json").json
    assert (figures["conversations"], figures["runs"]) == (2, 2)
    assert figures["endings"] == {"answer": 1, "ticket": 1}
    assert figures["guards"] == {"StepBudget(1)": 1}
    assert figures["model"]["requests"] == 4
    assert figures["tools"]["get_order_status"]["calls"] == 3
    assert figures["states"]["AWAIT_MODEL"]["steps"] == 4
    one = haru("stats", str(asked["conversation_id"]), "--json").json
    assert one["model"]["requests"] == 3
    table = haru("stats").out
    assert "get_order_status" in table
    assert "StepBudget(1) 1" in table


def test_what_a_fork_shares_is_counted_once_and_all_of_it_where_it_is_asked_for(
    haru: Haru, asked: dict[str, object]
) -> None:
    forked = haru("fork", str(asked["conversation_id"]), "--at", "4", "--model", "offline", "--json").json
    both, one = haru("stats", "--json").json, haru("stats", str(forked["conversation_id"]), "--json").json
    parent = haru("stats", str(asked["conversation_id"]), "--json").json
    asked_for = [figures["model"]["requests"] for figures in (parent, one, both)]
    assert asked_for == [3, 3, 5], "the first of them both have"
    assert (both["conversations"], both["endings"]) == (2, {"answer": 2})


def test_looking_needs_no_sound_app(haru: Haru, tmp_path: Path, asked: dict[str, object]) -> None:
    app = tmp_path / "broken"
    for part in ("states", "tools"):
        (app / part).mkdir(parents=True)
        (app / part / "__init__.py").write_text("raise RuntimeError\n")
    shown = haru("show", str(asked["conversation_id"]), "--app", str(app))
    assert shown.code == 0
    assert haru("ask", "?", "--customer", "C003", "--app", str(app)).code == 2


def test_show_says_where_the_history_was_compacted(haru: Haru, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARU_LIMITS__COMPACT_AT_TOKENS", "1")
    monkeypatch.setenv("HARU_LIMITS__KEEP_RECENT_CONTENTS", "1")
    first = haru("ask", PARCELS, "--customer", "C003", "--json").json
    again = haru("ask", PARCELS, "--customer", "C003", "--conversation", first["conversation_id"], "--json").json
    assert again["answer"] == first["answer"]
    found = [
        step["event"]["compaction"]
        for step in haru("show", first["conversation_id"], "--json").json["steps"]
        if step["event"].get("compaction")
    ]
    assert found
    shown = haru("show", first["conversation_id"]).out
    for each in found:
        assert f"compacted up to step {each['seq']}: {each['before']:,} → {each['after']:,} bytes" in shown
        assert each["before"] > each["after"]
    assert "contents became a digest" in shown


@pytest.mark.parametrize("encoding", ["ascii", "cp949", "utf-8"])
def test_json_keeps_every_character_whatever_the_encoding(haru: Haru, tmp_path: Path, encoding: str) -> None:
    question = "HR20260725002 언제 와요? 😀"
    run = haru("ask", question, "--customer", "C003", "--json").json
    environment = clean_environment(PYTHONIOENCODING=encoding, HARU_DATABASE_URL=f"sqlite:///{tmp_path}/haru.db")
    show = command("show", run["conversation_id"], "--json")
    shown = subprocess.run(show, capture_output=True, env=environment, check=True, timeout=60)
    assert json.loads(shown.stdout.decode(encoding))["steps"][0]["event"]["text"] == question
