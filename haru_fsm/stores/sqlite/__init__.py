"""The SQLite store: one file on a local disk, WAL, synchronous=FULL, one writer thread.

The disk must be a local POSIX one: SQLite's locks do not hold over a network.

    store       the store as the engine sees it
    opening     a connection to the file, and its tables
    writer      the thread, and its transactions
    writing     what an append, a note and a ticket put into the tables
    reading     how a conversation comes out of them
"""

from haru_fsm.stores.sqlite.store import SQLiteStore

__all__ = ["SQLiteStore"]
