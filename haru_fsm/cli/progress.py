"""A progress bar on standard error, where somebody watches; in a pipe or a file nothing is drawn, not even a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


def bars(*columns: str | ProgressColumn) -> Progress:
    """A progress display with these columns, gone when it is done; a context manager."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
