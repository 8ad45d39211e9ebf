"""What keeps a workflow from running. Each problem is one sentence or two: what is wrong, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from haru_fsm.certificate.arcs import Graph, Limit, Place, from_outside
from haru_fsm.certificate.loops import Loop, endless_loop
from haru_fsm.certificate.routes import Move, Stretch, in_words, moves
from haru_fsm.conversation import ApprovalRequested, MessageReceived, Resumed, kind_of
from haru_fsm.machine import Row, Workflow


class ProblemKind(StrEnum):
    """What can be wrong with a table."""

    ENDLESS = "endless"
    """A run could go on for ever."""
    UNREACHABLE = "unreachable"
    """No conversation ever comes to this state."""
    NO_WORK = "no_work"
    """A run comes to this state without resting, and there is nothing to do."""
    NO_EVENTS = "no_events"
    """The work of this state gives no event."""
    NO_ROW = "no_row"
    """The work of this state gives an event that has no row."""
    GUARDED_LAST = "guarded_last"
    """The last row for an event has a guard, and no row is left where it does not trip."""
    DEAD_ROW = "dead_row"
    """This row can never fire in this state."""
    NO_NEXT_RUN = "no_next_run"
    """Runs wait for a person and end in this state, and a message that was kept meanwhile can begin no run there."""


class Problem(BaseModel):
    """One thing that must be put right. `path` and `loop` are those of a run without end, move by move."""

    model_config = ConfigDict(frozen=True)

    kind: ProblemKind
    text: str
    state: str
    row: int | None = None
    """The row in question, counted from 0."""
    path: tuple[Move, ...] = ()
    loop: tuple[Move, ...] = ()


def problems_of(graph: Graph) -> tuple[Problem, ...]:
    """Everything that keeps this workflow from running, an endless loop first."""
    return (
        *_endless(graph),
        *_unreachable(graph),
        *_without_work(graph),
        *_without_row(graph.workflow),
        *_guarded_last(graph.workflow),
        *_dead_rows(graph),
        *_without_next_run(graph.workflow),
    )


# --------------------------------------------------------------------------- states


def _unreachable(graph: Graph) -> Iterator[Problem]:
    for state in graph.workflow.states:
        if not _comes_to(graph, state):
            text = f"No conversation ever comes to {state}. Let a row lead there, or take the state out."
            yield Problem(kind=ProblemKind.UNREACHABLE, text=text, state=state)


def _comes_to(graph: Graph, state: str) -> bool:
    return Place(state) in graph.reachable or Place(state, rests=True) in graph.reachable


def _without_work(graph: Graph) -> Iterator[Problem]:
    workflow = graph.workflow
    targets = dict.fromkeys(str(row.target) for row in workflow.rows if not row.rests)
    for state in targets:
        if state not in workflow.work:
            row = next(row for row in workflow.rows if str(row.target) == state and not row.rests)
            text = (
                f"A run comes to {state} and there is nothing to do: {state} has no work. Give it work, or mark the "
                f"rows that lead there with rests=True. Row: {row}."
            )
            yield Problem(kind=ProblemKind.NO_WORK, text=text, state=state)


def _without_row(workflow: Workflow) -> Iterator[Problem]:
    for state, events in workflow.gives.items():
        if not events:
            text = f"The work of {state} gives no event. Annotate its return type with the events it gives."
            yield Problem(kind=ProblemKind.NO_EVENTS, text=text, state=state)
        for event in events:
            if not workflow.accepts(state, event):
                given = f"The work of {state} may give {kind_of(event)}"
                text = f"{given}, which has no row there. Add one, without a guard."
                yield Problem(kind=ProblemKind.NO_ROW, text=text, state=state)


# --------------------------------------------------------------------------- rows


def _guarded_last(workflow: Workflow) -> Iterator[Problem]:
    last: dict[tuple[str, str], int] = {}
    for number, row in enumerate(workflow.rows):
        last.update({(str(source), row.kind): number for source in row.sources})
    for (state, name), number in last.items():
        row = workflow.rows[number]
        if row.when is not None:
            text = (
                f"On {name} in {state} the last row has a guard, and when it does not trip there is no way on. "
                f"Add a row without a guard below it. Row: {row}."
            )
            yield Problem(kind=ProblemKind.GUARDED_LAST, text=text, state=state, row=number)


def _dead_rows(graph: Graph) -> Iterator[Problem]:
    arcs = (*graph.starts, *graph.arcs)
    alive = {(arc.row, arc.source.state) for arc in arcs if arc.source in graph.reachable}
    for number, row in enumerate(graph.workflow.rows):
        for state in dict.fromkeys(map(str, row.sources)):
            if (number, state) not in alive and _comes_to(graph, state):
                why = _why_dead(graph, state, row)
                text = f"This row can never fire in {state}: {why}. Row: {row}."
                yield Problem(kind=ProblemKind.DEAD_ROW, text=text, state=state, row=number)


def _why_dead(graph: Graph, state: str, row: Row) -> str:
    event, workflow = row.event, graph.workflow
    given = any(kind_of(each) == row.kind for each in workflow.gives.get(state, ()))
    resumed = issubclass(event, Resumed) and state in workflow.work
    if from_outside(event) and not given and Place(state, rests=True) not in graph.reachable:
        return f"{row.kind} comes from outside, and no row rests there; mark one with rests=True, or take this one out"
    if (given or resumed) and Place(state) not in graph.reachable:
        return "a conversation only rests there, so its work is never done; lead a row there without rests"
    if not given and not resumed and not from_outside(event):
        return f"no work gives {row.kind} there; take the row out, or let the work of {state} return it"
    return "the rows above it leave nothing over for it; put it above them, or take it out"


def _without_next_run(workflow: Workflow) -> Iterator[Problem]:
    if not any(row.rests and issubclass(row.event, ApprovalRequested) for row in workflow.rows):
        return
    endings = {str(row.target): number for number, row in reversed([*enumerate(workflow.rows)]) if _ends(row)}
    for state, number in endings.items():
        if not workflow.accepts(state, MessageReceived):
            text = (
                "Where a run waits for a person's approval, a message that comes meanwhile is kept and begins the next "
                f"run; but a run may end in {state}, and {state} has no row for {kind_of(MessageReceived)}. Add one. "
                f"Row: {workflow.rows[number]}."
            )
            yield Problem(kind=ProblemKind.NO_NEXT_RUN, text=text, state=state, row=number)


def _ends(row: Row) -> bool:
    return row.rests and not issubclass(row.event, ApprovalRequested)


# --------------------------------------------------------------------------- loops


def _endless(graph: Graph) -> Iterator[Problem]:
    found = endless_loop(graph)
    if found is None:
        return
    path, loop = moves(graph.workflow, found.path), moves(graph.workflow, found.loop)
    text = " ".join(
        [
            f"This workflow could run for ever: {_line(loop)}, and so on. A run gets there by {_line(path)}.",
            *_doubts(found),
            *_why_endless(graph, found),
            "Above one of these rows, ask a guard whose limit counts something in the loop (as StepBudget counts "
            "visits of the state that asks the model), and lead that row to an ending.",
        ]
    )
    yield Problem(kind=ProblemKind.ENDLESS, text=text, state=loop[0].source, path=path, loop=loop)


def _line(route: tuple[Move, ...]) -> str:
    return in_words([Stretch(moves=route)])


def _doubts(found: Loop) -> Iterator[str]:
    if not found.confirmed:
        yield "(The table is too tangled to say whether the limits leave room to get there; untangle it, to be sure.)"


def _why_endless(graph: Graph, found: Loop) -> Iterator[str]:
    """What the limits in the loop lack."""
    raised = frozenset().union(*(arc.raises for arc in found.loop))
    asked = frozenset().union(*(arc.asks for arc in found.loop))
    for number in sorted(asked - raised):
        limit = graph.limits[number]
        yield f"{limit.guard.name} is asked in it, but what it counts ({_counted(limit)}) does not happen there."
    for number in sorted(raised - asked):
        limit = graph.limits[number]
        yield f"{limit.guard.name} counts what happens in it ({_counted(limit)}), but no row of it asks that guard."


def _counted(limit: Limit) -> str:
    return f"visits of {_listed(limit.visits)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
