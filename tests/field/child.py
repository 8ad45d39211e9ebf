"""A process that plays a part of a field case and may be killed on the way: a task as JSON on standard input."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from haru_fsm.conversation import Conversation
from haru_fsm.errors import HaruError
from haru_fsm.runs import Run
from haru_fsm.stores import Store
from haru_fsm.testing.crashes import Crasher, CrashingStore, CrashPoint, killed
from tests.field.desks import DeskInAFile
from tests.field.playing import Stage, load_cases, talk


class DyingStore:
    """Dies before or after the append that brings an event of this kind."""

    def __init__(self, store: Store, kind: str, when: str) -> None:
        self._store, self._kind, self._when = store, kind, when

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def append(self, conversation: Conversation, *, expected_seq: int, **place: Any) -> None:
        """As the store's, or the last that this process does."""
        here = any(step.event.kind == self._kind for step in conversation.steps[expected_seq:])
        if here and self._when == "before":
            killed()
        await self._store.append(conversation, expected_seq=expected_seq, **place)
        if here:
            killed()


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
    store = DyingStore(stage.store(), *task["dies"]) if task.get("dies") else MeasuringStore(stage, crasher)
    async with stage.engine(store=store, desk=desk, crasher=crasher) as engine:
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
