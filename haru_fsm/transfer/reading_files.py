"""The lines of a file, as often as they are wanted, and never all of them in memory."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from haru_fsm.errors import SettingsError
from haru_fsm.foreign import in_words


@dataclass(frozen=True, slots=True)
class FileLines(Iterable[str]):
    """The lines of an open file, each time from its beginning. Raises SettingsError where it cannot be read."""

    path: Path
    file: BinaryIO

    def __iter__(self) -> Iterator[str]:
        try:
            self.file.seek(0)
            # A binary file ends its lines at \n alone: what customers write may hold line breaks of other kinds.
            for line in self.file:
                yield line.decode("utf-8").removesuffix("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(self.path, error) from error


@contextmanager
def lines_of(path: Path) -> Iterator[FileLines]:
    """The lines of the file at this path. What can be read once only (a pipe) is copied first. Raises SettingsError."""
    with _opened(path) as file:
        yield FileLines(path, file)


def _opened(path: Path) -> BinaryIO:
    try:
        file = path.open("rb")
        return file if file.seekable() else _copied(file)
    except OSError as error:
        raise _unreadable(path, error) from error


def _copied(once: BinaryIO) -> BinaryIO:
    # Whoever asked for it closes it.
    copy = tempfile.TemporaryFile()  # noqa: SIM115
    with once:
        shutil.copyfileobj(once, copy)
    return copy


def _unreadable(path: Path, error: Exception) -> SettingsError:
    return SettingsError(f"{path} cannot be read: {in_words(error)}. Give a file that `haru export` has written.")
