"""A ticket desk and a store that fail as the cases say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from haru_fsm.conversation import Conversation, Ticket
from haru_fsm.errors import StoreError
from haru_fsm.stores import Store


class DeskInAFile:
    """A desk elsewhere: one ticket for each key; the first answer is lost although the ticket was stored."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "desk.json"

    def tickets(self) -> dict[str, str]:
        """The tickets that were filed, by key."""
        stored: dict[str, str] = json.loads(self._file.read_text("utf-8")) if self._file.exists() else {}
        return stored

    async def open(self, ticket: Ticket) -> Ticket:
        """File it, or find the one of this key. Raises TimeoutError the first time a ticket is stored."""
        stored = self.tickets()
        if ticket.key in stored:
            return Ticket.model_validate_json(stored[ticket.key])
        stored[ticket.key] = ticket.model_dump_json()
        self._file.write_text(json.dumps(stored), "utf-8")
        raise TimeoutError("timeout after the ticket was stored")


class DeskThatIsDown:
    """A desk that cannot be reached while `down`."""

    def __init__(self) -> None:
        self.down = True
        self.filed: dict[str, Ticket] = {}

    async def open(self, ticket: Ticket) -> Ticket:
        """File it, or find it. Raises TimeoutError while it is down."""
        if self.down:
            raise TimeoutError("no connection")
        return self.filed.setdefault(ticket.key, ticket)


class StumblingDesk:
    """A desk that fails so many times, before anything was stored, and then works."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.filed: dict[str, Ticket] = {}

    async def open(self, ticket: Ticket) -> Ticket:
        """File it, or find it. Raises TimeoutError while it stumbles."""
        if self.left:
            self.left -= 1
            raise TimeoutError("no connection")
        return self.filed.setdefault(ticket.key, ticket)


class FaultyStore:
    """A store whose `nth` append fails before anything is written; everything else is the store's own."""

    def __init__(self, store: Store, nth: int) -> None:
        self._store = store
        self._nth = nth
        self.appends = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def append(self, conversation: Conversation, **place: Any) -> None:
        """As the store's, except the one time."""
        self.appends += 1
        if self.appends == self._nth:
            raise StoreError("the disk is gone") from OSError("I/O error")
        await self._store.append(conversation, **place)
