"""The judgements: what must be true of a conversation, whatever was done to it. One set, for every source of events.

Each looks at a performance and says what is wrong, or nothing. None of them asks the engine: what is held against it
is counted here again, from the journal, from what was seen on the way, and from what the tools say they have done.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from haru_fsm.conversation import (
    Event,
    MessageReceived,
    ModelAnswered,
    ModelEvent,
    ResultStatus,
    Resumed,
    Step,
    TicketOpened,
    ToolsExecuted,
)
from haru_fsm.errors import HaruError
from haru_fsm.runs import Run
from haru_fsm.stores import Record
from haru_fsm.testing.driving import Performance
from haru_fsm.testing.judging_effects import effects
from haru_fsm.testing.judging_history import valid

ENDS = "every run ends"
ONE_ENDING = "exactly one ending"
EFFECTS = "effects at most once, or in doubt"
VALID = "the history is valid"
WHOLE = "the journal is whole"
BUDGETS = "budgets hold"

TICKET_NUMBER = re.compile(r"HT-\d{10}")
TICKET_CLAIMS = (
    "상담 티켓이 접수되었습니다.",
    "티켓을 생성했습니다. 담당자가 곧 연락드립니다.",
    "A ticket has been created for you.",
)
"""Answers that claim a ticket without its number; they are true only where there is one."""

BESIDE_THE_TABLE = ("definition_changed", "resumed_too_often")
"""Guards that are in no table: the engine's own reasons to hand a run to a person."""

Judgement = Callable[[Performance], Iterable[str]]


def judge(seen: Performance, promises: Iterable[str] | None = None) -> dict[str, str]:
    """The promises that are broken, each with what is wrong. `promises`: which are asked about; None: all."""
    wanted = JUDGEMENTS if promises is None else {name: JUDGEMENTS[name] for name in promises}
    told = ((name, next(iter(judgement(seen)), "")) for name, judgement in wanted.items())
    return {name: wrong for name, wrong in told if wrong}


def steps_of(seen: Performance) -> tuple[Step, ...]:
    """The stored journal."""
    return seen.steps


def runs_of(steps: Iterable[Step]) -> dict[int, list[Step]]:
    """The journal by run; what belongs to none (an adopted history) is left out."""
    runs: dict[int, list[Step]] = {}
    for step in steps:
        if step.run:
            runs.setdefault(step.run, []).append(step)
    return runs


# --------------------------------------------------------------------------- every run ends


def _ends(seen: Performance) -> Iterator[str]:
    if seen.broke:
        yield seen.broke
        return
    certificate = seen.certificate
    for number, run in runs_of(steps_of(seen)).items():
        resumes = sum(isinstance(step.event, Resumed) for step in run)
        if not run[-1].rests:
            yield f"run {number} stopped in {run[-1].state} and does not rest"
        yield from _within(f"run {number} has", len(run), certificate.transitions.value, resumes, "transitions")
        yield from _within(f"run {number} made", _requests(run), certificate.http_requests.value, 0, "model requests")
        yield from _within(f"run {number} ran", _tool_runs(run), certificate.tool_calls.value, 0, "tool calls")
        yield from _within(f"run {number} was resumed", resumes, _resumes(seen), 0, "times")
        asked = sum(request.run == number for request in seen.requests)
        pieces = _pieces(run)
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


# --------------------------------------------------------------------------- one ending


def _one_ending(seen: Performance) -> Iterator[str]:
    stored = {each.ticket.ticket_id: each for each in seen.tickets}
    for number, run in runs_of(steps_of(seen)).items():
        endings = [step for step in run if step.rests and not step.pauses]
        if len(endings) != 1 and not seen.broke:
            yield f"run {number} has {len(endings)} endings"
        for ending in endings:
            yield from _real(number, ending.event, stored)
        if run[-1].rests and isinstance(run[-1].event, ModelAnswered) and not _acted(run):
            yield from _bare_claim(number, run[-1].event.text, stored)
    for told, run in zip(seen.runs, runs_of(steps_of(seen)).values(), strict=False):
        yield from _told(told, run[-1].event)
    if seen.again is not None and seen.runs and seen.again != seen.runs[-1]:
        yield "the same message sent again did not give the same run"
    messages = Counter(step.event.message_id for step in steps_of(seen) if isinstance(step.event, MessageReceived))
    expected = len(seen.play.messages) if not seen.broke else len(messages)
    if len(messages) != expected or any(times > 1 for times in messages.values()):
        yield f"{len(seen.play.messages)} messages were sent, and {sum(messages.values())} are journaled"
    yield from _tickets(seen)


def _real(number: int, ending: Event, stored: Mapping[str, Any]) -> Iterator[str]:
    """An ending is an answer, or a ticket that exists and whose number the customer reads."""
    match ending:
        case TicketOpened(ticket=ticket, notice=notice):
            if ticket.ticket_id not in stored:
                yield f"run {number} ended in ticket {ticket.ticket_id}, which does not exist"
            if ticket.ticket_id not in notice:
                yield f"run {number} ended in ticket {ticket.ticket_id}, and the customer was not told its number"
        case ModelAnswered():
            yield from _claims(f"run {number}", ending.text, stored)
        case _:
            yield f"run {number} ended with {ending.kind}, which is neither an answer nor a ticket"


def _claims(where: str, text: str, stored: Mapping[str, Any]) -> Iterator[str]:
    for claimed in TICKET_NUMBER.findall(text):
        if claimed not in stored:
            yield f"{where} told the customer of ticket {claimed}, which does not exist"


def _bare_claim(run: int, text: str, stored: Mapping[str, Any]) -> Iterator[str]:
    if text in TICKET_CLAIMS and not stored:
        yield f"run {run} told the customer {text!r}, and there is no ticket"


def _acted(run: Iterable[Step]) -> bool:
    """Whether a tool of the run's has acted: then a ticket may have been filed where nobody here can see it."""
    results = (result for step in run if isinstance(step.event, ToolsExecuted) for result in step.event.results)
    return any(result.effect and result.status is ResultStatus.DONE for result in results)


def _told(told: Run, ending: Event) -> Iterator[str]:
    """What the customer reads is what the run ended in."""
    match ending:
        case TicketOpened(ticket=ticket, notice=notice):
            ticket_id = told.ticket.ticket_id if told.ticket is not None else "none"
            if (told.answer, ticket_id) != (notice, ticket.ticket_id):
                yield f"run {told.run_id} ended in ticket {ticket.ticket_id}, and is told as {ticket_id}"
        case ModelAnswered() if told.answer != ending.text:
            yield f"run {told.run_id} ended in {ending.text!r}, and the customer read {told.answer!r}"


def _tickets(seen: Performance) -> Iterator[str]:
    keys = Counter(each.ticket.key for each in seen.tickets)
    unclosed = sum(each.closed_at is None for each in seen.tickets)
    if any(times > 1 for times in keys.values()):
        yield "one run has two tickets"
    if unclosed > 1:
        yield f"the conversation has {unclosed} open tickets"
    notes = {note for each in seen.tickets for note in each.notes}
    for step in steps_of(seen):
        if isinstance(step.event, TicketOpened) and step.event.added and step.event.note not in notes:
            yield f"run {step.run} added to ticket {step.event.ticket.ticket_id}, and the ticket does not say so"


# --------------------------------------------------------------------------- the journal is whole


def _whole(seen: Performance) -> Iterator[str]:
    steps, record = steps_of(seen), seen.record
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


# --------------------------------------------------------------------------- budgets


def _budgets(seen: Performance) -> Iterator[str]:
    """No work begins beyond a ceiling; what is begun last may end above it."""
    ceilings: dict[str, float] = {}
    for guard in seen.app.workflow.guards:
        if guard.measures is not None and guard.ceiling is not None:
            # Journals count whole milliseconds, and so is counted here.
            ceiling = guard.ceiling * 1000 if guard.measures == "seconds" else guard.ceiling
            ceilings[guard.measures] = min(ceiling, ceilings.get(guard.measures, ceiling))
    for number, run in runs_of(steps_of(seen)).items():
        spent: Counter[str] = Counter()
        for step in run:
            if isinstance(step.event, ModelEvent):
                yield from _beyond(number, spent, ceilings, ("requests", "tokens", "seconds", "cost"))
            if isinstance(step.event, ToolsExecuted):
                yield from _beyond(number, spent, ceilings, ("seconds",))
            spent.update(_spent(step))
        if ceilings.get("seconds", float("inf")) <= seen.play.pace_ms * (_pieces(run) - 1):
            yield f"run {number} went on for {_pieces(run)} replies of {seen.play.pace_ms} ms, against its deadline"
        if spent["tool_calls"] > ceilings.get("tool_calls", float("inf")):
            yield f"run {number} ran {spent['tool_calls']:g} tool calls; the budget is {ceilings['tool_calls']:g}"


def _pieces(run: Iterable[Step]) -> int:
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


JUDGEMENTS: dict[str, Judgement] = {
    ENDS: _ends,
    ONE_ENDING: _one_ending,
    EFFECTS: effects,
    VALID: valid,
    WHOLE: _whole,
    BUDGETS: _budgets,
}
PROMISES = tuple(JUDGEMENTS)


def doubtful(record: Record | None) -> bool:
    """Whether the ledger has a call of which nobody knows how it ended."""
    return record is not None and any(entry.started and not entry.outcome for entry in record.ledger.values())
