"""Loop detectors: is the model still getting anywhere? They promise nothing, for an adversary varies for ever.

Observations decide, arguments never alone: a call that brings something new is progress, however often it was made.
A refusal is no observation. A reply trips only when every call in it repeats.

*Measured* is what a guard does alone, on 819 recorded runs that succeeded and 5,440 true loops: docs/guards.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from haru_fsm.conversation import Event, ResultStatus, ToolsRequested, Trip
from haru_fsm.guards.trail import REPLIES, Exchange, OfTrail, Trail, nearly_the_same

EMPTY = frozenset({"", "[]", "{}", "()", "None", "null", "0"})
"""Values that say that nothing was found, as text."""
LONG = 64
"""Characters of a result from which on it is not by chance that another call has brought the same."""


@dataclass(frozen=True)
class RepeatedCall(OfTrail):
    """The same call for the `times`-th time, having brought the same observation each time before.

    Catches the stubborn loop and any cycle of calls. Misses loops whose arguments or results vary. A tool marked as
    polling is never held against the model. A model that has heeded a nudge has `grace` more.

    Measured: with 3 it trips in 9 successes and in 99.9 % of the loops by their third turn; with 2 in 21 and in all.
    """

    times: int
    grace: int = field(default=0, kw_only=True)

    @property
    def spared_idle(self) -> bool:
        return self.times > 1

    def judge(self, memo: Trail, event: Event) -> Trip | None:
        assert isinstance(event, ToolsRequested)
        limit = self.times + self.grace if memo.signs.heeded else self.times
        if memo.most + 1 < limit:  # no call whatever has come so often
            return None
        figure = 1 + memo.repeats(event.meant)
        if figure < limit:
            return None
        return self.trip(
            figure,
            f"the same call ({event.calls[0].name}) was requested {figure} times and has brought the same "
            "observation each time",
            self.times,
        )


@dataclass(frozen=True)
class RepeatedEffect(OfTrail):
    """The same effect once more, after the model was told that it is done and what came of it.

    Catches a model that insists on an effect, which the ledger answers instead of running it. Misses the same effect
    in other words, for the ledger runs it; the first answer of the ledger is the nudge.

    Measured: the recordings have no ledger. Held by properties on generated runs alone.
    """

    @property
    def spared_idle(self) -> bool:
        return True

    def judge(self, memo: Trail, event: Event) -> Trip | None:
        told = memo.signs.told
        if not told or not isinstance(event, ToolsRequested) or not told.issuperset(event.meant):
            return None
        because = f"the same effect ({event.calls[0].name}) was requested again after the model was told it is done"
        return self.trip(1, because)


@dataclass(frozen=True)
class CallCycle(OfTrail):
    """The reply closes the `rounds`-th round of a cycle of two to `longest` replies, which brought the same each time.

    Catches A-B-A-B one turn before its third round would begin, where RepeatedCall(3) speaks. Misses cycles with a
    result that changes (they get somewhere) and those longer than `longest`. Refused replies count as part of it.

    Measured: it trips in 1 success and in 9 % of the loops by their third turn (most repeat one single reply).
    """

    rounds: int = 2
    longest: int = 4

    def __post_init__(self) -> None:
        if self.rounds < 2:
            raise ValueError(f"{self.name}: a cycle shows in its second round.")
        if self.rounds * self.longest > REPLIES:
            raise ValueError(f"{self.name}: only the last {REPLIES} replies are remembered.")

    @property
    def spared_idle(self) -> bool:
        return True

    def judge(self, memo: Trail, event: Event) -> Trip | None:
        if not isinstance(event, ToolsRequested) or not memo.repeats(event.meant):
            return None
        length = next((n for n in range(2, self.longest + 1) if self._goes_round(memo.exchanges, event, n)), None)
        if length is None:
            return None
        because = f"the same {length} replies were made {self.rounds} times in turn and have brought the same each time"
        return self.trip(self.rounds, because, self.rounds)

    def _goes_round(self, exchanges: Sequence[Exchange], event: ToolsRequested, length: int) -> bool:
        needed = self.rounds * length - 1
        tail = exchanges[len(exchanges) - needed :] if len(exchanges) >= needed else ()
        if not tail or tail[length - 1].asked.meant != event.meant:
            return False
        pairs = zip(tail, tail[length:], strict=False)
        again = all(one.asked.meant == two.asked.meant and one.brought_the_same(two) for one, two in pairs)
        return again and len({exchange.asked.meant for exchange in tail[:length]}) > 1


@dataclass(frozen=True)
class NoProgress(OfTrail):
    """The last observations are one and the same: `times` for nearly the same calls, or `errors` as the same error.

    Catches arguments that vary without any use (`limit: 100`, 101, 102) and a tool that fails in the same way whatever
    it is given. Misses the same observation for calls that really differ, for an empty result may well be the answer
    to many questions; and the same short answer, for several orders may all be on their way. After a refusal errors
    are counted anew: the model must be able to try what it was told to.

    Measured: (3, 5) trips in 5 successes and in 18 % of the loops by their third turn, 74 % in the end.
    """

    times: int
    errors: int

    @property
    def spared_idle(self) -> bool:
        return min(self.times, self.errors) > 1

    def judge(self, memo: Trail, event: Event) -> Trip | None:
        if memo.signs.unchanged < min(self.times, self.errors) or not isinstance(event, ToolsRequested):
            return None
        seen = [exchange for exchange in memo.exchanges if exchange.results]
        figure = self._nearly(seen, event)
        if figure >= self.times:
            return self.trip(figure, f"nearly the same calls have brought the same {figure} times", self.times)
        figure = self._errors(memo.exchanges, event)
        if figure >= self.errors:
            return self.trip(figure, f"the last {figure} replies brought the same error", self.errors)
        return None

    @staticmethod
    def _nearly(seen: Sequence[Exchange], event: ToolsRequested) -> int:
        """The latest replies in a row that asked for nearly what this one asks for, and brought the same."""
        return _count(
            exchange.brought_the_same(seen[-1]) and _tells_nothing(exchange) and nearly_the_same(exchange.asked, event)
            for exchange in reversed(seen)
        )

    @staticmethod
    def _errors(exchanges: Sequence[Exchange], event: ToolsRequested) -> int:
        """The latest replies in a row that called what this one calls, and brought the same error."""
        last = exchanges[-1]
        return _count(
            _fails(exchange) and exchange.brought_the_same(last) and _tools(exchange.asked) == _tools(event)
            for exchange in reversed(exchanges)
        )


def _count(holds: Iterable[bool]) -> int:
    """How many there are before the first that does not hold."""
    return sum(1 for _ in takewhile(bool, holds))


def _fails(exchange: Exchange) -> bool:
    return bool(exchange.results) and all(result.status is ResultStatus.FAILED for result in exchange.results)


def _tells_nothing(exchange: Exchange) -> bool:
    """Whether these results, come again, are nothing new: errors, nothing, or so much that it cannot be chance."""
    return all(
        not result.polling and (result.status is ResultStatus.FAILED or _empty_or_long(result.response.get("result")))
        for result in exchange.results
    )


def _empty_or_long(value: object) -> bool:
    return _is_empty(value) or len(str(value).strip()) >= LONG


def _is_empty(value: object) -> bool:
    """Nothing was found, however it is wrapped: [], {"orders": []}, {"items": [], "total": 0}."""
    if isinstance(value, dict):
        return all(map(_is_empty, value.values()))
    return all(map(_is_empty, value)) if isinstance(value, list) else str(value).strip() in EMPTY


def _tools(asked: ToolsRequested) -> frozenset[str]:
    return frozenset(call.name for call in asked.calls)


@dataclass(frozen=True)
class FailingCalls(OfTrail):
    """The last `times` replies brought nothing but failed calls: bad arguments, unknown tools, errors.

    Catches the model that gets nothing right, whatever it varies. Misses failures between successes. After a refusal
    it counts anew. Successful runs fail up to eleven times in a row, so let it nudge, not stop.

    Measured: with 5 it trips in 2 successes and in 29 % of the loops by their third turn, 78 % in the end; with 3 in 4.
    """

    times: int

    @property
    def spared_idle(self) -> bool:
        return self.times > 1

    def judge(self, memo: Trail, event: Event) -> Trip | None:
        if memo.signs.failed < self.times:
            return None
        because = f"{memo.signs.failed} replies in a row brought only failed calls"
        return self.trip(memo.signs.failed, because, self.times)


@dataclass(frozen=True)
class UnusableCalls(OfTrail):
    """The last `times` replies held only calls that could not be run: unknown tools, arguments that do not fit.

    Catches the model that never gets its arguments right. Misses failures of the tools themselves. Each such call was
    told what is allowed, and a refusal after that counts as one more.

    Measured: the recordings do not tell such calls from failures of tools. Held by field cases and properties.
    """

    times: int

    @property
    def spared_idle(self) -> bool:
        return self.times > 1

    def judge(self, memo: Trail, event: Event) -> Trip | None:
        if memo.signs.unusable < self.times:
            return None
        because = f"{memo.signs.unusable} replies in a row held only calls with invalid arguments or of unknown tools"
        return self.trip(memo.signs.unusable, because, self.times)


@dataclass(frozen=True)
class NudgedInVain(OfTrail):
    """The model was told that it goes in circles, and `times` replies have tried and brought nothing new since.

    Ask it with a loop guard. A reply tries something new with a call that was neither run nor refused before, and is
    not nearly one of these. A model that has once done so when it was told to is told `grace` times more than others.
    Catches the model that does not listen. Misses one that tries something new now and then: a budget must end it.

    Measured: in the default table it stops 3 successes, and each loop that goes on for three turns after its nudge.
    """

    times: int
    grace: int = field(default=1, kw_only=True)

    @property
    def spared_idle(self) -> bool:
        return self.times > 0

    def judge(self, memo: Trail, event: Event) -> Trip | None:
        limit = self.times + self.grace if memo.signs.heeded else self.times
        if memo.signs.vain < limit:
            return None
        because = f"the model was told that it goes in circles, and {memo.signs.vain} replies have tried nothing new"
        return self.trip(memo.signs.vain, because, limit)
