"""What is read or written together: one transaction for all writes that have come in, one for each read.

Alone, a write costs its fsync. Two hundred conversations share one: while a commit is on its way to the disk, the next
writes gather, and go in the next transaction. A write that fails takes nothing of its neighbours with it. Nobody is
told of success before the commit is on the disk.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from itertools import groupby

from haru_fsm.stores.sqlite.database_thread import Request
from haru_fsm.stores.sqlite.faults import FAILURES, FAILURES_OF_ONE, translated
from haru_fsm.stores.sqlite.log_room import LogRoom
from haru_fsm.stores.sqlite.onward import Onward, go_on
from haru_fsm.stores.sqlite.turns import begin

ATTEMPTS = 5
"""How often a transaction that the disk or a lock refused is tried again, with growing pauses (about 1.5 s in all,
beside SQLite's own wait for locks)."""
PASSING = ("locked", "busy", "disk i/o error", "interrupted")


def read(connection: sqlite3.Connection, requests: Sequence[Request]) -> None:
    """Each reads what was committed when it began."""
    for request in requests:
        try:
            connection.execute("BEGIN")
            try:
                request.value = request.job(connection)
            finally:
                connection.execute("ROLLBACK")
        except Exception as error:
            request.error = translated(error) if isinstance(error, FAILURES_OF_ONE) else error


def commit(room: LogRoom, wait_s: float, connection: sqlite3.Connection, requests: Sequence[Request]) -> None:
    """All of them in one transaction, tried again where the disk or a lock refuses it for the moment.

    `wait_s`: seconds that each attempt waits for its turn.
    """
    for attempt in range(ATTEMPTS):
        try:
            begin(connection, wait_s)
            room.make()
            if not _at_once(connection, requests):
                begin(connection, wait_s)
                _one_by_one(connection, requests)
            return room.look()
        except FAILURES as error:
            _roll_back(connection)
            passing = any(word in str(error).lower() for word in PASSING)
            if not passing or attempt == ATTEMPTS - 1:
                for request in requests:
                    request.error = translated(error)
                return None
            time.sleep(0.05 * 2**attempt)


def _at_once(connection: sqlite3.Connection, requests: Sequence[Request]) -> bool:
    """Without savepoints, which cost as much as some writes. False: nothing was written, for one of them failed."""
    for together, group in groupby(requests, key=lambda request: isinstance(request.job, Onward)):
        some = list(group)
        if not (_go_on(connection, some) if together else _all_do(connection, some)):
            connection.execute("ROLLBACK")
            return False
    connection.execute("COMMIT")
    return True


def _go_on(connection: sqlite3.Connection, requests: Sequence[Request]) -> bool:
    appends = [request.job for request in requests if isinstance(request.job, Onward)]
    try:
        if not go_on(connection, appends):
            return False
    except sqlite3.OperationalError:
        raise
    except FAILURES_OF_ONE:
        return False
    for request, append in zip(requests, appends, strict=True):
        request.value, request.error = append.head, None
    return True


def _all_do(connection: sqlite3.Connection, requests: Sequence[Request]) -> bool:
    for request in requests:
        _do(connection, request)
        if request.error is not None:
            return False
    return True


def _one_by_one(connection: sqlite3.Connection, requests: Sequence[Request]) -> None:
    """Each write has a savepoint: what fails takes nothing of its neighbours with it."""
    for request in requests:
        connection.execute("SAVEPOINT one")
        _do(connection, request)
        if request.error is not None:
            connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")
    connection.execute("COMMIT")


def _do(connection: sqlite3.Connection, request: Request) -> None:
    """Do a job. What the database itself cannot do now is raised: it concerns the whole transaction."""
    try:
        request.value, request.error = request.job(connection), None
    except sqlite3.OperationalError:
        raise
    except Exception as error:
        request.error = translated(error) if isinstance(error, FAILURES_OF_ONE) else error


def _roll_back(connection: sqlite3.Connection) -> None:
    try:
        connection.rollback()
    except sqlite3.Error:
        # Some errors (a full disk) have rolled back already.
        return
