"""What to do with a call, given what the ledger knows. Pure: the same ledger gives the same decision in any process.

An effect starts at most once per call. A start without an outcome means that a process died in between, and then
nobody knows: only a tool that accepts the call's key can safely be asked again, under the same key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import StrEnum

from haru_fsm.conversation import ResultStatus
from haru_fsm.stores import LedgerEntry


class Decision(StrEnum):
    """What becomes of a call."""

    RUN = "run"
    """Nobody has begun it."""
    USE = "use"
    """Its outcome is known."""
    RUN_AGAIN = "run_again"
    """It was begun under a key that the tool accepts; the same key gives the same effect."""
    IN_DOUBT = "in_doubt"
    """It was begun, and nobody knows how it ended."""


def decide(entry: LedgerEntry | None, *, accepts_key: bool) -> Decision:
    """What to do with a call that the ledger holds this entry of (None: nothing)."""
    if entry is None:
        return Decision.RUN
    if entry.outcome is not None:
        return Decision.USE
    # Begun without a key (the tool has learned to take one since), a second run would be a second effect.
    keyed = accepts_key and entry.started is not None and entry.started.keyed
    return Decision.RUN_AGAIN if keyed else Decision.IN_DOUBT


def digest_of(canonical: str) -> str:
    """Digest of the arguments that a call is run with (as canonical JSON): the same effect is recognised by it."""
    return hashlib.blake2b(canonical.encode("utf-8", "replace"), digest_size=12).hexdigest()


def same_effect(entries: Iterable[LedgerEntry], *, run: int, name: str, digest: str) -> LedgerEntry | None:
    """An earlier call of this run that is the same declared effect, unless it certainly was not done."""
    for entry in entries:
        started = entry.started
        if started is None or not started.declared:
            continue
        if (started.run, started.name, started.digest) != (run, name, digest):
            continue
        if entry.outcome is None or entry.outcome.status is not ResultStatus.NOT_DONE:
            return entry
    return None
