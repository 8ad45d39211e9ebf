"""Loop detectors: is the model still getting anywhere? They promise nothing, for an adversary varies for ever.

Observations decide, arguments never alone: a call that brings something new is progress, however often it was made.
A refusal is no observation. A reply trips only when every call in it repeats.
"""

from __future__ import annotations

from dataclasses import dataclass

from haru_fsm.conversation import Event, ToolsRequested, Trip
from haru_fsm.guards.trail import OfTrail, Trail


@dataclass(frozen=True)
class RepeatedCall(OfTrail):
    """The same call for the `times`-th time, having brought the same observation each time before.

    Catches the stubborn loop and any cycle of calls. Misses loops whose arguments or results vary. A tool marked as
    polling is never held against the model.
    """

    times: int

    def judge(self, memo: Trail, event: Event) -> Trip | None:
        assert isinstance(event, ToolsRequested)
        figure = 1 + memo.repeats(event.meant)
        if figure < self.times:
            return None
        return self.trip(
            figure,
            f"the same call ({event.calls[0].name}) was requested for the {figure}th time and has brought the same "
            "observation each time",
            self.times,
        )


@dataclass(frozen=True)
class RepeatedEffect(OfTrail):
    """The same effect once more, after the model was told that it is done and what came of it.

    Catches a model that insists on an effect, which the ledger answers instead of running it. Misses nothing that the
    ledger answers; the first such answer is the nudge.
    """

    def judge(self, memo: Trail, event: Event) -> Trip | None:
        if not memo.told or not isinstance(event, ToolsRequested) or not memo.told.issuperset(event.meant):
            return None
        because = f"the same effect ({event.calls[0].name}) was requested again after the model was told it is done"
        return self.trip(1, because)


@dataclass(frozen=True)
class FailingCalls(OfTrail):
    """The last `times` replies brought nothing but failed calls: bad arguments, unknown tools, errors, refusals.

    Catches the model that never gets its arguments right, whatever it varies. Misses failures between successes.
    A refusal counts only after a failure, because it then refuses more of the same.
    """

    times: int

    def judge(self, memo: Trail, event: Event) -> Trip | None:
        if memo.failed < self.times:
            return None
        because = (
            f"{memo.failed} replies in a row brought only failed calls (invalid arguments, unknown tools or errors)"
        )
        return self.trip(memo.failed, because, self.times)
