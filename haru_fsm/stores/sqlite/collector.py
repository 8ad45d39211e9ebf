"""The garbage collector, held back while a journal is read.

A journal becomes thousands of objects that all stay. Python's collector looks at them again and again while they are
made, which takes as long as making them, and finds nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """No collection within, for the whole process: so for milliseconds only. Where it is off already it stays off."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
