"""At a spent budget: a ticket at once, or where the limits say so one last request with tools off."""

from __future__ import annotations

from collections.abc import Iterator

from haru_fsm.conversation import Answer, ObservationAppended, ToolsRequested
from haru_fsm.guards import (
    AllOf,
    AnyOf,
    CostBudget,
    Deadline,
    Guard,
    LastWord,
    LastWordGiven,
    StepBudget,
    TokenBudget,
    ToolCallBudget,
)
from haru_fsm.limits import Limits
from haru_fsm.machine import Row


class AtTheLimit:
    """The rows for spent budgets, by the event on which they are asked.

    The last word is one request more, whatever budget was spent, but for the deadline: then there is no time for it. A
    model that asks for tools even then goes to a person.
    """

    def __init__(self, limits: Limits, await_model: str, append_observation: str, escalate: str) -> None:
        self._states = await_model, append_observation, escalate
        self.late: tuple[Guard, ...] = (Deadline(limits.deadline_s),) if limits.deadline_s is not None else ()
        """The deadline, where one is set."""
        self._spent = AnyOf(StepBudget(limits.max_steps), *_spendable(limits))
        self._calls = ToolCallBudget(limits.max_tool_calls)
        self._last_word = limits.final_answer_without_tools

    def on_request(self) -> Iterator[Row]:
        """For calls that the model wants and that no request would read any more."""
        ask, observe, escalate = self._states
        spent = AnyOf(*self._spent.guards, *self.late, self._calls)
        if not self._last_word:
            yield Row(ToolsRequested, ask, escalate, when=spent)
            return
        spent = AnyOf(*self._spent.guards, self._calls)
        yield Row(ToolsRequested, ask, escalate, when=AnyOf(*self.late, AllOf(spent, LastWord())))
        yield Row(ToolsRequested, ask, observe, when=spent, answer=Answer.LAST_WORD)

    def on_observation(self) -> Iterator[Row]:
        """For results after which no request may be made any more."""
        ask, observe, escalate = self._states
        if not self._last_word:
            yield Row(ObservationAppended, observe, escalate, when=AnyOf(*self._spent.guards, *self.late))
            return
        yield Row(ObservationAppended, observe, ask, when=LastWordGiven())
        yield Row(ObservationAppended, observe, escalate, when=AnyOf(*self.late, AllOf(self._spent, LastWord())))
        yield Row(ObservationAppended, observe, ask, when=self._spent, answer=Answer.LAST_WORD)


def _spendable(limits: Limits) -> Iterator[Guard]:
    """The budgets that are set, beside that of steps."""
    if limits.token_budget is not None:
        yield TokenBudget(limits.token_budget)
    if limits.cost_budget_usd is not None:
        yield CostBudget(limits.cost_budget_usd)
