"""Events made up as an adversary would: models that cost nothing or much and ask anything, tools that do anything."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from haru_fsm.conversation import (
    ApprovalDecided,
    ApprovalRequested,
    Awaited,
    Event,
    MessageHeld,
    MessageReceived,
    ModelAnswered,
    ModelFailed,
    ObservationAppended,
    ResultStatus,
    Resumed,
    Ticket,
    TicketClosed,
    TicketOpened,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
    Usage,
    kind_of,
)


def made_up(event: type[Event], draw: random.Random) -> Event:
    """Some event of this kind. One that is not known here is made without any field, and may not be `whole`."""
    if event in _MAKERS:
        return _MAKERS[event](draw)
    try:
        return event.model_validate({})
    except ValidationError:
        return event.model_construct(kind=kind_of(event))


def whole(event: Event) -> bool:
    """Whether the event has all its fields; a guard that cannot judge one without them is not to blame."""
    return all(hasattr(event, name) for name in type(event).model_fields)


def _spent(draw: random.Random) -> dict[str, Any]:
    tokens = draw.choice([0, 0, 1, 5000])
    usage = Usage(prompt=tokens, cost_usd=draw.choice([None, 0.0, 0.01]))
    return {"requests": draw.choice([0, 1, 1, 3]), "usage": usage, "took_ms": draw.choice([0, 0, 900])}


def _requested(draw: random.Random) -> Event:
    wanted = [
        {"functionCall": {"name": draw.choice(["f", "g"]), "args": {"n": draw.randrange(3)}}}
        for _ in range(draw.choice([0, 1, 1, 2]))
    ]
    text: list[dict[str, Any]] = [{"text": draw.choice(["again", "다시 확인합니다"])}] if draw.random() < 0.5 else []
    return ToolsRequested(content={"role": "model", "parts": [*text, *wanted]}, **_spent(draw))


def _answered(draw: random.Random) -> Event:
    return ModelAnswered(content={"role": "model", "parts": [{"text": "접수번호는 T-1 입니다."}]}, **_spent(draw))


def _executed(draw: random.Random) -> Event:
    results = tuple(
        ToolResult(
            position=position,
            status=draw.choice(list(ResultStatus)),
            response={"result": draw.randrange(2)},
            polling=draw.random() < 0.2,
            effect=draw.random() < 0.3,
            ran=draw.random() < 0.7,
        )
        for position in range(draw.choice([0, 1, 1, 2]))
    )
    return ToolsExecuted(results=results, took_ms=draw.choice([0, 900]))


def _waiting(draw: random.Random) -> Event:
    waiting = tuple(
        Awaited(position=position, call=f"1.{position}", tool="f", args={}, digest="d", expires_at=1.0)
        for position in range(draw.choice([1, 1, 2, 3]))
    )
    return ApprovalRequested(waiting=waiting, results=())


def _ticket(draw: random.Random) -> Event:
    texts = dict.fromkeys(("ticket_id", "key", "conversation_id", "customer_id", "category", "urgency", "summary"), "t")
    return TicketOpened(ticket=Ticket(**texts), notice="t")


_MAKERS: Mapping[type[Event], Callable[[random.Random], Event]] = {
    MessageReceived: lambda draw: MessageReceived(text="?"),
    MessageHeld: lambda draw: MessageHeld(text="?"),
    ModelAnswered: _answered,
    ModelFailed: lambda draw: ModelFailed(reason="empty", **_spent(draw)),
    ToolsRequested: _requested,
    ToolsExecuted: _executed,
    ApprovalRequested: _waiting,
    ApprovalDecided: lambda draw: ApprovalDecided(call="1.0", digest="d", approved=draw.random() < 0.5),
    ObservationAppended: lambda draw: ObservationAppended(refusals={0: "no"} if draw.random() < 0.3 else {}),
    Resumed: lambda draw: Resumed(),
    TicketOpened: _ticket,
    TicketClosed: lambda draw: TicketClosed(ticket_id="t", reply="t"),
}
