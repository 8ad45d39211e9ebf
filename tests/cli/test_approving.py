"""A call that waits: exit code 3, what to type, approve, deny, and what list, show and chat say."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from haru_fsm import Engine, load_app
from haru_fsm.cli import asking as looking_at
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.settings import Settings
from tests.cli.conftest import Haru
from tests.engine.shopless import wiping_app


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return wiping_app(tmp_path)


def paused(app: Path, *things: str) -> str:
    """A conversation in the app's own database that waits for these approvals."""
    return asyncio.run(_paused(app, things))


async def _paused(app: Path, things: tuple[str, ...]) -> str:
    store = Settings.for_folder(app).make_store(app)
    model = ScriptedModel([[("wipe", {"what": thing}) for thing in things]])
    async with Engine(load_app(app), model=model, store=store) as engine:
        return (await engine.ask("지워 주세요", customer_id="kim")).conversation_id


def test_waiting_is_told_with_what_to_type(haru: Haru, app: Path) -> None:
    conversation = paused(app, "A")
    where = ("--app", str(app))
    resumed = haru("resume", conversation, *where)
    assert resumed.code == 3
    assert f"haru approve --app {app}" not in resumed.out
    assert f"haru approve {conversation} 2.0 --app {app}" in resumed.out
    assert f"haru deny {conversation} 2.0 --reason TEXT --app {app}" in resumed.out
    assert "wipe({'what': 'A'})" in resumed.out
    told = haru("resume", conversation, *where, "--json")
    assert (told.code, [each["call"] for each in told.json["waiting"]]) == (3, ["2.0"])
    assert "waits for approval" in haru("list", *where).out
    assert "waits for approval" in haru("list", "--unfinished", *where).out
    shown = haru("show", conversation, *where)
    assert "haru approve" in shown.out
    assert haru("show", conversation, *where, "--json").json["waiting"][0]["tool"] == "wipe"
    assert "waiting" in haru("stats", *where, "--json").out
    rest = haru("resume", "--all", *where)
    assert rest.out.strip() == "Nothing was left to carry on."
    assert rest.err == f"waiting: 1 run for a person's approval. See: haru list --unfinished --app {app}\n"


def test_an_approval_whose_time_is_up_is_not_asked_for(haru: Haru, app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = paused(app, "A")
    where = ("--app", str(app))
    monkeypatch.setattr(looking_at, "now", lambda: 4e9)
    shown = haru("show", conversation, *where).out
    assert "denied, for nobody approved it by " in shown
    assert f"  haru resume {conversation} --app {app}\n" in shown
    assert "haru approve" not in shown


def test_approve_and_deny(haru: Haru, app: Path) -> None:
    conversation = paused(app, "A", "B")
    where = ("--app", str(app))
    denied = haru("deny", conversation, "2.1", "--reason", "쓰는 중", "--by", "lee", *where)
    assert denied.code == 3, "another call still waits"
    assert "Denied: call 2.1 by lee: 쓰는 중" in denied.out
    approved = haru("approve", conversation, "2.0", "--by", "lee", *where, "--json")
    assert (approved.code, approved.json["finished"], approved.json["tool_runs"]) == (0, True, 1)
    again = haru("approve", conversation, "2.0", *where)
    assert again.code == 2
    assert "approved by lee" in again.complaint
    assert haru("approve", conversation, "9.9", *where).code == 2


def test_a_message_in_the_pause_is_kept_and_answered_after_it(haru: Haru, app: Path) -> None:
    conversation = paused(app, "A")
    where = ("--app", str(app))
    kept = haru("ask", "그리고요?", "--customer", "kim", "--conversation", conversation, *where)
    assert kept.code == 3
    assert "잘 받아 두었으며" in kept.out
    approved = haru("approve", conversation, "2.0", *where)
    assert approved.code == 0
    assert "A message that came meanwhile was taken up" in approved.out


def test_a_person_decides_in_the_chat_as_well(haru: Haru, app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "yuna")  # what the system says of who is logged in
    conversation = paused(app, "A")
    where = ("--app", str(app))
    chatted = haru(
        "chat",
        "--customer",
        "kim",
        "--conversation",
        conversation,
        *where,
        typed="여보세요?\n/approve 2.0\n/deny 2.0 x\n",
    )
    assert chatted.code == 0
    assert "  /approve 2.0\n  /deny 2.0 REASON\n" in chatted.err
    assert "haru approve" not in chatted.err
    assert "Approved: call 2.0 by yuna" in chatted.out
    assert "Call 2.0 was approved" in chatted.err
    steps = haru("show", conversation, *where, "--json").json["steps"]
    assert json.dumps(steps).count('"approval_decided"') == 1
