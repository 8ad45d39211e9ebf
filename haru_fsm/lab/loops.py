"""What a true loop is, told from a recording alone, by nothing that a guard uses.

A loop is a run in which one reply with calls came three times or more and brought the same each time, or in which a
cycle of two to four replies that brought the same went round twice and began a third time. Both are known in
hindsight only: a guard must say it at the third turn, before it has seen what that one brings.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from haru_fsm.conversation import ToolsExecuted, ToolsRequested
from haru_fsm.lab.recordings import Recording, Turn

LONGEST_CYCLE = 4


@dataclass(frozen=True, slots=True)
class Loop:
    """A run that went in circles: the turn (from 0) at which the third round began, and how many turns it repeated."""

    run: int
    third: int
    last: int
    """The last turn that belongs to it."""


def true_loops(recording: Recording) -> tuple[Loop, ...]:
    """The loops of a recording, at most one for each run."""
    found = (_loop(number, [_print(turn) for turn in turns]) for number, turns in enumerate(recording.runs))
    return tuple(loop for loop in found if loop is not None)


def goes_on(recording: Recording, loop: Loop, nudged: int, more: int = 3) -> bool:
    """Whether a nudge at this turn was about the loop, and so many more turns only repeat it.

    The nudge is about the loop when its reply had come before; the loop is what lies between then and the nudge.
    """
    turns = [_print(turn) for turn in recording.runs[loop.run]]
    if turns[nudged] not in turns[:nudged] or len(turns) <= nudged + more:
        return False
    begun = nudged - 1 - turns[nudged - 1 :: -1].index(turns[nudged])
    return set(turns[nudged + 1 : nudged + 1 + more]) <= set(turns[begun : nudged + 1])


def _loop(run: int, turns: Sequence[str]) -> Loop | None:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, turn in enumerate(turns):
        places[turn].append(place)
    thirds = [(found[2], found[-1]) for found in places.values() if len(found) >= 3]
    thirds += [found for length in range(2, LONGEST_CYCLE + 1) if (found := _cycle(turns, length)) is not None]
    third, last = min(thirds, default=(0, 0))
    return Loop(run, third, last) if third else None


def _cycle(turns: Sequence[str], length: int) -> tuple[int, int] | None:
    for begin in range(len(turns) - 2 * length):
        round_ = turns[begin : begin + length]
        again = turns[begin + length : begin + 2 * length]
        if round_ == again and len(set(round_)) > 1 and turns[begin + 2 * length] == round_[0]:
            return begin + 2 * length, begin + 2 * length
    return None


def _print(turn: Turn) -> str:
    """A reply and what it brought, as one text; key order makes no difference."""
    assert isinstance(turn.asked.event, ToolsRequested)
    calls = [[call.name, call.args] for call in turn.asked.event.calls]
    brought = [r.response for step in turn.brought if isinstance(step.event, ToolsExecuted) for r in step.event.results]
    return json.dumps([calls, brought], sort_keys=True)
