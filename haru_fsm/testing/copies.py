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
COPIED = ("states", "tools", "data")
MEMORY = "memory_store"


def copy_app(folder: Path | str, into: Path | str) -> Path:
    """Copy an app into a new folder `into`, without what it remembers. Returns that folder.

    Its own three folders are copied and so is every file beside them, for tools may write there. Other packages are
    code that they import, and are linked. What is hidden stays behind.
    """
    source, target = Path(folder), Path(into)
    (target / MEMORY).mkdir(parents=True)
    for item in source.iterdir():
        if item.name.startswith(".") or item.name == MEMORY:
            continue
        if item.name in COPIED:
            shutil.copytree(item, target / item.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif item.is_file():
            shutil.copy(item, target / item.name)
        elif (item / "__init__.py").is_file():
            (target / item.name).symlink_to(item.resolve(), target_is_directory=True)
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
