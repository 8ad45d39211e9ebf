"""The least that a durable loop can do: one table, sqlite3 and json. No engine, no guards, no validation.

It writes each event and each result once, in rows of the same kinds as the engine's, and commits where the engine
commits: after the message, after each reply, after each result with its observation, after the answer.
"""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path
from typing import Any, Self

from bench import workload

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS events "
    "(conversation TEXT, seq INTEGER, kind TEXT, event TEXT, PRIMARY KEY (conversation, seq))"
)
INSERT = "INSERT INTO events VALUES (?, ?, ?, ?)"
SELECT = "SELECT kind, event FROM events WHERE conversation = ? ORDER BY seq"


class Raw:
    """Conversations in one file, WAL and synchronous=FULL."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute(SCHEMA)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def converse_in_turn(self, conversations: int, n: int) -> None:
        """So many of them, one after another."""
        for index in range(conversations):
            self.converse(f"c{index}", n)

    def converse(self, conversation: str, n: int) -> None:
        """The whole conversation of `n` steps."""
        seq = self._commit(conversation, 1, ("message_received", {"text": workload.QUESTION}))
        for results in range(n):
            content = workload.reply(results, n)
            seq = self._commit(conversation, seq, ("tools_requested", {"content": content}))
            wanted = content["parts"][1]["functionCall"]
            response = workload.page(wanted["args"]["page"])
            done = {"results": [{"position": 0, "status": "done", "response": {"result": response}}]}
            seq = self._commit(conversation, seq, ("tools_executed", done), ("observation_appended", {}))
        self._commit(conversation, seq, ("model_answered", {"content": workload.reply(n, n)}))

    def _commit(self, conversation: str, seq: int, *events: tuple[str, dict[str, Any]]) -> int:
        self._connection.execute("BEGIN IMMEDIATE")
        for kind, event in events:
            text = _written({"kind": kind, "at": round(time.time(), 3), **event})
            self._connection.execute(INSERT, (conversation, seq, kind, text))
            seq += 1
        self._connection.execute("COMMIT")
        return seq

    def load(self, conversation: str) -> list[Any]:
        """Select and `json.loads`, nothing else."""
        return [json.loads(event) for _, event in self._connection.execute(SELECT, (conversation,))]

    def json_bytes(self, conversation: str) -> int:
        """Bytes of the events and results of a conversation, each written once as JSON."""
        return sum(len(event.encode()) for _, event in self._connection.execute(SELECT, (conversation,)))


def _written(event: dict[str, Any]) -> str:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))
