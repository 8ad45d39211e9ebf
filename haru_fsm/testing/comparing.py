"""Two journals of the same play, one of them disturbed: what must be the same however often a process died."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from haru_fsm.conversation import Resumed, Step
from haru_fsm.testing.driving import Performance
from haru_fsm.testing.judging_effects import doubtful

CARRIED_ON = "a crash changes nothing"

DROPPED = ("at", "took_ms", "created_at", "expires_at", "noted", "ran", "seq", "asked", "digest")
"""Times, and what tells where a result was found; `seq`, `asked` and names of calls count resumptions too."""
MOST_CHARS = 120
"""Of a value that differs, as much as is told."""
MINTED = re.compile(r"HT-\d{10}|/\d+\.\d+|\d+\.\d+(?=\]|$)")
"""Numbers of tickets and names of calls: a resumption is a step, and moves them."""


def plain(steps: Sequence[Step]) -> list[Any]:
    """A journal without times, numbers and resumptions."""
    return [_timeless(step.written(whole=True)) for step in steps if not isinstance(step.event, Resumed)]


def _timeless(value: Any) -> Any:
    match value:
        case dict():
            return {key: _timeless(item) for key, item in value.items() if key not in DROPPED}
        case list():
            return [_timeless(item) for item in value]
        case str():
            return MINTED.sub("#", value)
    return value


def difference(one: Sequence[Step], other: Sequence[Step]) -> str:
    """Where the first journal goes another way than the second; empty where it does not."""
    mine, theirs = plain(one), plain(other)
    for here, there in zip(mine, theirs, strict=False):
        if here != there:
            return _apart(here, there)
    return "" if len(mine) == len(theirs) else f"{len(mine)} steps against {len(theirs)}"


def _apart(here: Any, there: Any) -> str:
    ours, others = (f"{step['event']['kind']} in {step['source']}" for step in (here, there))
    if ours != others:
        return f"{ours} against {others}"
    place, mine, theirs = _first(here, there, "")
    return f"{ours} has {place} {_short(mine)}, against {_short(theirs)}"


def _first(here: Any, there: Any, place: str) -> tuple[str, Any, Any]:
    """The first place within two values at which they differ, and what stands there."""
    match here, there:
        case dict(), dict():
            name = next(name for name in {**here, **there} if here.get(name) != there.get(name))
            return _first(here.get(name), there.get(name), f"{place}.{name}".removeprefix("."))
        case list(), list() if len(here) == len(there):
            number = next(number for number, pair in enumerate(zip(here, there, strict=True)) if pair[0] != pair[1])
            return _first(here[number], there[number], f"{place}[{number}]")
    return place, here, there


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}..."


def carried_on(disturbed: Performance, calm: Performance) -> Iterator[str]:
    """What a crash has changed: nothing may be, unless an effect is in doubt or the run was given up."""
    if doubtful(disturbed.record) or doubtful(calm.record) or disturbed.broke or _given_up(disturbed.steps):
        return
    if differs := difference(disturbed.steps, calm.steps):
        times = len(disturbed.deaths)
        crashes = "a crash" if times == 1 else f"{times} crashes"
        yield f"after {crashes} the journal differs from the undisturbed one: {differs}"


def _given_up(steps: Sequence[Step]) -> bool:
    return any(isinstance(step.event, Resumed) and step.state != step.source for step in steps)
