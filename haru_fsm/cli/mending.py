"""`haru fork`, `settle`, `verify`, `export`, `import`, `prune`: what one does with what is stored."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haru_fsm.cli import exits, options
from haru_fsm.cli.asking import what_waits
from haru_fsm.cli.output import complain, counted, results, say, say_json, tell, write_line
from haru_fsm.cli.progress import counting
from haru_fsm.cli.wiring import Given, run
from haru_fsm.errors import SettingsError
from haru_fsm.foreign import in_words

if TYPE_CHECKING:
    from haru_fsm.errors import StoreError
    from haru_fsm.runs import Run
    from haru_fsm.stores import Outcome

Conversation = Annotated[str, typer.Argument(metavar="ID", help="The conversation's id; `haru list` shows them.")]
SPAN = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def fork(
    conversation: Conversation,
    at: Annotated[int, typer.Option("--at", metavar="SEQ", help="The last step that the two share.")],
    live: Annotated[
        bool, typer.Option("--live", help="Let effects take place; without it the fork is a rehearsal.")
    ] = False,
    app: options.AppFolder = None,
    db: options.Database = None,
    model: options.ModelSpec = None,
    as_json: options.AsJson = False,
) -> int:
    """Go on from an earlier step, in a conversation of its own.

    It is a rehearsal: effects that the first conversation had are answered from its ledger, others are refused, and
    tickets are marked.
    """

    async def work() -> Run:
        async with Given(app, db, model).engine() as engine:
            return await engine.fork(conversation, at=at, live=live)

    ended = run(work())
    if as_json:
        say_json(ended.model_dump(mode="json"))
    else:
        say(ended.answer)
        tell(f"conversation {ended.conversation_id} · {ended.state} · forked from {conversation} at step {at}")
        for line in what_waits(ended.waiting, ended.conversation_id, Given(app, db)):
            tell(line)
    return exits.of_run(ended)


def settle(
    conversation: Conversation,
    call: Annotated[str, typer.Argument(metavar="CALL", help="The call in doubt, as seq.position.")],
    done: Annotated[
        str | None, typer.Option("--done", metavar="RESULT", help="It took place; JSON, or a text.")
    ] = None,
    not_done: Annotated[bool, typer.Option("--not-done", help="It certainly did not take place.")] = False,
    app: options.AppFolder = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> int:
    """Say how a call that is in doubt has ended. The model reads it before its next request."""
    if (done is None) is not not_done:
        raise SettingsError("Say either --done RESULT or --not-done.")
    said = _outcome(done)

    async def work() -> Outcome:
        async with Given(app, db, "offline").engine() as engine:
            return await engine.settle(conversation, call, said)

    outcome = run(work())
    if as_json:
        say_json({"conversation_id": conversation, "call": call, **outcome.model_dump(mode="json")})
    else:
        say(f"call {call} of {conversation} is settled: {outcome.status}")
    return exits.OK


def _outcome(done: str | None) -> Outcome:
    from haru_fsm.conversation import ResultStatus
    from haru_fsm.stores import Outcome

    if done is None:
        return Outcome(status=ResultStatus.NOT_DONE, response={"error": "A person says: not done."}, by="person")
    try:
        result: Any = json.loads(done)
    except ValueError:
        result = done
    return Outcome(status=ResultStatus.DONE, response={"result": result}, by="person")


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

    async def work() -> int:
        from haru_fsm.transfer import export as exported

        lines = 0
        async with Given(app, db).store() as store:
            with counting("writing conversations", hidden=results().isatty()) as progress:
                async for line in exported(store, conversations or None, on_unread=unread.append, progress=progress):
                    write_line(line)
                    lines += 1
        return lines - 2

    count = run(work())
    for error in unread:
        complain(str(error))
    tell(f"{counted(count, 'conversation')} exported" + (f", {len(unread)} left out" if unread else ""))
    return exits.FAILED if unread else exits.OK


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An export.")],
    app: options.AppFolder = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> int:
    """Store the conversations of an export. A file that is cut off or changed is refused whole."""
    try:
        # Not splitlines(): what customers write may hold line breaks of other kinds, and an export has only this one.
        lines = file.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{file} cannot be read: {in_words(error)}. Give a file that `haru export` has written."
        ) from error

    async def work() -> tuple[int, int]:
        from haru_fsm.transfer import import_lines

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
    """Forget conversations that have rested for long. Never an open run, an open ticket or a call in doubt."""
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
