"""The judgements: what must be true of a conversation, whatever was done to it. One set, for every source of events.

Each looks at a performance and says what is wrong, or nothing. None of them asks the engine: what is held against it
is counted here again, from the journal, from what was seen on the way, and from what the tools say they have done.

Whether runs end and whether the journal is whole is judged here, the rest in `judging_*.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from haru_fsm.conversation import MessageReceived, ModelEvent, Resumed, Step, ToolsExecuted
from haru_fsm.errors import HaruError
from haru_fsm.machine import CHANGED, RESUMED_TOO_OFTEN
from haru_fsm.testing.driving import Performance
from haru_fsm.testing.judging_budgets import budgets, replies_in
from haru_fsm.testing.judging_effects import effects
from haru_fsm.testing.judging_ending import one_ending
from haru_fsm.testing.judging_history import valid

ENDS = "every run ends"
ONE_ENDING = "exactly one ending"
EFFECTS = "effects at most once, or in doubt"
VALID = "the history is valid"
WHOLE = "the journal is whole"
BUDGETS = "budgets hold"

BESIDE_THE_TABLE = (CHANGED, RESUMED_TOO_OFTEN)
"""Guards that are in no table: the engine's own reasons to hand a run to a person."""

Judgement = Callable[[Performance], Iterable[str]]


def judge(seen: Performance, promises: Iterable[str] | None = None) -> dict[str, str]:
    """The promises that are broken, each with what is wrong. `promises`: which are asked about; None: all."""
    wanted = JUDGEMENTS if promises is None else {name: JUDGEMENTS[name] for name in promises}
    told = ((name, next(iter(judgement(seen)), "")) for name, judgement in wanted.items())
    return {name: wrong for name, wrong in told if wrong}


# --------------------------------------------------------------------------- every run ends


def _ends(seen: Performance) -> Iterator[str]:
    if seen.broke:
        yield seen.broke
        return
    certificate = seen.certificate
    for number, run in seen.steps_by_run.items():
        resumes = sum(isinstance(step.event, Resumed) for step in run)
        if not run[-1].rests:
            yield f"run {number} stopped in {run[-1].state} and does not rest"
        yield from _within(f"run {number} has", len(run), certificate.transitions.value, resumes, "transitions")
        yield from _within(f"run {number} made", _requests(run), certificate.http_requests.value, 0, "model requests")
        yield from _within(f"run {number} ran", _tool_runs(run), certificate.tool_calls.value, 0, "tool calls")
        yield from _within(f"run {number} was resumed", resumes, _resumes(seen), 0, "times")
        asked = sum(request.run == number for request in seen.requests)
        pieces = replies_in(run)
        # A process that dies may have asked in vain, once; not every table journals that another one goes on.
        if asked > pieces + len(seen.deaths):
            yield f"run {number} asked the model {asked} times for {pieces} replies and {len(seen.deaths)} crashes"


def _resumes(seen: Performance) -> float | None:
    """How often a run may be resumed: by its table, or where that has no row for it by the limits."""
    if any(row.event is Resumed for row in seen.app.workflow.rows):
        return seen.certificate.resumes.value
    return seen.app.limits.max_resumes + 1


def _within(what: str, figure: float, bound: float | None, more: int, unit: str) -> Iterator[str]:
    if bound is not None and figure > bound + more:
        yield f"{what} {figure} {unit}, and the certificate allows {bound}{f' and {more} resumes' if more else ''}"


def _requests(run: Iterable[Step]) -> int:
    return sum(max(1, step.event.requests) for step in run if isinstance(step.event, ModelEvent))


def _tool_runs(run: Iterable[Step]) -> int:
    return sum(result.ran for step in run if isinstance(step.event, ToolsExecuted) for result in step.event.results)


# --------------------------------------------------------------------------- the journal is whole


def _whole(seen: Performance) -> Iterator[str]:
    steps, record = seen.steps, seen.record
    yield from _chained(steps)
    told = [step.seq for step in seen.told if isinstance(step, Step)]
    lost = set(told) - {step.seq for step in steps}
    if lost:
        yield f"step {min(lost)} was told as durable, and is not in the store"
    if len(told) != len(set(told)):
        yield "a step was told twice"
    by_number = {step.seq: step for step in steps}
    for step in seen.told:
        if isinstance(step, Step) and by_number.get(step.seq) not in (None, step):
            yield f"step {step.seq} is stored otherwise than it was told"
    if record is not None and steps:
        head, last = record.summary, steps[-1]
        if (head.seq, head.run, head.state, head.resting) != (last.seq, last.run, last.state, last.rests):
            yield f"the store holds the conversation to be at step {head.seq} in {head.state}, and its journal does not"
    yield from _judged_again(seen, steps)


def _chained(steps: tuple[Step, ...]) -> Iterator[str]:
    for before, step in zip((None, *steps), steps, strict=False):
        expected = before.seq + 1 if before else 1
        if step.seq != expected:
            yield f"step {step.seq} comes where step {expected} should be"
        if before is not None and step.source != before.state:
            yield f"step {step.seq} leads out of {step.source}, and step {before.seq} had led to {before.state}"
        run = (before.run if before else 0) + isinstance(step.event, MessageReceived)
        if step.run != run:
            yield f"step {step.seq} belongs to run {step.run}, and should to run {run}"


def _judged_again(seen: Performance, steps: tuple[Step, ...]) -> Iterator[str]:
    """The same journal and event give the same step, from the beginning and in one go, restarts or not."""
    if seen.record is None:
        return
    summary, workflow = seen.record.summary, seen.app.workflow
    conversation = workflow.begin(summary.conversation_id, summary.customer_id)
    for number, step in enumerate(steps):
        if not workflow.accepts(step.source, type(step.event)) or (step.trip and step.trip.guard in BESIDE_THE_TABLE):
            # What happens beside the table (a resumption that it has no row for) is not judged by it.
            begun = workflow.begin(summary.conversation_id, summary.customer_id)
            conversation = workflow.replay(begun, steps[: number + 1])
            continue
        try:
            conversation = workflow.advance(conversation, step.event)
        except HaruError as error:
            yield f"step {step.seq} has no place in the table: {error}"
            return
        again = conversation.steps[-1]
        if again != step:
            yield f"step {step.seq} led to {step.state}, and the same journal judged again leads to {again.state}"
            return


# --------------------------------------------------------------------------- all of them


JUDGEMENTS: dict[str, Judgement] = {
    ENDS: _ends,
    ONE_ENDING: one_ending,
    EFFECTS: effects,
    VALID: valid,
    WHOLE: _whole,
    BUDGETS: budgets,
}
PROMISES = tuple(JUDGEMENTS)
