"""Law 4 judged: an effect starts at most once per call, and what nobody knows is told as just that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from haru_fsm.conversation import ModelAnswered, ModelEvent, ResultStatus, Step, ToolsExecuted, ToolsRequested, executed
from haru_fsm.stores import LedgerEntry, Record
from haru_fsm.testing.driving import Performance


def effects(seen: Performance) -> Iterator[str]:
    ledger = seen.record.ledger if seen.record is not None else {}
    yield from _starts(seen, ledger)
    yield from _repeated(ledger)
    yield from _told_as_they_are(seen.steps, ledger)
    yield from _doubts_end_in_tickets(seen.steps)


def _starts(seen: Performance, ledger: Mapping[str, LedgerEntry]) -> Iterator[str]:
    """Each start of a tool's code has a claim of its own in the ledger, made before."""
    effects = [each for each in seen.happened if each.effect]
    for name in dict.fromkeys(each.name for each in effects):
        mine = [each for each in effects if each.name == name]
        claims = [entry for entry in ledger.values() if entry.started is not None and entry.started.name == name]
        # A keyed call may run again under the same key; it is the same effect.
        keyed = all(entry.started is not None and entry.started.keyed for entry in claims)
        starts = len({each.arguments for each in mine}) if keyed and claims else len(mine)
        if starts > len(claims) * (1 + seen.retries.get(name, 0)):
            yield f"{name} was started {starts} times for {len(claims)} calls: {mine[-1].arguments}"
        done = sum(entry.outcome is not None and entry.outcome.status is ResultStatus.DONE for entry in claims)
        returned = sum(each.ended == "returned" for each in mine)
        if done > returned:
            yield f"{name} is down as done {done} times, and came back {returned} times"
        settled = sum(entry.outcome is not None for entry in claims)
        known = sum(each.ended in ("returned", "refused") for each in mine)
        if settled > known and not seen.retries.get(name, 0):
            yield f"{name} has {settled} known outcomes, and {known} calls came back to say so; the rest is in doubt"


def _repeated(ledger: Mapping[str, LedgerEntry]) -> Iterator[str]:
    """The same declared effect takes place once in a run, unless it certainly did not."""
    same: Counter[tuple[int, str, str]] = Counter()
    for entry in ledger.values():
        started, outcome = entry.started, entry.outcome
        if started is None or not started.declared or (outcome and outcome.status is ResultStatus.NOT_DONE):
            continue
        same[started.run, started.name, started.digest] += 1
    for (run, name, _), times in same.items():
        if times > 1:
            yield f"run {run} did the same {name} {times} times"


def _told_as_they_are(steps: tuple[Step, ...], ledger: Mapping[str, LedgerEntry]) -> Iterator[str]:
    """What the journal says of an effect is what the ledger knows, and nothing else."""
    for call, asked, result in executed(steps):
        entry = ledger.get(call)
        if not result.effect:
            continue
        if result.ran and result.status is not ResultStatus.IN_DOUBT and (entry is None or entry.started is None):
            yield f"{asked.name} ({call}) ran, and the ledger has no claim of it"
        if entry is None or entry.outcome is None:
            if result.ran and result.status is not ResultStatus.IN_DOUBT:
                yield f"{asked.name} ({call}) is told as {result.status}, and nobody knows how it ended"
        elif result.noted and (result.status, result.response) != (entry.outcome.status, entry.outcome.response):
            yield f"{asked.name} ({call}) is told otherwise than the ledger knows it"


def _doubts_end_in_tickets(steps: tuple[Step, ...]) -> Iterator[str]:
    doubts: dict[str, int] = {}
    requested = 0
    for step in steps:
        if isinstance(step.event, ModelEvent):
            doubts = {call: run for call, run in doubts.items() if call not in step.event.settled}
        if isinstance(step.event, ToolsRequested):
            requested = step.seq
        if isinstance(step.event, ToolsExecuted):
            for result in step.event.results:
                if result.status is ResultStatus.IN_DOUBT:
                    doubts[f"{requested}.{result.position}"] = step.run
        if step.rests and isinstance(step.event, ModelAnswered) and step.run in doubts.values():
            yield f"run {step.run} ended in an answer, and it is not known how call {next(iter(doubts))} ended"


def doubtful(record: Record | None) -> bool:
    """Whether the ledger has a call of which nobody knows how it ended."""
    return record is not None and any(entry.started and not entry.outcome for entry in record.ledger.values())
