"""The default guards on the recordings beside the repository: what docs/guards.md says of them holds."""

from __future__ import annotations

from pathlib import Path
from typing import Never

import pytest

from haru_fsm import Limits
from haru_fsm.lab.experiment import Judged, cases
from haru_fsm.lab.judging import Table
from haru_fsm.lab.plan import Plan, Source
from tests.engine.shopless import bare

DATA = Path(__file__).parent.parent.parent.parent / "shared" / "data"
NAMES = ("tau_bench_airline_gpt4o.jsonl.gz", "reflexion_hotpotqa_react.jsonl.gz", "intercode.jsonl.gz")

pytestmark = pytest.mark.skipif(
    not all((DATA / name).exists() for name in NAMES),
    reason="the recordings are not beside the repository (shared/data)",
)


def no_store(url: str) -> Never:
    raise AssertionError(url)


async def test_successes_are_left_alone_and_loops_are_nudged_in_time_and_ended() -> None:
    [*others, last] = [Source(file=DATA / name) for name in NAMES]
    sources = (*others, last.model_copy(update={"detection_only": {"strategy": "try-again"}}))
    table = Table(bare(Limits(max_steps=1000, max_tool_calls=1000)).workflow)
    judged, number = Judged([("default", "app", table)]), 0
    async for case in cases(Plan(sources=sources), no_store):
        # All that count as successes or failures, and of the 12,000 others, which are there for their loops, one in ten.
        if case.counts or number % 10 == 0:
            judged.add(case)
        number += 1
    [told] = judged.outcomes()
    assert told.successes_stopped.of == 819
    assert told.successes_stopped.count <= 3
    assert told.loops_on_time.of > 500
    assert told.loops_on_time.share >= 0.95
    assert told.loops_ended.of > 300
    assert told.loops_ended.share == 1
