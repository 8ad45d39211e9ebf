"""Where a run stands: what it has spent, and which effects are in doubt. Folds of the journal, like everything else."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, TypeGuard

from haru_fsm.conversation import (
    ApprovalRequested,
    Event,
    ModelEvent,
    ResultStatus,
    Resumed,
    Step,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
)

IN_DOUBT = ResultStatus.IN_DOUBT


def is_model_event(event: Event) -> TypeGuard[ModelEvent]:
    """Whether this event is a model's. Folds ask it at every step, and pydantic's own `isinstance` is slow wherever the
    class is not the event's very own."""
    return _is_model_kind(type(event))


@cache
def _is_model_kind(kind: type[Event]) -> bool:
    return issubclass(kind, ModelEvent)


class Doubts(NamedTuple):
    """The calls that were started and of which nobody knows how they ended, as `seq.position`."""

    calls: frozenset[str] = frozenset()
    requested: int = 0
    """The step that requested the calls which are being dealt with."""

    def fold(self, step: Step) -> Doubts:
        """The doubts after one more step; a model event carries the outcomes that came to be known before it."""
        event = step.event
        if is_model_event(event):
            calls = self.calls - event.settled.keys() if event.settled else self.calls
            return Doubts(calls, step.seq if type(event) is ToolsRequested else self.requested)
        if type(event) is ToolsExecuted or type(event) is ApprovalRequested:
            return self._executed(event.results)
        if type(event) is Resumed and event.begun:
            return Doubts(self.calls.union(event.begun), self.requested)
        return self

    def _executed(self, results: Sequence[ToolResult]) -> Doubts:
        """A call that was begun before a resume may have been settled since, under its key or by a late outcome."""
        if not self.calls and IN_DOUBT not in [each.status for each in results]:
            return self
        # A call that was answered with another one's doubt was not begun: the doubt is the other one's.
        doubtful = {f"{self.requested}.{each.position}": each.status is IN_DOUBT and each.ran for each in results}
        calls = (self.calls - doubtful.keys()) | {call for call, is_doubtful in doubtful.items() if is_doubtful}
        return self if calls == self.calls else Doubts(calls, self.requested)


NO_DOUBTS = Doubts()


class Progress(NamedTuple):
    """What the current run has spent (requests, and milliseconds of work), and the doubts of the conversation."""

    run: int = 0
    requests: int = 0
    took_ms: int = 0
    doubts: Doubts = NO_DOUBTS

    def fold(self, step: Step) -> Progress:
        """The same after one more step; what was spent belongs to a run, doubts to the conversation."""
        requests, took_ms = (self.requests, self.took_ms) if step.run == self.run else (0, 0)
        if is_model_event(step.event):
            requests += max(1, step.event.requests)
        return Progress(step.run, requests, took_ms + step.event.took_ms, self.doubts.fold(step))
