"""From what the command line said to settings, app, store and engine. The one place where commands get them.

Everything heavy is imported when it is needed: `haru --help` needs none of it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from haru_fsm.cli import exits
from haru_fsm.cli.output import complain, keep_results_apart, tell
from haru_fsm.errors import AppError, SettingsError

if TYPE_CHECKING:
    from haru_fsm.app import App
    from haru_fsm.engine import Engine
    from haru_fsm.settings import Settings
    from haru_fsm.stores import Record, Store

T = TypeVar("T")
NAME = "haru"
FROM_STANDARD_INPUT = "-"
KEPT = "Interrupted; nothing that was done is lost. Carry it on with: "
FORGOTTEN = "nothing of this is kept: the database is memory:"


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line said about where and with what to work; None where it said nothing."""

    app: Path | None = None
    db: str | None = None
    model: str | None = None
    max_steps: int | None = None

    @property
    def folder(self) -> Path:
        """The app's folder. Raises AppError for one that does not exist."""
        from haru_fsm.app import find_app

        if self.app is not None and not self.app.is_dir():
            raise AppError(
                f"There is no folder {self.app}. Give an app's folder with --app, or write one: haru new DIR."
            )
        return find_app(self.app).resolve()

    def settings(self) -> Settings:
        """The settings, with what the command line said on top. Raises SettingsError.

        Every command that comes to an app's own code comes by here, so what that logs has its form from here on, and
        what it prints is no result.
        """
        from haru_fsm.cli.logs import prepare_logs
        from haru_fsm.settings import ENV, Settings

        prepare_logs()
        keep_results_apart()
        _warn_of_misspelt(tuple(name for name in os.environ if name.upper().startswith("HARU_")))
        limits = {"max_steps": self.max_steps} if self.max_steps is not None else None
        settings = Settings.for_folder(self.folder, model=self.model, database_url=self.db, limits=limits)
        _warn_of_misspelt(Settings.named_in_env(self.folder), ENV)
        return settings

    def load(self) -> App:
        """The app. Raises AppError and WorkflowError."""
        from haru_fsm.app import load_app

        return load_app(self.folder, limits=self.settings().limits)

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[Engine]:
        """An engine on the app, its model and its store."""
        from haru_fsm.engine import Engine

        app, settings = self.load(), self.settings()
        model = settings.make_model(app)
        async with Engine(app, model=model, store=settings.make_store(app.folder)) as engine:
            yield engine

    @asynccontextmanager
    async def store(self, *, quiet: bool = False) -> AsyncIterator[Store]:
        """The store, to look into it. Looking needs no sound app, and makes no database where there is none; that is
        said, unless `quiet`."""
        from haru_fsm.stores.memory import MemoryStore
        from haru_fsm.stores.sqlite import SQLiteStore

        # make_store asks nothing of an app but its folder.
        store: Store = self.settings().make_store(self.folder)
        if isinstance(store, SQLiteStore) and not store.path.exists():
            if not quiet:
                tell(f"haru: there is no database {store.path} yet; `haru ask` makes it.")
            store = MemoryStore()
        try:
            yield store
        finally:
            await store.aclose()

    def command(self, *words: str) -> str:
        """What to type to run another command on the same app and database."""
        where = [*(["--app", str(self.app)] if self.app else []), *(["--db", self.db] if self.db else [])]
        return shlex.join([typed(), *words, *where])

    @property
    def forgets(self) -> bool:
        """Whether all that is done is gone with this process: no other command can look at it."""
        return (self.settings().database_url or "").partition(":")[0] == "memory"

    def where_to_look(self, conversation_id: str) -> str:
        """How to look at a conversation afterwards."""
        return FORGOTTEN if self.forgets else f"look inside: {self.command('show', conversation_id)}"

    def interrupted(self, *again: str) -> Callable[[], str]:
        """Gives what to say to somebody who stops a command that `again` carries on."""
        return lambda: f"Interrupted; {FORGOTTEN}" if self.forgets else f"{KEPT}{self.command(*again)}"


def typed() -> str:
    """What to type for `haru`: its name, or its path where the shell finds no such command, or another one."""
    started = Path(sys.argv[0])
    if started.name != NAME or not started.is_file():
        return NAME  # `python -m haru_fsm`, or no command line at all
    found = shutil.which(NAME)
    return NAME if found is not None and started.samefile(found) else str(started)


@cache
def _warn_of_misspelt(names: tuple[str, ...], file: str = "") -> None:
    """Tell, once, of variables that are meant for us and that nobody reads."""
    from haru_fsm.setting_errors import misspelt
    from haru_fsm.settings import Settings

    for warning in misspelt(names, Settings.model_fields, file):
        complain(f"warning: {warning}")


async def known(store: Store, conversation_id: str) -> Record:
    """A conversation that must be there. Raises UnknownConversation."""
    from haru_fsm import stores

    return await stores.known(store, conversation_id)


def run(work: Coroutine[Any, Any, T], interrupted: Callable[[], str] = lambda: "Interrupted.") -> T:
    """Run a command's work to its end; Ctrl-C and SIGTERM end it with a line that says how to go on."""
    from haru_fsm.cli.stopping import ToldToStop, until_told_to_stop

    try:
        import asyncio

        from haru_fsm.cli.logs import prepare_logs

        prepare_logs()
        return asyncio.run(until_told_to_stop(work))
    except (KeyboardInterrupt, ToldToStop) as stopped:
        work.close()  # it may not even have begun
        tell()
        complain(interrupted())
        told = isinstance(stopped, ToldToStop)
        raise typer.Exit(exits.TERMINATED if told else exits.INTERRUPTED) from None


def text_of(argument: str) -> str:
    """The argument, or all of standard input where it is `-`. Raises SettingsError for what is no UTF-8 text."""
    if argument != FROM_STANDARD_INPUT:
        return argument
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"Standard input is not in UTF-8 (byte {error.start + 1:,}). Convert it, and send it again."
        ) from error
