"""The options and arguments that several commands share, each with its help text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from haru_fsm.ids import checked

AppFolder = Annotated[
    Path | None,
    typer.Option(
        "--app",
        metavar="DIR",
        help="The app's folder. Default: the current folder if it is an app, else the starter app.",
    ),
]
Database = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="URL",
        help="sqlite:///FILE (four slashes before an absolute path) or memory:. "
        "Default: HARU_DATABASE_URL, else memory_store/haru.db in the app's folder.",
    ),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Standard output is one JSON value and nothing else; all else goes to standard error."),
]
ModelSpec = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="KIND:NAME",
        help="gemini:NAME, openai:NAME, offline, or cassette:FILE. Default: HARU_MODEL, else Gemini where there is "
        "a key, else offline.",
    ),
]
MaxSteps = Annotated[
    int | None,
    typer.Option(
        "--max-steps",
        min=1,
        metavar="N",
        help="Model requests that a run may make. Default: HARU_LIMITS__MAX_STEPS, else 8; every other limit can be "
        "set by HARU_LIMITS__NAME too.",
    ),
]
Customer = Annotated[str, typer.Option("--customer", metavar="ID", help="The customer's number, such as C003.")]


def _an_id(what: str) -> Callable[[str | None], str | None]:
    """Refuses what no conversation can have: whoever asks for it is not told that there are none."""
    return lambda given: checked(what, given) if given is not None else None


MaybeCustomer = Annotated[
    str | None,
    typer.Option(
        "--customer",
        metavar="ID",
        help="Only what belongs to this customer.",
        callback=_an_id("customer's number"),
    ),
]
OfConversation = Annotated[
    str | None,
    typer.Option(
        "--conversation",
        metavar="ID",
        help="Only those of this conversation.",
        callback=_an_id("conversation's id"),
    ),
]
ToConversation = Annotated[
    str | None,
    typer.Option("--conversation", metavar="ID", help="Go on with this conversation. Default: begin a new one."),
]
ConversationId = Annotated[str, typer.Argument(metavar="ID", help="The conversation's id; `haru list` shows them.")]
MaybeConversationId = Annotated[
    str | None, typer.Argument(metavar="ID", help="The conversation's id; `haru list` shows them.")
]
