"""What went wrong outside of us, in words: errors of the system say a number that nobody but a programmer reads."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping

WORDS: Mapping[int, str] = {
    errno.ENOENT: "there is no such file",
    errno.EISDIR: "it is a folder",
    errno.ENOTDIR: "a part of its path is no folder",
    errno.EEXIST: "something of that name is there already",
    errno.EACCES: "permission is denied",
    errno.EPERM: "permission is denied",
    errno.EROFS: "the disk is read-only",
    errno.ENOSPC: "the disk is full",
    errno.ENAMETOOLONG: "the name is too long",
}
_NUMBER = re.compile(r"\[(?:Errno|WinError) -?\d+\]\s*")


def in_words(error: BaseException) -> str:
    """What an error says, without a number and without its place, which whoever tells of it names."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is no UTF-8 text (byte {error.start + 1:,})"
    if isinstance(error, SyntaxError):
        return error.msg
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        return WORDS.get(error.errno, without_numbers(error.strerror).lower())
    return without_numbers(str(error))


def with_place(error: BaseException) -> str:
    """The same, with the file, where nobody else names it."""
    place = error.filename if isinstance(error, OSError) else None
    return f"{in_words(error)}: {place}" if place else in_words(error)


def without_numbers(text: str) -> str:
    """A text without the numbers of the system's errors."""
    return _NUMBER.sub("", text)
