"""haru_fsm: every conversation of an AI agent as an explicit, persisted state machine.

The public names, and nothing else. They are loaded when they are first used, so that a command that needs only one
of them does not wait for all.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from haru_fsm._version import __version__

if TYPE_CHECKING:
    from haru_fsm.app import App, load_app
    from haru_fsm.engine import Engine
    from haru_fsm.errors import HaruError, NotDone
    from haru_fsm.limits import Limits
    from haru_fsm.machine import Row, Workflow
    from haru_fsm.runs import Run
    from haru_fsm.session import Session
    from haru_fsm.toolbox import IdempotencyKey, Secret, tool

_HOMES = {
    "App": "app",
    "Engine": "engine",
    "HaruError": "errors",
    "IdempotencyKey": "toolbox",
    "Limits": "limits",
    "NotDone": "errors",
    "Row": "machine",
    "Run": "runs",
    "Secret": "toolbox",
    "Session": "session",
    "Workflow": "machine",
    "load_app": "app",
    "tool": "toolbox",
}

__all__ = [
    "App",
    "Engine",
    "HaruError",
    "IdempotencyKey",
    "Limits",
    "NotDone",
    "Row",
    "Run",
    "Secret",
    "Session",
    "Workflow",
    "__version__",
    "load_app",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'haru_fsm' has no attribute {name!r}")
    return getattr(import_module(f"haru_fsm.{_HOMES[name]}"), name)
