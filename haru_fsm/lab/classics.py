"""The rules that people use against loops, as baselines. Each stops at once; none of them nudges.

They see a turn after it was made, what it brought included, and know nothing of polling. Sources: agent frameworks
count the same call in a row (three or five of them), OpenHands' stuck detector looks for four identical pairs of action
and observation, three identical actions that fail and six alternating ones, and loops of reasoning are found by word
sets (Jaccard above 0.85 with one of the last three thoughts).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from haru_fsm.conversation import ResultStatus, ToolResult, ToolsExecuted, ToolsRequested
from haru_fsm.guards.trail import Exchange, observations
from haru_fsm.lab.judging import Judgement, Kind, Mark
from haru_fsm.lab.recordings import Recording, Turn
from haru_fsm.meaning import alike

Stuck = Callable[[Sequence[Exchange]], bool]
"""Whether a run is stuck, given its turns so far."""

LIKE = 0.85
THOUGHTS = 3


@dataclass(frozen=True)
class Classic:
    """A rule that looks at the turns of a run so far and stops it."""

    stuck: Stuck

    def judge(self, recording: Recording) -> Judgement:
        """The first turn of each run at which it is stuck."""
        marks = []
        for number, turns in enumerate(recording.runs):
            seen = [_exchange(turn) for turn in turns]
            stop = next((place for place in range(len(seen)) if self.stuck(seen[: place + 1])), None)
            if stop is not None:
                marks.append(Mark(number, stop, Kind.STOP))
        return Judgement(tuple(marks))


def same_in_a_row(seen: Sequence[Exchange], times: int) -> bool:
    """The same call so many times in a row, whatever it brought."""
    tail = seen[-times:]
    return len(tail) == times and len({exchange.asked.meant for exchange in tail}) == 1


def openhands(seen: Sequence[Exchange]) -> bool:
    """Four identical pairs in a row, three identical calls that fail, or six pairs that alternate."""
    failed = all(r.status is ResultStatus.FAILED for exchange in seen[-3:] for r in exchange.results)
    return (
        (same_in_a_row(seen, 4) and _same_pairs(seen[-4:]))
        or (same_in_a_row(seen, 3) and failed)
        or (len(seen) >= 6 and _same_pairs(seen[-6::2]) and _same_pairs(seen[-5::2]))
    )


def similar_thoughts(seen: Sequence[Exchange]) -> bool:
    """The words of the thought are more than 85 % those of one of the last three."""
    now = frozenset(seen[-1].asked.text.casefold().split())
    before = (frozenset(exchange.asked.text.casefold().split()) for exchange in seen[-1 - THOUGHTS : -1])
    return bool(now) and any(words and alike(now, words) > LIKE for words in before)


CLASSICS: Mapping[str, Classic] = {
    "3 same calls in a row": Classic(partial(same_in_a_row, times=3)),
    "5 same calls in a row": Classic(partial(same_in_a_row, times=5)),
    "4 pairs, 3 errors, 6 alternating": Classic(openhands),
    "thoughts alike (Jaccard > 0.85)": Classic(similar_thoughts),
}
"""The baselines, by the name they have in tables and plots."""


def _same_pairs(pairs: Sequence[Exchange]) -> bool:
    first = pairs[0]
    return all(pair.asked.meant == first.asked.meant and pair.brought_the_same(first) for pair in pairs[1:])


def _exchange(turn: Turn) -> Exchange:
    assert isinstance(turn.asked.event, ToolsRequested)
    results: tuple[ToolResult, ...] = ()
    for step in turn.brought:
        if isinstance(step.event, ToolsExecuted):
            results = step.event.results
    return Exchange(turn.asked.event, results, observations(results))
