"""`haru experiment`: guards compared on recorded conversations, and on live runs of the app."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haru_fsm.cli import exits, options
from haru_fsm.cli.output import say, say_json, show, tell
from haru_fsm.cli.progress import bars
from haru_fsm.cli.wiring import Given, run
from haru_fsm.errors import SettingsError
from haru_fsm.foreign import in_words

if TYPE_CHECKING:
    from haru_fsm.app import App
    from haru_fsm.lab.experiment import Judged
    from haru_fsm.lab.live import LiveRun
    from haru_fsm.lab.outcomes import Outcome
    from haru_fsm.lab.plan import Plan, Setting
    from haru_fsm.limits import Limits
    from haru_fsm.stores import Store

File = Annotated[Path, typer.Argument(metavar="FILE", help="The experiment: a TOML file.")]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Where CSV and PNG go. Default: beside the file.")
]
NoPlot = Annotated[bool, typer.Option("--no-plot", help="No PNG: matplotlib is not needed then.")]


def experiment(
    file: File,
    out: Out = None,
    no_plot: NoPlot = False,
    app: options.AppFolder = None,
    as_json: options.AsJson = False,
) -> int:
    """Compare guards on recorded conversations, at no model cost, and on live runs of the app.

    A grid of limits of the app's own table, guards of your own and the classic rules judge the same recordings: what
    they save, which successes they stop, which true loops they end. Writes a table, a CSV and a plot. With --json also
    what the figures can be had from again: version, seed, files and their digests. docs/guards.md shows a whole file.
    """
    from haru_fsm.lab.picture import require_plots
    from haru_fsm.lab.plan import read_plan

    plan, given = read_plan(file), Given(app)
    if plan.sources and not no_plot:
        require_plots()
    folder = out if out is not None else file.parent
    _make(folder)
    judged, lived = run(_carried_out(plan, given))
    written = _write(plan, judged, lived, folder / file.stem, plot=not no_plot)
    if as_json:
        say_json(_as_json(plan, judged, lived))
    else:
        _show(plan, judged, lived)
    for path in written:
        tell(f"wrote {path}")
    return exits.OK


def _make(folder: Path) -> None:
    """The folder of the results, before any work is done. Raises SettingsError where it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"The results cannot be written to {folder}: {in_words(error)}.") from error


async def _carried_out(plan: Plan, given: Given) -> tuple[Judged | None, list[LiveRun]]:
    from haru_fsm.lab.live import live_runs

    if not plan.sources and plan.live is None:
        raise SettingsError("This experiment has nothing to do: no recordings ([[sources]]), and no [live] runs.")
    judged = await _judged(plan, given) if plan.sources else None
    lived: list[LiveRun] = []
    if plan.live is not None:
        runs = live_runs(plan.live, plan.all_settings(), lambda setting: _app(given, setting))
        lived = [one async for one in runs]
    return judged, lived


def _opened(given: Given, url: str) -> Store:
    """A database of recordings. Raises SettingsError where there is none: looking makes none."""
    from haru_fsm.stores.sqlite import SQLiteStore

    store: Store = Given(given.app, url).settings().make_store(given.folder)
    if isinstance(store, SQLiteStore) and not store.path.exists():
        raise SettingsError(
            f"The experiment's database {store.path} is not there. Name one that holds conversations of yours, in its "
            "[[sources]]: `haru ask` makes them, and without --db they are in the app's memory_store/haru.db."
        )
    return store


async def _judged(plan: Plan, given: Given) -> Judged:
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    from haru_fsm.lab.experiment import Judged, bytes_of, cases, rules

    named = rules(plan, _workflows(given))
    judged = Judged(named)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[word]}"))
    with bars(*columns, TimeRemainingColumn()) as progress:
        bar = progress.add_task(f"{len(named)} rules", total=bytes_of(plan) or None, word="")
        found = cases(plan, lambda url: _opened(given, url), lambda more: progress.advance(bar, more))
        async for case in found:
            judged.add(case)
            held = judged.held
            progress.update(bar, word=f"{held.conversations:,} conversations, {held.replies_with_calls:,} steps")
    return judged


def _workflows(given: Given) -> Callable[[Limits], Any]:
    from haru_fsm.app import load_app

    return lambda limits: load_app(given.folder, limits=limits).workflow


def _app(given: Given, setting: Setting) -> App:
    from haru_fsm.app import load_app
    from haru_fsm.limits import Limits

    return load_app(given.folder, limits=Limits(**setting.limits))


def _write(plan: Plan, judged: Judged | None, lived: Sequence[LiveRun], stem: Path, *, plot: bool) -> list[Path]:
    from haru_fsm.lab.experiment import rows_of, write_rows
    from haru_fsm.lab.picture import draw

    written = []
    if judged is not None:
        write_rows(rows_of(judged.outcomes()), path := stem.with_name(f"{stem.name}.csv"))
        written.append(path)
    if judged is not None and plot and not judged.held.successes:
        tell("no picture: it shows successes stopped, and no recording is known to have succeeded")
    elif judged is not None and plot:
        draw(judged.outcomes(), path := stem.with_name(f"{stem.name}.png"), plan.name)
        written.append(path)
    if lived:
        write_rows([_cells(one) for one in lived], path := stem.with_name(f"{stem.name}-live.csv"))
        written.append(path)
    return written


def _as_json(plan: Plan, judged: Judged | None, lived: Sequence[LiveRun]) -> dict[str, Any]:
    from dataclasses import asdict

    from haru_fsm.lab.experiment import had_from, rows_of

    return {
        "experiment": had_from(plan),
        "recordings": asdict(judged.held) if judged is not None else None,
        "rules": rows_of(judged.outcomes()) if judged is not None else [],
        "live": [_cells(one) for one in lived],
    }


def _cells(one: LiveRun) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(one)


# --------------------------------------------------------------------------- for people


def _show(plan: Plan, judged: Judged | None, lived: Sequence[LiveRun]) -> None:
    if judged is not None:
        say(f"{plan.name}: {plan.half} of the recordings. What comes after a nudge is a bound (≤), not a fact.")
        for line in judged.held.lines():
            say(line)
        show(_rules(judged.outcomes()))
    if lived:
        show(_lived(lived))


def _rules(outcomes: Sequence[Outcome]) -> Any:
    from haru_fsm.cli.timeline import row, table

    columns = (
        "successes stopped",
        "nudged",
        "failures stopped",
        "loops on time",
        "stopped",
        "after",
        "ended",
        "steps ≤",
        "tokens ≤",
        "pairs",
    )
    made = table("rule", *columns, right=columns)
    for one in outcomes:
        mine, theirs, p = one.against(outcomes[0])
        pairs = f"+{mine} -{theirs} (p={p:.2g})" if one is not outcomes[0] else ""
        after = "–" if one.loops_stopped_after is None else f"{one.loops_stopped_after:+g}"
        loops = (one.loops_on_time.briefly, one.loops_stopped.briefly, after, one.loops_ended.briefly)
        saved = (one.steps_saved.briefly, one.tokens_saved.briefly)
        row(
            made,
            one.name,
            one.successes_stopped,
            one.successes_nudged.count,
            one.failures_stopped.briefly,
            *loops,
            *saved,
            pairs,
        )
    return made


def _lived(lived: Sequence[LiveRun]) -> Any:
    from haru_fsm.cli.timeline import row, table

    columns = ("setting", "model", "fault", "runs", "answers", "steps", "tool runs", "tokens", "stopped by")
    made = table(*columns, right=columns[3:8], prose=("stopped by",))
    for key in dict.fromkeys((one.setting, one.model, one.fault) for one in lived):
        runs = [one for one in lived if (one.setting, one.model, one.fault) == key]
        guards = ", ".join(dict.fromkeys(one.ending for one in runs if one.ending != "answer"))
        sums = (sum(one.steps for one in runs), sum(one.tool_runs for one in runs), sum(one.tokens for one in runs))
        row(made, *key, len(runs), sum(one.ending == "answer" for one in runs), *sums, guards)
    return made
