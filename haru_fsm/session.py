"""The customer a set of tools is bound to. No argument of a model's ever chooses another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from haru_fsm.clock import Clock, SystemClock

if TYPE_CHECKING:
    from haru_fsm.tickets import StoreDesk


@dataclass(frozen=True)
class Session:
    """Whom the tools act for, and in which run. An app may subclass it and export the subclass from `tools/`.

    Raise UnknownCustomer in `__post_init__` where the shop knows its customers; a plain subclass will do.
    """

    customer_id: str
    conversation_id: str = ""
    run: int = 0
    desk: StoreDesk | None = None
    """Where tools file tickets; None where tools are used by hand."""
    clock: Clock = field(default_factory=SystemClock)
    rehearsal: bool = False

    def __post_init__(self) -> None:
        """Everybody is a customer. Here so that it is called in a subclass which is no dataclass itself, too."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return self.clock.now()
