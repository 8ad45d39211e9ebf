"""What touches the disk: microseconds a step, steps a second, bytes a step, and loading, in turns with raw sqlite3."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from bench import haru
from bench.figures import Figure, Target
from bench.measuring import Plan, Span, Stopwatch, tell, timed
from bench.raw import Raw
from bench.skeleton import Skeleton
from bench.workload import CUSTOMER
from haru_fsm.stores.sqlite import SQLiteStore

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

    @property
    def ratio(self) -> float:
        """The engine's as a multiple of raw's."""
        return self.haru / self.raw

    @property
    def over(self) -> float:
        """What the engine's is beyond raw's."""
        return self.haru - self.raw


def figures(plan: Plan) -> Iterator[Figure]:
    """All figures of this module, in the order of the table."""
    yield from _alone(plan)
    yield from _together(plan)
    yield from _skeletons(plan)
    yield from _stored(plan)


# --------------------------------------------------------------------------- one conversation


def _alone(plan: Plan) -> Iterator[Figure]:
    group = "one conversation"
    # Lengths take turns as well, so that a slow minute of the disk does not look like growth.
    turns: dict[int, list[_Turn]] = {n: [] for n in plan.lengths}
    for turn in range(plan.repetitions):
        tell(f"one conversation alone: {turn + 1} of {plan.repetitions}")
        for n, seen in turns.items():
            seen.append(_in_turns(turn, partial(_haru, plan.folder, 1, n), partial(_raw, plan.folder, 1, n)))
    clock = {n: [seen.clock_us for seen in turns[n]] for n in turns}
    processor = {n: [seen.processor_us for seen in turns[n]] for n in turns}
    for n, pairs in clock.items():
        yield Figure(group, f"{n} steps", *_middle(pairs, "µs/step"))
    yield _threaded(plan, group, turns)
    for n, pairs in clock.items():
        over = median(pair.over for pair in pairs)
        yield Figure(group, f"{n} steps, over raw", over, "µs/step", target=Target(OVER_RAW_US))
    yield _growth(group, f"growth {max(turns)}/{min(turns)}", clock)
    for n, pairs in processor.items():
        yield Figure(group, f"{n} steps, processor time", *_middle(pairs, "µs/step"))
    yield _growth(group, f"growth {max(turns)}/{min(turns)}, processor time", processor)


def _threaded(plan: Plan, group: str, turns: dict[int, list[_Turn]]) -> Figure:
    """The middle length once more, with a tool that is a plain function."""
    n = sorted(turns)[len(turns) // 2]
    tell(f"one conversation of {n} steps, its tool in a thread")
    pairs = [
        Pair(_haru(plan.folder, 1, n, threads=True).clock_s * 1e6, _raw(plan.folder, 1, n).clock_s * 1e6)
        for _ in turns[n]
    ]
    return Figure(group, f"{n} steps, the tool in a thread", *_middle(pairs, "µs/step"))


def _growth(group: str, name: str, pairs: dict[int, list[Pair]]) -> Figure:
    """What a step of the longest conversation costs, as a multiple of a step of the shortest in the same turn."""
    both = list(zip(pairs[max(pairs)], pairs[min(pairs)], strict=True))
    ours = median(long.haru / short.haru for long, short in both)
    return Figure(group, name, ours, "", median(long.raw / short.raw for long, short in both), Target(GROWTH))


# --------------------------------------------------------------------------- many conversations


def _together(plan: Plan) -> Iterator[Figure]:
    conversations, n = plan.together
    group = f"{conversations} conversations x {n} steps"
    turns: list[_Turn] = []
    for turn in range(plan.repetitions):
        tell(f"{group}: {turn + 1} of {plan.repetitions}")
        turns.append(
            _in_turns(turn, lambda: _haru(plan.folder, conversations, n), lambda: _raw(plan.folder, conversations, n))
        )
    rates = [Pair(1e6 / seen.clock_us.haru, 1e6 / seen.clock_us.raw) for seen in turns]
    times = median(rate.ratio for rate in rates)
    yield Figure(
        group, "together (raw: one after another)", *_middle(rates, "steps/s"), Target(STEPS_A_SECOND, least=True)
    )
    yield Figure(group, "times raw", times, "", target=Target(TIMES_RAW, least=True))
    yield Figure(group, "processor time", *_middle([seen.processor_us for seen in turns], "µs/step"))


# --------------------------------------------------------------------------- where it ends


def _skeletons(plan: Plan) -> Iterator[Figure]:
    """How far the engine could go, if all that it does beside its design's bones took no time."""
    group = "a bare skeleton (see bench/skeleton.py)"
    tell(group)
    n = sorted(plan.lengths)[len(plan.lengths) // 2]
    alone = [_in_turns(turn, partial(_bare, plan.folder, 1, n), partial(_raw, plan.folder, 1, n)) for turn in _of(plan)]
    yield Figure(group, f"{n} steps alone, over raw", median(seen.clock_us.over for seen in alone), "µs/step")
    many, n = plan.together
    together = [
        _in_turns(turn, partial(_bare, plan.folder, many, n), partial(_raw, plan.folder, many, n)) for turn in _of(plan)
    ]
    rates = [Pair(1e6 / seen.clock_us.haru, 1e6 / seen.clock_us.raw) for seen in together]
    yield Figure(group, f"{many} conversations together", *_middle(rates, "steps/s"))


def _of(plan: Plan) -> range:
    return range(plan.repetitions)


def _bare(folder: Path, conversations: int, n: int) -> Span:
    """What a step takes on the skeleton, all conversations at once."""

    async def measured() -> Span:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            async with Skeleton(Path(place) / "skeleton.db") as skeleton:
                watch = Stopwatch()
                await skeleton.converse_together(range(conversations), n)
                return watch.span()

    return _a_step(asyncio.run(measured()), conversations * n)


# --------------------------------------------------------------------------- both sides


@dataclass(frozen=True, slots=True)
class _Turn:
    """Microseconds a step, by the clock and of all processors, on both sides."""

    clock_us: Pair
    processor_us: Pair


def _in_turns(turn: int, ours: Callable[[], Span], raws: Callable[[], Span]) -> _Turn:
    """Measure both; who goes first changes with the turn."""
    if turn % 2:
        raw, haru_ = raws(), ours()
    else:
        haru_, raw = ours(), raws()
    return _Turn(Pair(haru_.clock_s * 1e6, raw.clock_s * 1e6), Pair(haru_.processor_s * 1e6, raw.processor_s * 1e6))


def _haru(folder: Path, conversations: int, n: int, *, threads: bool = False) -> Span:
    """What a step takes on the engine, all conversations at once."""

    async def measured() -> Span:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            async with haru.engine(Path(place) / "haru.db", n, threads=threads) as engine:
                watch = Stopwatch()
                await haru.converse_together(engine, range(conversations), n)
                return watch.span()

    return _a_step(asyncio.run(measured()), conversations * n)


def _raw(folder: Path, conversations: int, n: int) -> Span:
    """What a step takes on raw sqlite3, one conversation after another."""
    with tempfile.TemporaryDirectory(dir=folder) as place, Raw(Path(place) / "raw.db") as raw:
        raw.converse("warm", 3)
        return _a_step(timed(partial(raw.converse_in_turn, conversations, n)), conversations * n)


def _a_step(span: Span, steps: int) -> Span:
    return Span(span.clock_s / steps, span.processor_s / steps)


def _middle(pairs: list[Pair], unit: str) -> tuple[float, str, float]:
    """The value, unit and raw value of a Figure: the median of each side."""
    return median(pair.haru for pair in pairs), unit, median(pair.raw for pair in pairs)


# --------------------------------------------------------------------------- bytes, and loading


def _stored(plan: Plan) -> Iterator[Figure]:
    tell("bytes and loading")
    with tempfile.TemporaryDirectory(dir=plan.folder) as place:
        yield from asyncio.run(_stored_in(Path(place), plan))


async def _stored_in(place: Path, plan: Plan) -> list[Figure]:
    shortest, longest = min(plan.lengths), max(plan.lengths)
    short, long = [await _made(place, n) for n in (shortest, longest)]
    # The difference of two lengths leaves out what an empty database takes.
    steps = longest - shortest
    stored, raw, once = ((more - less) / steps for more, less in zip(long, short, strict=True))
    loaded, rebuilt, selected = await _loads(place, longest, plan.repetitions * 5)
    return [
        Figure("stored", "file (raw: its file)", stored, "B/step", raw),
        Figure("stored", "times events and results as JSON, once", stored / once, "", raw / once, Target(TIMES_JSON)),
        Figure("loaded", f"{longest} steps (raw: select, json.loads)", loaded, "ms", selected, Target(LOAD_MS)),
        Figure("loaded", "with the guards' memos, ready to go on", rebuilt, "ms"),
    ]


async def _made(place: Path, n: int) -> tuple[int, int, int]:
    """Make a conversation of `n` steps on both sides. Bytes of the engine's file, of raw's, and of the JSON alone."""
    ours, raws = _paths(place, n)
    async with haru.engine(ours, n) as engine:
        await haru.converse(engine, "c", n)
    with Raw(raws) as raw:
        raw.converse("warm", 3)
        raw.converse("c", n)
        json_bytes = raw.json_bytes("c")
    return await asyncio.to_thread(_bytes, ours), await asyncio.to_thread(_bytes, raws), json_bytes


def _paths(place: Path, n: int) -> tuple[Path, Path]:
    return place / f"haru-{n}.db", place / f"raw-{n}.db"


def _bytes(path: Path) -> int:
    """Bytes of a database, once its log is back in the file."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return path.stat().st_size
    finally:
        connection.close()


async def _loads(place: Path, n: int, repetitions: int) -> tuple[float, float, float]:
    """Milliseconds: the store's load, the same with the guards' memos, and raw's select."""
    workflow, taken = haru.app().workflow, []
    ours, raws = _paths(place, n)
    store, raw = SQLiteStore(ours), Raw(raws)
    for _ in range(repetitions):
        selected = timed(lambda: raw.load("c"))
        watch = Stopwatch()
        record = await store.load("c")
        loaded = watch.span()
        assert record is not None
        workflow.replay(workflow.begin("c", CUSTOMER), record.steps)
        taken.append((loaded.clock_s, watch.span().clock_s, selected.clock_s))
    await store.aclose()
    raw.close()
    load, rebuilt, select = (median(column) * 1000 for column in zip(*taken, strict=True))
    return load, rebuilt, select
