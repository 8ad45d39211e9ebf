"""`haru replay`: a stored conversation once more, without a model, under the app as it is now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from haru_fsm.cli import exits, options
from haru_fsm.cli.output import say, say_json, tell
from haru_fsm.cli.wiring import Given, known, run
from haru_fsm.errors import SettingsError

if TYPE_CHECKING:
    from haru_fsm.replaying import Replay
    from haru_fsm.stores import Record

Save = Annotated[
    Path | None,
    typer.Option("--save", metavar="FILE", help="Write what the model was asked and said to a new cassette."),
]


def replay(
    conversation_id: options.ConversationId,
    save: Save = None,
    app: options.AppFolder = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> int:
    """Run a stored conversation again from its journal, and say whether all comes out the same.

    No model is asked, no tool is run, nothing is stored: what they said is the journal's. The table, guards, refusals
    and tickets are worked out anew. Exit codes: 0 identical, 1 it differs; the first step that does is shown.
    """
    if save is not None and save.exists():
        raise SettingsError(f"{save} is there already. Name a new file, or take that one away.")
    given = Given(app, db)
    replayed = _replayed(given, run(_record(given, conversation_id)), save)
    if as_json:
        say_json(replayed.model_dump(mode="json"))
    else:
        _show(replayed)
    if save is not None:
        tell(f"saved: {save}; play it with --model cassette:{save}")
    return exits.OK if replayed.identical else exits.FAILED


async def _record(given: Given, conversation_id: str) -> Record:
    async with given.store() as store:
        return await known(store, conversation_id)


def _replayed(given: Given, record: Record, save: Path | None) -> Replay:
    from haru_fsm.replaying import replay as again

    if save is None:
        return again(given.load(), record)
    from haru_fsm.models.cassette import Recorder

    app = given.load()
    return again(app, record, Recorder(save, keys=given.settings().secrets()).note)


def _show(replayed: Replay) -> None:
    if replayed.definition_changed:
        say("The table or the tools are not those under which the last run was worked on.")
    found = replayed.difference
    if found is None:
        say(f"identical: all {replayed.steps} steps of {replayed.conversation_id}")
        return
    say(f"differs at step {found.seq} of {replayed.steps}: {found.kind} ({found.what})")
    for word, told in (("was", found.was), ("now", found.now)):
        first, *more = told.splitlines() or [""]
        say("\n".join([f"  {word}  {first}", *(f"       {line}" for line in more)]))
