"""What the processes do that the kill driver kills: one piece of work on an app, told as a line of JSON each.

    {"app": DIR, "db": FILE, "effects": FILE, "customer": "C003", "model": "offline" | [lines],
     "do": "ask" | "resume" | "finish", "messages": [[id, text], ...], "crash": [place, number, when] | null}

It gives one JSON object: the runs it brought to an end, and how many writes and effects it counted.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from haru_fsm.app import load_app
from haru_fsm.engine import Engine
from haru_fsm.errors import HaruError
from haru_fsm.limits import Limits
from haru_fsm.models import Model, ModelRequest
from haru_fsm.models.offline import OfflineModel
from haru_fsm.models.scripted import Line, ScriptedModel
from haru_fsm.runs import Run
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.testing.crashes import Crasher, CrashingStore, CrashPoint, crashing_tools
from haru_fsm.testing.forkserver import serve

CONVERSATION = "c-killed"


async def work(task: dict[str, Any]) -> dict[str, Any]:
    """Do what the task says; dies on the way where it says so."""
    crasher = Crasher(CrashPoint(*task["crash"]) if task.get("crash") else None)
    app = load_app(task["app"], limits=Limits(**task.get("limits", {})))
    app = app.with_tools(crashing_tools(app.make_tools, crasher, lambda name: _log(Path(task["effects"]), name)))
    store = CrashingStore(SQLiteStore(task["db"]), crasher)
    async with Engine(app, model=_model(task["model"]), store=store) as engine:
        runs = [] if task["do"] == "ask" else await engine.resume_all()
        if task["do"] != "resume":
            runs += await _asked(engine, task)
    ended = [run.model_dump(mode="json") for run in runs if isinstance(run, Run)]
    return {"runs": ended, "errors": [str(run) for run in runs if not isinstance(run, Run)], "counts": crasher.counts}


async def _asked(engine: Engine, task: dict[str, Any]) -> list[Run | HaruError]:
    return [await _approved(engine, task["customer"], message_id, text) for message_id, text in task["messages"]]


async def _approved(engine: Engine, customer: str, message_id: str, text: str) -> Run:
    """One message, to its ending; a person approves whatever waits on the way."""
    run = await engine.ask(text, customer_id=customer, conversation_id=CONVERSATION, message_id=message_id)
    while run.waiting:
        run = await engine.approve(run.conversation_id, run.waiting[0].call, by="prover")
    return run


def _log(file: Path, name: str) -> None:
    """Remember an effect where no crash can forget it."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, f"{name}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _model(spec: str | list[Any]) -> Model:
    """A model that says the same to the same history, in whichever process."""
    if spec == "offline":
        return OfflineModel()

    def line(request: ModelRequest) -> Line:
        said = sum(content["role"] == "model" for content in request.contents)
        now: Any = spec[said] if said < len(spec) else "더 드릴 말씀이 없습니다."
        return now if isinstance(now, str) else [(name, args) for name, args in now]

    return ScriptedModel(line)


if __name__ == "__main__":
    serve(sys.stdin, lambda task: asyncio.run(work(task)))
