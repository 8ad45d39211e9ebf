"""The table of commands. Each is a function in the module of its group; its docstring is its help."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from haru_fsm._version import __version__
from haru_fsm.cli import (
    approving,
    asking,
    calling,
    checking,
    databases,
    exits,
    experimenting,
    forking,
    looking,
    options,
    proving,
    replaying,
    resuming,
    settling,
    starting,
    stats,
    ticketing,
    tools,
)
from haru_fsm.cli.output import say

Version = Annotated[bool, typer.Option("--version", help="Show the version, and leave.")]

# Plain help texts: with rich ones `haru --help` would take half as long again.
haru = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
ticket = typer.Typer(rich_markup_mode=None, help="What a person does with a ticket.")


@haru.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    app: options.AppFolder = None,
    db: options.Database = None,
    model: options.ModelSpec = None,
    as_json: options.AsJson = False,
    version: Version = False,
) -> int:
    """Haru: every conversation of an AI agent as an explicit, persisted state machine.

    The options here may stand before a command or after it. Settings come from the command line, else from the
    environment (HARU_MODEL, HARU_DATABASE_URL, HARU_LIMITS__MAX_STEPS, GEMINI_API_KEY ...), else from `.env` and
    `haru.toml` in the app's folder.

    Exit codes: 0 an ending was reached (an answer or a ticket), 2 wrong usage or bad input, 3 waiting for a person's
    approval, 1 anything else.
    """
    if version:
        say(f"haru {__version__}")
    elif context.invoked_subcommand is None:
        say(context.get_help())
    given = {"app": app, "db": db, "model": model, "as_json": as_json or None}
    context.default_map = _for_each(
        context.command, {name: value for name, value in given.items() if value is not None}
    )
    return exits.OK


def _for_each(group: Any, given: dict[str, Any]) -> dict[str, Any]:
    """What stands before a command is the default of its own options, in groups of commands too."""
    commands: Iterable[tuple[str, Any]] = group.commands.items()
    return {name: _for_each(each, given) if hasattr(each, "commands") else given for name, each in commands}


haru.command()(asking.ask)
haru.command()(asking.chat)
haru.command()(resuming.resume)
haru.command("list")(looking.list_)
haru.command("show")(looking.show_)
haru.command()(stats.stats)
haru.command()(ticketing.tickets)
haru.add_typer(ticket, name="ticket")
ticket.command()(ticketing.close)
haru.command()(replaying.replay)
haru.command()(forking.fork)
haru.command()(approving.approve)
haru.command()(approving.deny)
haru.command()(settling.settle)
haru.command()(databases.verify)
haru.command()(databases.export)
haru.command("import")(databases.import_)
haru.command()(databases.prune)
haru.command()(proving.prove)
haru.command()(experimenting.experiment)
haru.command()(checking.check)
haru.command()(checking.diagram)
haru.command()(tools.tools)
haru.command()(calling.call)
haru.command()(starting.new)


@ticket.callback()
def _ticket() -> None:
    """Keeps `close` a command of its own while it is the only one."""
