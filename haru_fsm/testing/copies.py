"""A copy of an app to attack: its tools may act as they like, and what the app remembers is not touched.

A copy is marked by a file. Before each play, what a marked app remembers is forgotten, so that one play does not
change what the next one finds.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from haru_fsm.app import App, load_app
from haru_fsm.limits import Limits

MARK = ".haru-copy"
COPIED = ("states", "tools", "data", "haru.toml")
MEMORY = "memory_store"


def copy_app(folder: Path | str, into: Path | str) -> Path:
    """Copy the parts of an app that the engine reads into a new folder `into`. Returns that folder."""
    source, target = Path(folder), Path(into)
    (target / MEMORY).mkdir(parents=True)
    for name in COPIED:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (source / name).is_file():
            shutil.copy(source / name, target / name)
    (target / MARK).touch()
    return target


def load_copy(folder: Path | str, into: Path | str, *, limits: Limits | None = None) -> App:
    """The app in a copy of this folder. Raises as `load_app`."""
    return load_app(copy_app(folder, into), limits=limits)


def clean(folder: Path | None) -> None:
    """Forget what a copied app remembers; an app that is no copy is left alone."""
    if folder is None or not (folder / MARK).is_file():
        return
    for item in (folder / MEMORY).iterdir():
        shutil.rmtree(item) if item.is_dir() else item.unlink()
