"""What a run came to, read out of its journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from haru_fsm.conversation import (
    Awaited,
    Conversation,
    Frozen,
    HistoryAdopted,
    MessageHeld,
    ModelAnswered,
    ModelEvent,
    ModelFailed,
    Step,
    Ticket,
    TicketClosed,
    TicketOpened,
    ToolsExecuted,
    Trip,
    Usage,
    awaited,
    content_text,
    executed,
)
from haru_fsm.notices import Notices
from haru_fsm.tickets import ticket_key


class Run(Frozen):
    """One run: from a customer's message to its ending. The same journal always gives the same Run."""

    run_id: str
    conversation_id: str
    customer_id: str
    state: str
    finished: bool
    """False while there is work left: a process was stopped, a desk was out of reach, or a person has to approve."""
    answer: str
    """What the customer reads, whatever the ending; empty where a history was adopted that ends without an answer."""
    reply_id: str
    """The same for the same reply, so that a channel can drop a second delivery. A notice on the way to the ending has
    one of its own, or the ending would be dropped for it."""
    ticket: Ticket | None = None
    """The ticket that it ended in, or that a tool of it has filed (or added to) on the way to an answer."""
    stopped_by: Trip | None = None
    """The guard that led to the ticket, or the failure of the model; None for an answer."""
    steps: int = 0
    """Model requests, re-asks included."""
    tool_runs: int = 0
    usage: Usage = Usage()
    waiting: tuple[Awaited, ...] = ()
    """The calls that wait for a person's approval; the run goes on when they are decided."""


def run_of(conversation: Conversation, notices: Notices, number: int | None = None) -> Run:
    """The run of this number, as it answered its message; by default the last one, with what a person said since."""
    wanted = conversation.run if number is None else number
    steps = [step for step in conversation.steps if step.run == wanted]
    if number is not None:
        steps = list(takewhile(lambda step: not isinstance(step.event, TicketClosed), steps))
    models = [step.event for step in steps if isinstance(step.event, ModelEvent)]
    usage = Usage()
    for event in models:
        usage = usage + event.usage
    last = steps[-1]
    waiting = awaited(steps)
    finished = last.rests and not last.pauses
    run_id = ticket_key(conversation.conversation_id, wanted)
    reply, answer = _told(steps, notices, waits=bool(waiting), finished=finished)
    return Run(
        run_id=run_id,
        conversation_id=conversation.conversation_id,
        customer_id=conversation.customer_id,
        state=last.state,
        finished=finished,
        answer=answer,
        reply_id=f"{run_id}/{reply}",
        ticket=_ticket(steps),
        stopped_by=stopped_by(steps),
        steps=sum(max(1, event.requests) for event in models),
        tool_runs=sum(result.ran for _, _, result in executed(steps)),
        usage=usage,
        waiting=waiting,
    )


def kept(conversation: Conversation, notices: Notices, message_id: str | None = None) -> Run:
    """The run that waits, as whoever wrote in its pause sees it: with a notice that their message is kept.

    `message_id` says whose; by default it is the last message.
    """
    held = [step for step in conversation.steps if isinstance(step.event, MessageHeld)]
    mine = next((step for step in held if message_id is not None and _id_of(step) == message_id), held[-1])
    run = run_of(conversation, notices)
    return run.model_copy(update={"answer": notices.held, "reply_id": f"{run.run_id}/kept-{mine.seq}"})


def _id_of(step: Step) -> str | None:
    return step.event.message_id if isinstance(step.event, MessageHeld) else None


def _ticket(steps: list[Step]) -> Ticket | None:
    """The ticket that the run ended in, or that a tool has filed on the way."""
    for step in reversed(steps):
        if isinstance(step.event, TicketOpened | ToolsExecuted) and step.event.ticket is not None:
            return step.event.ticket
    return None


def _told(steps: list[Step], notices: Notices, *, waits: bool, finished: bool) -> tuple[str, str]:
    """What the reply that stands is called, and what the customer reads."""
    replies = [step.event.reply for step in steps if isinstance(step.event, TicketClosed)]
    if replies:
        return f"reply/{len(replies)}", replies[-1]
    if waits:
        return "waiting", notices.waiting
    if (answered := answer_of(steps)) is not None:
        return "reply", answered.text
    for step in reversed(steps):
        if isinstance(step.event, TicketOpened):
            return "reply", step.event.notice
        if isinstance(step.event, HistoryAdopted):
            return "reply", _said_last(step.event)
    on_its_way = stopped_by(steps) is None and not steps[-1].rests
    if on_its_way:
        return "working", notices.working
    return "reply" if finished else "holding", notices.holding


def answer_of(steps: Sequence[Step]) -> ModelAnswered | None:
    """The answer that a run of these steps ended in: what the model said last, whoever has looked at it since."""
    if not steps[-1].rests or steps[-1].pauses:
        return None
    for step in reversed(steps):
        if isinstance(step.event, TicketOpened | ModelEvent):
            return step.event if isinstance(step.event, ModelAnswered) else None
    return None


def _said_last(adopted: HistoryAdopted) -> str:
    """What the customer has read last in a history from elsewhere; nothing, where the last turn told them nothing."""
    last = adopted.contents[-1] if adopted.contents else {}
    return content_text(last) if last.get("role") == "model" else ""


def stopped_by(steps: Sequence[Step]) -> Trip | None:
    """Why the run came to a person: the last thing before the ticket that led there."""
    if not any(isinstance(step.event, TicketOpened) for step in steps) and steps[-1].rests:
        return None
    for step in reversed(steps):
        if step.stops:
            return step.trip
        if isinstance(step.event, ModelFailed):
            event = step.event
            because = f"{event.reason}: {event.detail}" if event.detail else str(event.reason)
            return Trip(guard="model_failed", figure=event.requests, limit=0, because=because)
    return None


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text as the model writes it: a draft until the run has ended.

    A guard, a re-ask or a lost stream may still refuse what was written, and a text beside calls is no answer. What
    holds is `Run.answer`: where it does not begin with what was heard since the last step, show it whole in its place.
    """

    text: str
