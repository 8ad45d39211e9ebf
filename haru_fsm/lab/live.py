"""Live runs: the app itself under each setting, with models that misbehave and tools that fail, at no model cost.

Nothing is written to the app's own database, and effects go nowhere but to the app's tools: run it on a test shop.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from haru_fsm.app import App
from haru_fsm.conversation import ToolsRequested
from haru_fsm.engine import Engine
from haru_fsm.lab.plan import Live, Setting
from haru_fsm.models import Model, ModelOutcome, ModelRequest, outcome_of
from haru_fsm.models.offline import OfflineModel
from haru_fsm.stores.memory import MemoryStore

REFUSED = "was not run"
"""Words of a refusal, by which a model that listens knows it."""


class Insistent:
    """A model that goes on asking for what it asked for first; with `heeds`, until that was refused so many times."""

    name = "insistent"

    def __init__(self, inner: Model, heeds: int | None = None) -> None:
        self._inner = inner
        self._heeds = heeds
        self._first: ToolsRequested | None = None

    async def respond(self, request: ModelRequest) -> ModelOutcome:
        """The first reply with calls again; the inner model's reply where there is none, or where it listens."""
        refusals = str(request.contents).count(REFUSED)
        listens = self._heeds is not None and refusals >= self._heeds
        if self._first is not None and request.tools_allowed and not listens:
            return self._first
        outcome = await outcome_of(self._inner, request)
        if isinstance(outcome, ToolsRequested) and self._first is None:
            self._first = outcome
        return outcome


MODELS: dict[str, Callable[[], Model]] = {
    "offline": OfflineModel,
    "insistent": lambda: Insistent(OfflineModel()),
    "heeding": lambda: Insistent(OfflineModel(), heeds=1),
}


@dataclass(frozen=True, slots=True)
class LiveRun:
    """How one run ended under one setting."""

    setting: str
    model: str
    fault: str
    customer: str
    message: str
    ending: str
    """`answer`, or the guard (or failure) that led to a ticket."""
    steps: int
    tool_runs: int
    tokens: int


async def live_runs(live: Live, settings: Iterable[Setting], load: Callable[[Setting], App]) -> AsyncIterator[LiveRun]:
    """Every message of every customer, with every model and fault, under every setting."""
    for setting in settings:
        app = load(setting)
        for fault in live.faults:
            broken = app.with_tools(_with_fault(app, fault))
            for model in live.models:
                for customer in live.customers:
                    for message in live.messages:
                        yield await _run(broken, setting, model, fault, customer, message)


async def _run(app: App, setting: Setting, model: str, fault: str, customer: str, message: str) -> LiveRun:
    async with Engine(app, model=MODELS[model](), store=MemoryStore()) as engine:
        run = await engine.ask(message, customer_id=customer)
    ending = run.stopped_by.guard if run.stopped_by is not None else "answer"
    return LiveRun(setting.name, model, fault, customer, message, ending, run.steps, run.tool_runs, run.usage.total)


def _with_fault(app: App, fault: str) -> Callable[[Any], Any]:
    """The app's tools, each of which fails, or finds nothing."""
    if fault == "none":
        return app.make_tools

    def made(session: Any) -> Any:
        tools: Any = app.make_tools(session)
        if isinstance(tools, Mapping):
            return {name: _faulty(tool, fault) for name, tool in tools.items()}
        return [_faulty(tool, fault) for tool in tools]

    return made


def _faulty(tool: Callable[..., Any], fault: str) -> Callable[..., Any]:
    def happens() -> Any:
        if fault == "tools_fail":
            raise RuntimeError("the service does not answer")
        return []

    @functools.wraps(tool)
    async def slow(*_: Any, **__: Any) -> Any:
        return happens()

    @functools.wraps(tool)
    def plain(*_: Any, **__: Any) -> Any:
        return happens()

    return slow if inspect.iscoroutinefunction(tool) else plain
