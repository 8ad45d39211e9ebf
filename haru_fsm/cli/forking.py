"""`haru fork`: a conversation goes on from an earlier step, in a conversation of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from haru_fsm.cli import exits, options
from haru_fsm.cli.asking import what_waits
from haru_fsm.cli.output import say, say_json, tell
from haru_fsm.cli.wiring import Given, run

if TYPE_CHECKING:
    from haru_fsm.runs import Run


def fork(
    conversation: options.ConversationId,
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
