"""The SQLite store: one file on a local disk, WAL, synchronous=FULL, one writer thread.

The disk must be a local POSIX one: SQLite's locks do not hold over a network.

    store               the store as the engine sees it
    opening             a connection to the file, and its tables
    indexes             those of a database that an earlier version has made
    whereabouts         is it still the file that was opened?
    forking             the connections that a forked process must not touch
    database_thread     a thread with a connection: one writes, one reads
    transactions        what is written together, and what becomes of it where one write fails
    writing             what an append, a note and a ticket put into the tables
    reading             how a conversation comes out of them
    listing             lists of conversations and tickets
    pruning             what has rested for long is forgotten
    collector           the garbage collector, held back meanwhile
    faults              SQLite's errors as ours
"""

from haru_fsm.stores.sqlite.store import SQLiteStore

__all__ = ["SQLiteStore"]
