"""Law 2 judged: every run ends in one answer or in one ticket that exists, and the customer has read which."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from haru_fsm.conversation import (
    Event,
    MessageReceived,
    ModelAnswered,
    ResultStatus,
    Step,
    TicketOpened,
    ToolsExecuted,
)
from haru_fsm.runs import Run, answer_of
from haru_fsm.testing.driving import Performance

TICKET_NUMBER = re.compile(r"HT-\d{10}")
TICKET_CLAIMS = (
    "상담 티켓이 접수되었습니다.",
    "티켓을 생성했습니다. 담당자가 곧 연락드립니다.",
    "A ticket has been created for you.",
)
"""Answers that claim a ticket without its number; they are true only where there is one."""


def one_ending(seen: Performance) -> Iterator[str]:
    stored = {each.ticket.ticket_id: each for each in seen.tickets}
    for number, run in seen.steps_by_run.items():
        endings = [step for step in run if step.rests and not step.pauses]
        if len(endings) != 1 and not seen.broke:
            yield f"run {number} has {len(endings)} endings"
        for ending in endings:
            yield from _real(number, answer_of(run) or ending.event, stored)
        if run[-1].rests and isinstance(run[-1].event, ModelAnswered) and not _acted(run):
            yield from _bare_claim(number, run[-1].event.text, stored)
    for told, run in zip(seen.runs, seen.steps_by_run.values(), strict=False):
        yield from _told(told, answer_of(run) or run[-1].event)
    if seen.again is not None and seen.runs and seen.again != seen.runs[-1]:
        yield "the same message sent again did not give the same run"
    messages = Counter(step.event.message_id for step in seen.steps if isinstance(step.event, MessageReceived))
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
            yield from _claims(number, ending.text, stored)
        case _:
            yield f"run {number} ended with {ending.kind}, which is neither an answer nor a ticket"


def _claims(run: int, text: str, stored: Mapping[str, Any]) -> Iterator[str]:
    for claimed in TICKET_NUMBER.findall(text):
        if claimed not in stored:
            yield f"run {run} told the customer of ticket {claimed}, which does not exist"


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
    for step in seen.steps:
        if isinstance(step.event, TicketOpened) and step.event.added and step.event.note not in notes:
            yield f"run {step.run} added to ticket {step.event.ticket.ticket_id}, and the ticket does not say so"
