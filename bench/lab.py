"""Recorded steps that the guard lab judges in a second, on one core.

A recorded step is a reply with calls and what they brought. Its calls are made comparable and folded once, for all
settings of an experiment: that is *prepared*. What each setting then costs is *judged*; a setting that is tried alone
pays for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from bench import haru, workload
from bench.figures import Figure, Target
from bench.measuring import Plan, processor_us, tell
from haru_fsm.conversation import (
    Event,
    MessageReceived,
    ObservationAppended,
    ResultStatus,
    Step,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
)
from haru_fsm.lab.judging import Kind, Table
from haru_fsm.lab.recordings import Recording

PLAIN_PER_S = 100_000
WITH_TEXT_PER_S = 10_000
TURNS = 10
BUDGETS = ("StepBudget", "ToolCallBudget")
"""Left out: with the limits of `haru experiment` they are far away, and never trip."""
TEXTS = ("SimilarThoughts", "NoProgress")
"""The guards that compare texts: thoughts, and the wording of calls."""


def figures(plan: Plan) -> Iterator[Figure]:
    """Steps judged in a second by the default table, without the guards that compare texts and with them.

    Two of three recordings always ask for something new; the third is a loop, in which texts are compared.
    """
    tell("the guard lab")
    for name, without, bound in (("without texts", TEXTS, PLAIN_PER_S), ("all loop guards", (), WITH_TEXT_PER_S)):
        table = Table(haru.app().workflow, (*BUDGETS, *without))
        recordings = [Recording(steps) for steps in _journals(plan)]
        turns = sum(_judged(table, one) for one in recordings) / len(recordings)
        again = processor_us(partial(_again, table, recordings), plan.repetitions)
        alone = processor_us(partial(_alone, table, plan), plan.repetitions)
        target = Target(bound, least=True)
        yield Figure("the guard lab", f"judged, {name}", turns / again * 1e6, "steps/s", target=target)
        yield Figure("the guard lab", f"prepared and judged, {name}", turns / alone * 1e6, "steps/s")


def _judged(table: Table, recording: Recording) -> int:
    """Turns up to the one at which it is stopped, or all of them."""
    stop = table.judge(recording).first(0, Kind.STOP)
    return recording.turns if stop is None else stop + 1


def _again(table: Table, recordings: Sequence[Recording]) -> list[Callable[[], object]]:
    return [partial(table.judge, recording) for recording in recordings]


def _alone(table: Table, plan: Plan) -> list[Callable[[], object]]:
    return [partial(_from_steps, table, steps) for steps in _journals(plan)]


def _from_steps(table: Table, steps: tuple[Step, ...]) -> object:
    return table.judge(Recording(steps))


def _journals(plan: Plan) -> list[tuple[Step, ...]]:
    """Journals that are made anew: nothing about them has been worked out yet."""
    return [_journal(loops=number % 3 == 0) for number in range(plan.samples)]


def _journal(*, loops: bool) -> tuple[Step, ...]:
    """A question, and turns that ask for one page after the other, or for the same one again."""
    pages = [min(turn, 3) if loops else turn for turn in range(TURNS)]
    events: list[Event] = [MessageReceived(text=workload.QUESTION)]
    for page in pages:
        done = ToolResult(position=0, status=ResultStatus.DONE, response={"result": workload.page(page)})
        events += [ToolsRequested(content=workload.reply(page, page + 1)), ToolsExecuted(results=(done,))]
        events.append(ObservationAppended())
    return tuple(Step(seq=n, run=1, event=e, source="", state="") for n, e in enumerate(events, 1))
