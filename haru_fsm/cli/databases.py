"""`haru verify`, `export`, `import`, `prune`: what one does with a database as a whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haru_fsm.cli import exits, options
from haru_fsm.cli.output import complain, counted, results, say, say_json, tell, write_line
from haru_fsm.cli.progress import counting
from haru_fsm.cli.wiring import Given, run
from haru_fsm.errors import SettingsError

if TYPE_CHECKING:
    from haru_fsm.errors import StoreError

SPAN = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def verify(app: options.AppFolder = None, db: options.Database = None, as_json: options.AsJson = False) -> int:
    """Read every journal against its checksums. Exit code 1 when one is damaged; nothing is changed."""

    async def work() -> list[Any]:
        from haru_fsm.transfer import verify as verified

        async with Given(app, db).store() as store:
            with counting("reading conversations") as progress:
                return [finding async for finding in verified(store, progress=progress)]

    found = run(work())
    damaged = [finding for finding in found if finding.damage]
    if as_json:
        say_json([{"conversation_id": each.conversation_id, "damage": each.damage} for each in found])
    else:
        for each in damaged:
            say(str(each.damage))
        whole = [finding for finding in found if finding.conversation_id]
        say(f"{counted(len(whole), 'conversation')}, {sum(bool(each.damage) for each in whole)} damaged")
    return exits.FAILED if damaged else exits.OK


def export(
    conversations: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Which; default: all.")] = None,
    app: options.AppFolder = None,
    db: options.Database = None,
) -> int:
    """Write conversations as JSON Lines to standard output.

    Each line carries a digest; the last says how many. What is damaged is named and left out: exit code 1.
    """
    unread: list[StoreError] = []

    async def work() -> int | None:
        """How many were written; None where whoever read them went away."""
        from haru_fsm.transfer import export as exported

        lines = 0
        async with Given(app, db).store() as store:
            with counting("writing conversations", hidden=results().isatty()) as progress:
                async for line in exported(store, conversations or None, on_unread=unread.append, progress=progress):
                    if not write_line(line):
                        return None
                    lines += 1
        return lines - 2

    count = run(work())
    for error in unread:
        complain(str(error))
    if count is None:
        complain("Whoever read the export went away; it is not whole.")
        return exits.FAILED
    tell(f"{counted(count, 'conversation')} exported" + (f", {len(unread)} left out" if unread else ""))
    return exits.FAILED if unread else exits.OK


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An export.")],
    app: options.AppFolder = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> int:
    """Store the conversations of an export. A file that is cut off or changed is refused whole."""

    async def work() -> tuple[int, int]:
        from haru_fsm.transfer import import_lines, lines_of

        with lines_of(file) as lines:
            async with Given(app, db, "offline").engine() as engine:
                with counting("storing conversations") as progress:
                    return await import_lines(engine.store, lines, progress=progress)

    new, known = run(work())
    if as_json:
        say_json({"imported": new, "already_there": known})
    else:
        say(f"{counted(new, 'conversation')} imported, {known:,} there already")
    return exits.OK


def prune(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="90d", help="How long they have rested: 90d, 12h.")
    ],
    app: options.AppFolder = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> int:
    """Forget conversations that have rested for long. Never an open run, an open ticket or a call in doubt.

    Some at a time, beside a running service. The file keeps its size; the room in it is used again.
    """
    span = re.fullmatch(r"(\d+(?:\.\d+)?)([dhms])", older_than.strip())
    if span is None:
        raise SettingsError(f"--older-than is {older_than!r}. Give a number and d, h, m or s, for example 90d.")
    seconds = float(span[1]) * SPAN[span[2]]

    async def work() -> int:
        async with Given(app, db, "offline").engine() as engine:
            return await engine.store.prune(engine.clock.now() - seconds)

    forgotten = run(work())
    if as_json:
        say_json({"forgotten": forgotten})
    else:
        say(f"{counted(forgotten, 'conversation')} forgotten")
    return exits.OK
