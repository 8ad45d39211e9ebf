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

if TYPE_CHECKING:
    from haru_fsm.app import App
    from haru_fsm.lab.live import LiveRun
    from haru_fsm.lab.outcomes import Case, Outcome
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

    A grid of limits of the app's own table and the classic rules judge the same recordings: what they save, which
    successes they stop, which true loops they end. Writes a table, a CSV and a plot.
    """
    from haru_fsm.lab.picture import require_plots
    from haru_fsm.lab.plan import read_plan

    plan, given = read_plan(file), Given(app)
    if plan.sources and not no_plot:
        require_plots()
    folder = out if out is not None else file.parent
    outcomes, lived = run(_carried_out(plan, given))
    written = _write(plan, outcomes, lived, folder / file.stem, plot=not no_plot)
    if as_json:
        say_json({"rules": [one.row() for one in outcomes], "live": [_cells(one) for one in lived]})
    else:
        _show(plan, outcomes, lived)
    for path in written:
        tell(f"wrote {path}")
    return exits.OK


async def _carried_out(plan: Plan, given: Given) -> tuple[list[Outcome], list[LiveRun]]:
    from haru_fsm.lab.experiment import cases
    from haru_fsm.lab.live import live_runs

    outcomes: list[Outcome] = []
    if plan.sources:
        found = await cases(plan, lambda url: _opened(given, url))
        outcomes = _judged(plan, given, found)
    elif plan.live is None:
        raise SettingsError("This experiment has nothing to do: no recordings ([[sources]]), and no [live] runs.")
    lived: list[LiveRun] = []
    if plan.live is not None:
        runs = live_runs(plan.live, plan.all_settings(), lambda setting: _app(given, setting))
        lived = [one async for one in runs]
    return outcomes, lived


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


def _judged(plan: Plan, given: Given, found: Sequence[Case]) -> list[Outcome]:
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    from haru_fsm.lab.experiment import judged, rules

    named = rules(plan, _workflows(given))
    steps = sum(case.recording.turns for case in found)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,} steps"))
    with bars(*columns, TimeRemainingColumn()) as progress:
        bar = progress.add_task(f"{len(named)} rules, {len(found):,} conversations", total=steps * len(named))
        return list(judged(named, found, lambda more: progress.update(bar, advance=more)))


def _workflows(given: Given) -> Callable[[Limits], Any]:
    from haru_fsm.app import load_app

    return lambda limits: load_app(given.folder, limits=limits).workflow


def _app(given: Given, setting: Setting) -> App:
    from haru_fsm.app import load_app
    from haru_fsm.limits import Limits

    return load_app(given.folder, limits=Limits(**setting.limits))


def _write(plan: Plan, outcomes: Sequence[Outcome], lived: Sequence[LiveRun], stem: Path, *, plot: bool) -> list[Path]:
    from haru_fsm.lab.experiment import write_csv, write_rows
    from haru_fsm.lab.picture import draw

    written = []
    stem.parent.mkdir(parents=True, exist_ok=True)
    if outcomes:
        write_csv(outcomes, path := stem.with_suffix(".csv"))
        written.append(path)
    if outcomes and plot:
        draw(outcomes, path := stem.with_suffix(".png"), plan.name)
        written.append(path)
    if lived:
        write_rows([_cells(one) for one in lived], path := stem.with_name(f"{stem.name}-live.csv"))
        written.append(path)
    return written


def _cells(one: LiveRun) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(one)


# --------------------------------------------------------------------------- for people


def _show(plan: Plan, outcomes: Sequence[Outcome], lived: Sequence[LiveRun]) -> None:
    if outcomes:
        say(f"{plan.name}: {plan.half} of the recordings. What comes after a nudge is a bound (≤), not a fact.")
        show(_rules(outcomes))
    if lived:
        show(_lived(lived))


def _rules(outcomes: Sequence[Outcome]) -> Any:
    from haru_fsm.cli.timeline import row, table

    columns = (
        "successes stopped",
        "nudged",
        "failures stopped",
        "loops on time",
        "ended",
        "steps ≤",
        "tokens ≤",
        "pairs",
    )
    made = table("rule", *columns, right=columns)
    for one in outcomes:
        mine, theirs, p = one.against(outcomes[0])
        figures = (one.failures_stopped, one.loops_on_time, one.loops_ended, one.steps_saved, one.tokens_saved)
        pairs = f"+{mine} -{theirs} (p={p:.2g})" if one is not outcomes[0] else ""
        cells = (f"{figure.share:.1%}" for figure in figures)
        row(made, one.name, one.successes_stopped, one.successes_nudged.count, *cells, pairs)
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
