"""Being told to stop. SIGTERM ends a command as Ctrl-C does: leases are given back, and how to go on is said.

The first process of a container has no default for SIGTERM: without this, it would go on through its grace period and
then be killed.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class ToldToStop(Exception):
    """SIGTERM came while the command worked."""


async def until_told_to_stop(work: Coroutine[Any, Any, T]) -> T:
    """What the work gives. Raises ToldToStop where SIGTERM came first; the work has been cancelled then."""
    working = asyncio.ensure_future(work)
    told = asyncio.Event()

    def stop() -> None:
        told.set()
        working.cancel()

    # Some systems, and threads beside the main one, have no such handlers; a loop that closes takes them away.
    with suppress(NotImplementedError, RuntimeError, ValueError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    try:
        return await working
    except asyncio.CancelledError:
        if told.is_set():
            raise ToldToStop from None
        raise
