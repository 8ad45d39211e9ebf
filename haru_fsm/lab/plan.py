"""An experiment as a file: which recordings, which rules, and what is to be measured live.

`docs/guards.md` shows a whole one, and a test reads it.
"""

from __future__ import annotations

import itertools
import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from haru_fsm.errors import SettingsError
from haru_fsm.foreign import in_words
from haru_fsm.limits import Limits
from haru_fsm.setting_errors import MUST_BE, instead
from haru_fsm.settings import SQLITE

UNLIMITED = {"max_steps": 1_000_000, "max_tool_calls": 1_000_000}
"""Budgets are no question of recordings: they are far away unless a setting says otherwise."""
Some = Annotated[tuple[Any, ...], Field(min_length=1)]
"""Values to try, at least one."""


class Strict(BaseModel):
    """A part of the file: a name that nobody knows is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(Strict):
    """Where recordings come from: a file of JSON Lines, a cassette, or the database of an app."""

    file: Path | None = None
    cassette: Path | None = None
    database: str | None = None
    success: str = "success"
    """The label of a line that says how the conversation ended: true or false, 1 or 0."""
    detection_only: dict[str, Any] = Field(default_factory=dict)
    """Labels of recordings whose success says nothing of what a stop would have destroyed."""

    @model_validator(mode="after")
    def _one(self) -> Source:
        if sum(place is not None for place in (self.file, self.cassette, self.database)) != 1:
            raise ValueError("a source is either a file, a cassette or a database")
        return self


class Setting(Strict):
    """The app's table under these limits. `family` names the curve it belongs to."""

    name: str
    limits: dict[str, Any] = Field(default_factory=dict)
    family: str = "app"
    without: tuple[str, ...] = ()
    """Classes of guards that are left out of the table: what does each contribute? For recordings only."""

    def for_recordings(self) -> Limits:
        """The limits under which recordings are judged."""
        return Limits(**{**UNLIMITED, **self.limits})


class Alone(Strict):
    """One guard as a rule of its own that stops at once: one of `haru_fsm.guards`, or `FILE.py:NAME` of your own."""

    guard: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    sweep: dict[str, Some] = Field(default_factory=dict)
    """Arguments with several values: every combination is a rule of its own."""

    @property
    def family(self) -> str:
        """The curve that they belong to."""
        return f"{self.guard.rpartition(':')[2]} alone"


class Live(Strict):
    """Runs of the app itself: every message of every customer, under every fault, with every setting."""

    messages: Annotated[tuple[str, ...], Field(min_length=1)]
    customers: Annotated[tuple[str, ...], Field(min_length=1)]
    models: tuple[Literal["offline", "insistent", "heeding"], ...] = ("offline", "insistent", "heeding")
    faults: tuple[Literal["none", "tools_fail", "tools_empty"], ...] = ("none", "tools_fail", "tools_empty")


class Plan(Strict):
    """An experiment."""

    name: str = "guards"
    sources: tuple[Source, ...] = ()
    settings: tuple[Setting, ...] = (Setting(name="default"),)
    grid: dict[str, Some] = Field(default_factory=dict)
    guards: tuple[Alone, ...] = ()
    classics: bool = True
    half: Literal["all", "tune", "report"] = "all"
    seed: int = 1
    live: Live | None = None

    @model_validator(mode="after")
    def _told_apart(self) -> Plan:
        names = [one.name for one in self.all_settings()]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two settings are called {twice!r}, and could not be told apart")
        if not names and (self.live is not None or not (self.guards or self.classics)):
            raise ValueError("there is nothing to compare: neither settings nor a grid")
        return self

    def all_settings(self) -> tuple[Setting, ...]:
        """The named settings, then every combination of the grid."""
        return (*self.settings, *self._combined())

    def _combined(self) -> Iterator[Setting]:
        for values in itertools.product(*self.grid.values()) if self.grid else ():
            limits = dict(zip(self.grid, values, strict=True))
            first = f"{next(iter(limits))}={values[0]}"
            yield Setting(name=", ".join(f"{k}={v}" for k, v in limits.items()), limits=limits, family=first)

    def draws(self) -> Iterator[bool]:
        """For each recording in turn, whether it is in the half that this experiment looks at.

        The split depends on the seed and the order, and on nothing else.
        """
        draw = random.Random(self.seed)
        while True:
            yield self.half == "all" or (draw.random() < 0.5) == (self.half == "tune")


def read_plan(path: Path) -> Plan:
    """The experiment of a file; relative paths in it are relative to it. Raises SettingsError."""
    try:
        # Some editors on Windows put a mark before a text.
        plan = Plan.model_validate(tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path} cannot be read as an experiment: {in_words(error)}") from error
    except ValidationError as error:
        told = "; ".join(_wrong(one, FIELDS) for one in error.errors())
        raise SettingsError(f"{path} is no experiment: {told}") from error
    for setting in plan.all_settings():
        try:
            setting.for_recordings()
        except ValidationError as error:
            told = "; ".join(_wrong(one, {"": Limits.model_fields}) for one in error.errors())
            raise SettingsError(f"{path} is no experiment: the limits of {setting.name!r}: {told}") from error
    return plan.model_copy(
        update={
            "sources": tuple(_placed(source, path.parent) for source in plan.sources),
            "guards": tuple(_found(one, path.parent) for one in plan.guards),
        }
    )


FIELDS: Mapping[str, Mapping[str, object]] = {
    "": Plan.model_fields,
    "sources": Source.model_fields,
    "settings": Setting.model_fields,
    "guards": Alone.model_fields,
    "live": Live.model_fields,
}
"""What a part of the file may say, by the name of the part."""
BE: Mapping[str, str] = {
    **MUST_BE,
    "tuple_type": "a list",
    "too_short": "a list with something in it",
    "dict_type": "a table",
    "model_type": "a table",
}


def _wrong(error: ErrorDetails, fields: Mapping[str, Mapping[str, object]]) -> str:
    """What is wrong at one place of the file, and what may have been meant."""
    kind, where = error["type"], _where(error["loc"])
    if kind == "extra_forbidden":
        part, name = (str(error["loc"][0]) if len(error["loc"]) > 1 else ""), str(error["loc"][-1])
        return f"there is no {where}. {instead(name, fields[part])}"
    if kind == "missing":
        return f"{where} is missing"
    if kind == "value_error":
        return f"{where}: {error['ctx']['error']}" if where else str(error["ctx"]["error"])
    return f"{where} must be {BE[kind].format(**error.get('ctx', {}))}" if kind in BE else f"{where}: {error['msg']}"


def _where(loc: Sequence[int | str]) -> str:
    """A place as somebody who reads the file counts: `the 2nd [[settings]]` would be `settings 2`."""
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in loc)


def _found(one: Alone, folder: Path) -> Alone:
    file, colon, name = one.guard.rpartition(":")
    return one.model_copy(update={"guard": f"{folder / file}:{name}"}) if colon else one


def _placed(source: Source, folder: Path) -> Source:
    files: dict[str, object] = {
        name: folder / place for name in ("file", "cassette") if (place := getattr(source, name)) is not None
    }
    url = source.database
    if url is not None and url.startswith(SQLITE) and url != SQLITE:
        files["database"] = f"{SQLITE}{folder / url.removeprefix(SQLITE)}"
    return source.model_copy(update=files)
