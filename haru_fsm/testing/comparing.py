"""Two journals of the same play, one of them disturbed: what must be the same however often a process died."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from haru_fsm.conversation import Resumed, Step
from haru_fsm.testing.driving import Performance
from haru_fsm.testing.judging_effects import doubtful

CARRIED_ON = "a crash changes nothing"

DROPPED = ("at", "took_ms", "created_at", "expires_at", "noted", "ran", "seq", "asked", "digest")
"""Times, and what tells where a result was found; `seq`, `asked` and names of calls count resumptions too."""
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
            return f"{here['event']['kind']} in {here['source']} against {there['event']['kind']} in {there['source']}"
    return "" if len(mine) == len(theirs) else f"{len(mine)} steps against {len(theirs)}"


def carried_on(disturbed: Performance, calm: Performance) -> Iterator[str]:
    """What a crash has changed: nothing may be, unless an effect is in doubt or the run was given up."""
    if doubtful(disturbed.record) or doubtful(calm.record) or disturbed.broke or _given_up(disturbed.steps):
        return
    if differs := difference(disturbed.steps, calm.steps):
        yield f"after {len(disturbed.deaths)} crashes the journal differs from the undisturbed one: {differs}"


def _given_up(steps: Sequence[Step]) -> bool:
    return any(isinstance(step.event, Resumed) and step.state != step.source for step in steps)
