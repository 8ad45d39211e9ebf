"""The parts that an app or an engine is made of, looked at when they are given.

Whatever else is found there (a name, a class, a list) would fail later: in the middle of a customer's run, or, as a
desk that cannot be asked, in every run that needs a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from haru_fsm.errors import AppError, SettingsError
from haru_fsm.limits import Limits
from haru_fsm.machine import Workflow
from haru_fsm.notices import NUMBER, WITH_NUMBER, Notices
from haru_fsm.visible import is_blank

MADE_BY: Mapping[str, str] = {
    "app": "Give what load_app({name!r}) makes",
    "model": "Give a model, such as GeminiModel(...), or leave it out and set HARU_MODEL={name}",
    "store": "Give a store, such as SQLiteStore(FILE), or leave it out and set HARU_DATABASE_URL={name}",
    "desk": "Give an object with `open(ticket)`",
}
"""What to do instead of naming a part of the engine."""


def refuse_names(**parts: object) -> None:
    """Raises SettingsError for a part of the engine that is given as its name, its place or its class."""
    for part, given in parts.items():
        if isinstance(given, str | Path):
            advice = MADE_BY[part].format(name=str(given))
            raise SettingsError(f"The engine's {part} is {str(given)!r}, which only names one. {advice}.")
        if isinstance(given, type):
            name = given.__name__
            raise SettingsError(f"The engine's {part} is the class {name}. Make one: {name}(...).")


def refuse_strangers(*, model: object, desk: object) -> None:
    """Raises AppError for a part of the engine that cannot do what it is there for."""
    if not isinstance(getattr(model, "name", None), str):
        raise AppError(f"The model {model!r:.80} has no `name`. Give it one: it is journaled with what it says.")
    if not callable(getattr(model, "respond", None)):
        raise AppError(f"The model {model!r:.80} has no `respond(request)`, which gives what it says.")
    if desk is not None and not callable(getattr(desk, "open", None)):
        raise AppError(f"The desk {desk!r:.80} has no `open(ticket)`, which files a ticket and returns it.")


def refuse_no_app(workflow: object, make_tools: object, limits: object, notices: object) -> None:
    """Raises AppError where these make no app."""
    if not isinstance(workflow, Workflow):
        raise AppError(f"An app cannot be made: its workflow is a {_kind(workflow)}. Give Workflow(rows, work=...).")
    if not callable(make_tools):
        raise AppError(
            f"An app cannot be made: its make_tools is a {_kind(make_tools)}. "
            "Give a function that takes the session and returns the tools, for they belong to one customer."
        )
    refuse_no_limits(limits)
    if not isinstance(notices, Notices):
        raise AppError(f"An app cannot be made: its notices are a {_kind(notices)}. Give Notices(...).")
    for name in (field.name for field in fields(notices)):
        _refuse_notice(name, getattr(notices, name))


def _refuse_notice(name: str, said: object) -> None:
    """Raises AppError for what is no words to a customer, or promises a number where there is none."""
    if not isinstance(said, str) or is_blank(said):
        raise AppError(f"An app cannot be made: its notice `{name}` is {said!r}. Say what the customer is to read.")
    if NUMBER in said and name not in WITH_NUMBER:
        raise AppError(f"An app cannot be made: its notice `{name}` tells {NUMBER}, and there is no ticket then.")


def refuse_no_limits(limits: object) -> None:
    """Raises AppError where these are no limits."""
    if not isinstance(limits, Limits):
        raise AppError(f"An app cannot be made: its limits are a {_kind(limits)}. Give Limits(...).")


def _kind(given: object) -> str:
    return type(given).__name__
