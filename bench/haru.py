"""The same conversation on the engine: the starter's workflow with its guards, one read-only tool, the SQLite store.

Nothing is left out or made cheaper: arguments are validated, calls run under their time-out, guards judge every step,
the journal carries its checksums. Only the limits are far away, so that 160 steps are one run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench import workload
from haru_fsm import App, Engine, Limits, load_app, tool
from haru_fsm.conversation import ModelAnswered, ToolsRequested
from haru_fsm.models import ModelOutcome, ModelRequest
from haru_fsm.stores.sqlite import SQLiteStore

LIMITS = Limits(max_steps=100_000, max_tool_calls=100_000)
ROOT = Path(__file__).parent.parent


@tool(read_only=True)
async def list_parcels(customer: str, page: int) -> dict[str, Any]:
    """List one page of a customer's parcels.

    Args:
        customer: The customer's number.
        page: Which page, from 0.
    """
    return workload.page(page)


def in_a_thread() -> Callable[..., dict[str, Any]]:
    """The same tool as a plain function, which the engine runs in a thread of its own."""

    @tool(read_only=True)
    def list_parcels(customer: str, page: int) -> dict[str, Any]:
        """List one page of a customer's parcels.

        Args:
            customer: The customer's number.
            page: Which page, from 0.
        """
        return workload.page(page)

    return list_parcels


@cache
def app() -> App:
    """The starter's workflow, and one tool."""
    starter = load_app(ROOT, limits=LIMITS)
    return App(workflow=starter.workflow, make_tools=lambda _session: [list_parcels], limits=LIMITS)


@cache
def app_with_threads() -> App:
    """The same app, whose tool is a plain function."""
    plain = in_a_thread()
    return app().with_tools(lambda _session: [plain])


@dataclass
class Pages:
    """A model that takes no time: it asks for `pages` pages and answers. It keeps nothing."""

    pages: int
    name = "pages"

    async def respond(self, request: ModelRequest) -> ModelOutcome:
        """The next page's call, or the answer."""
        # The question, then a pair of contents for each result.
        results = (len(request.contents) - 1) // 2
        content = workload.reply(results, self.pages)
        return ModelAnswered(content=content) if results >= self.pages else ToolsRequested(content=content)


@asynccontextmanager
async def engine(path: Path, n: int, *, threads: bool = False, warm: str = "warm") -> AsyncIterator[Engine]:
    """An engine on this database, warm (by a conversation of that name): connections are open, code has run once."""
    model = Pages(3)
    async with Engine(app_with_threads() if threads else app(), model=model, store=SQLiteStore(path)) as running:
        await converse(running, warm, 3)
        model.pages = n
        yield running


async def converse(running: Engine, conversation: str, n: int) -> None:
    """The whole conversation of `n` steps. Raises RuntimeError where it did not end in its answer after all steps."""
    run = await running.ask(workload.QUESTION, customer_id=workload.CUSTOMER, conversation_id=conversation)
    if run.answer != workload.ANSWER or (run.steps, run.tool_runs) != (n + 1, n):
        raise RuntimeError(f"{conversation} did not go its {n} steps: it ended after {run.tool_runs}")


async def converse_together(running: Engine, conversations: Iterable[int], n: int) -> None:
    """These conversations at once, in one event loop."""
    await asyncio.gather(*(converse(running, f"c{index}", n) for index in conversations))
