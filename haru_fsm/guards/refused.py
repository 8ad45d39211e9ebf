"""What stands where a guard belongs and is none: said when the table is made, not in the middle of a run."""

from __future__ import annotations

from typing import Any

from haru_fsm.guards.guard import Guard


def why_no_guard(given: Any) -> str | None:
    """Why this cannot judge, and what to write instead; None for a guard that promises what a guard may promise."""
    if isinstance(given, type):
        return f"{given.__name__} is a class and no guard. Write {given.__name__}(...)."
    if not isinstance(given, Guard):
        return f"{given!r:.80} is no guard. Write one of haru_fsm.guards, or a subclass of Guard."
    limit, states = given.limit, given.counts
    if limit is not None and type(limit) is not int:
        return f"{given.name} cannot be counted: its limit is {limit!r}, and has to be a whole number."
    if not isinstance(states, frozenset):
        named = [states] if isinstance(states, str) else sorted(states)
        return f"{given.name} counts visits of {states!r}. Write frozenset({{{', '.join(map(repr, named))}}})."
    return None
