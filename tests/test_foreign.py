"""Errors of the system are told in words, without their numbers."""

from __future__ import annotations

import errno
import os

import pytest

from haru_fsm.foreign import in_words, with_place, without_numbers
from haru_fsm.models.faults import read_exception


@pytest.mark.parametrize("number", sorted(errno.errorcode))
def test_no_number_of_any_error(number: int) -> None:
    error = OSError(number, os.strerror(number), "a file")
    assert "Errno" in str(error)
    assert "Errno" not in in_words(error)
    assert "a file" not in in_words(error)
    assert with_place(error) == f"{in_words(error)}: a file"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(2, "No such file or directory", "x"), "there is no such file"),
        (OSError(errno.EIO, "Input/output error"), "input/output error"),
        (OSError("not a gzipped file (b'na')"), "not a gzipped file (b'na')"),
        (ValueError("no number"), "no number"),
        (SyntaxError("invalid syntax", ("a file", 5, 1, "x", 5, 2)), "invalid syntax"),
    ],
)
def test_words(error: Exception, words: str) -> None:
    assert in_words(error) == words


def test_what_is_no_text() -> None:
    with pytest.raises(UnicodeDecodeError) as raised:
        b"ab\xff".decode()
    assert in_words(raised.value) == "it is no UTF-8 text (byte 3)"


def test_numbers_inside_a_librarys_words() -> None:
    assert without_numbers("[Errno -2] Name or service not known") == "Name or service not known"
    assert read_exception(ConnectionRefusedError(111, "Connection refused")).detail.endswith(": Connection refused")
