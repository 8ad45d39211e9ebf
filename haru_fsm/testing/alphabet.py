"""The alphabet of the exhaustive search: which events may come next in a conversation.

Some are the same at every place: a model's answers, its calls, its failures. The others follow from the journal: the
results of the calls that were asked for, what a person decides about them, which ticket was opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from haru_fsm.conversation import (
    JSON,
    Answer,
    ApprovalDecided,
    ApprovalRequested,
    Awaited,
    Conversation,
    Event,
    FailureReason,
    ModelAnswered,
    ModelFailed,
    ObservationAppended,
    ResultStatus,
    Resumed,
    Ticket,
    TicketOpened,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
    Usage,
    awaited,
    last_request,
)
from haru_fsm.models.scripted import answer, calls
from haru_fsm.notices import KOREAN
from haru_fsm.tickets import mint, ticket_key

Alphabet = Mapping[type[Event], Sequence[Event]]
"""The events that are the same at every place, by their type."""

OUTCOMES = (
    (ResultStatus.DONE, {"result": "같은 내용"}),
    (ResultStatus.FAILED, {"error": "찾을 수 없습니다"}),
    (ResultStatus.IN_DOUBT, {"error": "알 수 없습니다"}),
)
"""How a call may end, each time alike; a fourth way is a result that is new each time (see `_executed`)."""


def alphabet(tools: Sequence[str]) -> dict[type[Event], tuple[Event, ...]]:
    """A small alphabet over two of these tools: what a model may say. What comes of its calls, see `possible`."""
    one, other = (*tools, "look", "pay")[:2]
    return {
        ModelAnswered: (answer("네."), answer("티켓 HT-0000000000을 접수했습니다."), answer("")),
        ToolsRequested: (
            calls((one, {"what": "A"}), usage=Usage(prompt=10)),
            calls((other, {"what": "B"}), text="확인해 볼게요", usage=Usage(prompt=10)),
            calls((one, {"what": "A"}), (other, {"what": "B"})),
        ),
        ModelFailed: (ModelFailed(reason=FailureReason.SERVER, requests=2),),
        Resumed: (Resumed(worker="exhaustive"),),
    }


def possible(kind: type[Event], conversation: Conversation, events: Alphabet) -> Iterator[Event]:
    """The events of this type that the work of the conversation's state may give."""
    if kind is ToolsExecuted:
        seq, request = last_request(conversation)
        yield from _executed(seq, len(request.calls))
    elif kind is ApprovalRequested:
        seq, request = last_request(conversation)
        yield _asked(seq, request.calls[0].name)
    elif kind is ObservationAppended:
        yield _observed(conversation)
    elif kind is TicketOpened:
        yield _opened(conversation.conversation_id, conversation.customer_id, conversation.run)
    else:
        yield from events.get(kind, ())


def decisions(conversation: Conversation) -> Iterator[ApprovalDecided]:
    """What a person may say of the first call that the conversation waits for."""
    waits = awaited(conversation.steps)[0]
    for approved in (True, False):
        yield ApprovalDecided(call=waits.call, digest=waits.digest, approved=approved)


@cache
def _executed(seq: int, calls: int) -> tuple[ToolsExecuted, ...]:
    """The last calls end alike, in each of the ways there are; or bring something new."""
    fresh = (ResultStatus.DONE, {"result": f"새 내용 {seq}"})
    return tuple(
        ToolsExecuted(results=tuple(_result(position, status, response) for position in range(calls)))
        for status, response in (*OUTCOMES, fresh)
    )


def _result(position: int, status: ResultStatus, response: JSON) -> ToolResult:
    return ToolResult(position=position, status=status, response=response, effect=status is ResultStatus.IN_DOUBT)


@cache
def _asked(seq: int, tool: str) -> ApprovalRequested:
    """The first call waits for a person, and the others are not looked at."""
    waits = Awaited(position=0, call=f"{seq}.0", tool=tool, args={}, digest="", expires_at=0)
    return ApprovalRequested(results=(), waiting=(waits,))


def _observed(conversation: Conversation) -> ObservationAppended:
    step = next(step for step in reversed(conversation.steps) if isinstance(step.event, ToolsRequested | ToolsExecuted))
    if step.answer is Answer.NUDGE and isinstance(step.event, ToolsRequested):
        return _refused(len(step.event.calls))
    return _refused(0)


@cache
def _refused(calls: int) -> ObservationAppended:
    return ObservationAppended(refusals=dict.fromkeys(range(calls), "This call was not run."))


@cache
def _opened(conversation_id: str, customer_id: str, run: int) -> TicketOpened:
    key = ticket_key(conversation_id, run)
    ticket = Ticket(
        ticket_id=mint(key),
        key=key,
        conversation_id=conversation_id,
        customer_id=customer_id,
        category="기타",
        urgency="보통",
        summary="",
    )
    return TicketOpened(ticket=ticket, notice=KOREAN.ticket(ticket))
