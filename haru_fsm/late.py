"""Outcomes that come after their call was given up. They are written as long as the engine is open.

An outcome that comes later still cannot be: whoever closed the engine may have moved the database away. The call stays
in doubt, which is the truth as far as anybody can read it, and the log says what came.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

_log = logging.getLogger("haru_fsm")


class LateWrites:
    """Writes that are under way and that nobody waits for, except whoever closes."""

    def __init__(self) -> None:
        self._writing: set[asyncio.Task[None]] = set()
        self._closed = False

    def begin(self, write: Coroutine[Any, Any, None], what: str) -> None:
        """Begin a write, in the event loop; `what` names it in the log where it comes too late for that as well."""
        if self._closed:
            write.close()
            _log.warning("%s came after the engine was closed; the call stays in doubt. Settle it: haru settle", what)
            return
        task = asyncio.ensure_future(write)
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def aclose(self) -> None:
        """Wait for those under way, and begin no more."""
        while self._writing:
            await asyncio.wait(self._writing)
        self._closed = True
