"""`haru settle`: a person says how a call in doubt has ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haru_fsm.cli import exits, options
from haru_fsm.cli.output import say, say_json
from haru_fsm.cli.wiring import Given, run
from haru_fsm.errors import SettingsError

if TYPE_CHECKING:
    from haru_fsm.stores import Outcome


def settle(
    conversation: options.ConversationId,
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
