"""Two processes approve the same call at the same instant: one of them counts, and the call runs once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from haru_fsm import Engine, load_app
from haru_fsm.conversation import ApprovalDecided
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.transfer import verify
from tests.engine.shopless import ROOT, wiping_app

APPROVER = """
import asyncio, json, sys
from haru_fsm import Engine, load_app
from haru_fsm.errors import HaruError
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.stores.sqlite import SQLiteStore

async def main(app, db, name):
    async with Engine(load_app(app), model=ScriptedModel(lambda _: "지웠습니다."), store=SQLiteStore(db)) as haru:
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            try:
                run = await haru.approve(line.strip(), "2.0", by=name)
                told = {"counted": True, "answer": run.answer}
            except HaruError as error:
                told = {"counted": False, "error": type(error).__name__}
            print(json.dumps(told), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""
ROUNDS = 8


async def paused_conversations(app: Path, db: Path) -> list[str]:
    model = ScriptedModel(lambda request: [("wipe", {"what": request.contents[0]["parts"][0]["text"]})])
    async with Engine(load_app(app), model=model, store=SQLiteStore(db)) as haru:
        runs = [await haru.ask(f"thing-{number}", customer_id="C1") for number in range(ROUNDS)]
    assert all(run.waiting for run in runs)
    return [run.conversation_id for run in runs]


def line(approver: subprocess.Popen[str]) -> str:
    """What it says next."""
    assert approver.stdout is not None
    return approver.stdout.readline()


async def test_of_two_approvers_at_once_exactly_one_counts(tmp_path: Path) -> None:
    app, db, log = wiping_app(tmp_path), tmp_path / "haru.db", tmp_path / "wiped"
    conversations = await paused_conversations(app, db)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "WIPED": str(log)}
    approvers = [
        subprocess.Popen(
            [sys.executable, "-c", APPROVER, str(app), str(db), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for name in ("kim", "lee")
    ]
    assert [line(approver) for approver in approvers] == ["ready\n"] * 2
    for conversation in conversations:
        for approver in approvers:
            print(conversation, file=approver.stdin, flush=True)
        told = [json.loads(line(approver)) for approver in approvers]
        assert sorted(each["counted"] for each in told) == [False, True], told
        [loser] = [each["error"] for each in told if not each["counted"]]
        assert loser in ("ConversationMoved", "ConversationBusy", "UnknownCall")
    for approver in approvers:
        approver.communicate()
        assert approver.returncode == 0
    assert sorted(log.read_text().split()) == sorted(f"thing-{number}" for number in range(ROUNDS))
    store = SQLiteStore(db)
    assert [finding.damage async for finding in verify(store)] == [None] * ROUNDS
    for conversation in conversations:
        record = await store.load(conversation)
        assert record is not None
        assert sum(isinstance(step.event, ApprovalDecided) for step in record.steps) == 1
    await store.aclose()
