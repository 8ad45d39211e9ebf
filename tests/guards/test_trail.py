"""The trail of a run is what its journal says, read plainly: step by step, with nothing noted for speed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm.conversation import (
    JSON,
    Event,
    ObservationAppended,
    ResultStatus,
    Step,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
)
from haru_fsm.guards import RepeatedCall
from haru_fsm.guards.trail import Exchange, Signs, Trail, nearly_the_same
from haru_fsm.models.scripted import calls
from tests.guards.strategies import requests, results

replies = st.one_of(
    st.tuples(requests, st.lists(results, min_size=1, max_size=3)), st.tuples(requests, st.none()), st.just(None)
)
"""A reply with what its calls brought, or refused; or the one before once more, with the same."""


A_RESULT = ToolResult(position=0, status=ResultStatus.DONE, response={})


class Plain:
    """What is known of a run, as the docstrings of the trail say."""

    def __init__(self) -> None:
        self.tried: dict[Hashable, list[JSON | None]] = {}
        self.exchanges: list[tuple[ToolsRequested, list[JSON]]] = []
        self.signs = Signs()
        self.most = 0

    def times(self, call: Hashable) -> int:
        """How often in a row it has brought the same, polling (None) aside."""
        brought, count = self.tried.get(call, []), 0
        while count < len(brought) and brought[-1] is not None and brought[-1 - count] == brought[-1]:
            count += 1
        return count

    def ask(self, event: ToolsRequested) -> None:
        tried = all(call in self.tried for call in event.meant)
        near = any(nearly_the_same(event, asked) for asked, _ in self.exchanges[-12:])
        if self.signs.vain and not tried and not near:
            self.signs = self.signs._replace(vain=0, heeded=True)

    def learn(self, event: ToolsRequested, found: Sequence[ToolResult]) -> None:
        observed = [{key: value for key, value in each.response.items() if key != "note"} for each in found]
        same, told = True, set(self.signs.told)
        for each, seen in zip(found, observed, strict=True):
            if each.position < len(event.meant):
                call = event.meant[each.position]
                self.tried.setdefault(call, []).append(None if each.polling else seen)
                same &= self.times(call) > 1
                self.most = max(self.most, self.times(call))
                told |= {call} if each.repeated else set()
        latest = next((brought for _, brought in reversed(self.exchanges[-12:]) if brought), None)
        failed = all(each.status is ResultStatus.FAILED for each in found)
        unusable = failed and not any(each.ran for each in found)
        self.signs = Signs(
            unchanged=self.signs.unchanged + 1 if observed == latest else 1,
            told=frozenset(told),
            failed=self.signs.failed + 1 if failed else 0,
            unusable=self.signs.unusable + 1 if unusable else 0,
            vain=self.signs.vain + 1 if self.signs.vain and same else self.signs.vain,
            heeded=self.signs.heeded,
        )
        self.exchanges.append((event, observed))

    def refuse(self, event: ToolsRequested) -> None:
        for call in event.meant:
            self.tried.setdefault(call, [])
        again = bool(self.signs.unusable)
        self.signs = self.signs._replace(failed=0, unusable=self.signs.unusable + again, vain=self.signs.vain + 1)
        self.exchanges.append((event, []))


def folded(memo: Trail, event: Event) -> Trail:
    return RepeatedCall(3).fold(memo, Step(seq=1, run=1, event=event, source="A", state="B"))


@given(st.lists(replies, max_size=8))
@settings(max_examples=500, deadline=None)
def test_a_trail_is_its_journal_read_plainly(run: list[tuple[ToolsRequested, list[ToolResult] | None] | None]) -> None:
    trail, plain = Trail(), Plain()
    before: tuple[ToolsRequested, list[ToolResult] | None] | None = None
    for reply in run:
        before = asked, brought = reply or before or (ToolsRequested(content={"parts": []}), None)
        plain.ask(asked)
        trail = folded(trail, asked)
        assert trail.exchanges[-1].asked is asked
        if brought is None:
            plain.refuse(asked)
            trail = folded(trail, ObservationAppended(refusals={0: "no"}))
        else:
            plain.learn(asked, brought)
            trail = folded(folded(trail, ToolsExecuted(results=tuple(brought))), ObservationAppended())
        assert (trail.signs, trail.most) == (plain.signs, plain.most)
        assert {call: trail.repeats([call]) for call in plain.tried} == {
            call: plain.times(call) for call in plain.tried
        }
        for several in (asked.meant, *permutations(plain.tried, 2)):
            assert trail.repeats(several) == min(map(plain.times, several), default=0)


def test_a_refusal_contradicts_no_observation() -> None:
    refused, one, other = (
        Exchange(calls(("f", {})), (A_RESULT,) * len(seen), seen) for seen in ((), ({},), ({"a": 1},))
    )
    assert all(refused.brought_the_same(each) and each.brought_the_same(refused) for each in (refused, one, other))
    assert not one.brought_the_same(other)
