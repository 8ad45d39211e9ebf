"""How a request differs from those on a cassette, for people. Pure."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from haru_fsm.conversation import JSON
from haru_fsm.models.cassette_lines import Exchange, Tape, canonical

MOST_LINES = 40
"""Lines of a difference that are shown."""
LINE_CHARS = 200


def told(path: Path, tape: Tape, contents: Sequence[JSON], tools_allowed: bool, volatile: re.Pattern[str]) -> str:
    """What is different from the recorded request that is nearest to this one: the first content that differs."""
    now = [_plain(content, volatile) for content in contents]
    nearest, at = _nearest(tape.exchanges, now, volatile)
    recorded = [_plain(content, volatile) for content in nearest.contents]
    lines = [f"{path} has no reply to this request."]
    if tape.unreadable:
        lines.append(f"Lines that could not be read: {', '.join(map(str, tape.unreadable))}.")
    if at < len(recorded) or at < len(now):
        lines += _difference(at, recorded, now)
    else:
        lines.append(
            f"Tools were {'not ' if tools_allowed else ''}allowed when it was recorded, and now they are"
            f"{'' if tools_allowed else ' not'}."
        )
    return "\n".join(lines)


def _nearest(exchanges: Sequence[Exchange], now: Sequence[str], volatile: re.Pattern[str]) -> tuple[Exchange, int]:
    """The exchange that shares the most contents from the first on, and how many; of several the shortest."""
    shared = [(_shared([_plain(content, volatile) for content in one.contents], now), one) for one in exchanges]
    at, nearest = max(shared, key=lambda pair: (pair[0], -len(pair[1].contents)))
    return nearest, at


def _shared(recorded: Sequence[str], now: Sequence[str]) -> int:
    count = 0
    for one, other in zip(recorded, now, strict=False):
        if one != other:
            break
        count += 1
    return count


def _plain(content: JSON, volatile: re.Pattern[str]) -> str:
    return volatile.sub("#", canonical(content))


def _difference(at: int, recorded: Sequence[str], now: Sequence[str]) -> Iterator[str]:
    yield f"The first {at} contents are those of a recorded request ({len(recorded)} in all, {len(now)} now). Then:"
    was, is_now = (_pretty(each[at]) if at < len(each) else [] for each in (recorded, now))
    lines = list(
        difflib.unified_diff(was, is_now, f"recorded, content {at + 1}", f"now, content {at + 1}", "", "", 2, "")
    )
    yield from (line if len(line) <= LINE_CHARS else line[: LINE_CHARS - 1] + "…" for line in lines[:MOST_LINES])
    if len(lines) > MOST_LINES:
        yield f"... and {len(lines) - MOST_LINES} more lines"


def _pretty(content: str) -> list[str]:
    return json.dumps(json.loads(content), ensure_ascii=False, indent=1).splitlines()
