"""Whose turn it is to write, among the processes that share a database.

SQLite asks for the write lock again after 1 ms, then 2, 5, 10 and so on up to 100, while a commit takes less than one.
Between workers that all have much to write the lock would lie idle most of the time, so it is asked for more often.
"""

from __future__ import annotations

import sqlite3
import time

FIRST_PAUSE_S = 0.0002
LONGEST_PAUSE_S = 0.005
GROWTH = 1.5


def ask_often(connection: sqlite3.Connection) -> None:
    """From now on this connection is told at once that another one is writing, and `begin` waits for it."""
    connection.execute("PRAGMA busy_timeout=0")


def begin(connection: sqlite3.Connection, wait_s: float) -> None:
    """Begin a transaction that writes. Raises sqlite3.OperationalError where others write for longer than `wait_s`."""
    until = time.monotonic() + wait_s
    pause = FIRST_PAUSE_S
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
        time.sleep(pause)
        pause = min(pause * GROWTH, LONGEST_PAUSE_S)
