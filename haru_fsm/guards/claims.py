"""Guards on answers: may the customer read this? Words of the model never settle what the store must know."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from haru_fsm.conversation import (
    ApprovalRequested,
    Event,
    HistoryAdopted,
    MessageReceived,
    ModelAnswered,
    ModelEvent,
    ResultsEvent,
    ResultStatus,
    Resumed,
    Step,
    TicketClosed,
    TicketOpened,
    ToolsExecuted,
    ToolsRequested,
    Trip,
)
from haru_fsm.guards import deeds
from haru_fsm.guards.claim_words import FILED, HANDED_OVER, IDENTIFIER, NUMBERED, is_hand_over, unquoted
from haru_fsm.guards.guard import Guard
from haru_fsm.progress import Doubts, is_model_event

OUTSIDE_WORDS: tuple[type[Event], ...] = (
    MessageReceived,
    ToolsExecuted,
    ApprovalRequested,
    TicketOpened,
    TicketClosed,
    HistoryAdopted,
)
"""Events whose words do not come from the model. A model event may bring such words too: outcomes settled meanwhile."""


class _Known(NamedTuple):
    """What came from outside the model, and the calls that it had asked for, newest first, as a chain: adding costs the
    same at any length. It is looked at only when an answer claims something, which is seldom."""

    step: Step
    before: _Known | None


def _steps(known: _Known | None) -> Iterator[Step]:
    """All of them, the newest first."""
    while known is not None:
        yield known.step
        known = known.before


@dataclass(frozen=True)
class UnfoundedTicketClaim(Guard):
    """The answer names a ticket that nobody opened, or says that one was filed, or something done, when nothing was.

    A number counts as known when it came from a tool, the customer or the engine in this conversation. Catches
    invented numbers beside words for tickets, and what was said to be done where nothing founds it: a ticket in a run
    that has done nothing, a hand-over to a person in a conversation that has done nothing, a deed ("환불되었습니다") in
    one in which no effect was done. What a tool has told about such a thing founds it too, but no promise. Misses
    claims in words that it does not know, and things that a tool has mentioned and nobody done: what it said may be
    what the answer goes by. Source: public reports of customers who waited for cases, refunds and people that did not
    exist (langgenius/dify#40671, openai/openai-agents-python#2352).

    Measured: it trips on none of 1,290 recorded answers. That it finds invented numbers is held by field cases.
    """

    judges = (ModelAnswered,)
    folds = (*OUTSIDE_WORDS, ModelEvent)
    folds_by_kind = True

    def __init__(self) -> None:
        object.__setattr__(self, "scope", "conversation")

    def initial(self) -> _Known | None:
        return None

    def fold(self, memo: _Known | None, step: Step) -> _Known | None:
        event = step.event
        matters = type(event) in OUTSIDE_WORDS or type(event) is ToolsRequested or _settles(event)
        return _Known(step, memo) if matters else memo

    def judge(self, memo: _Known | None, event: Event) -> Trip | None:
        assert isinstance(event, ModelAnswered)
        text = unquoted(event.text)
        if (number := _made_up(event.text, event, memo)) is not None:
            return self.trip(1, f"the answer names a ticket that does not exist ({number})")
        if FILED.search(text) and not _is_filed(text, event, memo):
            return self.trip(1, "the answer says that a ticket was filed, and none was")
        if HANDED_OVER.search(text) and not _is_handed_over(text, event, memo):
            return self.trip(1, "the answer says that a person takes over, and none was told")
        if (deed := deeds.CLAIM.search(text)) and not _is_told(deed[0], event, memo):
            return self.trip(
                1, f"the answer says that something was done ({deed[0]}), and nothing that ran tells of it"
            )
        return None


def _made_up(text: str, answer: Event, known: _Known | None) -> str | None:
    """The number of a ticket that nobody but the model has named."""
    for claim in NUMBERED.finditer(text):
        if not _is_known(claim["id"], claim["number"], _events(answer, known)):
            return claim["id"] or claim["number"]
    return None


def _is_filed(text: str, answer: Event, known: _Known | None) -> bool:
    """Whether this run has done something, a tool has read of such a thing, or the ticket was there before."""
    if any(map(_acts, takewhile(_in_this_run, _events(answer, known)))) or deeds.is_read(
        deeds.FILINGS, _journal(known)
    ):
        return True
    acts = [event for event in _events(answer, known) if _acts(event)]
    return any(_is_known(claim["id"], claim["number"], acts) for claim in NUMBERED.finditer(text))


def _is_handed_over(text: str, answer: Event, known: _Known | None) -> bool:
    """Whether it may have been: by an effect or a ticket, or elsewhere, as what came from there or a tool tells."""
    may_have = any(isinstance(event, TicketClosed | HistoryAdopted) or _acts(event) for event in _events(answer, known))
    return may_have or not is_hand_over(text, told=deeds.is_read(deeds.HAND_OVERS, _journal(known)))


def _is_told(deed: str, answer: Event, known: _Known | None) -> bool:
    """Whether the outcome of an effect has come to be known, or the journal tells of such a deed."""
    return any(map(_settles, _events(answer, known))) or deeds.is_told(deed, _journal(known))


def _journal(known: _Known | None) -> list[Step]:
    """All that is known, the oldest first."""
    return list(_steps(known))[::-1]


def _events(answer: Event, known: _Known | None) -> Iterator[Event]:
    """The answer and all that is known, the newest first."""
    yield answer
    yield from (step.event for step in _steps(known))


def _is_known(identifier: str | None, number: str | None, events: Iterable[Event]) -> bool:
    if number is not None:
        return any(number in _from_outside(event) for event in events)
    return str(identifier).casefold() in (word.casefold() for word in _identifiers(events))


def _identifiers(events: Iterable[Event]) -> Iterator[str]:
    """Everything that looks like an identifier."""
    for event in events:
        yield from IDENTIFIER.findall(_from_outside(event))


def _from_outside(event: Event) -> str:
    match event:
        case MessageReceived(text=text):
            return text
        case ResultsEvent(results=results):
            return " ".join(json.dumps(result.response, ensure_ascii=False) for result in results)
        case TicketOpened(notice=notice):
            return notice
        case TicketClosed(reply=reply):
            return reply
        case ModelEvent(settled=settled):
            return json.dumps(settled, ensure_ascii=False)
        case HistoryAdopted(contents=contents):
            return json.dumps([content for content in contents if content["role"] == "user"], ensure_ascii=False)
    return ""


def _settles(event: Event) -> bool:
    return is_model_event(event) and bool(event.settled)


def _in_this_run(event: Event) -> bool:
    """Whether what came before this event belongs to the same run."""
    return not isinstance(event, MessageReceived)


def _acts(event: Event) -> bool:
    """Whether an effect was done, or a ticket opened."""
    if isinstance(event, ToolsExecuted | ApprovalRequested):
        return any(result.effect and result.status is ResultStatus.DONE for result in event.results)
    if is_model_event(event):
        return any("result" in response for response in event.settled.values())
    return type(event) is TicketOpened


@dataclass(frozen=True)
class InDoubt(Guard):
    """An effect of this run was started and nobody knows how it ended; what the model says of it is no evidence.

    A late outcome or a person's word, which travel inside the next model event, settle it. Catches every outcome that
    the ledger calls in doubt. Misses a tool that says it has done what it has not. Measured: the recordings have no
    ledger; properties hold it to the journal.
    """

    judges = (ModelAnswered,)
    folds = (ModelEvent, ToolsExecuted, ApprovalRequested, Resumed)
    folds_by_kind = True

    def initial(self) -> Doubts:
        return Doubts()

    def fold(self, memo: Doubts, step: Step) -> Doubts:
        return memo.fold(step)

    def judge(self, memo: Doubts, event: Event) -> Trip | None:
        doubts = memo.calls - event.settled.keys() if isinstance(event, ModelAnswered) else memo.calls
        if not doubts:
            return None
        calls = ", ".join(sorted(doubts))
        return self.trip(len(doubts), f"nobody knows whether {len(doubts)} effect(s) took place: {calls}")
