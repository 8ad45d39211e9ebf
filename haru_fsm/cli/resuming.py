"""`haru resume`: what a process left unfinished is carried on; what is left to others is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from haru_fsm.cli import exits, options
from haru_fsm.cli.asking import narrated, place, show_run
from haru_fsm.cli.output import complain, counted, now, say, say_json, tell
from haru_fsm.cli.wiring import Given, known, run
from haru_fsm.errors import HaruError, SettingsError

if TYPE_CHECKING:
    from haru_fsm.conversation import Step
    from haru_fsm.runs import Piece, Run
    from haru_fsm.stores import Summary

All = Annotated[bool, typer.Option("--all", help="Every unfinished run that no living process works on.")]


def resume(
    conversation_id: options.MaybeConversationId = None,
    every: All = False,
    model: options.ModelSpec = None,
    max_steps: options.MaxSteps = None,
    app: options.AppFolder = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> int:
    """Carry on what a process left unfinished.

    One conversation, or all of them. A conversation at rest is shown as it is. Runs that another living process
    works on are left to it. With --json standard output is the run, or with --all the list of runs.
    """
    given = Given(app, db, model, max_steps)
    if (conversation_id is None) is not every:
        raise SettingsError("Say which run to carry on: haru resume ID, or haru resume --all.")
    if conversation_id is None:
        ended, left = run(_resume_all(given), given.interrupted("resume", "--all"))
        code = _show_all(ended, as_json)
        _tell_left(left, given)
        return code
    again = given.interrupted("resume", conversation_id)
    return show_run(run(_resume(given, conversation_id, as_json), again), given, as_json)


async def _resume(given: Given, conversation_id: str, as_json: bool) -> Run:
    async with given.engine() as engine:
        record = await known(engine.store, conversation_id)
        with narrated(tell if as_json else say, record.steps) as watch:
            return await engine.resume(conversation_id, watch=watch)


async def _resume_all(given: Given) -> tuple[list[Run | HaruError], Sequence[Summary]]:
    """What has become of each, and what is unfinished now."""
    from haru_fsm.cli.progress import counting

    async with given.engine() as engine:
        waiting = await engine.store.conversations(unfinished=True)
        with counting("carrying runs on") as progress:
            ended = await engine.resume_all(watch=_Rested(progress, sum(not one.paused for one in waiting)))
        return ended, await engine.store.conversations(unfinished=True)


@dataclass(slots=True)
class _Rested:
    """Counts the runs that have come to rest."""

    progress: Callable[[int, int], None]
    of: int
    done: int = 0

    def __call__(self, item: Step | Piece) -> None:
        from haru_fsm.runs import Piece

        if not isinstance(item, Piece) and item.rests:
            self.done += 1
            self.progress(self.done, max(self.done, self.of))


def _show_all(ended: list[Run | HaruError], as_json: bool) -> int:
    runs = [one for one in ended if not isinstance(one, HaruError)]
    failures = [one for one in ended if isinstance(one, HaruError)]
    if as_json:
        say_json([one.model_dump(mode="json") for one in runs])
    else:
        for one in runs:
            say(place(one))
        say(f"{len(runs)} carried on, {len(failures)} failed." if ended else "Nothing was left to carry on.")
    for failure in failures:
        complain(str(failure))
    return max([exits.OK, *map(exits.of_run, runs), *(exits.FAILED for _ in failures)])


def _tell_left(left: Sequence[Summary], given: Given) -> None:
    """What resuming has left alone, so that nobody who sees it in a list wonders."""
    from haru_fsm import leases

    paused = sum(one.paused for one in left)
    held = sum(not one.paused and not leases.is_void(one.owner, one.lease_until, now()) for one in left)
    reasons = [
        *([f"{counted(paused, 'run')} for a person's approval"] if paused else []),
        *([f"{counted(held, 'run')} for a worker that is alive, or has been heard of a moment ago"] if held else []),
    ]
    if reasons:
        tell(f"waiting: {', '.join(reasons)}. See: {given.command('list', '--unfinished')}")
