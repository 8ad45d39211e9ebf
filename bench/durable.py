"""What touches the disk: microseconds a step, steps a second, bytes a step, and loading, in turns with raw sqlite3."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import haru
from bench.figures import Figure, Target
from bench.measuring import Plan, tell, timed
from bench.raw import Raw

OVER_RAW_US = 300
GROWTH = 1.05
STEPS_A_SECOND = 5_000
TIMES_RAW = 2
TIMES_JSON = 1.15
LOAD_MS = 4


@dataclass(frozen=True, slots=True)
class Pair:
    """The same measured on the engine and on raw sqlite3."""

    haru: float
    raw: float


def figures(plan: Plan) -> Iterator[Figure]:
    """All figures of this module, in the order of the table."""
    yield from _alone(plan)
    yield from _together(plan)
    yield from _stored(plan)


# --------------------------------------------------------------------------- one conversation


def _alone(plan: Plan) -> Iterator[Figure]:
    group = "one conversation"
    # Lengths take turns as well, so that a slow minute of the disk does not look like growth.
    seen: dict[int, list[Pair]] = {n: [] for n in plan.lengths}
    for turn in range(plan.repetitions):
        tell(f"one conversation alone: {turn + 1} of {plan.repetitions}")
        for n in plan.lengths:
            seen[n].append(_in_turns(plan.folder, n, turn))
    middle = {n: _middle(pairs) for n, pairs in seen.items()}
    for n, pair in middle.items():
        yield Figure(group, f"{n} steps", pair.haru, "µs/step", pair.raw)
    for n, pairs in seen.items():
        over = median(pair.haru - pair.raw for pair in pairs)
        yield Figure(group, f"{n} steps, over raw", over, "µs/step", target=Target(OVER_RAW_US))
    shortest, longest = min(plan.lengths), max(plan.lengths)
    growth, raw = (
        median(
            getattr(long, side) / getattr(short, side)
            for long, short in zip(seen[longest], seen[shortest], strict=True)
        )
        for side in ("haru", "raw")
    )
    yield Figure(group, f"growth {longest}/{shortest}", growth, "", raw, Target(GROWTH))


def _in_turns(folder: Path, n: int, turn: int) -> Pair:
    """Microseconds a step on both; who goes first changes with the turn."""
    if turn % 2:
        raw = _raw_alone(folder, n)
        return Pair(_haru_alone(folder, n), raw)
    return Pair(_haru_alone(folder, n), _raw_alone(folder, n))


def _haru_alone(folder: Path, n: int) -> float:
    async def measured() -> float:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            async with haru.engine(Path(place) / "haru.db", n) as engine:
                gc.collect()
                began = time.perf_counter()
                await haru.converse(engine, "c", n)
                return time.perf_counter() - began

    return asyncio.run(measured()) / n * 1e6


def _raw_alone(folder: Path, n: int) -> float:
    with tempfile.TemporaryDirectory(dir=folder) as place, Raw(Path(place) / "raw.db") as raw:
        raw.converse("warm", 3)
        return timed(lambda: raw.converse("c", n)) / n * 1e6


# --------------------------------------------------------------------------- many conversations


def _together(plan: Plan) -> Iterator[Figure]:
    conversations, n = plan.together
    group = f"{conversations} conversations x {n} steps"
    rates = []
    for turn in range(plan.repetitions):
        tell(f"{group}: {turn + 1} of {plan.repetitions}")
        rates.append(_rates(plan.folder, conversations, n, turn))
    pair = _middle(rates)
    yield Figure(
        group, "together (raw: one after another)", pair.haru, "steps/s", pair.raw, Target(STEPS_A_SECOND, True)
    )
    times = median(rate.haru / rate.raw for rate in rates)
    yield Figure(group, "times raw", times, "", target=Target(TIMES_RAW, True))


def _rates(folder: Path, conversations: int, n: int, turn: int) -> Pair:
    sides = [lambda: _haru_together(folder, conversations, n), lambda: _raw_in_a_row(folder, conversations, n)]
    if turn % 2:
        raw = sides[1]()
        return Pair(sides[0](), raw)
    return Pair(sides[0](), sides[1]())


def _haru_together(folder: Path, conversations: int, n: int) -> float:
    async def measured() -> float:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            async with haru.engine(Path(place) / "haru.db", n) as engine:
                gc.collect()
                began = time.perf_counter()
                await haru.converse_together(engine, conversations, n)
                return time.perf_counter() - began

    return conversations * n / asyncio.run(measured())


def _raw_in_a_row(folder: Path, conversations: int, n: int) -> float:
    with tempfile.TemporaryDirectory(dir=folder) as place, Raw(Path(place) / "raw.db") as raw:
        raw.converse("warm", 3)

        def all_of_them() -> None:
            for index in range(conversations):
                raw.converse(f"c{index}", n)

        return conversations * n / timed(all_of_them)


# --------------------------------------------------------------------------- bytes, and loading


def _stored(plan: Plan) -> Iterator[Figure]:
    tell("bytes and loading")
    with tempfile.TemporaryDirectory(dir=plan.folder) as place:
        yield from asyncio.run(_stored_in(Path(place), plan))


async def _stored_in(place: Path, plan: Plan) -> list[Figure]:
    shortest, longest = min(plan.lengths), max(plan.lengths)
    with Raw(place / "raw.db") as raw:
        for n in (shortest, longest):
            raw.converse(f"{n}", n)
        sizes = [await _bytes(place / f"{n}.db", n) for n in (shortest, longest)]
        # The difference of two lengths leaves out what an empty database takes.
        steps = longest - shortest
        once = (raw.json_bytes(f"{longest}") - raw.json_bytes(f"{shortest}")) / steps
        stored = (sizes[1] - sizes[0]) / steps
        load, rebuilt, selected = await _loads(place / f"{longest}.db", raw, longest, plan.repetitions * 5)
    return [
        Figure("stored", "bytes/step (raw: events and results as JSON, once)", stored, "B", once),
        Figure("stored", "times that JSON", stored / once, "", target=Target(TIMES_JSON)),
        Figure("loaded", f"{longest} steps (raw: select, json.loads)", load, "ms", selected, Target(LOAD_MS)),
        Figure("loaded", "with the guards' memos, ready to go on", rebuilt, "ms"),
    ]


async def _bytes(path: Path, n: int) -> int:
    """Bytes of a database with one conversation of `n` steps: pages in use, after the log is back in the file."""
    async with haru.engine(path, n) as engine:
        await haru.converse(engine, "c", n)
    return await asyncio.to_thread(_checkpointed, path)


def _checkpointed(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return path.stat().st_size
    finally:
        connection.close()


async def _loads(path: Path, raw: Raw, n: int, repetitions: int) -> tuple[float, float, float]:
    """Milliseconds: the store's load, the same with the guards' memos, and raw's select."""
    workflow, taken = haru.app().workflow, []
    async with haru.engine(path.with_suffix(".2.db"), n) as engine:
        await haru.converse(engine, "c", n)
        for _ in range(repetitions):
            selected = timed(lambda: raw.load(f"{n}"))
            gc.collect()
            began = time.perf_counter()
            record = await engine.store.load("c")
            loaded = time.perf_counter() - began
            assert record is not None
            workflow.replay(workflow.begin("c", "C001"), record.steps)
            taken.append((loaded, time.perf_counter() - began, selected))
    load, rebuilt, selected = (median(column) * 1000 for column in zip(*taken, strict=True))
    return load, rebuilt, selected


def _middle(pairs: list[Pair]) -> Pair:
    return Pair(median(pair.haru for pair in pairs), median(pair.raw for pair in pairs))
