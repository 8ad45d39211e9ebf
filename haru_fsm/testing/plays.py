"""A play: one conversation to be had with an app, written down so that it can be had again, exactly.

What the customer writes, what the model replies, how the tools behave, where the process dies. The last reply, and
the last behaviour of a tool, go on for ever: a model that loops is a play of one reply.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from haru_fsm.conversation import Frozen, ModelAnswered, ModelFailed, ToolsRequested
from haru_fsm.errors import SettingsError
from haru_fsm.foreign import in_words
from haru_fsm.json_safe import safe_text
from haru_fsm.testing.behaviours import Behaviour
from haru_fsm.testing.crashes import CrashPoint

Reply = Annotated[ModelAnswered | ToolsRequested | ModelFailed, Field(discriminator="kind")]


class Play(Frozen):
    """One conversation: who asks what, and what everybody else does. Kept in files as JSON."""

    messages: tuple[str, ...] = ("안녕하세요",)
    replies: tuple[Reply, ...] = ()
    """What the model says, in order; the n-th is always for the n-th request. The last one goes on for ever."""
    behaviours: dict[str, tuple[Behaviour, ...]] = Field(default_factory=dict)
    """By tool: what it does in each round of calls; the last one goes on. What is not named runs its own code."""
    crashes: tuple[CrashPoint, ...] = ()
    """Where the first process dies, then the one that carries on, and so on; the one after the last lives."""
    customer: str = "C001"
    decisions: tuple[bool, ...] = ()
    """What a person decides of the calls that wait, by round of calls; the last goes on, and without any it is yes."""
    pace_ms: int = 0
    """How long the model takes for each reply."""
    limits: dict[str, Any] = Field(default_factory=dict)
    """Limits that differ from the app's own, where the app can be made with others."""


class Belongings(Frozen):
    """Who was tried against whom, and what was stated to be whose: a finding about scope is none without it."""

    customers: tuple[str, ...]
    private: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    public: tuple[str, ...] = ()


class Finding(Frozen):
    """A play and the promise that it breaks."""

    format: Literal[1] = 1
    promise: str
    because: str
    play: Play
    given: Belongings | None = None

    @property
    def file_name(self) -> str:
        """The same finding has the same name."""
        digest = hashlib.blake2b(written(self.play).encode(), digest_size=4).hexdigest()
        return f"{'-'.join(self.promise.replace(',', '').split())}-{digest}.json"

    def save(self, folder: Path) -> Path:
        """Write it into the folder, which is made where it is missing; returns the file.

        Raises SettingsError, which tells the finding all the same, where it cannot be written.
        """
        file = folder / self.file_name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file.write_text(written(self, indent=2) + "\n", "utf-8")
        except OSError as error:
            raise SettingsError(
                f"{self.promise}: {self.because}. The finding cannot be kept in {folder}: {in_words(error)}"
            ) from error
        return file

    @classmethod
    def load(cls, file: Path | str) -> Finding:
        """Read what `save` wrote. Raises SettingsError for anything else."""
        try:
            return cls.model_validate(json.loads(Path(file).read_bytes()))
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
            raise SettingsError(f"{file} is no finding of the kit: {wrong}") from error
        except (OSError, ValueError) as error:
            raise SettingsError(f"{file} is no finding of the kit: {in_words(error)}") from error


def written(what: Play | Finding, indent: int | None = None) -> str:
    """As JSON, in ASCII where need be: a lone surrogate is a legal part of a play, and no legal part of UTF-8."""
    plain = what.model_dump(mode="json", exclude_unset=True)
    play = plain["play"] if isinstance(what, Finding) else plain
    for name in [name for name, value in play.items() if not value]:
        del play[name]
    if isinstance(what, Finding):
        plain = {"format": what.format, **plain}
    text = json.dumps(plain, ensure_ascii=False, indent=indent)
    return text if safe_text(text) == text else json.dumps(plain, indent=indent)
