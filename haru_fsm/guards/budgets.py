"""Budgets: how much a run may spend. A spent budget stays spent, whatever happens to the process.

They catch whatever does not end by itself, and miss whatever is wrong within them: which loop it is they cannot tell.
*Measured* is on 819 recorded runs that succeeded (docs/guards.md); they carry neither prices nor times. What no
recording shows is held by properties: the limit is kept in any history, over restarts, compaction and forks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from haru_fsm.conversation import (
    COST_DIGITS,
    Answer,
    ApprovalRequested,
    Event,
    ModelEvent,
    Resumed,
    Step,
    ToolsRequested,
    Trip,
)
from haru_fsm.guards.guard import Counted, Guard
from haru_fsm.progress import is_model_event

AWAIT_MODEL = frozenset({"AWAIT_MODEL"})


def _requests(event: Event) -> int:
    # A model that reports no request has still made the piece of work that is being counted.
    return max(1, event.requests) if is_model_event(event) else 0


@dataclass(frozen=True)
class StepBudget(Guard):
    """At most `steps` model requests in a run, re-asks included.

    Promises: `steps` visits of the states in `visits`, because each visit costs at least one request. Catches every
    run that goes on asking. Misses what one request costs.

    Measured: of the successes 44 want tools at their eighth request, none at its twelfth.
    """

    steps: int
    visits: frozenset[str] = field(default=AWAIT_MODEL, kw_only=True)

    folds = (ModelEvent,)
    folds_by_kind = True
    measures = "requests"

    @property
    def limit(self) -> int | None:
        return self.steps

    @property
    def ceiling(self) -> float | None:
        return self.steps

    @property
    def counts(self) -> frozenset[str]:
        return self.visits

    def initial(self) -> int:
        return 0

    def fold(self, memo: int, step: Step) -> int:
        return memo + _requests(step.event)

    def judge(self, memo: int, event: Event) -> Trip | None:
        spent = memo + _requests(event)
        if spent < self.steps:
            return None
        return self.trip(spent, f"the model was asked {spent} times, the limit is {self.steps}")


@dataclass(frozen=True)
class ToolCallBudget(Guard):
    """At most `calls` tool calls in a run, counted as the model requests them.

    Promises: `calls` askings, because each reply that requests tools requests at least one. Trips on the reply
    that would go beyond; that reply's calls are not run. Catches floods of calls. Misses what one call costs;
    and counts calls that are refused afterwards as well.

    Measured: no success requests more than 20.
    """

    calls: int

    judges = (ToolsRequested,)
    folds = (ToolsRequested,)
    folds_by_kind = True
    measures = "tool_calls"

    @property
    def limit(self) -> int | None:
        return self.calls

    @property
    def ceiling(self) -> float | None:
        return self.calls

    def initial(self) -> int:
        return 0

    def fold(self, memo: int, step: Step) -> int:
        return memo + max(1, len(step.event.calls)) if isinstance(step.event, ToolsRequested) else memo

    def judge(self, memo: int, event: Event) -> Trip | None:
        requested = memo + max(1, len(event.calls)) if isinstance(event, ToolsRequested) else memo
        if requested <= self.calls:
            return None
        return self.trip(requested, f"{requested} tool calls were requested, the limit is {self.calls}")


@dataclass(frozen=True)
class TokenBudget(Guard):
    """At most about `tokens` tokens in a run: trips on the first event at which they are spent.

    Counts what the provider reports (thoughts included, cached tokens once), failed attempts included. Promises:
    `tokens` visits of the states in `visits`, only because each request is charged at least one token. Catches
    histories that grow. Misses what a provider does not report, and the last request, which may go far beyond.
    """

    tokens: int
    visits: frozenset[str] = field(default=AWAIT_MODEL, kw_only=True)

    folds = (ModelEvent,)
    folds_by_kind = True
    measures = "tokens"

    @property
    def limit(self) -> int | None:
        return self.tokens

    @property
    def ceiling(self) -> float | None:
        return self.tokens

    @property
    def counts(self) -> frozenset[str]:
        return self.visits

    def initial(self) -> int:
        return 0

    def fold(self, memo: int, step: Step) -> int:
        return memo + self._charge(step.event)

    def judge(self, memo: int, event: Event) -> Trip | None:
        spent = memo + self._charge(event)
        if spent < self.tokens:
            return None
        return self.trip(spent, f"{spent} tokens were spent, the limit is {self.tokens}")

    @staticmethod
    def _charge(event: Event) -> int:
        return max(_requests(event), event.usage.total) if is_model_event(event) else 0


@dataclass(frozen=True)
class CostBudget(Guard):
    """At most about `usd` US dollars in a run, where the price of the model is known. Promises nothing: a price
    may be zero. Catches dear models and long histories. Misses requests whose price nobody knows."""

    usd: float

    folds = (ModelEvent,)
    folds_by_kind = True
    measures = "cost"

    @property
    def ceiling(self) -> float | None:
        return self.usd

    def initial(self) -> float:
        return 0.0

    def fold(self, memo: float, step: Step) -> float:
        return self._sum(memo, step.event)

    def judge(self, memo: float, event: Event) -> Trip | None:
        spent = self._sum(memo, event)
        if spent < self.usd:
            return None
        return self.trip(spent, f"${spent:.4f} were spent, the limit is ${self.usd:.4f}", self.usd)

    @staticmethod
    def _sum(memo: float, event: Event) -> float:
        # Ten times 0.1 is 1.0 here, as in `Run.usage`: the noise of adding floats must not open a spent budget.
        cost = event.usage.cost_usd if is_model_event(event) else None
        return round(memo + cost, COST_DIGITS) if cost else memo


@dataclass(frozen=True)
class Deadline(Guard):
    """At most about `seconds` of work in a run: the sum of `took_ms`, pauses not counted. Promises nothing: a step
    may take no measurable time. Catches slow models and tools, which get what is left as their time-out (a
    request to a model that may be repeated: half of it, or ten seconds). Misses work that a dead process had not
    journaled."""

    seconds: float

    folds_by_kind = True
    measures = "seconds"

    @property
    def ceiling(self) -> float | None:
        return self.seconds

    def initial(self) -> int:
        return 0

    def fold(self, memo: int, step: Step) -> int:
        return memo + step.event.took_ms

    def judge(self, memo: int, event: Event) -> Trip | None:
        spent = (memo + event.took_ms) / 1000
        if spent < self.seconds:
            return None
        return self.trip(spent, f"the work took {spent:.1f} s, the limit is {self.seconds:g} s", self.seconds)


@dataclass(frozen=True)
class Nudged(Counted):
    """Going in circles was already refused `times` times in this run. Ask it together with a loop guard.

    Promises `times` askings. Catches the model that is nudged and nudged. Misses whether it has listened in between:
    NudgedInVain looks at that.
    """

    def because(self, count: int) -> str:
        return f"the model was told {count} times that it goes in circles, and went on"


@dataclass(frozen=True)
class LastWord(Counted):
    """The model has had the last word: one request without tools, at a spent budget. Ask it after that budget.

    Promises one passing in a run, and so bounds what the last word costs. Catches a model that wants tools even then.
    """

    times: int = 1

    def because(self, count: int) -> str:
        return "the model was asked for its last word, and wanted tools again"


@dataclass(frozen=True)
class LastWordGiven(Guard):
    """The row before gave the model the last word; what that row decided is not judged again before the request.

    Promises nothing. Catches just the observation between that row and the request. Misses nothing of it.
    """

    def initial(self) -> bool:
        return False

    def fold(self, memo: bool, step: Step) -> bool:
        # A run that is taken up in between goes on where it was.
        return memo if type(step.event) is Resumed else step.answer is Answer.LAST_WORD

    def judge(self, memo: bool, event: Event) -> Trip | None:
        return self.trip(1, "the model has the last word", 1) if memo else None


@dataclass(frozen=True)
class ResumeBudget(Counted):
    """A run may be taken up again `times` times after its process died; one that keeps killing it is given up.

    Promises `times` askings. Catches the crash loop. Misses why it dies: a deployment counts like a poisonous tool.
    """

    def because(self, count: int) -> str:
        return f"the run was resumed {count} times and never came to its end"


@dataclass(frozen=True)
class ApprovalBudget(Counted):
    """A run may ask for a person's approval of `times` calls.

    Promises: `times` askings, because each pause waits for one call at least. Trips earlier where calls that are
    asked about together could not all be decided one by one, each with a pause of its own for the rest. Catches the
    run that bothers people. Misses what it asks them for.
    """

    def judge(self, memo: int, event: Event) -> Trip | None:
        needed = memo + (max(1, len(event.waiting)) if isinstance(event, ApprovalRequested) else 1)
        return self.trip(needed, self.because(needed)) if needed > self.times else None

    def because(self, count: int) -> str:
        return f"the run asks for the approval of {count} calls, the limit is {self.times}"
