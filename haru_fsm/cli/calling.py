"""`haru call`: one tool by hand, as a run of its own.

What the model would have said is said by the command; everything else is a run like any other. So the call is
repaired, timed, claimed in the ledger, waits for approval where it must, and stands in a journal that `haru show`
reads. Whoever types the command is the person who approves it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haru_fsm.cli import exits, options
from haru_fsm.cli.approving import user
from haru_fsm.cli.debugging import debugging
from haru_fsm.cli.output import say_json, tell
from haru_fsm.cli.tools import found
from haru_fsm.cli.wiring import Given, known, run, text_of
from haru_fsm.errors import SettingsError
from haru_fsm.ids import new_conversation_id

if TYPE_CHECKING:
    from haru_fsm.app import App
    from haru_fsm.conversation import ToolResult
    from haru_fsm.runs import Run
    from haru_fsm.toolbox import Prepared, Tool

SAID = "직접 실행한 호출입니다."
"""The answer of such a run. Nobody reads it but `haru show`."""
ToolName = Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name; `haru tools` lists them.")]
Arguments = Annotated[
    str, typer.Option("--args", metavar="JSON", help="Its arguments, as a model would send them; `-` reads them.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before a tool runs that cannot be taken back.")]


def call(
    name: ToolName,
    customer: options.Customer,
    args: Arguments = "{}",
    yes: Yes = False,
    app: options.AppFolder = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> int:
    """Run one tool by hand, on the whole path of a model's call.

    Arguments are repaired, its time is limited, an effect is claimed in the ledger, and what came of it is journaled
    as a conversation of its own. It really runs: a tool with an effect has it. One that is destructive or needs
    approval asks first, unless --yes. Exit codes: 0 it came back with a value, 1 it did not, 2 it was not run.
    """
    given = Given(app, db)
    loaded, sent = _app(given), _arguments(text_of(args))
    tool = found(loaded.toolbox(loaded.session(customer)), name)
    prepared = _prepared(tool, sent)
    if not yes and (tool.needs_approval or tool.marks.destructive):
        _ask_first(tool, prepared)
    where = new_conversation_id()
    made = run(
        _called(given, loaded, where, customer, tool, prepared, sent),
        lambda: f"Interrupted; {given.where_to_look(where)}",
    )
    if as_json:
        say_json(made.as_object())
    else:
        for repair in prepared.repairs:
            tell(f"repaired: {repair}")
        say_json(made.result.response)
        if made.result.status != "done" and made.result.ran and not debugging():
            tell("HARU_DEBUG=1 shows where it was raised.")
        tell(f"{made.result.status} after {made.result.took_ms:,} ms · {given.where_to_look(where)}")
        if made.run.ticket is not None:
            tell(f"ticket {made.run.ticket.ticket_id}: {made.run.stopped_by.because if made.run.stopped_by else ''}")
    return exits.OK if made.result.status == "done" else exits.FAILED


def _app(given: Given) -> App:
    """The app, with room for the one call and the end of its run."""
    from haru_fsm.app import load_app

    limits = given.settings().limits
    return load_app(given.folder, limits=limits.model_copy(update={"max_steps": max(2, limits.max_steps)}))


def _arguments(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise SettingsError(
            f'--args is no JSON: {error}. Write it like \'{{"order_id": "HR20260725002"}}\'.'
        ) from error


def _prepared(tool: Tool, sent: Any) -> Prepared:
    from haru_fsm.toolbox import Refused

    prepared = tool.prepare(sent)
    if isinstance(prepared, Refused):
        raise SettingsError(prepared.error)
    return prepared


def _ask_first(tool: Tool, prepared: Prepared) -> None:
    """Raises SettingsError where nobody says yes."""
    asked = f"{tool.name}({prepared.canonical}) may not be taken back."
    if not sys.stdin.isatty():
        raise SettingsError(f"{asked} Nothing was run. Say --yes to run it.")
    tell(f"{asked} Run it? [y/N]")
    if sys.stdin.readline().strip().casefold() not in ("y", "yes", "예", "네"):
        raise SettingsError("Nothing was run.")


@dataclass(frozen=True, slots=True)
class _Made:
    """A call by hand, after its run."""

    tool: Tool
    prepared: Prepared
    result: ToolResult
    run: Run

    def as_object(self) -> dict[str, Any]:
        return {
            "tool": self.tool.name,
            "args": json.loads(self.prepared.canonical),
            "repairs": list(self.prepared.repairs),
            "ended": self.result.status.value,
            "response": self.result.response,
            "took_ms": self.result.took_ms,
            "conversation_id": self.run.conversation_id,
            "ticket": self.run.ticket.model_dump(mode="json") if self.run.ticket is not None else None,
        }


async def _called(
    given: Given, app: App, where: str, customer: str, tool: Tool, prepared: Prepared, sent: Any
) -> _Made:
    from haru_fsm.conversation import executed
    from haru_fsm.engine import Engine
    from haru_fsm.models.scripted import ScriptedModel

    # Arguments that are no object are repaired already: no reply of a model could carry them as they are.
    wish = [(tool.name, sent if isinstance(sent, dict) else json.loads(prepared.canonical))]
    said = f"haru call {tool.name} {json.dumps(sent, ensure_ascii=False)}"
    store = given.settings().make_store(app.folder)
    async with Engine(app, model=ScriptedModel([wish, SAID]), store=store) as engine:
        ended = await engine.ask(said, customer_id=customer, conversation_id=where)
        while ended.waiting:
            ended = await engine.approve(where, ended.waiting[0].call, by=user())
        record = await known(engine.store, where)
    results = [result for _, _, result in executed(record.steps)]
    if not results:
        raise SettingsError(
            f"{tool.name} was not run: {ended.stopped_by.because if ended.stopped_by else ended.answer}"
        )
    return _Made(tool, prepared, results[0], ended)
