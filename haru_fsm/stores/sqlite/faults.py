"""SQLite's errors as ours, each with what to do about it."""

from __future__ import annotations

import sqlite3

from haru_fsm.errors import StoreError

FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises: the second where its message quotes damaged bytes that are no text."""
FAILURES_OF_ONE = (*FAILURES, UnicodeEncodeError)
"""What one request may raise: the last where it asks for what holds half a character, which no database could keep."""


def is_damage(error: Exception) -> bool:
    """Whether this says that what is in the file cannot be."""
    low = str(error).lower()
    return any(word in low for word in ("malformed", "corrupt", "could not decode", "can't decode"))


def translated(error: Exception) -> StoreError:
    """SQLite's error as ours, saying what to do about it."""
    text = str(error)
    low = text.lower()
    if "not a database" in low:
        advice = "This file is not a database of haru_fsm. Give another one with --db sqlite:///FILE."
    elif is_damage(error):
        advice = "The database is damaged. Restore it from a backup, or look with `haru verify`."
    elif "readonly" in low or "read-only" in low:
        advice = "The database cannot be written. Check the permissions of the file and of its folder."
    elif "full" in low:
        advice = "The disk is full. Make room and run `haru resume --all`; nothing was lost."
    elif "locked" in low or "busy" in low:
        advice = "Another process holds the database. Try again when it has finished; nothing was lost."
    elif "i/o error" in low:
        advice = (
            "The disk refused (its health, a quota, a limit on file sizes). Mend that and run `haru resume --all`; "
            "nothing was lost."
        )
    elif "unable to open" in low:
        advice = (
            "Check that its folder exists and that you may write there, which SQLite has to also where it only reads. "
            "From a read-only disk, copy the file to another place and look there."
        )
    else:
        advice = "Nothing of this write was kept; what was committed before is safe."
    return StoreError(f"The store could not be used: {text}. {advice}")
