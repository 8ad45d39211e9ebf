"""Recordings out of a file of JSON Lines: one conversation a line, in our form or as chat messages or Gemini contents.

What a line says is taken as it is or refused with its number; nothing of it is guessed, and no label is dropped in
silence.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from haru_fsm.conversation import (
    JSON,
    Event,
    MessageReceived,
    ModelAnswered,
    ModelEvent,
    ObservationAppended,
    ResultStatus,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
    Usage,
)
from haru_fsm.errors import SettingsError
from haru_fsm.foreign import in_words
from haru_fsm.json_safe import json_safe
from haru_fsm.lab.recordings import Recording, in_order
from haru_fsm.lab.shapes import turns_of

GZIP = b"\x1f\x8b"
"""How a compressed file begins, whatever it is called."""
SUCCESS = "success"
"""The label that says how a conversation ended."""
Read = Callable[[int], None]
"""How many bytes of a file have been read since the last time."""


def from_json_lines(path: Path, success: str = SUCCESS, read: Read = lambda _: None) -> Iterator[Recording]:
    """The recordings of a file, one a line, gzip or not: `{turns: [{role, text, thought, calls, responses, usage}]}`.

    Roles are user, model and tool; a tool turn answers the calls of the model turn before it by position. Lines with
    chat messages or Gemini contents are understood too (`shapes.py`). All other fields are labels; the one called
    `success` says how it ended. `read` is told the bytes of the file as they are read, for a progress bar.
    Raises SettingsError for a file or a line that is no such thing.
    """
    try:
        with path.open("rb") as file, io.TextIOWrapper(_plain(file), encoding="utf-8-sig") as lines:
            seen = 0
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _recording(line, f"{path}, line {number}", success)
                now = file.tell()
                read(now - seen)
                seen = now
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise SettingsError(f"{path} cannot be read as JSON Lines: {in_words(error)}") from error


def _plain(file: BinaryIO) -> BinaryIO:
    """What the file holds, unpacked where it is packed; by how it begins, for names are changed on the way."""
    packed = file.read(len(GZIP)) == GZIP
    file.seek(0)
    return cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file


def _recording(line: str, where: str, success: str) -> Recording:
    try:
        turns, labels = turns_of(json.loads(line))
        ended = _succeeded(labels.pop(success, None), success)
        return Recording(tuple(in_order(_all(turns))), ended, labels)
    except ValueError as error:
        raise SettingsError(
            f"{where} is no recording: {in_words(error)}. It needs one JSON object with turns, each with a role (user, "
            "model, tool); or with the messages of a chat, or Gemini contents. Conversations of an app are read from "
            'its database: database = "sqlite:///memory_store/haru.db".'
        ) from error


def _succeeded(told: Any, label: str) -> bool | None:
    """How it ended. Raises ValueError for a label that says neither: what is guessed there moves every figure."""
    if told is None or told in (0, 1):
        return None if told is None else bool(told)
    raise ValueError(f"its {label!r} is {told!r}, and neither true nor false (1 nor 0)")


def _all(turns: Iterable[JSON]) -> Iterator[Event]:
    for number, turn in enumerate(turns, 1):
        try:
            yield from _events(turn)
        except KeyError as error:
            raise ValueError(f"its turn {number} has no {error}") from error
        except (TypeError, AttributeError) as error:
            raise ValueError(f"its turn {number} has something else where an object or a list should be") from error


def _events(turn: JSON) -> Iterator[Event]:
    match turn["role"]:
        case "user":
            yield MessageReceived(text=str(turn.get("text") or ""))
        case "model":
            yield _said(turn)
        case "tool":
            yield ToolsExecuted(results=tuple(_results(turn.get("responses") or ())))
            yield ObservationAppended()
        case role:
            raise ValueError(f"unknown role {role!r}")


def _said(turn: JSON) -> ModelEvent:
    text = "\n".join(filter(None, [turn.get("thought"), turn.get("text")]))
    parts: list[JSON] = [{"text": text}] if text else []
    wanted = turn.get("calls") or ()
    for call in wanted:
        args = call.get("args")
        args = args if isinstance(args, dict) else {} if args is None else {"": args}
        parts.append({"functionCall": {"name": str(call.get("name") or ""), "args": json_safe(args)}})
    content = {"role": "model", "parts": parts}
    usage = _usage(turn.get("usage"))
    return ToolsRequested(content=content, usage=usage) if wanted else ModelAnswered(content=content, usage=usage)


def _usage(told: Any) -> Usage:
    """What was recorded of tokens; other recorders' names are understood, and what is not told is nothing."""
    if not isinstance(told, dict):
        return Usage()
    names = {
        "prompt": ("prompt", "prompt_tokens", "input_tokens"),
        "answer": ("answer", "completion_tokens", "output_tokens"),
    }
    found = {
        mine: next((told[name] for name in theirs if isinstance(told.get(name), int)), 0)
        for mine, theirs in names.items()
    }
    return Usage(**found)


def _results(responses: Iterable[JSON]) -> Iterator[ToolResult]:
    for position, response in enumerate(responses):
        failed = bool(response.get("is_error"))
        said = json_safe(response.get("response"))
        yield ToolResult(
            position=position,
            status=ResultStatus.FAILED if failed else ResultStatus.DONE,
            response={"error" if failed else "result": said},
        )
