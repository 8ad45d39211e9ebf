"""An experiment is carried out: recordings are read, every rule judges each of them, and the figures are made."""

from __future__ import annotations

import csv
import hashlib
import os
import platform
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from haru_fsm._version import __version__
from haru_fsm.errors import SettingsError
from haru_fsm.guards.guard import atoms
from haru_fsm.lab.cassettes import from_cassette
from haru_fsm.lab.classics import CLASSICS
from haru_fsm.lab.held import Held
from haru_fsm.lab.judging import Guards, Kind, Rule, Table, guarded
from haru_fsm.lab.lines import Read, from_json_lines
from haru_fsm.lab.outcomes import Case, Outcome, Tally
from haru_fsm.lab.picture import CLASSIC
from haru_fsm.lab.plan import Plan, Setting, Source
from haru_fsm.lab.recordings import from_steps
from haru_fsm.lab.single import guards_named
from haru_fsm.limits import Limits
from haru_fsm.machine import Workflow
from haru_fsm.setting_errors import instead
from haru_fsm.stores import Store


def rules(plan: Plan, workflow: Callable[[Limits], Workflow]) -> list[tuple[str, str, Rule]]:
    """Every rule with its name and its family. `workflow` makes the app's table under some limits.

    Raises SettingsError for guards that are not there, and for rules that could not be told apart.
    """
    settings = [(one.name, one.family, _table(one, workflow)) for one in plan.all_settings()]
    alone = [
        (guard.name, one.family, Guards([(guard, Kind.STOP)]))
        for one in plan.guards
        for guard in guards_named(one.guard, one.arguments, one.sweep)
    ]
    classics = [(name, CLASSIC, rule) for name, rule in CLASSICS.items()] if plan.classics else []
    named: list[tuple[str, str, Rule]] = [*settings, *alone, *classics]
    twice = [name for name, times in Counter(name for name, _, _ in named).items() if times > 1]
    if twice:
        raise SettingsError(f"Two rules are called {twice[0]!r}, and could not be told apart.")
    return named


def _table(setting: Setting, workflow: Callable[[Limits], Workflow]) -> Table:
    """Raises SettingsError where `without` leaves out what is not there: it would seem to contribute nothing."""
    made = workflow(setting.for_recordings())
    asked = {type(atom).__name__ for row in guarded(made) for atom in atoms(row.when)}
    for name in setting.without:
        if name not in asked:
            raise SettingsError(
                f"The setting {setting.name!r} leaves out {name!r}, and no row that is asked about calls has such a "
                f"guard. {instead(name, sorted(asked))}"
            )
    return Table(made, setting.without)


async def cases(plan: Plan, open_store: Callable[[str], Store], read: Read = lambda _: None) -> AsyncIterator[Case]:
    """The recordings of the plan's sources, in its half, one at a time. Raises SettingsError where there is none.

    `read` is told how many bytes of their files have been read since the last time.
    """
    _require(plan.sources)
    drawn, none = plan.draws(), True
    for source in plan.sources:
        async for case in _of(source, open_store, read):
            if next(drawn):
                none = False
                yield case
    if none:
        raise SettingsError(
            f"This experiment has no recordings: its sources hold none{_in_half(plan)}. Give it [[sources]] with a "
            "file of them, or with a database in which conversations are."
        )


def bytes_of(plan: Plan) -> int:
    """How many bytes there are to read, as far as that is known: those of files of recordings."""
    return sum(source.file.stat().st_size for source in plan.sources if source.file and source.file.is_file())


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


async def _of(source: Source, open_store: Callable[[str], Store], read: Read) -> AsyncIterator[Case]:
    if source.file is not None:
        for case in _from_lines(source, source.file, read):
            yield case
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


def _from_lines(source: Source, file: Path, read: Read) -> Iterator[Case]:
    """Raises SettingsError where `detection_only` is about no line of the file: the figures would not be what they
    are taken for."""
    only, some = source.detection_only, False
    for recording in from_json_lines(file, source.success, read):
        fits = bool(only) and all(recording.facts.get(name) == value for name, value in only.items())
        some = some or fits
        yield Case(recording, counts=not fits)
    if only and not some:
        raise SettingsError(f"No recording of {file} has what its detection_only names: {only}.")


class Judged:
    """Every rule on the same recordings, so that they can be compared in pairs; a recording is judged and forgotten."""

    def __init__(self, named: Iterable[tuple[str, str, Rule]]) -> None:
        self._rules = [(Tally(name, family), rule) for name, family, rule in named]
        self.held = Held()

    def add(self, case: Case) -> None:
        """One more recording."""
        self.held.add(case)
        for tally, rule in self._rules:
            tally.add(case, rule.judge(case.recording))

    def outcomes(self) -> list[Outcome]:
        """What came of it, rule by rule."""
        return [tally.outcome() for tally, _ in self._rules]


def had_from(plan: Plan) -> dict[str, object]:
    """What it takes to have the same figures again: the plan, with the digests of its files, and our version."""
    told = plan.model_dump(mode="json", exclude_defaults=True)
    files = [source.file or source.cassette for source in plan.sources]
    digests = [{"file": str(file), "sha256": _digest(file)} for file in files if file is not None]
    version = {"haru_fsm": __version__, "python": platform.python_version()}
    return {**version, "name": plan.name, "half": plan.half, "seed": plan.seed, "plan": told, "files": digests}


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def rows_of(outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    """A row for each rule: the shares with counts and intervals, and the pairs against the first rule."""
    rows: list[dict[str, object]] = []
    for one in outcomes:
        mine, theirs, p = one.against(outcomes[0])
        pairs = {"destroyed_only_here": mine, "destroyed_only_by_first": theirs, "mcnemar_p": round(p, 6)}
        rows.append({**one.row(), **pairs})
    return rows


def write_rows(rows: Sequence[Mapping[str, object]], path: Path) -> None:
    """A CSV file with these rows, named in its first line."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
