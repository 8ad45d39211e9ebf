"""What a run began under (a digest of rows, kinds of guards and tools), and whether it still fits a changed app.

An app may change while runs are open. A digest that differs strands nobody: the run goes on wherever its state and the
work that is still to do have a meaning under the new definition. Where they have none, it goes to a person who is told
why, because guessing what an old call means to a new tool is how things are done twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from haru_fsm.conversation import (
    Conversation,
    Event,
    MessageReceived,
    Resumed,
    ToolCall,
    ToolsExecuted,
    last_request,
)
from haru_fsm.effects import digest_of
from haru_fsm.guards.guard import atoms
from haru_fsm.machine import Row, Workflow
from haru_fsm.models import Declaration
from haru_fsm.stores import LedgerEntry
from haru_fsm.toolbox import Refused, Toolbox

WORDS = frozenset(("description", "title", "examples"))
"""Keys of a JSON Schema that explain, and decide nothing."""


class Definition:
    """The digest of a workflow together with some tools. Both hardly ever change, so the last one is remembered."""

    def __init__(self, workflow: Workflow) -> None:
        self._rows = [_row(row) for row in workflow.rows]
        self._last: tuple[tuple[Declaration, ...], str] | None = None

    def digest(self, declarations: tuple[Declaration, ...]) -> str:
        """16 hexadecimal digits. Limits, prompts and descriptions are no part of it."""
        if self._last is None or self._last[0] != declarations:
            tools = sorted([each.name, _bare(each.parameters)] for each in declarations)
            text = json.dumps([self._rows, tools], sort_keys=True)
            self._last = (declarations, hashlib.blake2b(text.encode(), digest_size=8).hexdigest())
        return self._last[1]


def _row(row: Row) -> list[Any]:
    guards = [type(atom).__name__ for atom in atoms(row.when)]
    return [row.kind, row.sources, row.target, guards, row.rests, row.answer]


def _bare(schema: Any, *, names: bool = False) -> Any:
    """A schema without its words. `names`: the keys are names of parameters, and stay."""
    if isinstance(schema, dict):
        kept = schema if names else {key: value for key, value in schema.items() if key not in WORDS}
        return {key: _bare(value, names=not names and key in ("properties", "$defs")) for key, value in kept.items()}
    return [_bare(item) for item in schema] if isinstance(schema, list) else schema


def carried(conversation: Conversation) -> str:
    """The digest that the current run was last worked on under; empty where nobody has noted one."""
    for step in reversed(conversation.run_steps):
        if isinstance(step.event, MessageReceived | Resumed) and step.event.definition:
            return step.event.definition
    return ""


# --------------------------------------------------------------------------- does it still fit?


def misfit(
    conversation: Conversation, workflow: Workflow, tools: Toolbox, ledger: Mapping[str, LedgerEntry], *, changed: bool
) -> str | None:
    """Why this open run cannot go on under this app, or None. `changed`: its digest is another one than it carries."""
    if conversation.state not in workflow.work:
        return f"it no longer has work for the state {conversation.state}"
    unknown = sorted({step.event.kind for step in conversation.run_steps if type(step.event) is Event})
    if unknown:
        return f"it no longer knows the event {', '.join(unknown)}"
    return next(_unfit(conversation, workflow, tools, ledger, changed=changed), None)


def _unfit(
    conversation: Conversation, workflow: Workflow, tools: Toolbox, ledger: Mapping[str, LedgerEntry], *, changed: bool
) -> Iterator[str]:
    for key, call in _pending(conversation, workflow):
        entry = ledger.get(key)
        # What a tool says of its effects is in no declaration, so the digest of it is the same: a call that was begun
        # is looked at in any case.
        looked_at = changed if entry is None else entry.outcome is None
        if call.unusable is None and looked_at:
            why = _why_unfit(call, entry, tools)
            if why is not None:
                yield why


def _pending(conversation: Conversation, workflow: Workflow) -> Iterator[tuple[str, ToolCall]]:
    """The calls that the work of this state is about to deal with."""
    if ToolsExecuted in workflow.gives[conversation.state]:
        seq, request = last_request(conversation)
        yield from ((f"{seq}.{call.position}", call) for call in request.calls)


def _why_unfit(call: ToolCall, entry: LedgerEntry | None, tools: Toolbox) -> str | None:
    tool = tools.find(call.name)
    if tool is None:
        return f"it no longer has the tool {call.name}, which was to be called"
    prepared = tool.prepare(call.args)
    if isinstance(prepared, Refused):
        return f"the arguments of the call of {call.name} no longer fit: {prepared.error}"
    started = entry.started if entry is not None else None
    if started is None:
        return None
    if not tool.has_effect:
        return f"the call of {call.name} was begun as an effect, which it no longer is"
    if started.keyed and tool.accepts_key and started.digest != digest_of(prepared.canonical):
        return f"the call of {call.name} was begun with arguments that now mean something else"
    return None
