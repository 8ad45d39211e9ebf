"""What customers have done through the tools: one table, one row for each thing done, each under its own key.

The key is the engine's idempotency key and the table's primary key. A call that is run again after a crash
finds its row and tells the same story instead of acting twice; two calls at the same instant take turns,
because the rules are checked inside the transaction that writes.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from haru_fsm import NotDone
from haru_fsm.conversation import JSON

_SCHEMA = """
CREATE TABLE IF NOT EXISTS acts (
    key         TEXT PRIMARY KEY,   -- the idempotency key of the call that did it
    kind        TEXT NOT NULL,
    customer_id TEXT NOT NULL,
    subject     TEXT NOT NULL,      -- the order it was done to; '' where there is none
    details     TEXT NOT NULL       -- JSON
) STRICT
"""
_BUSY_S = 5.0
_UNWRITABLE = "지금은 요청을 저장할 수 없어 처리하지 않았습니다. 잠시 뒤에 다시 시도해 주세요."


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that was done, and all that its tool needs to tell of it again."""

    key: str
    kind: str
    customer_id: str
    subject: str
    details: JSON


class Acts:
    """The shop's own database. The file comes into being with the first act; reading never makes one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def of(self, customer_id: str) -> tuple[Act, ...]:
        """All that this customer has done, in order."""
        if not self.path.exists():
            return ()
        with closing(self._connect()) as connection:
            written = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'acts'").fetchone()
            return _acts_of(connection, customer_id) if written else ()

    def once(
        self, key: str, kind: str, customer_id: str, subject: str, decide: Callable[[tuple[Act, ...]], JSON]
    ) -> Act:
        """Do something under this key, or tell what was done under it before. An empty key is always a new one.

        `decide` gets the customer's acts so far and gives the details of the new one, or raises NotDone.
        Raises NotDone, too, where the database cannot be written at all, or the key belongs to something else.
        """
        new = Act(key or uuid.uuid4().hex, kind, customer_id, subject, {})
        with self._transaction() as connection:
            known = _act(connection, new.key)
            if known is None:
                return _insert(connection, replace(new, details=decide(_acts_of(connection, customer_id))))
        if replace(known, details={}) != new:
            raise NotDone("이 요청의 고유 키가 다른 요청에 이미 쓰였습니다.")
        return known

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction. Failing to begin is NotDone, for nothing was written; failing to commit is not."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = self._connect()
        except (OSError, sqlite3.Error) as error:
            raise NotDone(_UNWRITABLE) from error
        with closing(connection):
            try:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(_SCHEMA)
            except sqlite3.Error as error:
                raise NotDone(_UNWRITABLE) from error
            yield connection  # an exception in here closes the connection, which rolls back
            connection.execute("COMMIT")

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None)


def _acts_of(connection: sqlite3.Connection, customer_id: str) -> tuple[Act, ...]:
    rows = connection.execute("SELECT * FROM acts WHERE customer_id = ? ORDER BY rowid", (customer_id,))
    return tuple(_read(row) for row in rows)


def _act(connection: sqlite3.Connection, key: str) -> Act | None:
    row = connection.execute("SELECT * FROM acts WHERE key = ?", (key,)).fetchone()
    return _read(row) if row else None


def _insert(connection: sqlite3.Connection, act: Act) -> Act:
    details = json.dumps(act.details, ensure_ascii=False)
    connection.execute(
        "INSERT INTO acts VALUES (?, ?, ?, ?, ?)", (act.key, act.kind, act.customer_id, act.subject, details)
    )
    return act


def _read(row: tuple[str, str, str, str, str]) -> Act:
    key, kind, customer_id, subject, details = row
    return Act(key, kind, customer_id, subject, json.loads(details))
