"""Whether HARU_DEBUG asks for tracebacks."""

from __future__ import annotations

import os

OFF = ("", "0", "false", "no", "off")


def debugging() -> bool:
    """It does, unless it says no in one of the usual words."""
    return os.environ.get("HARU_DEBUG", "").strip().lower() not in OFF
