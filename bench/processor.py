"""What a step costs the processor, without a disk: guards, contents, the table, and validation of arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import partial
from typing import Any, Literal

from bench import haru, workload
from bench.figures import Figure, Target
from bench.measuring import Plan, processor_us, tell
from haru_fsm import Limits, Workflow, tool
from haru_fsm.contents import History
from haru_fsm.conversation import (
    Conversation,
    Event,
    MessageReceived,
    ObservationAppended,
    ResultStatus,
    Step,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
)
from haru_fsm.guards.verdicts import verdict
from haru_fsm.toolbox import Prepared, Toolbox

GUARDS_US = 20
CONTENTS_US = 15
ARGUMENTS_US = 25


def figures(plan: Plan) -> Iterator[Figure]:
    """All figures of this module, in the order of the table."""
    workflow = haru.app().workflow
    for n in plan.journals:
        tell(f"processor, after {n} steps")
        behind = conversation(workflow, n)
        group = f"processor, a step after {n}"
        yield Figure(group, "guards", _guards(workflow, behind, n, plan), "µs", target=Target(GUARDS_US))
        yield Figure(group, "contents", _contents(workflow, behind, n, plan), "µs", target=Target(CONTENTS_US))
        yield Figure(group, "the table, guards included", _table(workflow, behind, n, plan), "µs")
    tell("processor, arguments")
    yield Figure(
        "arguments", "three valid ones, over the bare call", _arguments(plan), "µs", target=Target(ARGUMENTS_US)
    )


# --------------------------------------------------------------------------- a journal without a store


def events(results: int) -> tuple[Event, ...]:
    """The three events of one step, made anew: nothing about them has been worked out yet."""
    response = {"result": workload.page(results)}
    return (
        ToolsRequested(content=workload.reply(results, results + 1)),
        ToolsExecuted(results=(ToolResult(position=0, status=ResultStatus.DONE, response=response),)),
        ObservationAppended(),
    )


def conversation(workflow: Workflow, n: int) -> Conversation:
    """A conversation that has `n` steps behind it and waits for the model."""
    begun = workflow.advance(workflow.begin("c", workload.CUSTOMER), MessageReceived(text=workload.QUESTION))
    for results in range(n):
        begun = _advanced(workflow, begun, events(results))
    return begun


def _advanced(workflow: Workflow, behind: Conversation, new: Sequence[Event]) -> Conversation:
    for event in new:
        behind = workflow.advance(behind, event)
    return behind


def _ahead(workflow: Workflow, behind: Conversation, n: int, samples: int) -> list[tuple[Step, ...]]:
    """The journal's next three lines, so many times; none of these events has worked anything out yet."""
    steps = _advanced(workflow, behind, events(n)).steps[-3:]
    return [
        tuple(step._replace(event=event) for step, event in zip(steps, events(n), strict=True)) for _ in range(samples)
    ]


# --------------------------------------------------------------------------- what is measured


def _guards(workflow: Workflow, behind: Conversation, n: int, plan: Plan) -> float:
    """The condition of every row that is asked judges its event, as the table does it, and each line is folded.

    The reply's calls have been read, for they are run in any case; what they mean is worked out, for guards alone ask.
    """
    folds = workflow.folds
    asked = {
        step.event.kind: [
            verdict(row.when, folds.places)
            for row in workflow.rows_for(step.source, type(step.event))
            if row.when is not None
        ]
        for step in _ahead(workflow, behind, n, 1)[0]
    }

    def judged(steps: tuple[Step, ...]) -> None:
        memos = behind.memos
        for step in steps:
            noted: list[str] = []
            for holds in asked[step.event.kind]:
                if holds(memos, step.event, noted) is not None:
                    raise RuntimeError(f"a guard tripped on {step.event.kind}: this is no longer what is measured")
            memos = folds.after(memos, step, behind.run)

    def jobs() -> list[Callable[[], object]]:
        ahead = _ahead(workflow, behind, n, plan.samples)
        for request, *_ in ahead:
            assert isinstance(request.event, ToolsRequested)
            _ = request.event.calls
        return [partial(judged, steps) for steps in ahead]

    return processor_us(jobs, plan.repetitions)


def _contents(workflow: Workflow, behind: Conversation, n: int, plan: Plan) -> float:
    """The three lines are folded into the history, and the next request is built."""
    history = History()
    for step in behind.steps:
        history = history.fold(step)

    def built(steps: tuple[Step, ...]) -> None:
        now = history
        for step in steps:
            now = now.fold(step)
        now.request()

    return processor_us(
        lambda: [partial(built, steps) for steps in _ahead(workflow, behind, n, plan.samples)], plan.repetitions
    )


def _table(workflow: Workflow, behind: Conversation, n: int, plan: Plan) -> float:
    """The table is read three times, once for each event; its rows ask the guards."""
    return processor_us(
        lambda: [partial(_advanced, workflow, behind, events(n)) for _ in range(plan.samples)], plan.repetitions
    )


@tool(read_only=True)
def find_parcels(customer: str, since: date, state: Literal["packed", "in_transit", "delivered"]) -> str:
    """Find parcels.

    Args:
        customer: The customer's number.
        since: The first day.
        state: Where they are.
    """
    return customer


def _arguments(plan: Plan) -> float:
    """A call through validation, less the same call without it."""
    found = Toolbox([find_parcels], Limits()).find("find_parcels")
    assert found is not None
    sent = {"customer": "C001", "since": "2026-07-25", "state": "in_transit"}
    ready: dict[str, Any] = {**sent, "since": date(2026, 7, 25)}

    def validated() -> None:
        prepared = found.prepare(sent)
        assert isinstance(prepared, Prepared)
        find_parcels(**prepared.arguments)

    def bare() -> None:
        find_parcels(**ready)

    return _mean(validated, plan) - _mean(bare, plan)


def _mean(job: Callable[[], object], plan: Plan) -> float:
    return processor_us(lambda: [job] * plan.samples * 5, plan.repetitions)
