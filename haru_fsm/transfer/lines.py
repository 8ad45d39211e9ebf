"""The lines of an export: a head, one for each conversation, and a foot with their number, as JSON.

Each carries a digest of itself, so a file that was cut off or edited is refused before anything of it is stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from haru_fsm.errors import FormatTooNew, SettingsError
from haru_fsm.stores import FORMAT

KIND = "haru_fsm export"
NO_EXPORT = "This is no export of haru_fsm: its first line does not say so. Give a file that `haru export` has written."


def head() -> str:
    """The first line."""
    return sealed({"kind": KIND, "format": FORMAT})


def foot(count: int) -> str:
    """The last line, after so many conversations."""
    return sealed({"end": count})


def sealed(content: dict[str, Any]) -> str:
    """A line with this content and its digest."""
    text = _written(content)
    return json.dumps({"digest": _digest(text)})[:-1] + f', "content": {text}}}'


def _written(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8"), digest_size=16).hexdigest()


def contents(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The conversations of these lines.

    Raises SettingsError where they are no export, or were cut off or changed, and FormatTooNew; sometimes at the end.
    """
    number, end = 0, None
    for number, text in enumerate(lines, 1):
        content = _content(text, number)
        if number == 1:
            if content.get("kind") != KIND:
                raise SettingsError(NO_EXPORT)
            if content.get("format", 0) > FORMAT:
                raise FormatTooNew(
                    f"The export has format {content['format']}, newer than this haru_fsm knows. Update it."
                )
        elif "end" in content:
            end = (content["end"], number - 2)
        else:
            yield content
    if number == 0:
        raise SettingsError(NO_EXPORT)
    if end is None or end[0] != end[1] or number != end[1] + 2:
        raise SettingsError("The export is not whole: its last line is missing, or lines are. Nothing was stored.")


def _content(line: str, number: int) -> dict[str, Any]:
    try:
        wrapped = json.loads(line)
        content: dict[str, Any] = wrapped["content"]
        whole = wrapped["digest"] == _digest(_written(content))
    except (ValueError, KeyError, TypeError) as error:
        if number == 1:
            raise SettingsError(NO_EXPORT) from error
        raise SettingsError(
            f"Line {number} of the export cannot be read: it was cut off or changed. Nothing was stored."
        ) from error
    if not whole:
        raise SettingsError(f"Line {number} of the export does not fit its digest: it was changed. Nothing was stored.")
    return content
