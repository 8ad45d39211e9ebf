"""What conversations at rest cost a process that has others to attend to: beside the same process on an empty database.

The process is one of its own each time: it opens the database, looks for runs to take up, answers one new message in
three steps, and says how long that took and how much memory it has in the end.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

import psutil

from bench import workload
from bench.figures import Figure
from bench.haru import ROOT, Pages, app
from bench.measuring import Plan, Stopwatch, tell
from haru_fsm import Engine
from haru_fsm.conversation import Conversation
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.stores.sqlite import SQLiteStore

RESTING = 10_000
STEPS = 3
AT_ONCE = 200


def figures(plan: Plan) -> Iterator[Figure]:
    """All figures of this module, in the order of the table."""
    full, empty = plan.folder / "resting.db", plan.folder / "empty.db"
    tell(f"resting: {RESTING:,} conversations are written")
    asyncio.run(fill(full, RESTING))
    asyncio.run(fill(empty, 0))
    told: dict[Path, list[dict[str, float]]] = {full: [], empty: []}
    for turn in range(plan.processes):
        tell(f"resting: {turn + 1} of {plan.processes}")
        for path, found in told.items():
            found.append(_in_a_process(path))
    group = f"{RESTING:,} conversations at rest (raw: an empty database)"
    for name, key, unit in (
        ("engine and resume --all", "start_ms", "ms"),
        (f"one message, {STEPS} steps", "ask_ms", "ms"),
        ("memory of the process", "rss_mb", "MB"),
    ):
        with_them, without = (median(one[key] for one in told[path]) for path in (full, empty))
        yield Figure(group, name, with_them, unit, without)


async def fill(path: Path, count: int) -> None:
    """A database with so many conversations at rest, each with a run of a few steps and its results."""
    async with Engine(app(), model=Pages(STEPS), store=MemoryStore()) as engine:
        run = await engine.ask(workload.QUESTION, customer_id=workload.CUSTOMER)
        record = await engine.store.load(run.conversation_id)
    assert record is not None
    one = app().workflow.replay(app().workflow.begin("one", workload.CUSTOMER), record.steps)
    store = SQLiteStore(path)
    for start in range(0, count, AT_ONCE):
        await asyncio.gather(*(_put(store, one, number) for number in range(start, min(count, start + AT_ONCE))))
    await store.conversations(limit=1)
    await store.aclose()


async def _put(store: SQLiteStore, one: Conversation, number: int) -> None:
    another = replace(one, conversation_id=f"c-{number:010x}", customer_id=f"C{number:05d}")
    await store.append(another, expected_seq=0, owner=None, over=None, lease_s=0)


def _in_a_process(path: Path) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-m", "bench.resting", str(path)], check=True, capture_output=True, cwd=ROOT)
    told: dict[str, float] = json.loads(done.stdout)
    return told


async def _attend(path: Path) -> dict[str, float]:
    app()
    watch = Stopwatch()
    async with Engine(app(), model=Pages(STEPS), store=SQLiteStore(path)) as engine:
        assert await engine.resume_all() == []
        started = watch.span()
        watch = Stopwatch()
        await engine.ask(workload.QUESTION, customer_id=workload.CUSTOMER)
        asked = watch.span()
    memory = psutil.Process().memory_info().rss / 1e6
    return {"start_ms": started.clock_s * 1000, "ask_ms": asked.clock_s * 1000, "rss_mb": memory}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_attend(Path(sys.argv[1])))))
