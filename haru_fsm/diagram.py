"""The diagram of a workflow, drawn from its table: Mermaid's stateDiagram-v2.

Each row is an arrow. Its label says the event, the guard in brackets (`else` where rows above it have one), and how
the row answers or that the conversation rests. Arrows stand in the order of the rows, which is the order in which
guards are asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from haru_fsm.machine import Row, Workflow

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset(
    ["as", "choice", "class", "classDef", "default", "direction", "end", "fork", "join", "note", "state", "style"]
)
_SPECIAL = {"#": "#35;", ";": "#59;", ":": "#58;", '"': "#34;", "<": "#60;", ">": "#62;"}


def mermaid(workflow: Workflow) -> str:
    """The workflow as the text of a Mermaid diagram; the same workflow always gives the same text."""
    names = _names(workflow)
    lines = ["stateDiagram-v2", "classDef rest stroke-width:3px"]
    lines += [f'state "{_escaped(state)}" as {name}' for state, name in names.items() if name != state]
    lines.append(f"[*] --> {names[workflow.initial]}")
    lines += [f"{names[source]} --> {names[str(row.target)]}: {label}" for source, row, label in _arrows(workflow)]
    lines += [f"class {names[state]} rest" for state in names if _rested_in(workflow, state)]
    return "\n    ".join(lines) + "\n"


def _names(workflow: Workflow) -> dict[str, str]:
    """Each state's identifier in the diagram: its name, where Mermaid takes it."""
    stem = "state"
    while any(state.startswith(stem) for state in workflow.states):
        stem += "_"
    return {
        state: state if _PLAIN.fullmatch(state) and state not in _RESERVED else f"{stem}{number}"
        for number, state in enumerate(workflow.states, start=1)
    }


def _arrows(workflow: Workflow) -> Iterator[tuple[str, Row, str]]:
    guarded: set[tuple[str, str]] = set()
    for row in workflow.rows:
        for source in map(str, row.sources):
            yield source, row, _label(row, otherwise=(source, row.kind) in guarded)
        if row.when is not None:
            guarded.update((str(source), row.kind) for source in row.sources)


def _label(row: Row, *, otherwise: bool) -> str:
    parts = [row.kind]
    if row.when is not None:
        parts.append(f"[{row.when.name}]")
    elif otherwise:
        parts.append("[else]")
    if row.answer is not None:
        parts.append(f"/ {row.answer.value}")
    if row.rests:
        parts.append("(rests)")
    return _escaped(" ".join(parts))


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in " ".join(text.split()))


def _rested_in(workflow: Workflow, state: str) -> bool:
    return state == workflow.initial or any(row.rests and str(row.target) == state for row in workflow.rows)
