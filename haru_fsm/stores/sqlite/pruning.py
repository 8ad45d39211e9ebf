"""Forgetting conversations: some at a time, so that nobody who writes beside it waits for all of them.

In one transaction, a database of a gigabyte would be held for seconds and written once more into its log.
"""

from __future__ import annotations

import sqlite3

from haru_fsm.stores.sqlite.listing import IN_DOUBT, UNFINISHED

TOGETHER = 100
"""Conversations that are forgotten in one transaction."""
NEEDED = (
    "WITH RECURSIVE needed (id) AS ("
    f"SELECT parent FROM conversations WHERE {UNFINISHED} AND parent IS NOT NULL UNION "
    "SELECT parent FROM needed JOIN conversations ON conversation_id = id WHERE parent IS NOT NULL)"
)
"""Those that forks under way come from: their ledgers say what such a run has done already, and must not do again."""
PRUNABLE = (
    "resting = 1 AND updated_at < :before "
    "AND NOT EXISTS "
    "(SELECT 1 FROM tickets AS t WHERE t.conversation_id = c.conversation_id AND t.closed_at IS NULL) "
    f"AND NOT {IN_DOUBT} AND conversation_id NOT IN needed"
)


def forget(connection: sqlite3.Connection, before: float, after: int) -> list[int]:
    """Forget the first conversations behind number `after` that have rested since `before` (seconds since the epoch).

    Returns their numbers, in order; fewer than TOGETHER where there are no more.
    """
    rows = connection.execute(
        f"{NEEDED} SELECT number, conversation_id FROM conversations AS c WHERE number > :after AND {PRUNABLE} "
        "ORDER BY number LIMIT :most",
        {"after": after, "before": before, "most": TOGETHER},
    ).fetchall()
    for number, conversation_id in rows:
        connection.execute("DELETE FROM steps WHERE conversation = ?", (number,))
        connection.execute("DELETE FROM calls WHERE conversation = ?", (number,))
        connection.execute("DELETE FROM tickets WHERE conversation_id = ?", (conversation_id,))
        connection.execute("DELETE FROM conversations WHERE number = ?", (number,))
    return [number for number, _ in rows]
