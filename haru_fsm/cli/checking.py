"""`haru check`, `haru diagram`: what is proved of the app's workflow, and what it looks like."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from haru_fsm.cli import exits, options
from haru_fsm.cli.output import complain, say, say_json, show
from haru_fsm.cli.wiring import Given
from haru_fsm.errors import EndlessWorkflow, UnknownCustomer, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from haru_fsm.app import App
    from haru_fsm.certificate import Certificate
    from haru_fsm.guards import Guard
    from haru_fsm.machine import Workflow


def check(
    max_steps: options.MaxSteps = None,
    app: options.AppFolder = None,
    model: options.ModelSpec = None,
    as_json: options.AsJson = False,
) -> int:
    """Prove that every run of the app's workflow ends.

    Says what one run can cost at worst, and how; tokens and money where the model's window and its price are known.
    A workflow that could run for ever is refused, with the shortest endless loop. Exit codes: 0 accepted, 1 refused,
    2 there is no app to check.
    """
    given = Given(app, model=model, max_steps=max_steps)
    try:
        workflow, certificate = _certified(given)
    except WorkflowError as error:
        return _refused(error, as_json)
    from haru_fsm.certificate.claims import broken_claims, untried_claims

    broken, untried = broken_claims(workflow), untried_claims(workflow)
    if broken:
        return _refused(WorkflowError("\n".join(map(str, broken))), as_json)
    if as_json:
        not_tried = [guard.name for guard in untried]
        say_json({"accepted": True, "certificate": certificate.model_dump(mode="json"), "not_tried": not_tried})
    else:
        show_certificate(workflow, certificate)
        _tell_untried(untried)
    return exits.OK


def _tell_untried(untried: Sequence[Guard]) -> None:
    from haru_fsm.certificate.claims import LONGEST

    for guard in untried:
        say(
            f"\nnot tried: {guard.name} claims to trip after {guard.limit:,}, and the histories that guards are tried "
            f"with have at most {LONGEST:,} steps. The figures take its word for it; let it claim less to try it."
        )


def _certified(given: Given) -> tuple[Workflow, Certificate]:
    from haru_fsm.certificate import certify

    app = given.load()
    costs = replace(given.settings().costs(app.limits), tool_timeout_s=_slowest_s(app))
    return app.workflow, certify(app.workflow, costs=costs)


def _slowest_s(app: App) -> float | None:
    """Seconds that one call may take at most; a tool may have a time-out of its own, and be repeated. None: not known,
    for the app knows no customer to look at its tools with."""
    try:
        tools = app.toolbox(app.session(app.example_customer)).tools
    except UnknownCustomer:
        return None
    return max((tool.worst_case_s for tool in tools), default=0.0)


def _refused(error: WorkflowError, as_json: bool) -> int:
    loop = list(error.loop) if isinstance(error, EndlessWorkflow) else []
    if as_json:
        say_json({"accepted": False, "because": str(error), "loop": loop})
        complain("This workflow may not run.")
    else:
        say(str(error))
        complain("This workflow may not run." + (f" It can go on for ever: {_circle(loop)}" if loop else ""))
    return exits.FAILED


def _circle(loop: list[str]) -> str:
    return " -> ".join([*loop, loop[0]])


def show_certificate(workflow: Workflow, certificate: Certificate) -> None:
    """A certificate for people: the figures, then each path that leads to one."""
    from haru_fsm.cli.timeline import row, table

    say(f"Every run ends: {len(workflow.states)} states, {len(workflow.rows)} rows. The worst case of one run:")
    made = table("what", "figure", right=("figure",))
    paths: dict[str, list[str]] = {}
    for name, bound, path in certificate.table():
        row(made, name, bound)
        if path:
            paths.setdefault(path, []).append(name)
    show(made)
    for path, names in paths.items():
        say(f"\n{', '.join(names)}:\n{path}")


def diagram(app: options.AppFolder = None, as_json: options.AsJson = False) -> int:
    """The app's workflow as a Mermaid diagram, drawn from its table."""
    from haru_fsm.diagram import mermaid

    workflow = Given(app).load().workflow
    if as_json:
        say_json(_drawn(workflow, mermaid(workflow)))
    else:
        say(mermaid(workflow).rstrip())
    return exits.OK


def _drawn(workflow: Workflow, drawing: str) -> dict[str, Any]:
    return {"states": list(workflow.states), "rows": [str(row) for row in workflow.rows], "mermaid": drawing}
