"""What the processes of test_forkserver.py do."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from haru_fsm.testing.forkserver import serve


def work(task: dict[str, Any]) -> Any:
    """What the task says, by its name."""
    match task["do"]:
        case "say":
            return {"text": task["text"], "process": os.getpid(), "read": sys.stdin.read(), "hash": hash("하루")}
        case "fail":
            raise ValueError(task["text"])
        case "exit":
            sys.exit(int(task["text"]))
        case name:
            return signal.raise_signal(signal.Signals[name])


if __name__ == "__main__":
    serve(sys.stdin, work)
