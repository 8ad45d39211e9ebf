"""A connection to the store's file: its checks, its settings and its tables."""

from __future__ import annotations

import sqlite3
import time
from importlib.resources import files
from pathlib import Path

from haru_fsm.errors import FormatTooNew, StoreError
from haru_fsm.foreign import in_words
from haru_fsm.stores import FORMAT
from haru_fsm.stores.sqlite.faults import FAILURES, translated
from haru_fsm.stores.sqlite.forking import Connection, refuse_inherited
from haru_fsm.stores.sqlite.indexes import mend

APPLICATION_ID = 0x48415255  # "HARU"
HEADER_BYTES = 512
"""What any database has at least."""
PAGE_BYTES = 8192
"""A page holds several steps. With SQLite's 4,096 a step of two kilobytes leaves a third of it empty."""

MARKS = (
    "SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id), "
    "(SELECT count(*) FROM sqlite_schema)"
)
"""Read in one statement: between two, another process may have made the tables, and they look like somebody else's."""
LOG_BYTES = 64 << 20
"""What is kept of a log that has been played in. A reader that stays for long makes it grow, and it would never get
smaller again while anybody has the database open."""
SWITCH_PAUSE_S = 0.01
"""Between two attempts to switch a new file to WAL while another process does the same."""


def opened(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    """A connection for any thread, to tables of our format. Raises StoreError, FormatTooNew.

    `busy_timeout_s`: seconds to wait for other processes.
    """
    refuse_inherited(path)
    connection = _connected(path, busy_timeout_s)
    try:
        _prepare(connection, path, busy_timeout_s)
    except FAILURES as error:
        connection.close()
        raise translated(error) from error
    except StoreError:
        connection.close()
        raise
    return connection


def _connected(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise StoreError(f"{path} is a folder. Give a file in it, for example sqlite:///{path / 'haru.db'}.")
        if path.exists() and 0 < path.stat().st_size < HEADER_BYTES:
            # SQLite would take such a file for an empty database, and begin anew over what is left of ours.
            raise StoreError(f"{path} has been cut off: it is damaged. Restore it from a backup.")
        return Connection(path, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False)
    except (sqlite3.Error, OSError) as error:
        raise StoreError(
            f"The database {path} cannot be opened: {in_words(error)}. Check that its folder exists and may be written."
        ) from error


def _prepare(connection: sqlite3.Connection, path: Path, busy_timeout_s: float) -> None:
    version, application, tables = connection.execute(MARKS).fetchone()
    if tables and application != APPLICATION_ID:
        raise StoreError(f"{path} is a database of another program. Give another file with --db sqlite:///FILE.")
    if version > FORMAT:
        raise FormatTooNew(
            f"{path} has format {version}, and this haru_fsm knows formats up to {FORMAT}. Update haru_fsm."
        )
    connection.execute(f"PRAGMA page_size={PAGE_BYTES}")  # of a new file; an old one keeps its own
    _switch_to_wal(connection, busy_timeout_s)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA journal_size_limit={LOG_BYTES}")
    schema = files("haru_fsm.stores.sqlite").joinpath("schema.sql").read_text("utf-8")
    if version < FORMAT:
        marks = f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={FORMAT};"
        connection.executescript(f"BEGIN IMMEDIATE; {schema} {marks} COMMIT;")
    mend(connection, schema)


def _switch_to_wal(connection: sqlite3.Connection, busy_timeout_s: float) -> None:
    """Two processes that switch a new file in the same moment do not wait for one another: SQLite says at once that
    it is locked, whatever the time-out. So it is asked again until that is over."""
    until = time.monotonic() + busy_timeout_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(SWITCH_PAUSE_S)
