"""A model that says what it was told to say. For tests, benchmarks and examples; it is real code, not a mock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from haru_fsm.conversation import FailureReason, ModelAnswered, ModelFailed, ToolsRequested, Usage
from haru_fsm.errors import AppError
from haru_fsm.json_safe import json_safe, safe_text
from haru_fsm.models import ModelOutcome, ModelRequest

Line = str | Sequence[tuple[str, dict[str, Any]]] | ModelOutcome
"""A text is an answer; a list of (tool, arguments) is a wish for tools; a ready outcome is taken as it is."""


def calls(*wanted: tuple[str, dict[str, Any]], text: str = "", **facts: Any) -> ToolsRequested:
    """A reply that asks for these tools, with a text beside the calls if one is given."""
    parts: list[dict[str, Any]] = [{"text": safe_text(text)}] if text else []
    parts += [{"functionCall": {"name": name, "args": json_safe(args)}} for name, args in wanted]
    return ToolsRequested(content={"role": "model", "parts": parts}, **facts)


def answer(text: str, **facts: Any) -> ModelAnswered:
    """A reply that is an answer."""
    return ModelAnswered(content={"role": "model", "parts": [{"text": safe_text(text)}]}, **facts)


class ScriptedModel:
    """Plays its lines in order, one per request; after the last it fails. A function may be given instead: it gets
    each request and returns the line. A single text is a script of one line.

    Raises AppError, when it comes to it, for what is no line."""

    name = "scripted"

    def __init__(self, script: Iterable[Line] | Callable[[ModelRequest], Line]) -> None:
        self.requests: list[ModelRequest] = []
        script = [script] if isinstance(script, str) else script
        self._line = script if callable(script) else _player(iter(script))

    async def respond(self, request: ModelRequest) -> ModelOutcome:
        """The next line."""
        self.requests.append(request)
        event = _outcome(self._line(request))
        if isinstance(event, ModelAnswered) and request.on_text is not None:
            request.on_text(event.text)
        return event


def _player(lines: Iterator[Line]) -> Callable[[ModelRequest], Line]:
    over = ModelFailed(reason=FailureReason.REPLAY, detail="The script has no more lines.")
    return lambda _request: next(lines, over)


def _outcome(line: Line) -> ModelOutcome:
    match line:
        case str():
            return answer(line, model="scripted", usage=Usage(answer=len(line), estimated=True))
        case ModelAnswered() | ToolsRequested() | ModelFailed():
            return line
        case [*wanted] if all(map(_is_call, wanted)):
            return calls(*wanted, model="scripted")
    raise AppError(
        f"{line!r} is no line of a script: write a text, or a list of calls such as [('tool', {{'argument': 1}})]."
    )


def _is_call(wanted: object) -> bool:
    match wanted:
        case [str(), dict()]:
            return True
    return False
