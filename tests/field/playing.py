"""Playing a field case end to end: the real engine, model, store and processes, against a scripted Gemini over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from haru_fsm import Engine, Limits, load_app
from haru_fsm.clock import Clock, SystemClock
from haru_fsm.models.gemini import GeminiModel
from haru_fsm.runs import Run
from haru_fsm.stores import Record, Store, StoredTicket
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.testing.crashes import Crasher, CrashPoint, crashing_tools
from haru_fsm.testing.fake_gemini import FakeGemini
from haru_fsm.tickets import TicketDesk
from tests.field.log import Log
from tests.field.tools import tools_of

ROOT = Path(__file__).parent.parent.parent
CASES = Path(__file__).parent / "cases"
OWN = Path(__file__).parent / "own"
"""Cases of the same form that were written for this repository: ids begin with O."""
CUSTOMER = "C003"
CHILD_S = 60


@dataclass(frozen=True, slots=True)
class Case:
    """One file of `cases/`."""

    id: str
    name: str
    script: dict[str, Any]
    expected: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, str]]:
        """What the customer writes."""
        return list(self.script.get("user", []))

    def limits(self, **more: Any) -> Limits:
        """The guards that the case asks for."""
        guards = {**self.script["guards"], **more}
        guards["deadline_s"] = guards.pop("turn_deadline_s", None)
        # A window counted in contents is no limit of ours; compacting whenever it is possible is the stricter form.
        if (recent := guards.pop("context_window_contents", None)) is not None:
            guards |= {"keep_recent_contents": recent, "compact_at_tokens": 1}
        return Limits(**guards)


def load_cases() -> dict[str, Case]:
    """All cases, by id: those that were given, and our own."""
    cases = {}
    for file in sorted([*CASES.glob("*.json"), *OWN.glob("*.json")], key=lambda file: file.name):
        read = json.loads(file.read_text("utf-8"))
        cases[read["id"]] = Case(read["id"], file.stem, read["script"], read["expected"])
    return cases


class HastyClock(SystemClock):
    """The real time, but nobody waits: `slept` holds what a retry would have waited for, in seconds."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


@dataclass(slots=True)
class Stage:
    """Where one case is played: a folder with the database and the tools' log, and the address of the model."""

    case: Case
    folder: Path
    base_url: str
    hasty: HastyClock = field(default_factory=HastyClock)

    @property
    def database(self) -> Path:
        return self.folder / "haru.db"

    @property
    def log(self) -> Log:
        return Log(self.folder / "tools.jsonl")

    def store(self) -> SQLiteStore:
        """Another connection to the case's database."""
        return SQLiteStore(self.database)

    def engine(
        self,
        *,
        store: Store | None = None,
        desk: TicketDesk | None = None,
        clock: Clock | None = None,
        crasher: Crasher | None = None,
        **limits: Any,
    ) -> Engine:
        """A new engine over the case's database, as a new process would make it."""
        case, log, bounds = self.case, self.log, self.case.limits(**limits)

        def make_tools(_session: Any) -> Any:
            return tools_of(case.id, case.script.get("tools", []), log)

        dying = crashing_tools(make_tools, crasher, lambda _name: None) if crasher is not None else make_tools
        app = load_app(ROOT, limits=bounds).with_tools(dying)
        model = GeminiModel(
            "gemini-3-flash", api_key="test-key", base_url=self.base_url, limits=bounds, clock=self.hasty
        )
        return Engine(app, model=model, store=store or self.store(), desk=desk, clock=clock)

    async def child(
        self,
        do: str,
        *,
        crash: CrashPoint | None = None,
        dies: tuple[str, str] | None = None,
        conversation_id: str | None = None,
    ) -> dict[str, Any] | None:
        """Ask or resume in a process of its own; None where it was killed.

        `crash` counts writes and effects; `dies` names the event before or after whose append it dies.
        """
        task = {
            "case": self.case.id,
            "folder": str(self.folder),
            "base_url": self.base_url,
            "do": do,
            "conversation_id": conversation_id,
            "crash": [crash.place, crash.number, crash.when] if crash else None,
            "dies": dies,
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.field.child",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        try:
            async with asyncio.timeout(CHILD_S):
                told, complaint = await process.communicate(json.dumps(task).encode())
        finally:
            if process.returncode is None:
                process.kill()
        assert process.returncode is not None
        assert process.returncode <= 0, complaint.decode()
        assert (process.returncode < 0) == bool(crash or dies), "a child dies where it should, and only there"
        return None if process.returncode < 0 else json.loads(told)


@dataclass(slots=True)
class Played:
    """What came of a case."""

    stage: Stage
    gemini: FakeGemini
    runs: list[Run]
    record: Record
    tickets: Sequence[StoredTicket]
    took_s: float
    notes: dict[str, Any] = field(default_factory=dict)
    """What only this way of playing has seen."""

    @property
    def case(self) -> Case:
        return self.stage.case

    @property
    def last(self) -> Run:
        return self.runs[-1]

    def contents(self, number: int) -> list[Any]:
        """The contents of the how-manieth request, from 1."""
        return list(self.gemini.requests[number - 1]["contents"])

    def responses(self, number: int) -> list[dict[str, Any]]:
        """The function responses in the last turn of a request that holds any."""
        for content in reversed(self.contents(number)):
            found = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
            if found:
                return found
        return []

    def events(self, kind: type[Any]) -> list[Any]:
        """The events of this kind in the journal."""
        return [step.event for step in self.record.steps if isinstance(step.event, kind)]

    def incidents(self) -> list[Any]:
        """All requests that gave nothing usable."""
        return [each for step in self.record.steps for each in getattr(step.event, "incidents", ())]


async def talk(engine: Engine, case: Case, conversation_id: str | None = None) -> list[Run]:
    """All messages of the customer, one after another, in one conversation."""
    runs: list[Run] = []
    for message in case.messages:
        run = await engine.ask(
            message["text"],
            customer_id=CUSTOMER,
            conversation_id=conversation_id,
            message_id=message["message_id"],
        )
        conversation_id = run.conversation_id
        runs.append(run)
    return runs


async def played(stage: Stage, gemini: FakeGemini, runs: list[Run], began: float, **notes: Any) -> Played:
    """What came of it, read from the database with fresh eyes."""
    took_s = time.monotonic() - began
    store = stage.store()
    try:
        record = await store.load(runs[-1].conversation_id)
        assert record is not None
        return Played(stage, gemini, runs, record, await store.tickets(), took_s, notes)
    finally:
        await store.aclose()
