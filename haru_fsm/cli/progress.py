"""A progress bar on standard error, where somebody watches; in a pipe or a file nothing is drawn, not even a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


def bars(*columns: str | ProgressColumn, hidden: bool = False) -> Progress:
    """A progress display with these columns, gone when it is done; a context manager."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal)


@contextmanager
def counting(what: str, *, hidden: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A progress bar that is told how many are done, of how many."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with bars(*columns, hidden=hidden) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)
