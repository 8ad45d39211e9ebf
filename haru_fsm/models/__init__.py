"""Models: one protocol with one method.

A model turns a request into one of three facts: it answered, it requested tools, or it failed with a reason.
It never raises for anything a provider does; retries, re-asks and time limits live behind this line.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from haru_fsm.conversation import JSON, ModelAnswered, ModelFailed, ToolsRequested
from haru_fsm.errors import AppError

ModelOutcome = ModelAnswered | ToolsRequested | ModelFailed


@dataclass(frozen=True, slots=True)
class Declaration:
    """A function as it is declared to a model. `parameters` is a JSON Schema object, or None for no parameters."""

    name: str
    description: str
    parameters: JSON | None = None
    read_only: bool | None = None
    """Whether it only looks, where its function says so. No provider is told; the offline planner need not guess."""

    @property
    def told(self) -> JSON:
        """What a model reads of it."""
        return {"name": self.name, "description": self.description, "parameters": self.parameters}


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything a model needs for one piece of work.

    `contents` are the API's contents in the Gemini REST form, valid as they are; they must not be changed.
    `requests_left` (at least 1) bounds the HTTP requests for *re-asks* within this piece of work, `timeout_s` is
    what is left of the run's deadline in seconds (None: no deadline).
    """

    system: str
    contents: Sequence[JSON]
    declarations: Sequence[Declaration] = ()
    tools_allowed: bool = True
    requests_left: int = 1
    timeout_s: float | None = None
    on_text: Callable[[str], None] | None = None
    """Called with each piece of the answer as it is written, where the model can stream."""


class Model(Protocol):
    """Anything that can answer a request. `name` is journaled with what it said."""

    @property
    def name(self) -> str: ...

    async def respond(self, request: ModelRequest) -> ModelOutcome: ...


async def outcome_of(model: Model, request: ModelRequest) -> ModelOutcome:
    """What the model makes of the request. Raises AppError for what is no outcome: a model of one's own errs."""
    said: object = model.respond(request)
    said = await said if inspect.isawaitable(said) else said
    if isinstance(said, ModelOutcome):
        return said
    raise AppError(
        f"The model {model.name} gave {said!r:.80} for a request. Its respond() has to give ModelAnswered, "
        "ToolsRequested or ModelFailed; haru_fsm.models.scripted makes them from texts and calls."
    )
