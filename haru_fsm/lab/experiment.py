"""An experiment is carried out: recordings are read, every rule judges each of them, and the figures are made."""

from __future__ import annotations

import csv
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from haru_fsm.errors import SettingsError
from haru_fsm.lab.cassettes import from_cassette
from haru_fsm.lab.classics import CLASSICS
from haru_fsm.lab.judging import Rule, Table
from haru_fsm.lab.outcomes import Case, Outcome, outcome
from haru_fsm.lab.picture import CLASSIC
from haru_fsm.lab.plan import Plan, Source
from haru_fsm.lab.recordings import Recording, from_json_lines, from_steps
from haru_fsm.limits import Limits
from haru_fsm.machine import Workflow
from haru_fsm.stores import Store

Told = Callable[[int], None]
"""How many steps have been judged since the last time, for a progress bar."""


def rules(plan: Plan, workflow: Callable[[Limits], Workflow]) -> list[tuple[str, str, Rule]]:
    """Every rule with its name and its family. `workflow` makes the app's table under some limits."""
    settings = [
        (one.name, one.family, Table(workflow(one.for_recordings()), one.without)) for one in plan.all_settings()
    ]
    classics = [(name, CLASSIC, rule) for name, rule in CLASSICS.items()] if plan.classics else []
    return [*settings, *classics]


async def cases(plan: Plan, open_store: Callable[[str], Store]) -> list[Case]:
    """All recordings of the plan's sources, in its half. Raises SettingsError where there is none."""
    _require(plan.sources)
    found = [case for source in plan.sources async for case in _of(source, open_store)]
    kept = {id(one) for one in plan.chosen([case.recording for case in found])}
    found = [case for case in found if id(case.recording) in kept]
    if not found:
        raise SettingsError(
            f"This experiment has no recordings: its sources hold none{_in_half(plan)}. Give it [[sources]] with a "
            "file of them, or with a database in which conversations are."
        )
    return found


def _require(sources: Sequence[Source]) -> None:
    """Raises SettingsError that names every file of recordings that is not there."""
    files = [path for source in sources if (path := source.file or source.cassette) is not None]
    missing = [str(Path(os.path.normpath(path))) for path in files if not path.is_file()]
    if missing:
        raise SettingsError(
            f"The experiment's recordings are not there: {', '.join(missing)}. Put them there, or let its [[sources]] "
            'name others: file = "...", cassette = "...", or database = "sqlite:///FILE" with conversations of yours.'
        )


def _in_half(plan: Plan) -> str:
    return "" if plan.half == "all" else f' in the half "{plan.half}"'


async def _of(source: Source, open_store: Callable[[str], Store]) -> AsyncIterator[Case]:
    if source.file is not None:
        for recording in from_json_lines(source.file):
            yield Case(recording, counts=not _only_detection(source, recording))
        return
    if source.cassette is not None:
        for recording in from_cassette(source.cassette):
            yield Case(recording)
        return
    store = open_store(source.database or "")
    try:
        for summary in await store.conversations():
            record = await store.load(summary.conversation_id)
            if record is not None:
                yield Case(from_steps(record.steps))
    finally:
        await store.aclose()


def _only_detection(source: Source, recording: Recording) -> bool:
    labels = source.detection_only.items()
    return bool(labels) and all(recording.facts.get(name) == value for name, value in labels)


def judged(
    named: Iterable[tuple[str, str, Rule]], found: Sequence[Case], told: Told = lambda _: None
) -> Iterator[Outcome]:
    """The outcome of each rule. The same recordings for all of them, so that they can be compared in pairs."""
    for name, family, rule in named:
        judgements = []
        for case in found:
            judgements.append(rule.judge(case.recording))
            told(case.recording.turns)
        yield outcome(name, family, found, judgements)


def write_csv(outcomes: Sequence[Outcome], path: Path) -> None:
    """One row for each rule; the shares with their counts and Wilson intervals, the pairs against the first rule."""
    rows = []
    for one in outcomes:
        mine, theirs, p = one.against(outcomes[0])
        pairs = {"destroyed_only_here": mine, "destroyed_only_by_first": theirs, "mcnemar_p": round(p, 6)}
        rows.append({**one.row(), **pairs})
    write_rows(rows, path)


def write_rows(rows: Sequence[Mapping[str, object]], path: Path) -> None:
    """A CSV file with these rows, named in its first line."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
