"""Stores: where journals, the effect ledger and tickets live.

There are two ways to write. `append` moves a conversation, atomically: its new steps, its state, whether it rests,
the ticket it opened or closed, and who works on it. `note` writes the effect ledger without moving anything.

Whatever a store does, these hold (one contract test runs on each):

* What `append` or `note` has returned from survives `kill -9` of the process, and (SQLite) loss of power.
* An append whose `expected_seq` is not the stored one, or that comes from a worker which is not (or no longer)
  the owner, raises ConversationMoved and changes nothing.
* The first `Started` for a call wins, and so does its first `Outcome`.
* Two tickets never share a number, and one key never has two tickets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from haru_fsm.conversation import JSON, Conversation, Frozen, ResultStatus, Step, Ticket
from haru_fsm.errors import UnknownConversation
from haru_fsm.ids import checked

FORMAT = 2
"""Version of what is stored. Older formats are read; a newer one is refused."""


class Started(Frozen):
    """A tool with an effect is about to run. Committed alone, right before its call: it is the claim."""

    run: int
    name: str
    digest: str
    """Digest of the repaired arguments: the same effect asked for again is recognised by it."""
    declared: bool = False
    """The tool states its effect, so the same call again in this run is answered, not run."""
    keyed: bool = False
    """The tool accepts the call's key, so it may be run again under the same one."""
    at: float = 0.0


class Outcome(Frozen):
    """How a call ended. Written as soon as it is known; the first one stays."""

    status: ResultStatus
    response: JSON
    took_ms: int = 0
    by: str = "tool"
    """Who knows it: the tool itself, or a person (`haru settle`)."""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What the ledger knows of one call of a conversation; `call` is `seq.position` of its request."""

    call: str
    started: Started | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class StoredTicket:
    """A ticket with what has become of it."""

    ticket: Ticket
    notes: tuple[str, ...] = ()
    """What later escalations added."""
    reply: str | None = None
    closed_at: float | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """One line about a conversation, for lists. Times in seconds since the epoch."""

    conversation_id: str
    customer_id: str
    state: str
    resting: bool
    seq: int
    run: int
    created_at: float
    updated_at: float
    owner: str | None = None
    lease_until: float = 0.0
    parent: str | None = None
    """The conversation that it was forked from."""
    rehearsal: bool = False
    paused: bool = False
    """At rest, but not at an ending: its run waits for a person's approval."""


@dataclass(frozen=True, slots=True)
class Record:
    """Everything stored of one conversation."""

    summary: Summary
    steps: tuple[Step, ...]
    ledger: Mapping[str, LedgerEntry] = field(default_factory=dict)
    open_ticket: Ticket | None = None


class Store(Protocol):
    """What the engine needs of a store. Every method raises StoreError when it could not do its work."""

    async def load(self, conversation_id: str) -> Record | None:
        """The whole conversation, or None. Raises JournalDamaged when it fails its checksums."""
        ...

    async def append(
        self,
        conversation: Conversation,
        *,
        expected_seq: int,
        owner: str | None,
        over: str | None,
        lease_s: float,
        at: float | None = None,
    ) -> None:
        """Store the steps after `expected_seq`. `owner` works on from here (None: nobody does, the lease is given
        back); `over` is the void owner that may be replaced. `at` is when that was, in seconds since the epoch, where
        it was not now."""
        ...

    async def note(self, conversation_id: str, call: str, what: Started | Outcome) -> bool:
        """Write the ledger. False when it already held a start, or an outcome, for this call."""
        ...

    async def release(self, conversation_id: str, owner: str) -> None:
        """Give the lease back without moving the conversation."""
        ...

    def file_ticket(self, ticket: Ticket) -> Ticket:
        """File a ticket at once (blocking; for tools), or add to the one that this key or conversation already has.

        Returns the ticket that there is then. The same words are added once, however often they come.
        """
        ...

    async def conversations(
        self,
        *,
        unfinished: bool = False,
        in_doubt: bool = False,
        customer_id: str | None = None,
        limit: int | None = None,
    ) -> Sequence[Summary]:
        """Conversations, the latest first; `unfinished`: those whose run has not ended, paused ones included;
        `in_doubt`: those with a call of which nobody knows how it ended, one that is under way included."""
        ...

    async def tickets(
        self, *, conversation_id: str | None = None, open_only: bool = False, limit: int | None = None
    ) -> Sequence[StoredTicket]:
        """Tickets, the latest first."""
        ...

    async def prune(self, before: float) -> int:
        """Forget conversations that have rested since before then (seconds since the epoch), with their tickets.

        Never one that is unfinished or paused, that has an open ticket or an effect in doubt, or that a fork comes from
        (or the one that it comes from) which is unfinished or paused. Each is forgotten whole; where it stops half-way,
        the others are still there. Returns how many.
        """
        ...

    async def faults(self) -> Sequence[str]:
        """What is wrong with the database as a whole, beside its journals; nothing where all is well. May be slow."""
        ...

    async def aclose(self) -> None:
        """Finish what is queued and let go of the database."""
        ...


async def known(store: Store, conversation_id: str) -> Record:
    """A conversation that must be there. Raises UnknownConversation, SettingsError (no id), and as `Store.load`."""
    record = await store.load(checked("conversation's id", conversation_id))
    if record is None:
        raise UnknownConversation(f"There is no conversation {conversation_id}. `haru list` shows those there are.")
    return record
