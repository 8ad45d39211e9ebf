"""`haru ask` and `haru resume`: a message is taken to its ending, and told as it happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from haru_fsm.cli.wiring import FORGOTTEN, Given
from haru_fsm.runs import Run
from tests.cli.apps import STATES, TOOLS, write_app
from tests.cli.conftest import PARCELS, Haru, clean_environment

STEPS = """\
[step 1] Action: get_my_orders({})
[step 2] Action: get_order_status({'order_id': 'HR20260725002'})
[step 2] Action: get_order_status({'order_id': 'HR20260711064'})
[step 2] Action: get_order_status({'order_id': 'HR20260706059'})
[step 3] 최종 답변
"""


def test_the_main_job(process: Haru) -> None:
    asked = process("ask", PARCELS, "--customer", "C003")
    assert (asked.code, asked.err) == (0, "")
    assert asked.out.startswith(STEPS)
    for number in ("34622188536", "56102174598", "90937026152"):
        assert number in asked.out
    found = re.search(r"^conversation (c-\S+) · DONE\nlook inside: haru (show \S+)$", asked.out, re.MULTILINE)
    assert found is not None
    shown = process(*found[2].split())
    assert shown.code == 0
    assert found[1] in shown.out


@pytest.mark.parametrize("on_the_path", [True, False])
def test_what_to_type_next_is_there_where_it_is_typed(empty: Path, on_the_path: bool) -> None:
    """`make demo` answers out of an environment that nobody has activated."""
    command = empty / "bin" / "haru"
    command.parent.mkdir()
    command.write_text(f"#!{sys.executable}\nimport sys\nfrom haru_fsm.cli import main\nsys.exit(main())\n")
    command.chmod(0o755)
    path = [*([str(command.parent)] if on_the_path else []), "/usr/bin", "/bin"]
    environment = clean_environment(PATH=os.pathsep.join(path), HARU_DATABASE_URL=f"sqlite:///{empty}/haru.db")

    def typed(line: str) -> str:
        return subprocess.check_output(["sh", "-c", line], cwd=empty, env=environment, text=True, encoding="utf-8")

    name = "haru" if on_the_path else "bin/haru"
    asked = typed(f"{name} ask 'HR20260725002 언제 와요?' --customer C003")
    again = asked.rpartition("look inside: ")[2].strip()
    assert again.startswith(f"{name} show c-")
    assert "HR20260725002 언제 와요?" in typed(again)


def test_json_is_the_run_and_nothing_else(haru: Haru) -> None:
    asked = haru("ask", PARCELS, "--customer", "C003", "--json")
    assert asked.code == 0
    run = Run.model_validate(asked.json)
    assert (run.state, run.steps, run.tool_runs, run.finished) == ("DONE", 3, 4, True)
    assert asked.err == STEPS


def test_options_may_stand_before_the_command(haru: Haru) -> None:
    asked = haru("--json", "--model", "offline", "ask", PARCELS, "--customer", "C003")
    assert asked.json["state"] == "DONE"


def test_a_long_message_comes_from_standard_input(haru: Haru) -> None:
    asked = haru("ask", "-", "--customer", "C003", "--json", typed=PARCELS)
    assert asked.json["tool_runs"] == 4
    refused = haru("ask", "-", "--customer", "C003", typed=b"\xff\xfe")
    assert refused.code == 2
    assert "UTF-8" in refused.complaint


def test_the_same_message_id_is_the_same_run(haru: Haru) -> None:
    first = haru("ask", PARCELS, "--customer", "C003", "--message-id", "m1", "--json")
    again = haru("ask", PARCELS, "--customer", "C003", "--message-id", "m1", "--json")
    assert first.json == again.json
    assert again.err == ""
    assert len(haru("list", "--json").json) == 1


def test_another_text_under_the_same_message_id_is_told_and_not_read(haru: Haru) -> None:
    first = haru("ask", PARCELS, "--customer", "C003", "--message-id", "m1", "--json")
    assert "m1" not in first.err
    for shown in (("--json",), ()):
        other = haru("ask", "환불해 주세요", "--customer", "C003", "--message-id", "m1", *shown)
        assert other.code == 0
        assert "message id m1 was used for another text" in other.err
        assert first.json["answer"] in (other.json["answer"] if shown else other.out)


def test_a_conversation_goes_on_and_counts_anew(haru: Haru) -> None:
    first = haru("ask", PARCELS, "--customer", "C003", "--json").json
    more = haru("ask", PARCELS, "--customer", "C003", "--conversation", first["conversation_id"], "--json")
    assert more.json["conversation_id"] == first["conversation_id"]
    assert more.json["run_id"] != first["run_id"]
    assert more.err.startswith("[step 1] ")


def test_at_the_limit_the_customer_reads_a_ticket(haru: Haru) -> None:
    asked = haru("ask", PARCELS, "--customer", "C003", "--max-steps", "1")
    assert asked.code == 0
    assert "[step 1] Not run: get_my_orders({})\n" in asked.out
    assert "[StepBudget(1)]" in asked.out
    number = re.search(r"HT-\d{10}", asked.out)
    assert number is not None
    assert asked.out.count(number[0]) == 3
    assert number[0] in haru("tickets").out


def test_a_limit_from_the_environment(process: Haru) -> None:
    asked = process("ask", PARCELS, "--customer", "C003", "--json", HARU_LIMITS__MAX_STEPS="2")
    assert asked.json["stopped_by"]["guard"] == "StepBudget(2)"


def test_resuming_what_is_at_rest_changes_nothing(haru: Haru) -> None:
    run = haru("ask", PARCELS, "--customer", "C003", "--json").json
    resumed = haru("resume", run["conversation_id"], "--json")
    assert (resumed.code, resumed.json, resumed.err) == (0, run, "")
    everything = haru("resume", "--all")
    assert (everything.code, everything.out) == (0, "Nothing was left to carry on.\n")
    assert haru("resume", "--all", "--json").json == []


def test_resume_wants_to_know_what(haru: Haru) -> None:
    for words in ((), ("c-1", "--all")):
        refused = haru("resume", *words)
        assert refused.code == 2
        assert "haru resume --all" in refused.complaint


def test_hints_name_the_same_app_and_database(haru: Haru) -> None:
    asked = haru("ask", PARCELS, "--customer", "C003", "--db", "sqlite:///my shop.db")
    assert "--db 'sqlite:///my shop.db'" in asked.out.splitlines()[-1]


@pytest.mark.parametrize("how", ["option", "variable", "file"])
def test_a_database_in_memory_promises_nothing_to_look_at(
    haru: Haru, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    app = write_app(tmp_path / "shop")
    words: tuple[str, ...] = ("--app", str(app))
    monkeypatch.delenv("HARU_DATABASE_URL")
    if how == "option":
        words = (*words, "--db", "memory:")
    elif how == "variable":
        monkeypatch.setenv("HARU_DATABASE_URL", "memory:")
    else:
        (app / "haru.toml").write_text('database_url = "memory:"', "utf-8")
    asked = haru("ask", "안녕하세요", "--customer", "kim", *words)
    called = haru("call", "get_stock", "--customer", "kim", "--args", '{"item": "mug"}', *words)
    chatted = haru("chat", "--customer", "kim", *words, typed="안녕하세요\n")
    for ended in (asked, called, chatted):
        assert ended.code == 0
        assert "haru show" not in ended.out + ended.err
        assert "nothing of this is kept" in ended.out + ended.err


def test_who_stops_a_command_is_told_what_can_be_done(empty: Path) -> None:
    assert Given(db="memory:").interrupted("resume", "c-1")() == f"Interrupted; {FORGOTTEN}"
    assert Given(db="sqlite:///a.db").interrupted("resume", "c-1")().endswith("haru resume c-1 --db sqlite:///a.db")


@pytest.mark.parametrize("further", [False, True])
def test_who_stops_before_the_message_is_written_down_asks_again(haru: Haru, empty: Path, further: bool) -> None:
    stopped = TOOLS.replace("    @tool", "    raise KeyboardInterrupt\n    @tool", 1)
    where: tuple[str, ...] = ("--app", str(write_app(empty / "stopped", tools=stopped)))
    if further:
        begun = haru("ask", "안녕하세요", "--customer", "kim", "--json", "--app", str(write_app(empty / "shop")))
        where = (*where, "--conversation", begun.json["conversation_id"])
    ended = haru("ask", "mug 재고 있나요?", "--customer", "kim", *where)
    assert (ended.code, ended.out) == (130, "")
    assert (
        ended.err.strip() == "haru: Interrupted before the message was written down: nothing has happened. Ask again."
    )


def test_who_stops_after_it_was_written_down_carries_it_on(haru: Haru, empty: Path) -> None:
    app = write_app(
        empty / "shop", states=STATES.replace("    return await", "    raise KeyboardInterrupt\n    return await", 1)
    )
    ended = haru("ask", "안녕하세요", "--customer", "kim", "--app", str(app))
    assert ended.code == 130
    found = re.search(r"Carry it on with: haru (resume (c-\S+)) --app", ended.err)
    assert found is not None, ended.err
    assert haru("show", found[2]).code == 0
