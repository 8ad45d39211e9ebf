"""A small workflow without a shop, for tests of the machine and the stores."""

from __future__ import annotations

from typing import Any

from haru_fsm.conversation import (
    Conversation,
    MessageReceived,
    ModelAnswered,
    ModelFailed,
    ObservationAppended,
    ResultStatus,
    Ticket,
    TicketClosed,
    TicketOpened,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
    Usage,
)
from haru_fsm.machine import Row, Workflow
from haru_fsm.models.scripted import answer, calls


def ask(_conversation: Any, _services: Any) -> ModelAnswered | ToolsRequested | ModelFailed:
    return answer("never called")


def act(_conversation: Any, _services: Any) -> ToolsExecuted:
    return ToolsExecuted(results=())


def observe(_conversation: Any, _services: Any) -> ObservationAppended:
    return ObservationAppended()


def escalate(_conversation: Any, _services: Any) -> TicketOpened:
    raise AssertionError("never called")


SMALL = Workflow(
    [
        Row(MessageReceived, ("DONE", "ESCALATE"), "ASK"),
        Row(ModelAnswered, "ASK", "DONE", rests=True),
        Row(ModelFailed, "ASK", "ESCALATE"),
        Row(ToolsRequested, "ASK", "ACT"),
        Row(ToolsExecuted, "ACT", "OBSERVE"),
        Row(ObservationAppended, "OBSERVE", "ASK"),
        Row(TicketOpened, "ESCALATE", "ESCALATE", rests=True),
        Row(TicketClosed, ("ESCALATE", "DONE"), "DONE", rests=True),
    ],
    work={"ASK": ask, "ACT": act, "OBSERVE": observe, "ESCALATE": escalate},
)


def received(conversation_id: str = "c-1", text: str = "주문 어디쯤 왔나요? 👍🏽") -> Conversation:
    """A conversation that has just received a message."""
    return SMALL.advance(SMALL.begin(conversation_id, "C003"), MessageReceived(text=text, at=1.5))


def stepped(conversation: Conversation, result: Any, *, noted: bool = False) -> Conversation:
    """The conversation after one whole step with one call."""
    request = calls(("get_order", {"order_id": "HR1"}), text="확인할게요", usage=Usage(prompt=7, answer=3), requests=2)
    done = ToolResult(position=0, status=ResultStatus.DONE, response={"result": result}, effect=noted, noted=noted)
    conversation = SMALL.advance(conversation, request)
    return SMALL.advance(SMALL.advance(conversation, ToolsExecuted(results=(done,))), ObservationAppended())


def a_ticket(conversation_id: str = "c-1", key: str = "c-1/1", ticket_id: str = "HT-0000000001") -> Ticket:
    return Ticket(
        ticket_id=ticket_id,
        key=key,
        conversation_id=conversation_id,
        customer_id="C003",
        category="기타",
        urgency="보통",
        summary="질문: 주문 어디쯤 왔나요?",
        created_at=1.5,
    )
