"""Law 6 judged, as far as it concerns budgets: none is reopened, however often the process dies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from haru_fsm.conversation import ModelEvent, Step, ToolsExecuted
from haru_fsm.testing.driving import Performance


def budgets(seen: Performance) -> Iterator[str]:
    """No work begins beyond the ceiling of a budget; what is begun last may end above it."""
    ceilings: dict[str, float] = {}
    for guard in seen.app.workflow.guards:
        if guard.measures is not None and guard.ceiling is not None:
            # Journals count whole milliseconds, and so is counted here.
            ceiling = guard.ceiling * 1000 if guard.measures == "seconds" else guard.ceiling
            ceilings[guard.measures] = min(ceiling, ceilings.get(guard.measures, ceiling))
    for number, run in seen.steps_by_run.items():
        spent: Counter[str] = Counter()
        for step in run:
            if isinstance(step.event, ModelEvent):
                yield from _beyond(number, spent, ceilings, ("requests", "tokens", "seconds", "cost"))
            if isinstance(step.event, ToolsExecuted):
                yield from _beyond(number, spent, ceilings, ("seconds",))
            spent.update(_spent(step))
        if ceilings.get("seconds", float("inf")) <= seen.play.pace_ms * (replies_in(run) - 1):
            yield f"run {number} went on for {replies_in(run)} replies of {seen.play.pace_ms} ms, against its deadline"
        if spent["tool_calls"] > ceilings.get("tool_calls", float("inf")):
            yield f"run {number} ran {spent['tool_calls']:g} tool calls; the budget is {ceilings['tool_calls']:g}"


def replies_in(run: Iterable[Step]) -> int:
    """How often the model had its say in a run."""
    return sum(isinstance(step.event, ModelEvent) for step in run)


def _beyond(run: int, spent: Mapping[str, float], ceilings: Mapping[str, float], what: Iterable[str]) -> Iterator[str]:
    for name in what:
        if spent[name] >= ceilings.get(name, float("inf")):
            unit = "ms" if name == "seconds" else name
            yield f"run {run} went on when {spent[name]:g} {unit} were spent; the budget is {ceilings[name]:g}"


def _spent(step: Step) -> dict[str, float]:
    spent: dict[str, float] = {"seconds": step.event.took_ms}
    if isinstance(step.event, ModelEvent):
        spent |= {"requests": max(1, step.event.requests), "tokens": max(1, step.event.usage.total)}
        spent["cost"] = step.event.usage.cost_usd or 0.0
    if isinstance(step.event, ToolsExecuted):
        spent["tool_calls"] = sum(result.ran for result in step.event.results)
    return spent
