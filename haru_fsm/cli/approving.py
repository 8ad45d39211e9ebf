"""`haru approve`, `haru deny`: a person decides about a call that waits, and the run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from haru_fsm.cli import exits, options
from haru_fsm.cli.asking import narrated, show_run
from haru_fsm.cli.output import say, tell
from haru_fsm.cli.wiring import Given, known, run

if TYPE_CHECKING:
    from haru_fsm.runs import Run

Call = Annotated[str, typer.Argument(metavar="CALL", help="The call that waits, as seq.position; `haru show` tells.")]
By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who decides, for the journal. Default: the user.")
]


def approve(
    conversation_id: options.ConversationId,
    call: Call,
    by: By = None,
    model: options.ModelSpec = None,
    app: options.AppFolder = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> int:
    """Agree to a call that waits for a person, and carry its run on.

    What is approved is this one call, with the arguments shown, once. Exit codes: 0 the run reached its ending, 3
    another call waits, 2 nothing waits under this name (any more), 1 anything else.
    """
    return _decided(Given(app, db, model), conversation_id, call, None, by, as_json)


def deny(
    conversation_id: options.ConversationId,
    call: Call,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; the model reads it.")] = "",
    by: By = None,
    model: options.ModelSpec = None,
    app: options.AppFolder = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> int:
    """Refuse a call that waits for a person, and carry its run on. Exit codes as those of `haru approve`."""
    return _decided(Given(app, db, model), conversation_id, call, reason, by, as_json)


def _decided(given: Given, conversation_id: str, call: str, reason: str | None, by: str | None, as_json: bool) -> int:
    """`reason` None: approved."""
    work = _decide(given, conversation_id, call, reason, by or user(), as_json)
    ended, later = run(work, given.interrupted("resume", conversation_id))
    code = show_run(ended, given, as_json)
    if later.run_id != ended.run_id:
        (tell if as_json else say)(f"A message that came meanwhile was taken up: {later.answer}")
        code = code or exits.of_run(later)
    return code


async def _decide(
    given: Given, conversation_id: str, call: str, reason: str | None, by: str, as_json: bool
) -> tuple[Run, Run]:
    """The run that went on, and the last one of the conversation, which a kept message may have begun."""
    async with given.engine() as engine:
        record = await known(engine.store, conversation_id)
        with narrated(tell if as_json else say, record.steps) as watch:
            if reason is None:
                ended = await engine.approve(conversation_id, call, by=by, watch=watch)
            else:
                ended = await engine.deny(conversation_id, call, reason=reason, by=by, watch=watch)
        return ended, await engine.resume(conversation_id)


def user() -> str:
    """Who is logged in here; empty where nobody knows."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
