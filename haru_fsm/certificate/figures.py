"""What one run can cost at worst: requests, calls, seconds, tokens, money.

Visits come from the graph; the rest is arithmetic on what one piece of work can do. A guard that `measures` a
quantity tightens its figure. Where it stands in every way (whenever work has spent of it, the guard is asked, and
passed, before work that spends of it begins again), nothing begins at or beyond its ceiling, and what is spent above it
is at most what is begun last:

* requests: work is told how many are left, so the last piece makes no more than these, and the repeats after faults;
* tool_calls: judged on the calls that a reply asks for, before any of them runs, so there is nothing above it;
* seconds: work gets what is left as its own time-out, so there is nothing above it;
* tokens, cost: what one more piece of work can spend.

Where the table lets work begin at a spent budget now and then (a last word), the run that does so most often says how
many pieces come on top. A piece that begins with no request left makes one.

All figures are those of a run whose process does not die. Each resume may repeat the piece of work that was cut off.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from haru_fsm.certificate.arcs import Arc, Graph, Place, reach
from haru_fsm.certificate.worst_case import MOST_SPOTS, Runs, Weigh, Worst, estimate
from haru_fsm.conversation import Event, ModelEvent, Resumed, ToolsExecuted, ToolsRequested
from haru_fsm.guards.guard import Guard
from haru_fsm.limits import Limits


@dataclass(frozen=True, slots=True)
class Costs:
    """What one piece of work can cost. None: not known, or not limited; so is then what depends on it."""

    models: int = 1
    """Models that one piece of work may ask, one after the other: those that stand in, and the one that rewrites."""
    model_retries: int = 2
    """Re-asks for an unusable reply, within one piece of work."""
    http_retries: int = 3
    """Repeated requests after faults, within one piece of work."""
    model_timeout_s: float | None = 60.0
    """Seconds that one request to the model may take."""
    retry_wait_s: float | None = 300.0
    """Seconds between two attempts; the longest wait that a provider may ask for."""
    calls_per_reply: int | None = None
    """Tool calls that one reply may hold."""
    tool_timeout_s: float | None = 10.0
    """Seconds that one tool call may take, its own repeats included."""
    window_tokens: int | None = None
    """Tokens of the largest request together with the largest reply."""
    usd_per_token: float | None = None
    """US dollars for the dearest token: of prompt or reply, of all models and tiers in use."""
    usd_per_request: float | None = None
    """US dollars for the largest request together with the largest reply; None: every token as dear as the dearest."""

    @classmethod
    def of(cls, limits: Limits) -> Costs:
        """What follows from the limits alone. Use `dataclasses.replace` to add what is known of model and tools."""
        return cls(
            model_retries=limits.model_retries,
            # A summary of a long history is a request of its own: it is charged like a re-ask, and has its own repeats.
            http_retries=limits.http_retries * (2 if limits.summarise == "model" else 1),
            model_timeout_s=limits.model_timeout_s,
            tool_timeout_s=limits.tool_timeout_s,
        )

    @property
    def requests(self) -> int:
        """HTTP requests of one piece of work."""
        return self.models * (1 + self.model_retries + self.http_retries)

    @property
    def request_usd(self) -> float:
        """US dollars of one request; infinity where nobody knows."""
        at_most = _times(1, self.usd_per_request)
        return min(at_most, _times(_times(1, self.window_tokens), self.usd_per_token))


@dataclass(frozen=True)
class Figures:
    """The worst case of an undisturbed run, column by column; infinity where a column has no bound."""

    graph: Graph
    costs: Costs

    @cached_property
    def _runs(self) -> Runs:
        return Runs(self.graph.undisturbed)

    @cached_property
    def transitions(self) -> Worst:
        """Steps of the journal, the customer's message included."""
        return self._runs.worst(lambda arc: 1)

    @cached_property
    def visits(self) -> Worst:
        """Pieces of work that ask the model."""
        return self._worst(self._asks)

    @cached_property
    def model_requests(self) -> Worst:
        """Requests and re-asks. Not counted: repeats of the same request after a fault."""
        most = self.visits.value * self.costs.models * (1 + self.costs.model_retries)
        return self._at(self.visits, min(most, self._request_ceiling(repeats=0)))

    @cached_property
    def http_requests(self) -> Worst:
        """All requests to the model, those that are repeated after a fault included; what `run.steps` counts."""
        repeats = self.costs.models * self.costs.http_retries
        most = self.visits.value * self.costs.requests
        return self._at(self.visits, min(most, self._request_ceiling(repeats) if self.visits.value else 0))

    @cached_property
    def replies(self) -> Worst:
        """Replies whose calls may be run."""
        return self._worst(lambda arc: arc in self._runnable)

    @cached_property
    def tool_calls(self) -> Worst:
        """Tool calls that are run."""
        if not self.replies.value:
            return self.replies
        per_reply = self.costs.calls_per_reply
        most = self.replies.value * (math.inf if per_reply is None else per_reply)
        ceiling = self._ceiling("tool_calls", lambda arc: issubclass(arc.event, ToolsRequested), self._tools)
        return self._at(self.replies, min(most, ceiling))

    @cached_property
    def seconds(self) -> Worst:
        """Time-outs of models and tools, and waits between attempts. What else the work does is not counted."""
        costs = self.costs
        waits = self.visits.value * costs.models * costs.http_retries
        most = _times(self.http_requests.value, costs.model_timeout_s) + _times(waits, costs.retry_wait_s)
        most += _times(self.tool_calls.value, costs.tool_timeout_s)
        return self._upper(min(most, self._ceiling("seconds", self._works, self._models | self._tools)))

    @cached_property
    def tokens(self) -> Worst:
        """Tokens, with every attempt as large as the window."""
        piece = _times(self.costs.requests, self.costs.window_tokens)
        # A budget counts whole tokens and trips when it is reached: the last piece begins with at least one left.
        ceiling = self._ceiling("tokens", self._asks, self._models, piece) - 1 + piece
        return self._upper(min(_times(self.http_requests.value, self.costs.window_tokens), ceiling))

    @cached_property
    def usd(self) -> Worst:
        """US dollars, with every request as dear as the dearest, and so is every token."""
        piece = _times(self.costs.requests, self.costs.request_usd)
        ceiling = self._ceiling("cost", self._asks, self._models, piece) + piece
        requests = _times(self.http_requests.value, self.costs.request_usd)
        return self._upper(min(requests, _times(self.tokens.value, self.costs.usd_per_token), ceiling))

    @cached_property
    def resumes(self) -> Worst:
        """Times that a run is taken up again, the one that gives it up included."""
        most = estimate(self.graph, lambda arc: issubclass(arc.event, Resumed))
        return Worst(most, at_most=most > 0)

    # -- who does what

    @cached_property
    def _models(self) -> frozenset[Place]:
        return self._that_give(ModelEvent)

    @cached_property
    def _tools(self) -> frozenset[Place]:
        return self._that_give(ToolsExecuted)

    def _that_give(self, kind: type[Event]) -> frozenset[Place]:
        """Where there is work that may give such an event."""
        gives = self.graph.workflow.gives.items()
        return frozenset(Place(state) for state, events in gives if any(issubclass(event, kind) for event in events))

    def _asks(self, arc: Arc) -> bool:
        return arc.given and arc.source in self._models

    def _works(self, arc: Arc) -> bool:
        return arc.given and arc.source in self._models | self._tools

    @cached_property
    def _runnable(self) -> frozenset[Arc]:
        """The arcs of replies that may come to tools: no later reply stands between."""
        arcs = self.graph.undisturbed.arcs
        between = [arc for arc in arcs if not issubclass(arc.event, ToolsRequested)]
        replies = (arc for arc in arcs if issubclass(arc.event, ToolsRequested))
        return frozenset(arc for arc in replies if self._tools & {arc.target, *reach([arc.target], between)})

    # -- bounds

    def _worst(self, weigh: Weigh) -> Worst:
        """The longest run is often the heaviest as well. Where it was not found, not much is spent on looking again."""
        known = [] if self.transitions.at_most else [self.transitions.path]
        spots = MOST_SPOTS // 10 if self.transitions.at_most else MOST_SPOTS
        return self._runs.worst(weigh, known, spots)

    def _request_ceiling(self, repeats: float) -> float:
        """Requests, each piece of work that goes beyond the budget with so many repeats after faults."""
        # Each model after the first may make one more than is left: nobody is passed over for want of requests.
        beyond = self.costs.models + repeats
        return self._ceiling("requests", self._asks, self._models, beyond, least=1) + beyond - 1

    def _ceiling(
        self,
        measures: str,
        spends: Callable[[Arc], bool],
        begins: frozenset[Place],
        beyond: float = math.inf,
        least: float = 0,
    ) -> float:
        """The least ceiling of the guards that measure this. Each piece of work that may begin although such a guard
        was not passed adds what it can spend `beyond`."""
        guards = [guard for guard in self.graph.workflow.guards if guard.measures == measures]
        loose = ((guard.ceiling, self._loose(guard, spends, begins)) for guard in guards)
        return min(
            (max(least, ceiling) + _times(count, beyond) for ceiling, count in loose if ceiling is not None),
            default=math.inf,
        )

    def _loose(self, guard: Guard, spends: Callable[[Arc], bool], begins: frozenset[Place]) -> float:
        """How often in a run, at most, work may begin although something was spent since this guard was last passed."""
        unasked = [arc for arc in self.graph.undisturbed.arcs if not arc.passes(guard)]
        spent = {arc.target for arc in unasked if spends(arc)}
        leading = {place for place in spent if begins & {place, *reach([place], unasked)}}
        loose = frozenset(arc for arc in unasked if spends(arc) and arc.target in leading)
        return self._worst(lambda arc: arc in loose).value if loose else 0

    @staticmethod
    def _at(visits: Worst, value: float) -> Worst:
        """A figure that the run with the most visits attains, as long as each of them spends at least one."""
        return replace(visits, value=value, at_most=visits.at_most or visits.value > value)

    def _upper(self, value: float) -> Worst:
        return Worst(value, at_most=value > 0, path=self.visits.path if value else ())


def _times(count: float, each: float | None) -> float:
    """So many of these; none cost nothing, also where nobody knows what one costs."""
    if not count or each == 0:
        return 0
    return math.inf if each is None else count * each
