"""Who works on a conversation, and whether that worker is still there.

A lease names its owner: host, process, and one token per piece of work. A dead process's lease on this host is void
at once; a live one is honoured until it has not been renewed for `lease_s`. Renewal runs in the store's own thread,
so a busy event loop loses nothing. Leases only keep workers from waiting on or disturbing each other: that nobody
overwrites anybody is assured by `expected_seq`, never by a clock.
"""

from __future__ import annotations

import os
import secrets
import socket
from functools import cache

_held: set[str] = set()
"""Tokens that this process works under; one that is missing here was abandoned by it."""


@cache
def this_host() -> str:
    """The host, with its process namespace: the same number means another process in another container."""
    try:
        namespace = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        namespace = 0
    return f"{socket.gethostname()}/{namespace}"


def _started(pid: int) -> int | None:
    """When a process of this host started (ms), or None when there is no such process (any more).

    On Linux since the host did: the system counts from there, and a date made of that moves whenever the clock is
    corrected, as if it were another process.
    """
    import psutil

    try:
        booted = psutil.boot_time() if psutil.LINUX else 0.0  # first: an older psutil goes by the boot it was told last
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else round((process.create_time() - booted) * 1000)
    except psutil.Error:
        return None


@cache
def _this_process(pid: int) -> str:
    return f"{this_host()}|{pid}|{_started(pid)}"


def take() -> str:
    """A new owner: this process, under a token of its own."""
    owner = f"{_this_process(os.getpid())}|{secrets.token_hex(4)}"
    _held.add(owner)
    return owner


def give_back(owner: str) -> None:
    """This process no longer works under that owner."""
    _held.discard(owner)


def held() -> frozenset[str]:
    """The owners that this process works under."""
    return frozenset(_held)


def is_void(owner: str | None, lease_until: float, now: float) -> bool:
    """Whether the owner's claim no longer counts. Times in seconds since the epoch."""
    if not owner:
        return True
    host, pid, started, _token = [*owner.split("|"), "", "", ""][:4]
    if host != this_host() or not pid.isdigit():
        return lease_until < now
    if int(pid) == os.getpid():
        return owner not in _held
    alive = _started(int(pid))
    return alive is None or str(alive) != started or lease_until < now


def told(owner: str) -> str:
    """The owner for people: which process on which host."""
    host, pid, *_ = [*owner.split("|"), "", ""]
    return f"process {pid} on {host.partition('/')[0]}" if pid else owner
