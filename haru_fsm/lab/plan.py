"""An experiment as a file: which recordings, which settings, and what is to be measured live.

name = "what loop_repeats costs"

[[sources]]
file = "recordings.jsonl.gz"            # JSON Lines, gzip or not; relative to this file
detection_only = {strategy = "try-again"} # these count for detection, never for destroyed successes

[[sources]]
database = "sqlite:///memory_store/haru.db"

[[settings]]                              # the app's own table under these limits; the first is what is compared to
name = "default"

[grid]                                    # every combination: one curve for each value of the first name
loop_repeats = [2, 3, 4]
loop_nudges = [0, 1, 2, 3]

half = "report"                           # or "tune", or "all": the halves of a random split by `seed`

[live]                                    # runs of the app itself
messages = ["지금 배송중인 제 주문들 알려주세요"]
customers = ["C003"]
"""

from __future__ import annotations

import itertools
import random
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from haru_fsm.errors import SettingsError
from haru_fsm.foreign import in_words
from haru_fsm.lab.recordings import Recording
from haru_fsm.limits import Limits

UNLIMITED = {"max_steps": 1_000_000, "max_tool_calls": 1_000_000}
"""Budgets are no question of recordings: they are far away unless a setting says otherwise."""
BUDGETS = {"max_steps": "StepBudget", "max_tool_calls": "ToolCallBudget"}
"""The guards of those limits."""


class Strict(BaseModel):
    """A part of the file: a name that nobody knows is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(Strict):
    """Where recordings come from: a file of JSON Lines, a cassette, or the database of an app."""

    file: Path | None = None
    cassette: Path | None = None
    database: str | None = None
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

    def left_out(self) -> tuple[str, ...]:
        """What is left out of the table, budgets that nobody set among it: they would never trip."""
        return (*self.without, *(guard for limit, guard in BUDGETS.items() if limit not in self.limits))


class Live(Strict):
    """Runs of the app itself: every message of every customer, under every fault, with every setting."""

    messages: tuple[str, ...]
    customers: tuple[str, ...]
    models: tuple[Literal["offline", "insistent", "heeding"], ...] = ("offline", "insistent", "heeding")
    faults: tuple[Literal["none", "tools_fail", "tools_empty"], ...] = ("none", "tools_fail", "tools_empty")


class Plan(Strict):
    """An experiment."""

    name: str = "guards"
    sources: tuple[Source, ...] = ()
    settings: tuple[Setting, ...] = (Setting(name="default"),)
    grid: dict[str, tuple[Any, ...]] = Field(default_factory=dict)
    classics: bool = True
    half: Literal["all", "tune", "report"] = "all"
    seed: int = 1
    live: Live | None = None

    def all_settings(self) -> tuple[Setting, ...]:
        """The named settings, then every combination of the grid."""
        return (*self.settings, *self._combined())

    def _combined(self) -> Iterator[Setting]:
        for values in itertools.product(*self.grid.values()) if self.grid else ():
            limits = dict(zip(self.grid, values, strict=True))
            first = f"{next(iter(limits))}={values[0]}"
            yield Setting(name=", ".join(f"{k}={v}" for k, v in limits.items()), limits=limits, family=first)

    def chosen(self, recordings: Sequence[Recording]) -> list[Recording]:
        """The half that this experiment looks at. The split depends on the seed and the order, and on nothing else."""
        if self.half == "all":
            return list(recordings)
        draw = random.Random(self.seed)
        return [one for one in recordings if (draw.random() < 0.5) == (self.half == "tune")]


def read_plan(path: Path) -> Plan:
    """The experiment of a file; relative paths in it are relative to it. Raises SettingsError."""
    try:
        plan = Plan.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
        for setting in plan.all_settings():
            setting.for_recordings()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path} cannot be read as an experiment: {in_words(error)}") from error
    except ValidationError as error:
        told = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise SettingsError(f"{path} is no experiment: {told}") from error
    return plan.model_copy(update={"sources": tuple(_placed(source, path.parent) for source in plan.sources)})


def _placed(source: Source, folder: Path) -> Source:
    files = {name: folder / place for name in ("file", "cassette") if (place := getattr(source, name)) is not None}
    return source.model_copy(update=files)
