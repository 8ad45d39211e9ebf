"""What several processes make of one database: the conversations of `durable`'s "together", shared out among them.

One process has one interpreter lock, so together it makes no more steps than one processor can think of. Workers share
the database, and take turns at its write lock.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median

from bench import haru
from bench.durable import STEPS_A_SECOND, TIMES_RAW
from bench.figures import Figure, Target
from bench.measuring import Plan, tell, timed
from bench.raw import Raw

WORKERS = 2


def figures(plan: Plan) -> Iterator[Figure]:
    """Steps a second of all workers together, beside raw sqlite3 in one process."""
    conversations, n = plan.together
    group = f"the same in {WORKERS} processes"
    ours: list[float] = []
    raws: list[float] = []
    both = [(ours, _workers), (raws, _raw)]
    for turn in range(plan.repetitions):
        tell(f"{conversations} conversations x {n} steps in {WORKERS} processes: {turn + 1} of {plan.repetitions}")
        both.reverse()
        for rates, taken in both:
            with tempfile.TemporaryDirectory(dir=plan.folder) as place:
                rates.append(conversations * n / taken(Path(place), conversations, n))
    rate, raw = median(ours), median(raws)
    times = median(our / other for our, other in zip(ours, raws, strict=True))
    yield Figure(group, "together (raw: one after another)", rate, "steps/s", raw, Target(STEPS_A_SECOND, least=True))
    yield Figure(group, "times raw", times, "", target=Target(TIMES_RAW, least=True))


def _raw(place: Path, conversations: int, n: int) -> float:
    with Raw(place / "raw.db") as raw:
        raw.converse("warm", 3)
        return timed(partial(raw.converse_in_turn, conversations, n)).clock_s


def _workers(place: Path, conversations: int, n: int) -> float:
    """Seconds from the first worker's beginning to the last one's end; they begin when all of them are warm."""
    context = multiprocessing.get_context("spawn")
    warm, told = context.Barrier(WORKERS), context.SimpleQueue()
    shares = [range(number, conversations, WORKERS) for number in range(WORKERS)]
    processes = [context.Process(target=_work, args=(place / "haru.db", share, n, warm, told)) for share in shares]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise RuntimeError("A worker of the bench has failed; what it said stands above.")
    began, ended = zip(*(told.get() for _ in processes), strict=True)
    return float(max(ended) - min(began))


def _work(path: Path, share: Sequence[int], n: int, warm: Barrier, told: SimpleQueue[tuple[float, float]]) -> None:
    async def worked() -> tuple[float, float]:
        async with haru.engine(path, n, warm=f"warm-{share[0]}") as engine:
            await asyncio.to_thread(partial(warm.wait, timeout=60))
            began = time.monotonic()
            await haru.converse_together(engine, share, n)
            return began, time.monotonic()

    told.put(asyncio.run(worked()))
