"""The effect ledger of one conversation, as the worker that writes it knows it, and what can be read out of a ledger.

The store keeps the ledger and decides races: the first claim of a call wins, and so does its first outcome. Here is the
worker's copy, so that a call which is looked up costs no query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from haru_fsm.conversation import Step, executed
from haru_fsm.errors import StoreError
from haru_fsm.late import LateWrites
from haru_fsm.stores import LedgerEntry, Outcome, Started, Store


@dataclass(slots=True)
class Ledger:
    """What was loaded of a conversation's ledger, and what this worker has written since."""

    store: Store
    conversation_id: str
    entries: dict[str, LedgerEntry]
    late: LateWrites = field(default_factory=LateWrites)
    """The engine's own, so that closing waits for all of them."""
    inherited: Mapping[str, LedgerEntry] = field(default_factory=dict)
    """What was done in the steps that a fork shares with the conversations before it."""

    def __post_init__(self) -> None:
        self.entries = {**self.inherited, **self.entries}

    async def claim(self, call: str, started: Started) -> bool:
        """True when this worker, and nobody else, may run the call now."""
        won = await self.store.note(self.conversation_id, call, started)
        if won:
            self.entries[call] = LedgerEntry(call, started)
        return won

    async def settle(self, call: str, outcome: Outcome) -> LedgerEntry:
        """Write an outcome; the first one stays. Returns what the ledger then holds."""
        if await self.store.note(self.conversation_id, call, outcome):
            started = self.entries[call].started if call in self.entries else None
            self.entries[call] = LedgerEntry(call, started, outcome)
        else:
            await self.refresh()
        return self.entries[call]

    async def refresh(self) -> None:
        """Read the ledger again: another process, or a late tool, may have written."""
        record = await self.store.load(self.conversation_id)
        if record is not None:
            self.entries = {**self.inherited, **record.ledger}

    def settle_late(self, call: str, outcome: Outcome) -> None:
        """Write an outcome that came after its call was given up; to be called in the event loop."""
        what = f"The outcome of call {call} of conversation {self.conversation_id} ({outcome.status})"
        self.late.begin(self._settle_late(call, outcome), what)

    async def _settle_late(self, call: str, outcome: Outcome) -> None:
        # If the store cannot take it now the call stays in doubt, which is the truth; a person settles it.
        with suppress(StoreError):
            await self.settle(call, outcome)


def doubts(entries: Iterable[LedgerEntry], *, run: int | None = None) -> list[LedgerEntry]:
    """The calls, of this run or of all, that were started and of which nobody knows (yet) how they ended."""
    return [
        entry
        for entry in entries
        if entry.started is not None and entry.outcome is None and run in (None, entry.started.run)
    ]


def inherited(steps: Sequence[Step], before: Iterable[LedgerEntry]) -> dict[str, LedgerEntry]:
    """The entries that a fork takes over: of the effects that stand in its own journal (`steps`).

    `before` are all entries of the conversations that it was forked from, the nearest one's first.
    """
    found: dict[str, LedgerEntry] = {}
    for entry in before:
        found.setdefault(entry.call, entry)
    took_place = (call for call, _, result in executed(steps) if result.effect and result.ran) if found else ()
    return {call: found[call] for call in took_place if call in found}
