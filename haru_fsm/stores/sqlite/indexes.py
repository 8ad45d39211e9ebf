"""The indexes of a database that an earlier version has made: those that it lacks, or has in another form, are made.

An index holds nothing of its own, so it needs no new format: earlier versions go on with it. Where it cannot be made
now (the disk is full, a table is damaged, others write), lists are read without it, and the next one who opens the
database tries again.
"""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Mapping

log = logging.getLogger(__name__)

_INDEX = re.compile(r"^CREATE (UNIQUE )?INDEX IF NOT EXISTS ((\w+) [^;]+);", re.MULTILINE)


def mend(connection: sqlite3.Connection, schema: str) -> None:
    """Make the indexes of the schema that are not there as it says."""
    wanted = {found[3]: f"CREATE {found[1] or ''}INDEX {found[2]}" for found in _INDEX.finditer(schema)}
    if not _other(connection, wanted):
        return
    try:
        connection.execute("BEGIN IMMEDIATE")
        for name in _other(connection, wanted):  # another process may have made them meanwhile
            connection.execute(f"DROP INDEX IF EXISTS {name}")
            connection.execute(wanted[name])
        connection.execute("COMMIT")
    except sqlite3.IntegrityError:
        raise  # what must be there once is there twice: nobody may claim anything in it
    except sqlite3.DatabaseError as error:
        if connection.in_transaction:
            connection.rollback()
        log.warning("the database's indexes are an earlier version's and could not be made anew now: %s", error)


def _other(connection: sqlite3.Connection, wanted: Mapping[str, str]) -> list[str]:
    """The names of the indexes that are not as they should be."""
    there = dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"))
    return [name for name, statement in wanted.items() if there.get(name) != statement]
