"""`haru new`: the starter app, written out for somebody to change."""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from haru_fsm.cli import exits, options
from haru_fsm.cli.output import say, say_json
from haru_fsm.cli.wiring import Given
from haru_fsm.errors import SettingsError
from haru_fsm.foreign import in_words

PARTS = ("states", "tools", "data")
WRITTEN = {
    "haru.toml": "haru.toml",
    "README.md": "README.md",
    "gitignore": ".gitignore",
    "memory_gitignore": "memory_store/.gitignore",
}
"""Our templates, and where they go in an app."""

Target = Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write; it is made, or is empty.")]


def new(target: Target, as_json: options.AsJson = False) -> int:
    """Write the starter app into a folder.

    A workflow, tools, data and settings that are yours to change. A folder that holds anything is refused, and
    nothing is written.
    """
    write_app(target)
    if as_json:
        say_json({"folder": str(target.resolve()), "files": sorted(_files(target))})
    else:
        say(f"A Haru app is in {target}: states/, tools/, data/, memory_store/, haru.toml, README.md.")
        app = Given(app=target)
        say(f"Try it: {app.command('check')} && {app.command('chat', '--customer', 'C003')}")
    return exits.OK


def write_app(target: Path) -> None:
    """The starter app, in this folder. Raises SettingsError for a folder that cannot take it."""
    from haru_fsm.app import starter

    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise SettingsError(f"{target} is there already, and is not empty. Give a new folder; nothing was written.")
    try:
        for part in PARTS:
            shutil.copytree(starter() / part, target / part, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        for template, place in WRITTEN.items():
            (target / place).parent.mkdir(parents=True, exist_ok=True)
            (target / place).write_text(_template(template), "utf-8")
    except OSError as error:
        raise SettingsError(
            f"{target} cannot be written: {in_words(error)}. Give a folder that you may write to."
        ) from error


def _template(name: str) -> str:
    return files("haru_fsm.cli").joinpath("templates", name).read_text("utf-8")


def _files(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
