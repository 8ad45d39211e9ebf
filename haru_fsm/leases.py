"""Who works on a conversation, and whether that worker is still there.

A lease names its owner: host, process, and one token per piece of work. A dead process's lease on this host is void
at once; a live one is honoured until it has not been renewed for `lease_s`, and a moment longer on this host, where the
clock that says so may have jumped. Renewal runs in the store's own thread, so a busy event loop loses nothing. Leases
only keep workers from waiting on or disturbing each other: that nobody overwrites anybody is assured by `expected_seq`,
never by a clock.
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
    """Whether the owner's claim no longer counts. Times in seconds since the epoch.

    Of another process that `lives` it is said by the wall clock alone, which may have jumped.
    """
    if not owner:
        return True
    host, pid, *_ = _parts(owner)
    if (host, pid) == (this_host(), str(os.getpid())):
        return owner not in _held
    return lease_until < now if _is_elsewhere(owner) or lives(owner) else True


def lives(owner: str) -> bool:
    """Whether the owner is another process of this host that is there, at work or hung."""
    _, pid, started, _ = _parts(owner)
    if _is_elsewhere(owner) or int(pid) == os.getpid():
        return False
    return str(_started(int(pid))) == started


def _is_elsewhere(owner: str) -> bool:
    host, pid, *_ = _parts(owner)
    return host != this_host() or not pid.isdigit()


def _parts(owner: str) -> list[str]:
    return [*owner.split("|"), "", "", ""][:4]


def told(owner: str) -> str:
    """The owner for people: which process on which host."""
    host, pid, *_ = [*owner.split("|"), "", ""]
    return f"process {pid} on {host.partition('/')[0]}" if pid else owner
