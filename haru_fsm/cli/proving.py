"""`haru prove`: the app is attacked, at random, exhaustively or by killing it; what breaks is told and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haru_fsm.cli import exits, options
from haru_fsm.cli.output import complain, counted, say, say_json, tell
from haru_fsm.cli.progress import bars, counting
from haru_fsm.cli.wiring import Given
from haru_fsm.errors import SettingsError

if TYPE_CHECKING:
    from haru_fsm.testing.exhaustive import Explored
    from haru_fsm.testing.hunting import Coverage, Found

FINDINGS = Path("haru-findings")
QUESTION = "제 주문 어디쯤 왔나요?"
NO_EFFECT = (
    "No tool that acts was called, so nothing was proved of effects. "
    "Ask for something that is done: haru prove --kills TEXT --customer ID"
)
PLAYS = 40
"""Plays of one round; each round has a seed of its own."""


def prove(
    question: Annotated[str, typer.Argument(metavar="TEXT", help="What the customer asks, with --kills.")] = QUESTION,
    customer: Annotated[
        str | None, typer.Option("--customer", metavar="ID", help="Who asks, with --kills. Default: the app's example.")
    ] = None,
    kills: Annotated[bool, typer.Option("--kills", help="Kill the process at every point that matters.")] = False,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Every conversation over a small alphabet, up to --depth.")
    ] = False,
    depth: Annotated[int, typer.Option("--depth", min=1, metavar="N", help="Choices per conversation.")] = 8,
    minutes: Annotated[float, typer.Option("--minutes", min=0.01, metavar="N", help="How long, at random.")] = 1.0,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Where the random plays begin.")] = 1,
    replay: Annotated[Path | None, typer.Option("--replay", metavar="FILE", help="A finding, once more.")] = None,
    findings: Annotated[Path, typer.Option("--findings", metavar="DIR", help="Where findings are kept.")] = FINDINGS,
    max_steps: options.MaxSteps = None,
    app: options.AppFolder = None,
    as_json: options.AsJson = False,
) -> int:
    """Attack the app, and say which of its promises hold.

    By default at random, for some minutes: models that loop, lie, flood and fall silent, tools that fail, hang and
    flood, processes that die. With --exhaustive: every order of a few replies and outcomes, through the table alone.
    With --kills: real processes and SIGKILL, after each durable write, before and after each effect, and again during
    recovery. Works on a copy of the app and on databases of its own. Exit code 1 when a promise is broken, with the
    shortest failing case, which is kept in a file.
    """
    given = Given(app, max_steps=max_steps)
    if kills + exhaustive + (replay is not None) > 1:
        raise SettingsError("--kills, --exhaustive and --replay are proofs of their own: ask for one of them.")
    if question != QUESTION and not kills:
        raise SettingsError(f"{question!r} would be asked with --kills only; without it models make up what is said.")
    if kills:
        return _kills(given, question, customer, as_json)
    if exhaustive:
        return _exhaustive(given, depth, findings, as_json)
    if replay is not None:
        return _replay(given, replay, as_json)
    return _at_random(given, minutes, seed, findings, as_json)


# --------------------------------------------------------------------------- at random


def _at_random(given: Given, minutes: float, seed: int, findings: Path, as_json: bool) -> int:
    _require_hypothesis()
    from haru_fsm.testing.hunting import Coverage
    from haru_fsm.testing.rounds import attack

    coverage = Coverage()
    with _copy(given) as (folder, databases), _bar("attacking") as bar:
        found = attack(
            folder,
            databases,
            limits=given.settings().limits,
            minutes=minutes,
            seed=seed,
            plays=PLAYS,
            coverage=coverage,
            on_play=lambda share: _moved(bar, share, f"{coverage.plays} conversations"),
        )
    return _told(given, found, coverage, seed, findings, as_json)


def _told(given: Given, found: Found | None, coverage: Coverage, seed: int, findings: Path, as_json: bool) -> int:
    from haru_fsm.testing.telling import tell as told

    file = found.keep(findings) if found is not None else None
    if as_json:
        say_json({"seed": seed, **coverage.as_json(), "broken": _as_json(found, file)})
    else:
        for line in coverage.lines():
            say(line)
        if found is None:
            say("Every promise held.")
        else:
            say(f"\n{told(found)}")
    if found is None:
        return exits.OK
    again = given.command("prove", "--replay", str(file))
    complain(f"{found.promise}: {found.because}. Kept in {file}; once more: {again}")
    return exits.FAILED


def _as_json(found: Found | None, file: Path | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"promise": found.promise, "because": found.because, "file": str(file) if file else None}


def _replay(given: Given, file: Path, as_json: bool) -> int:
    _require_hypothesis()
    from haru_fsm.testing.assertions import replayed
    from haru_fsm.testing.telling import tell as told

    with _copy(given) as (folder, databases):
        found = replayed(folder, file, store=databases)
    if as_json:
        say_json({"broken": _as_json(found, file)})
    else:
        say("It holds now." if found is None else told(found))
    return exits.OK if found is None else exits.FAILED


# --------------------------------------------------------------------------- exhaustively


def _exhaustive(given: Given, depth: int, findings: Path, as_json: bool) -> int:
    from haru_fsm.clock import SystemClock
    from haru_fsm.testing.alphabet import alphabet
    from haru_fsm.testing.customers import one_customer
    from haru_fsm.testing.exhaustive import Explorer, as_play
    from haru_fsm.testing.plays import Finding

    loaded, clock = given.load(), SystemClock()
    customer = one_customer(loaded)
    names = [tool.name for tool in loaded.toolbox(loaded.session(customer)).tools]
    began = clock.monotonic()
    with _bar("going through every conversation") as bar:
        explored = Explorer(
            loaded,
            depth=depth,
            events=alphabet(names),
            on_tick=lambda share, transitions: _moved(bar, share, f"{transitions:,} transitions"),
        ).explore()
    took = clock.monotonic() - began
    file = None
    if explored.broken:
        play = as_play(explored.shown_by, customer)
        file = Finding(promise="every conversation", because=explored.broken, play=play).save(findings)
    if as_json:
        say_json({**explored.as_json(), "seconds": round(took, 3), "file": str(file) if file else None})
    else:
        _show_explored(explored, [str(row) for row in loaded.workflow.rows], took)
    if explored.broken:
        complain(f"{explored.broken}. Kept in {file}; once more: {given.command('prove', '--replay', str(file))}")
        return exits.FAILED
    if not explored.conversations:
        complain(f"Nothing was proved: no conversation gets anywhere. {_unseen(explored)}")
        return exits.FAILED
    return exits.OK


def _unseen(explored: Explored) -> str:
    """What the alphabet cannot say, and where it can be taught to."""
    kinds = ", ".join(sorted(explored.unknown))
    return (
        f"There is no {kinds} to choose: no value is known for a field without a default. Give it one, or the events "
        "themselves, in Python: Explorer(app, depth=8, events={**alphabet([...]), YourEvent: [YourEvent(...)]})."
    )


def _show_explored(explored: Explored, rows: list[str], took: float) -> None:
    rate = explored.transitions / took if took else 0.0
    say(
        f"Every conversation of up to {explored.depth} choices: {explored.transitions:,} transitions "
        f"({rate:,.0f} a second), {explored.conversations:,} conversations, {explored.cut_off:,} of them cut off there."
    )
    say("chosen from: " + ", ".join(f"{count} {kind}" for kind, count in explored.alphabet.items()))
    say("endings: " + (", ".join(f"{count:,} {kind}" for kind, count in explored.endings.most_common()) or "none"))
    say(f"rows of the table that fired: {len(explored.rows)} of {explored.rows_in_all}; not covered:")
    for number, row in enumerate(rows):
        if number not in explored.rows:
            say(f"  {row}")
    if explored.unknown:
        say(f"not covered either: what comes after {', '.join(sorted(explored.unknown))}. {_unseen(explored)}")
    if explored.broken:
        say(f"\nbroken: {explored.broken}; the conversation that shows it:")
        for step in explored.shown_by:
            say(f"  {step.seq:>3}  {step.event.kind:<22} -> {step.state}")
    elif explored.conversations:
        say("Every promise held." if not explored.unknown else "Every promise held, as far as it was seen.")


# --------------------------------------------------------------------------- by killing


def _kills(given: Given, question: str, customer: str | None, as_json: bool) -> int:
    from haru_fsm.testing.customers import one_customer
    from haru_fsm.testing.kills import PROPERTIES, Scenario, prove_kills

    loaded = given.load()
    asking = loaded.session(customer or one_customer(loaded)).customer_id
    limits = loaded.limits.model_dump(exclude_defaults=True)
    scenario = Scenario(given.folder, asking, (question,), limits=tuple(limits.items()))
    with counting("killing and resuming") as progress:
        verdicts = list(prove_kills(scenario, progress=progress))
    failed = [verdict for verdict in verdicts if verdict.broken]
    points = {point for verdict in verdicts for point in verdict.points}
    writes, effects = (len({each.number for each in points if each.place == place}) for place in ("write", "effect"))
    if as_json:
        say_json(
            {
                "cases": len(verdicts),
                "writes": writes,
                "effects": effects,
                "broken": [{"case": each.name, **each.broken} for each in failed],
            }
        )
    else:
        say(f"killed after {counted(writes, 'write')}, and before and after {counted(effects, 'effect')}")
        for name in PROPERTIES:
            held = sum(name not in verdict.broken for verdict in verdicts)
            say(f"{name}: {held} of {len(verdicts)} cases")
    if not effects:
        tell(NO_EFFECT)
    if failed:
        complain(f"shortest failing case: killed {failed[0].name}: {next(iter(failed[0].broken.values()))}")
    return exits.FAILED if failed else exits.OK


# --------------------------------------------------------------------------- what they share


def _require_hypothesis() -> None:
    from importlib.util import find_spec

    if find_spec("hypothesis") is None:
        raise SettingsError("Random plays need hypothesis: pip install 'haru-fsm[testing]'. --kills does without.")


@contextmanager
def _copy(given: Given) -> Iterator[tuple[Path, Path]]:
    """A copy of the app, and a folder for databases; both are gone afterwards."""
    from haru_fsm.testing.copies import copy_app

    with TemporaryDirectory(prefix="haru-prove-") as folder:
        databases = Path(folder) / "databases"
        databases.mkdir()
        yield copy_app(given.folder, Path(folder) / "app"), databases


@contextmanager
def _bar(what: str) -> Iterator[Callable[[float, str], None]]:
    """A progress bar on standard error, told the share that is done and a word about it."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[word]}"), TimeElapsedColumn())
    with bars(*columns) as bar:
        task = bar.add_task(what, total=1.0, word="")
        yield lambda share, word: bar.update(task, completed=share, word=word)


def _moved(bar: Callable[[float, str], None], share: float, word: str) -> None:
    bar(min(1.0, share), word)
