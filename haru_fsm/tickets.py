"""Tickets: cases for a person. What they say is composed here, and so is the notice that tells their number.

The engine's own desk is the store: the event `ticket_opened` *is* the filing, committed together with the step that
led to it. A desk elsewhere is called before that event; it is handed a ticket with a key and must file one ticket per
key, however often it is asked. Numbers are minted here, from the key alone, so asking again mints the same number.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from haru_fsm.conversation import (
    Conversation,
    FailureReason,
    MessageReceived,
    ModelFailed,
    ResultStatus,
    Resumed,
    Step,
    Ticket,
    ToolsRequested,
    executed,
)

if TYPE_CHECKING:
    from haru_fsm.session import Session
    from haru_fsm.stores import Store

QUOTE_CHARS = 200
FOUND_CHARS = 300


class TicketDesk(Protocol):
    """Where a person looks for tickets. One ticket per `ticket.key`, however often it is asked; returns that one."""

    def open(self, ticket: Ticket) -> Ticket | Awaitable[Ticket]: ...


class StoreDesk:
    """The desk inside the store. Opening touches nothing: the journal's `ticket_opened` files the ticket."""

    def __init__(self, store: Store, open_ticket: Ticket | None = None) -> None:
        self._store = store
        self._open = open_ticket

    def open(self, ticket: Ticket) -> Ticket:
        """The ticket that this conversation has, or this one."""
        return self._open or ticket

    def file(self, session: Session, category: str, urgency: str, summary: str) -> Ticket:
        """File a ticket at once, for a tool that the model called. Blocking. A run that has one adds to it."""
        key = ticket_key(session.conversation_id, session.run)
        self._open = self._store.file_ticket(
            Ticket(
                ticket_id=mint(key),
                key=key,
                conversation_id=session.conversation_id,
                customer_id=session.customer_id,
                category=category,
                urgency=urgency,
                summary=summary,
                created_at=session.now(),
                rehearsal=session.rehearsal,
            )
        )
        return self._open


def local_desk(folder: Path) -> StoreDesk:
    """A desk over the database of a Haru app's `memory_store`, for tools that are used by hand."""
    from haru_fsm.stores.sqlite import SQLiteStore

    return StoreDesk(SQLiteStore(folder / "haru.db"))


def ticket_key(conversation_id: str, run: int) -> str:
    """What a ticket is opened for: one run of one conversation."""
    return f"{conversation_id}/{run}"


def mint(key: str, salt: int = 0) -> str:
    """A ticket's number: ten digits from its key, so that asking again mints the same. `salt` where one is taken."""
    digest = hashlib.blake2b(f"{key}#{salt}".encode(), digest_size=8, person=b"haru-ticket").digest()
    return f"HT-{int.from_bytes(digest) % 10**10:010d}"


# --------------------------------------------------------------------------- what a ticket says


def draft(conversation: Conversation, *, category: str, urgency: str, at: float, rehearsal: bool = False) -> Ticket:
    """The ticket for the current run: the question, what was tried, what was found, and why it stopped."""
    key = ticket_key(conversation.conversation_id, conversation.run)
    # A number that turns out to be taken fails the append; the run is resumed then, and mints another.
    resumes = sum(isinstance(step.event, Resumed) for step in conversation.run_steps)
    return Ticket(
        ticket_id=mint(key, resumes),
        key=key,
        conversation_id=conversation.conversation_id,
        customer_id=conversation.customer_id,
        category=category,
        urgency=urgency,
        summary=summarise(conversation),
        created_at=at,
        rehearsal=rehearsal,
    )


def summarise(conversation: Conversation) -> str:
    """The summary for the person who takes over, in Korean."""
    steps = conversation.run_steps
    question = next((step.event.text for step in steps if isinstance(step.event, MessageReceived)), "")
    lines = [f"질문: {shorten(question, QUOTE_CHARS)}", f"멈춘 이유: {why_stopped(steps)}"]
    tried = [_as_written(step.event) for step in steps if isinstance(step.event, ToolsRequested)]
    lines.append("시도한 일: " + ("; ".join(tried) if tried else "없음"))
    found = list(_found(steps))
    lines.append("확인된 내용: " + (" / ".join(found) if found else "없음"))
    doubts = list(_doubts(steps))
    if doubts:
        lines.append("처리 여부를 확인해야 하는 작업: " + "; ".join(doubts))
    return "\n".join(lines)


def why_stopped(steps: tuple[Step, ...]) -> str:
    """Why a run came to a person, in one line: the guard that tripped, or what the model failed of."""
    for step in reversed(steps):
        if step.trip is not None and step.answer is None:
            return f"{step.trip.because} [{step.trip.guard}]"
        if isinstance(step.event, ModelFailed):
            words = FAILURES.get(step.event.reason, "모델이 답하지 못했습니다")
            return f"{words} [{step.event.reason}] {step.event.detail}".strip()
    return "사람의 확인이 필요합니다"


FAILURES: dict[str, str] = {
    FailureReason.EMPTY: "모델이 빈 답을 보냈습니다",
    FailureReason.PROMPT_BLOCKED: "메시지가 안전 정책에 의해 차단되었습니다",
    FailureReason.ANSWER_BLOCKED: "답변이 안전 정책에 의해 차단되었습니다",
    FailureReason.BAD_REQUEST: "모델이 요청을 거절했습니다",
    FailureReason.WRONG_KEY: "모델의 인증에 실패했습니다",
    FailureReason.UNKNOWN_MODEL: "설정된 모델을 찾을 수 없습니다",
    FailureReason.QUOTA: "모델의 사용 한도를 넘었습니다",
    FailureReason.RATE_LIMITED: "모델이 혼잡합니다",
    FailureReason.SERVER: "모델 서버에 장애가 있습니다",
    FailureReason.TRANSPORT: "모델에 연결하지 못했습니다",
    FailureReason.TIMEOUT: "모델이 제시간에 답하지 않았습니다",
    FailureReason.DEADLINE: "제한 시간이 지났습니다",
}


def _as_written(event: ToolsRequested) -> str:
    return ", ".join(f"{call.name}({shorten(_json(call.args), QUOTE_CHARS)})" for call in event.calls)


def _found(steps: tuple[Step, ...]) -> Iterator[str]:
    for _, call, result in executed(steps):
        said = result.response.get("result", result.response.get("error"))
        yield f"{call.name}: {shorten(_json(said), FOUND_CHARS)}"


def _doubts(steps: tuple[Step, ...]) -> Iterator[str]:
    for key, call, result in executed(steps):
        if result.status is ResultStatus.IN_DOUBT:
            yield f"{call.name}({_json(call.args)}) [{key}]"


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def shorten(text: str, chars: int) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= chars else line[: chars - 1] + "…"


# --------------------------------------------------------------------------- what the customer reads


def notice(ticket: Ticket, *, added: bool = False) -> str:
    """The engine's own words to the customer when a person takes over. Never written by a model."""
    if added:
        return (
            f"남겨 주신 내용을 이미 접수된 상담(접수 번호 {ticket.ticket_id})에 추가했습니다. "
            "담당자가 확인한 뒤 답변드리겠습니다."
        )
    return (
        "죄송합니다. 바로 해결해 드리지 못해 상담 담당자에게 전달했습니다. "
        f"접수 번호는 {ticket.ticket_id}입니다. 담당자가 확인한 뒤 답변드리겠습니다."
    )


HOLDING_NOTICE = (
    "죄송합니다. 바로 해결해 드리지 못해 상담 담당자에게 전달하고 있습니다. "
    "접수가 끝나는 대로 접수 번호를 알려 드리겠습니다."
)
"""What the customer reads while a desk is out of reach: it names no number, because there is none yet."""


def when(at: float) -> str:
    """A time for people, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
