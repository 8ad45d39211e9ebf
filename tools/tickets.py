"""Handing a case to a person."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from haru_fsm import Session, tool
from haru_fsm.conversation import JSON
from haru_fsm.tickets import StoreDesk, local_desk

from .session import CustomerSession

Category = Literal["배송", "취소", "반품", "교환", "환불", "상품", "쿠폰", "회원", "기타"]
Urgency = Literal["낮음", "보통", "높음", "긴급"]


def ticket_tools(session: CustomerSession) -> list[Callable[..., Any]]:
    """create_ticket, for this customer."""

    @tool(read_only=False, idempotent=True)
    def create_ticket(category: Category, urgency: Urgency, summary: str) -> JSON:
        """Open a support ticket, so that a person takes over: when the customer asks for one, or no tool can help.

        Args:
            category: What the case is about; 기타 where nothing else fits.
            urgency: How urgent it is; usually 보통.
            summary: What the customer wants, what was found and what is still to be done, in two or three sentences.
        """
        desk, where = (session.desk, session) if session.desk is not None else _by_hand(session)
        ticket = desk.file(where, category, urgency, summary)
        return {
            "message": "상담 티켓을 접수했습니다. 담당자가 확인한 뒤 답변드립니다.",
            "ticket_id": ticket.ticket_id,
            "category": ticket.category,
            "urgency": ticket.urgency,
        }

    return [create_ticket]


def _by_hand(session: CustomerSession) -> tuple[StoreDesk, Session]:
    """Without an engine there is no run to add to: each ticket is a case of its own."""
    alone = session.conversation_id or f"by-hand-{uuid.uuid4().hex}"
    return _desk(session.shop.memory), replace(session, conversation_id=alone)


@cache
def _desk(memory: Path) -> StoreDesk:
    return local_desk(memory)
