"""What goes to standard output, and what to standard error.

Standard output is for results. An app's own code may print, and so may a program that a tool starts: from where a
command comes to such code, that goes to standard error, or nobody could read the JSON of `--json`.

Nothing that a customer, a model or a tool wrote moves a terminal's cursor or turns around what stands beside it, and a
reader that has gone away (`haru show ID | head`) ends the reading, never the run.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDTH_WITHOUT_TERMINAL = 140
"""Columns of a table that goes to a file or a pipe; COLUMNS overrides it."""
LEAST_PROSE = 24
"""Columns that a text which may wrap gets, however narrow the terminal is."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""The last two ranges set the direction of a text by force, up to the end of its line: what comes after it on that
line, an amount or a name, would be read backwards. Arabic and Hebrew need none of them."""


def prepare_streams() -> None:
    """A character that the terminal's encoding lacks becomes `?`, and is no reason to fail.

    Nor is a stream that whoever began us has closed.
    """
    sys.stdout, sys.stderr = sys.stdout or _unread(), sys.stderr or _unread()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _unread() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")


def printable(text: str) -> str:
    """The text without control characters and turns of direction; line breaks and tabs stay."""
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n"))


class _Results:
    """Where results go: standard output, or what it was before it was taken from everybody else."""

    def __init__(self) -> None:
        self.apart: TextIO | None = None
        self.place = 1
        """The descriptor of standard output."""

    @property
    def stream(self) -> TextIO:
        return self.apart or sys.stdout


_results = _Results()


def results() -> TextIO:
    """The stream for results."""
    return _results.stream


def keep_results_apart() -> None:
    """From here on whatever else is written to standard output, by this process or one that it starts, goes to standard
    error. Does nothing where standard output is not this process's own, as in a test."""
    if _results.apart is None and _is_own(sys.stdout) and _is_own(sys.stderr):
        sys.stdout.flush()
        _results.place = sys.stdout.fileno()
        kept = os.dup(_results.place)
        os.dup2(sys.stderr.fileno(), _results.place)
        _results.apart = open(kept, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)  # noqa: SIM115


def give_results_back() -> None:
    """Standard output is everybody's again, whatever an app has put in its place or cannot be written any more."""
    apart, _results.apart = _results.apart, None
    if apart is not None:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(apart.fileno(), _results.place)
        with suppress(OSError):
            apart.close()


def _is_own(stream: TextIO) -> bool:
    try:
        return stream.fileno() in (1, 2)
    except (OSError, ValueError, AttributeError):  # replaced, closed, or none at all
        return False


def say(text: str = "") -> None:
    """A line of the result, to standard output."""
    _write(results(), printable(text))


def read_line(prompt: str) -> str:
    """A line of standard input. The prompt is on the terminal where results are, even if nothing else goes there.

    Raises EOFError at the end.
    """
    if results().isatty() and not sys.stdout.isatty():
        print(prompt, end="", file=results(), flush=True)
        prompt = ""
    return input(prompt)


def tell(text: str = "") -> None:
    """A line beside the result (progress, hints), to standard error."""
    _write(sys.stderr, printable(text))


def complain(message: str) -> None:
    """An error: one line on standard error."""
    tell("haru: " + " ".join(message.split()))


def say_json(value: Any) -> None:
    """The whole result as one JSON value. Where the encoding of standard output lacks a character of it all are
    escaped: what a program reads must not be full of `?`."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    try:
        text.encode(results().encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    _write(results(), text)


def write_line(line: str) -> bool:
    """A line for another program: in UTF-8 and as it is, whatever the terminal shows. False where nobody reads it."""
    try:
        results().buffer.write(f"{line}\n".encode())
        results().buffer.flush()
    except BrokenPipeError:
        _give_up(results())
        return False
    return True


def now() -> float:
    """The time, in seconds since the epoch, for what people are told."""
    return time.time()


def when(at: float) -> str:
    """A time for people, in their time zone; "?" for one that cannot be (a damaged database has shown one)."""
    if not isinstance(at, int | float) or not 0 <= at < 250_000_000_000:
        return "?"
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def counted(count: int, noun: str) -> str:
    """A number of things, in words: 1 conversation, 2 conversations."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def show(*tables: Table) -> None:
    """Tables, to standard output. What is no prose is never cut: rather a line is too long for the terminal."""
    console = _console()
    width = console.width
    with console.capture() as captured:
        for number, table in enumerate(tables):
            console.width = max(width, _least_width(table, console))
            console.print(*([""] if number else []), table)
    _write(results(), "\n".join(line.rstrip() for line in captured.get().splitlines()))


def _least_width(table: Table, console: Console) -> int:
    from rich.measure import Measurement

    wrapping = [column for column in table.columns if not column.no_wrap]
    for column in wrapping:
        column.max_width = LEAST_PROSE
    least = Measurement.get(console, console.options.update(width=10_000), table).maximum
    for column in wrapping:
        column.max_width = None
    return least


def _console() -> Console:
    from rich.console import Console

    wanted = os.environ.get("COLUMNS", "")
    width = int(wanted) if wanted.isdecimal() and int(wanted) else WIDTH_WITHOUT_TERMINAL
    return Console(file=results(), width=None if results().isatty() else width)


def _write(stream: TextIO, text: str) -> None:
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:
        _give_up(stream)


def _give_up(stream: TextIO) -> None:
    """Nobody reads any more. Python flushes once more when it exits, and must find nothing broken then."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
