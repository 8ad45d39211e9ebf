"""A process that plays a part of a field case and may be killed on the way: a task as JSON on standard input."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from haru_fsm.errors import HaruError
from haru_fsm.runs import Run
from haru_fsm.testing.crashes import Crasher, CrashingStore, CrashPoint
from tests.field.desks import DeskInAFile
from tests.field.playing import Stage, load_cases, talk


class MeasuringStore(CrashingStore):
    """Notes the size of SQLite's write-ahead log at each append, so that a test can tear the last write."""

    def __init__(self, stage: Stage, crasher: Crasher) -> None:
        super().__init__(stage.store(), crasher)
        self._log = stage.database.with_name("haru.db-wal")
        self._sizes = stage.folder / "sizes"

    async def append(self, conversation: Any, **place: Any) -> None:
        """As the store's; the size is that before the write."""
        with self._sizes.open("a") as sizes:
            sizes.write(f"{self._log.stat().st_size if self._log.exists() else 0}\n")
        await super().append(conversation, **place)


async def work(task: dict[str, Any]) -> dict[str, Any]:
    """Do what the task says; dies on the way where it says so."""
    stage = Stage(load_cases()[task["case"]], Path(task["folder"]), task["base_url"])
    crasher = Crasher(CrashPoint(*task["crash"]) if task["crash"] else None)
    desk = DeskInAFile(stage.folder) if stage.case.script.get("ticket_faults") else None
    async with stage.engine(store=MeasuringStore(stage, crasher), desk=desk) as engine:
        if task["do"] == "resume":
            ended: list[Run | HaruError] = list(await engine.resume_all())
        else:
            ended = list(await talk(engine, stage.case, task["conversation_id"]))
    return {
        "runs": [run.model_dump(mode="json") for run in ended if isinstance(run, Run)],
        "errors": [str(run) for run in ended if not isinstance(run, Run)],
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(work(json.load(sys.stdin)))))
