"""How a thing is measured: in turns with what it is compared to, several times, and the median counts."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True, slots=True)
class Plan:
    """How thoroughly, and in which folder the databases are made."""

    folder: Path
    repetitions: int = 7
    lengths: tuple[int, ...] = (10, 40, 160)
    """Steps of one conversation alone."""
    together: tuple[int, int] = (200, 10)
    """Conversations at once, and the steps of each."""
    journals: tuple[int, ...] = (10, 100, 1000)
    """Steps that lie behind a conversation when a part of the next one is measured."""
    samples: int = 300
    """Steps that one measurement of the processor takes the mean of."""
    processes: int = 7
    """Processes that are started for one figure."""


def tell(text: str) -> None:
    """Progress, to standard error."""
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Span:
    """What a job took, in seconds: by the clock, and of all processors together."""

    clock_s: float
    processor_s: float


class Stopwatch:
    """Started with no garbage left over from what came before."""

    def __init__(self) -> None:
        gc.collect()
        self._processor = time.process_time()
        self._clock = time.perf_counter()

    def span(self) -> Span:
        """What has passed since it was started."""
        return Span(time.perf_counter() - self._clock, time.process_time() - self._processor)


def timed(job: Callable[[], object]) -> Span:
    """What a job takes."""
    watch = Stopwatch()
    job()
    return watch.span()


def processor_us(jobs: Callable[[], Sequence[Callable[[], object]]], repetitions: int) -> float:
    """Microseconds of processor time for one of the jobs: the mean over them, the median over repetitions.

    The jobs are made anew each time, so that nothing they had worked out is still known. Processor time, because other
    programs on the machine are no cost of ours.
    """
    return median(_mean_us(jobs()) for _ in range(repetitions))


def _mean_us(jobs: Sequence[Callable[[], object]]) -> float:
    gc.collect()
    began = time.thread_time_ns()
    for job in jobs:
        job()
    return (time.thread_time_ns() - began) / len(jobs) / 1000
