"""A figure, the target it is held against, and how both are shown."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

WIDTH_WITHOUT_TERMINAL = 140


@dataclass(frozen=True, slots=True)
class Target:
    """A bound: at most, or (`least`) at least, so much."""

    bound: float
    least: bool = False

    def met(self, value: float) -> bool:
        """Whether a value keeps to the bound."""
        return value >= self.bound if self.least else value <= self.bound

    def __str__(self) -> str:
        return f"{'>=' if self.least else '<='} {_number(self.bound)}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value with its unit. `raw` is raw sqlite3's value, measured in turns with it."""

    group: str
    name: str
    value: float
    unit: str
    raw: float | None = None
    target: Target | None = None

    @property
    def ratio(self) -> float | None:
        """The value as a multiple of raw's."""
        return self.value / self.raw if self.raw else None

    @property
    def met(self) -> bool | None:
        """Whether it meets its target; None where it has none."""
        return self.target.met(self.value) if self.target else None


def as_json(figures: Sequence[Figure], conditions: dict[str, Any]) -> dict[str, Any]:
    """Everything that was measured, for programs."""
    rows = [
        {
            **asdict(figure),
            "ratio": figure.ratio,
            "target": str(figure.target) if figure.target else None,
            "met": figure.met,
        }
        for figure in figures
    ]
    return {"machine": machine(), **conditions, "figures": rows}


def show(figures: Sequence[Figure], caption: str) -> None:
    """The table, to standard output."""
    width = None if os.isatty(1) else int(os.environ.get("COLUMNS") or WIDTH_WITHOUT_TERMINAL)
    Console(width=width).print(_table(figures, caption), highlight=False)


def machine() -> str:
    """What it was measured on."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{python}, SQLite {sqlite3.sqlite_version}, {os.cpu_count()} processors, {platform.system()}"


def _table(figures: Iterable[Figure], caption: str) -> Table:
    table = Table(caption=caption, caption_justify="left", title="haru_fsm beside raw sqlite3", title_justify="left")
    table.add_column("measured")
    for heading in ("haru_fsm", "raw", "ratio", "target"):
        table.add_column(heading, justify="right")
    table.add_column("met")
    group = ""
    for figure in figures:
        if figure.group != group:
            if group:
                table.add_section()
            group = figure.group
            table.add_row(f"[bold]{group}[/bold]")
        table.add_row(*_cells(figure))
    return table


def _cells(figure: Figure) -> tuple[str, ...]:
    verdict = {None: "", True: "[green]met[/green]", False: "[red]not met[/red]"}[figure.met]
    return (
        f"  {figure.name}",
        f"{_number(figure.value)} {figure.unit}".rstrip(),
        "" if figure.raw is None else _number(figure.raw),
        "" if figure.ratio is None else f"{figure.ratio:.2f}",
        str(figure.target or ""),
        verdict,
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"
