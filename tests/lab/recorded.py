"""Small recordings, written as the lines of a file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from haru_fsm.lab.lines import from_json_lines
from haru_fsm.lab.recordings import Recording


def turn(name: str, result: object, *, thought: str = "", failed: bool = False, **args: Any) -> list[dict[str, Any]]:
    """A reply with one call, and what it brought."""
    return [
        {"role": "model", "text": "", "thought": thought, "calls": [{"name": name, "args": args}]},
        {"role": "tool", "responses": [{"name": name, "response": result, "is_error": failed}]},
    ]


def line(letters: str, *, success: bool | None = True, **labels: Any) -> dict[str, Any]:
    """A run that makes the call of each letter, which always brings the same; `!` stands for something new."""
    turns: list[dict[str, Any]] = [{"role": "user", "text": "?"}]
    for place, letter in enumerate(letters):
        new: dict[str, Any] = {"n": place} if letter == "!" else {}
        turns += turn(letter, place if letter == "!" else letter, **new)
    return {"turns": turns, "success": success, **labels}


def written(path: Path, lines: Iterable[dict[str, Any]]) -> Path:
    """A file of recordings, gzip where its name says so."""
    text = "".join(json.dumps(one) + "\n" for one in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def recording(folder: Path, letters: str, **labels: Any) -> Recording:
    """One recording, through a file."""
    [one] = from_json_lines(written(folder / "one.jsonl", [line(letters, **labels)]))
    return one
