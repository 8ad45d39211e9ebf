"""What is proved of a workflow before it may run: that every run ends, and what it can cost at worst.

    problems.py     what keeps a workflow from running, each with what to do about it
    loops.py        is there a way to go on for ever?
    figures.py      the worst case in requests, calls, seconds, tokens and money
    worst_case.py   the heaviest run
    unfolding.py    runs with their counts
    arcs.py         the table read as a graph
    ways.py         a row read as logic
    claims.py       do guards keep what they promise? tried against made-up histories (histories.py)

The proof is about the table and what its guards promise (`limit`, `counts`); that guards keep their promises is for
tests to show. What a guard does not promise, it may do at any time: models, tools and customers are adversaries here.
"""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict

from haru_fsm.certificate.arcs import read
from haru_fsm.certificate.figures import Costs, Figures
from haru_fsm.certificate.problems import Problem, ProblemKind, problems_of
from haru_fsm.certificate.routes import Move, Stretch, in_words, stretches
from haru_fsm.certificate.worst_case import Worst
from haru_fsm.errors import EndlessWorkflow, WorkflowError
from haru_fsm.limits import Limits
from haru_fsm.machine import Workflow

__all__ = [
    "Bound",
    "Certificate",
    "Costs",
    "Move",
    "Problem",
    "ProblemKind",
    "Stretch",
    "certify",
    "problems",
    "require_sound",
]


class Bound(BaseModel):
    """A figure that no run exceeds; None where there is none.

    `path` leads to it, if one is known. `at_most`: perhaps no run comes that far.
    """

    model_config = ConfigDict(frozen=True)

    value: int | float | None
    at_most: bool = False
    path: tuple[Stretch, ...] = ()

    def __str__(self) -> str:
        if self.value is None:
            return "not limited"
        figure = f"{self.value:,}" if isinstance(self.value, int) else f"{self.value:,.2f}"
        return f"at most {figure}" if self.at_most else figure


class Certificate(BaseModel):
    """Every run of this workflow ends. What one run costs at worst, if its process does not die on the way.

    Each of at most `resumes` resumes may cost one more piece of work: the one that was cut off.
    """

    model_config = ConfigDict(frozen=True)

    transitions: Bound
    """Steps of the journal, the customer's message included."""
    model_requests: Bound
    """Requests to the model, re-asks included; not counted: the same request repeated after a fault."""
    http_requests: Bound
    """All requests to the model, repeats included: what `run.steps` counts."""
    tool_calls: Bound
    """Tool calls that are run."""
    seconds: Bound
    """Time-outs of models and tools, and the waits between attempts."""
    tokens: Bound
    """Tokens, every attempt as large as the window."""
    usd: Bound
    """US dollars, every request as dear as the dearest."""
    resumes: Bound
    """How often a run can be taken up again before it is given up."""

    def table(self) -> tuple[tuple[str, str, str], ...]:
        """For people: the column, its figure, and the path that leads to it."""
        columns = ((name, getattr(self, name)) for name in type(self).model_fields)
        return tuple((name.replace("_", " "), str(bound), in_words(bound.path)) for name, bound in columns)


def certify(workflow: Workflow, *, limits: Limits | None = None, costs: Costs | None = None) -> Certificate:
    """The certificate of a workflow that may run.

    `costs` are by default those that follow from `limits`. Raises EndlessWorkflow with the shortest loop when a run
    could go on for ever, and WorkflowError for anything else that `problems` finds; the message lists all of it.
    """
    graph = read(workflow)
    _refuse(problems_of(graph))
    figures = Figures(graph, costs if costs is not None else Costs.of(limits if limits is not None else Limits()))
    return Certificate(**{name: _bound(workflow, getattr(figures, name)) for name in Certificate.model_fields})


def problems(workflow: Workflow) -> tuple[Problem, ...]:
    """Everything that keeps this workflow from running, each with what to do about it; nothing if it may run."""
    return problems_of(read(workflow))


def require_sound(workflow: Workflow) -> None:
    """Refuse a workflow that may not run; the figures of one that may are not worked out.

    Raises EndlessWorkflow and WorkflowError, as `certify`.
    """
    _refuse(problems(workflow))


def _refuse(found: tuple[Problem, ...]) -> None:
    if not found:
        return
    message = found[0].text
    if len(found) > 1:
        message = f"This workflow has {len(found)} problems:\n" + "\n".join(f"* {problem.text}" for problem in found)
    for problem in found:
        if problem.kind is ProblemKind.ENDLESS:
            raise EndlessWorkflow(message, loop=tuple(move.source for move in problem.loop))
    raise WorkflowError(message)


def _bound(workflow: Workflow, worst: Worst) -> Bound:
    if not math.isfinite(worst.value):
        return Bound(value=None)
    value = int(worst.value) if float(worst.value).is_integer() else worst.value
    return Bound(value=value, at_most=worst.at_most, path=stretches(workflow, worst.path))
