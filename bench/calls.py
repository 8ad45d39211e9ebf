"""What running tools costs: fifty at once, in the event loop and in threads, and the tools of one more session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from bench import haru
from bench.figures import Figure, Target
from bench.measuring import Plan, Stopwatch, processor_us, tell
from haru_fsm import Limits, load_app, tool
from haru_fsm.approvals import Approvals
from haru_fsm.clock import SystemClock
from haru_fsm.conversation import MessageReceived, ToolCall
from haru_fsm.execution import Executor
from haru_fsm.ledger import Ledger
from haru_fsm.stores import Store
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.toolbox import Toolbox

TOGETHER = 50
CALL_S = 0.02
TOGETHER_MS = 40


def figures(plan: Plan) -> Iterator[Figure]:
    """All figures of this module, in the order of the table."""
    group = f"{TOGETHER} read-only calls of {CALL_S * 1000:.0f} ms in one reply"
    for name, function in (("async", _async_tool), ("plain, in threads", _plain_tool)):
        for where, store in (("", _memory), (", SQLite ledger", _sqlite)):
            tell(f"{group}: {name}{where}")
            taken = median(_together(function, store(plan.folder, number)) for number in range(plan.repetitions))
            yield Figure(group, f"{name}{where}", taken, "ms", target=Target(TOGETHER_MS))
    tell("tools of a session")
    yield Figure("the starter's tools", "made for one more session (raw: the first)", *_session(plan))


@tool(read_only=True)
async def _async_tool(number: int) -> int:
    """Take a while.

    Args:
        number: Which.
    """
    await asyncio.sleep(CALL_S)
    return number


@tool(read_only=True)
def _plain_tool(number: int) -> int:
    """Take a while.

    Args:
        number: Which.
    """
    time.sleep(CALL_S)
    return number


def _memory(_folder: Path, _number: int) -> Store:
    return MemoryStore()


def _sqlite(folder: Path, number: int) -> Store:
    return SQLiteStore(folder / f"calls-{number}.db")


def _together(function: Callable[..., Any], store: Store) -> float:
    return asyncio.run(_executed(function, store))


async def _executed(function: Callable[..., Any], store: Store) -> float:
    """Milliseconds for all calls of one reply, from their arguments to their results."""
    workflow = haru.app().workflow
    begun = workflow.advance(workflow.begin(f"c-{time.time_ns()}", "C001"), MessageReceived(text="?"))
    await store.append(begun, expected_seq=0, owner=None, over=None, lease_s=0)
    clock = SystemClock()
    executor = Executor(
        tools=Toolbox([function], Limits()),
        ledger=Ledger(store, begun.conversation_id, {}),
        run=1,
        clock=clock,
        left_s=lambda: None,
        approvals=Approvals(begun.conversation_id),
    )
    name = function.__name__
    await executor.execute(2, _calls(name, TOGETHER))  # threads are started once for a process, not for a reply
    watch = Stopwatch()
    results = await executor.execute(4, _calls(name, TOGETHER))
    taken = watch.span().clock_s * 1000
    assert len(results) == TOGETHER
    await store.aclose()
    return taken


def _calls(name: str, count: int) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(position, name, {"number": position}) for position in range(count))


def _session(plan: Plan) -> tuple[float, str, float]:
    """Microseconds for the tools of a later session, and of the first: declarations are made once for an app."""
    app = load_app(haru.ROOT, limits=Limits())

    def toolbox() -> Toolbox:
        return app.toolbox(app.session("C003"))

    watch = Stopwatch()
    first = toolbox()
    first_us = watch.span().processor_s * 1e6
    later = toolbox()
    assert all(one is other for one, other in zip(first.declarations, later.declarations, strict=True))
    return processor_us(lambda: [toolbox] * 20, plan.repetitions), "µs", first_us
