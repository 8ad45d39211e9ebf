"""One tool of one conversation: a function, what it says of itself, and the way through it."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from haru_fsm.clock import Clock
from haru_fsm.limits import Limits
from haru_fsm.models import Declaration
from haru_fsm.toolbox.arguments import Prepared, Refused, prepare
from haru_fsm.toolbox.attempts import Callee
from haru_fsm.toolbox.declaration import declare
from haru_fsm.toolbox.marks import Marks, marks_of
from haru_fsm.toolbox.reading import secret_values
from haru_fsm.toolbox.running import OnLate, Outcome, run, wait_s
from haru_fsm.toolbox.threads import THREADS, Threads

_NO_KEY = "It was not begun: it needs the key of a call, and this call has none."


class Tool:
    """A function under its name. Built anew for each conversation, at the cost of a look into the cache."""

    __slots__ = ("_callee", "_declared", "marks", "name", "needs_approval")

    def __init__(
        self, name: str, function: Callable[..., Any], limits: Limits | None = None, threads: Threads = THREADS
    ) -> None:
        self.name = name
        self.marks: Marks = marks_of(function)
        self.needs_approval = self.marks.approval or (
            self.marks.destructive is True and limits is not None and limits.approve_destructive
        )
        """A person has to agree before it runs: its own mark says so, or the app of all destructive tools."""
        self._declared, layered = declare(name, function)
        reading = self._declared.reading
        self._callee = Callee(
            name=name,
            function=function,
            marks=self.marks,
            timeout_s=self.marks.timeout_s or (limits or Limits()).tool_timeout_s,
            returns=self._declared.hiding,
            secrets=tuple(secret_values(layered, reading.secrets)) if reading.secrets else (),
            threads=threads,
        )

    @property
    def declaration(self) -> Declaration:
        """What the model reads of it."""
        return self._declared.declaration

    @property
    def definition(self) -> str:
        """The declaration as a text: where it differs, the tool is no longer the one that was approved."""
        return json.dumps(self.declaration.told, sort_keys=True)

    @property
    def timeout_s(self) -> float:
        """Seconds for one attempt."""
        return float(self._callee.timeout_s)

    @property
    def worst_case_s(self) -> float:
        """Seconds that one call may take: every attempt to its time-out, with the waits between them."""
        waits = sum(wait_s(attempt) for attempt in range(1, self.marks.retries + 1))
        return self.timeout_s * (1 + self.marks.retries) + waits

    @property
    def accepts_key(self) -> bool:
        """It takes the call's idempotency key: running it again under the same key does nothing twice."""
        return self._declared.reading.key is not None

    @property
    def has_effect(self) -> bool:
        """It may act on the world."""
        return self.marks.has_effect

    @property
    def declares_effect(self) -> bool:
        """It says that it acts on the world."""
        return self.marks.declares_effect

    def prepare(self, args: Any, unusable: str | None = None) -> Prepared | Refused:
        """Arguments to run with, or why not. `unusable`: why the model's arguments could not even be read."""
        return prepare(self._declared, self.marks, args, unusable)

    async def run(
        self,
        prepared: Prepared,
        *,
        timeout_s: float | None,
        key: str | None,
        clock: Clock,
        on_late: OnLate | None,
    ) -> Outcome:
        """Run it to its outcome. Raises nothing but CancelledError, where the caller is cancelled.

        `timeout_s` is what is left of the run, in seconds, for all attempts (None: no such limit); each attempt has
        the tool's own time-out. `on_late` gets, at most once and in the event loop, an outcome that came too late.
        """
        wanted = self._declared.reading.key
        if wanted is not None and wanted.required and key is None:
            return Outcome("not_done", {"error": _NO_KEY})
        extra = {} if wanted is None or key is None else {wanted.name: key}
        first = iter((prepared.arguments,))

        def arguments() -> dict[str, Any]:
            # A tool may have changed what it was given, so a second attempt gets its own.
            fresh = next(first, None)
            return {**(self._again(prepared) if fresh is None else fresh), **extra}

        return await run(self._callee, arguments, timeout_s=timeout_s, clock=clock, on_late=on_late)

    def _again(self, prepared: Prepared) -> dict[str, Any]:
        again = self.prepare(json.loads(prepared.canonical))
        return again.arguments if isinstance(again, Prepared) else prepared.arguments


def name_of(function: Any) -> str:
    """The name of a function, of what a partial wraps, or of a callable object's class."""
    while isinstance(function, functools.partial) and not hasattr(function, "__name__"):
        function = function.func
    return str(getattr(function, "__name__", None) or type(function).__name__)
