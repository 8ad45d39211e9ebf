"""Loop detectors: is the model still getting anywhere? They promise nothing, for an adversary varies for ever.

Observations decide, arguments never alone: a call that brings something new is progress, however often it was made.
A refusal is no observation. A reply trips only when every call in it repeats.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from haru_fsm.conversation import (
    Event,
    ObservationAppended,
    ResultStatus,
    Step,
    ToolCall,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
    Trip,
)
from haru_fsm.guards.guard import Guard

WINDOW = 64
"""Distinct calls that a detector remembers. Bounds its cost per step; no run that is allowed to end is longer."""


def canonical_call(call: ToolCall) -> str:
    """A call as its meaning: key order, 3 against 3.0 and blanks around or inside strings make no difference."""
    return f"{call.name.rpartition('.')[2]}({_canonical(call.args)})"


def _canonical(value: Any) -> str:
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    match value:
        case bool():
            return value
        case float() if value.is_integer():
            return int(value)
        case str():
            return " ".join(value.split()) if value.isascii() else " ".join(unicodedata.normalize("NFC", value).split())
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
    return value


def observation(result: ToolResult) -> int:
    """What the model learned from a result, as a number to compare; notes are ours and no part of it."""
    return hash(json.dumps({k: v for k, v in result.response.items() if k != "note"}, sort_keys=True))


@dataclass(frozen=True, slots=True)
class _Seen:
    """Calls waiting for their results, and for each known call its last observation and how often in a row."""

    pending: tuple[str, ...] = ()
    known: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class RepeatedCall(Guard):
    """The same call for the `times`-th time, having brought the same observation each time before.

    Catches the stubborn loop and any cycle of calls. Misses loops whose arguments or results vary. A tool marked as
    polling is never held against the model.
    """

    times: int

    judges = (ToolsRequested,)

    @property
    def limit(self) -> int | None:
        return None

    def initial(self) -> _Seen:
        return _Seen()

    def fold(self, memo: _Seen, step: Step) -> _Seen:
        match step.event:
            case ToolsRequested(calls=calls):
                return _Seen(tuple(canonical_call(call) for call in calls), memo.known)
            case ToolsExecuted(results=results):
                return _Seen((), self._learn(memo, results))
        return memo

    @staticmethod
    def _learn(memo: _Seen, results: tuple[ToolResult, ...]) -> Mapping[str, tuple[int, int]]:
        known = dict(memo.known)
        for result in results:
            if result.position >= len(memo.pending):
                continue
            call = memo.pending[result.position]
            before, times = known.pop(call, (0, 0))
            if not result.polling:
                now = observation(result)
                known[call] = (now, times + 1 if times and before == now else 1)
        while len(known) > WINDOW:
            del known[next(iter(known))]
        return known

    def judge(self, memo: _Seen, event: Event) -> Trip | None:
        assert isinstance(event, ToolsRequested)
        if not event.calls:
            return None
        figure = 1 + min(memo.known.get(canonical_call(call), (0, 0))[1] for call in event.calls)
        if figure < self.times:
            return None
        return self.trip(
            figure,
            f"the same call ({event.calls[0].name}) was requested for the {figure}th time and has brought the same "
            "observation each time",
            self.times,
        )


@dataclass(frozen=True, slots=True)
class _Told:
    pending: tuple[str, ...] = ()
    told: frozenset[str] = frozenset()


@dataclass(frozen=True)
class RepeatedEffect(Guard):
    """The same effect once more, after the model was told that it is done and what came of it.

    Catches a model that insists on an effect, which the ledger answers instead of running it. Misses nothing that the
    ledger answers; the first such answer is the nudge.
    """

    judges = (ToolsRequested,)

    def initial(self) -> _Told:
        return _Told()

    def fold(self, memo: _Told, step: Step) -> _Told:
        match step.event:
            case ToolsRequested(calls=calls):
                return _Told(tuple(canonical_call(call) for call in calls), memo.told)
            case ToolsExecuted(results=results) if any(result.repeated for result in results):
                told = (memo.pending[result.position] for result in results if result.repeated)
                return _Told((), memo.told | frozenset(told))
        return memo

    def judge(self, memo: _Told, event: Event) -> Trip | None:
        if not memo.told or not isinstance(event, ToolsRequested):
            return None
        if not all(canonical_call(call) in memo.told for call in event.calls):
            return None
        because = f"the same effect ({event.calls[0].name}) was requested again after the model was told it is done"
        return self.trip(1, because)


@dataclass(frozen=True)
class FailingCalls(Guard):
    """The last `times` replies brought nothing but failed calls: bad arguments, unknown tools, errors, refusals.

    Catches the model that never gets its arguments right, whatever it varies. Misses failures between successes.
    A refusal counts only after a failure, because it then refuses more of the same.
    """

    times: int

    judges = (ToolsRequested,)

    @property
    def limit(self) -> int | None:
        return None

    def initial(self) -> int:
        return 0

    def fold(self, memo: int, step: Step) -> int:
        match step.event:
            case ToolsExecuted(results=results):
                failed = all(result.status is ResultStatus.FAILED for result in results)
                return memo + 1 if results and failed else 0
            case ObservationAppended(refusals=refusals) if refusals and memo:
                return memo + 1
        return memo

    def judge(self, memo: int, event: Event) -> Trip | None:
        if memo < self.times:
            return None
        because = f"{memo} replies in a row brought only failed calls (invalid arguments, unknown tools or errors)"
        return self.trip(memo, because, self.times)


@dataclass(frozen=True)
class SimilarThoughts(Guard):
    """What the model says beside its calls resembles one of its last `window` thoughts of this run.

    Similarity is the share of common words; in Korean, where endings change, also of common jamo trigrams. Source:
    the classic rule of word-set similarity above 0.85 with any of the last three thoughts. It is evidence, no proof:
    a careful model also repeats itself, so let it weigh only beside another guard.
    """

    threshold: float = 0.85
    window: int = 3

    judges = (ToolsRequested,)

    def initial(self) -> tuple[_Thought, ...]:
        return ()

    def fold(self, memo: tuple[_Thought, ...], step: Step) -> tuple[_Thought, ...]:
        if isinstance(step.event, ToolsRequested) and (text := step.event.text):
            return (*memo, thought(text))[-self.window :]
        return memo

    def judge(self, memo: tuple[_Thought, ...], event: Event) -> Trip | None:
        if not memo or not isinstance(event, ToolsRequested) or not (text := event.text):
            return None
        now = thought(text)
        figure = max(similarity(now, before) for before in memo)
        if figure <= self.threshold:
            return None
        return self.trip(figure, f"the thought resembles an earlier one by {figure:.0%}", self.threshold)


@dataclass(frozen=True, slots=True)
class _Thought:
    words: frozenset[str]
    jamo: frozenset[str]


def thought(text: str) -> _Thought:
    """A text as the sets that are compared: its words, and where it has Hangul its jamo trigrams."""
    letters = "".join(c if c.isalnum() else " " for c in unicodedata.normalize("NFC", text).casefold())
    words = letters.split()
    jamo = unicodedata.normalize("NFD", "".join(words)) if any("가" <= c <= "힣" for c in letters) else ""
    return _Thought(frozenset(words), frozenset(jamo[i : i + 3] for i in range(len(jamo) - 2)))


def similarity(one: _Thought, other: _Thought) -> float:
    """Between 0 and 1: the larger of the Jaccard similarities of words and of jamo trigrams."""
    return max(_jaccard(one.words, other.words), _jaccard(one.jamo, other.jamo))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0
