"""Is everything in a database as its checksums say?"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from haru_fsm.errors import StoreError
from haru_fsm.stores import Store


@dataclass(frozen=True, slots=True)
class Finding:
    """What `verify` says of one conversation, or of the database itself (no id): whole, or what is wrong with it."""

    conversation_id: str
    damage: str | None = None


async def verify(store: Store, *, progress: Callable[[int, int], None] | None = None) -> AsyncIterator[Finding]:
    """Read every journal and ledger of a store against their checksums, and the database itself. Nothing is changed."""
    summaries = await store.conversations()
    for done, summary in enumerate(summaries):
        if progress is not None:
            progress(done, len(summaries))
        damage = None
        try:
            if await store.load(summary.conversation_id) is None:
                damage = f"Conversation {summary.conversation_id} is there and cannot be found by its id."
        except StoreError as error:
            damage = str(error)
        yield Finding(summary.conversation_id, damage)
    for fault in await store.faults():
        yield Finding("", fault)
