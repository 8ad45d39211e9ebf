"""What persons have said about the calls of one reply. Pure: a fold of the journal.

A person agrees to one call with exactly these arguments of exactly this tool, in this conversation: to a digest, before
it expires. So an approval is of no use for other arguments, for a tool that was changed meanwhile, or in a fork, and
the effect ledger lets what was approved start once. Of several decisions about one digest the first counts. Nobody is
asked twice in one run for what they were against.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from haru_fsm.conversation import (
    JSON,
    ApprovalDecided,
    ApprovalRequested,
    Awaited,
    Step,
    ToolResult,
    ToolsRequested,
    awaited,
)
from haru_fsm.errors import UnknownCall

NOBODY_ASKS = "It needs a person's approval, and this workflow has no way to ask for one."
DENIED_NOTE = "It did not take place. Do not ask for it again; tell the customer, and offer what else can be done."


@dataclass(frozen=True, slots=True)
class Asked:
    """A call for which a person is asked: its place, its tool, and the arguments that it would run with (JSON)."""

    position: int
    call: str
    tool: str
    arguments: str
    declaration: str
    """What the tool says of itself: another one is another thing to approve."""

    def digest(self, conversation_id: str) -> str:
        """What is approved."""
        text = json.dumps([conversation_id, self.call, self.tool, self.arguments, self.declaration])
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Approvals:
    """The decisions about the last reply of a conversation, and what came of its calls before it paused."""

    conversation_id: str
    ttl_s: float = 86_400.0
    """Seconds that a person has, from the first time that they are asked for a call."""
    asked: Mapping[str, Awaited] = field(default_factory=dict)
    decided: Mapping[str, ApprovalDecided] = field(default_factory=dict)
    results: tuple[ToolResult, ...] = ()
    steps: Sequence[Step] = ()
    """The journal, in which earlier replies of this run may have asked for the same."""

    @classmethod
    def of(cls, conversation_id: str, steps: Sequence[Step], ttl_s: float) -> Approvals:
        """Those that a journal holds since its last reply."""
        asked: dict[str, Awaited] = {}
        decided: dict[str, ApprovalDecided] = {}
        results: tuple[ToolResult, ...] = ()
        for step in _since_reply(steps):
            match step.event:
                case ApprovalRequested(waiting=waiting):
                    asked |= {each.digest: each for each in waiting}
                    results = step.event.results
                case ApprovalDecided(digest=digest):
                    decided.setdefault(digest, step.event)
        return cls(conversation_id, ttl_s, asked, decided, results, steps)

    def concern(self, call: str) -> bool:
        """Whether a person was asked about this call: then they have the word, whatever the app says by now."""
        return any(each.call == call for each in self.asked.values())

    def judge(self, asked: Asked, now: float) -> str | Awaited | None:
        """Whether a call may be begun: None for yes, why it may not, or what a person is to be asked."""
        digest = asked.digest(self.conversation_id)
        before, decision = self.asked.get(digest), self.decided.get(digest)
        if before is None and (denial := self._denied_before(asked)) is not None:
            return why_not(denial)
        if before is None or decision is None:
            return before or self._to_ask(asked, digest, now)
        if not decision.approved:
            return why_not(decision)
        return None if now < before.expires_at else "It was approved, but the approval expired before it was begun."

    def _denied_before(self, asked: Asked) -> ApprovalDecided | None:
        """The denial of the same call, where an earlier reply of this run has asked for it."""
        arguments, waited = json.loads(asked.arguments), dict[str, Awaited]()
        for step in self.steps:
            if step.run != self.steps[-1].run:
                continue
            match step.event:
                case ApprovalRequested(waiting=waiting):
                    waited |= {each.digest: each for each in waiting}
                case ApprovalDecided(approved=False, digest=digest) as denial if digest in waited:
                    if (waited[digest].tool, waited[digest].args) == (asked.tool, arguments):
                        return denial
        return None

    def _to_ask(self, asked: Asked, digest: str, now: float) -> Awaited:
        arguments: JSON = json.loads(asked.arguments)
        return Awaited(
            position=asked.position,
            call=asked.call,
            tool=asked.tool,
            args=arguments,
            digest=digest,
            expires_at=round(now + self.ttl_s, 3),
        )


def _since_reply(steps: Sequence[Step]) -> Sequence[Step]:
    start = len(steps)
    while start and not isinstance(steps[start - 1].event, ToolsRequested):
        start -= 1
    return steps[start:]


def why_not(decision: ApprovalDecided) -> str:
    """A denial, for the model."""
    if decision.expired:
        return "No person approved it in time."
    return f"A person decided against it. Their reason: {decision.reason}" if decision.reason else "A person denied it."


def expired(waiting: Iterable[Awaited], now: float) -> tuple[ApprovalDecided, ...]:
    """A denial of every waiting call that nobody has decided about in time."""
    return tuple(
        ApprovalDecided(call=each.call, digest=each.digest, approved=False, expired=True)
        for each in waiting
        if now >= each.expires_at
    )


def waiting_for(conversation_id: str, steps: Sequence[Step], call: str) -> Awaited:
    """What waits for approval under this name. Raises UnknownCall, with what there is to say about it."""
    waiting = awaited(steps)
    found = next((each for each in waiting if each.call == call), None)
    if found is not None:
        return found
    decisions = (step.event for step in steps if isinstance(step.event, ApprovalDecided))
    told = next((_told(event) for event in decisions if event.call == call), f"No call {call} waits for approval.")
    there = f"Waiting: {', '.join(each.call for each in waiting)}." if waiting else "No call waits now."
    raise UnknownCall(f"Conversation {conversation_id}: {told} {there}")


def _told(event: ApprovalDecided) -> str:
    how = "approved" if event.approved else "denied, for its time was up" if event.expired else "denied"
    return f"Call {event.call} was {how}{f' by {event.by}' if event.by else ''}."
