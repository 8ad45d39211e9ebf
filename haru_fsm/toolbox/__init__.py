"""Tools: a function is enough, and nothing that a model sends can hurt.

    toolbox = Toolbox(make_tools(session), limits)
    tool = toolbox.find("get_order_status")
    prepared = tool.prepare({"order_id": " HR20260725002"})
    outcome = await tool.run(prepared, timeout_s=None, key=None, clock=SystemClock(), on_late=None)

A function's signature and docstring become its declaration (`declaration`), what a model sends is validated and, where
that is certain, repaired (`arguments`, `repair`), the call is run within its time (`running`), and what it gives
becomes JSON (`results`). What a tool does to the world is said by marks on the function (`marks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from haru_fsm.errors import ToolError
from haru_fsm.limits import Limits
from haru_fsm.models import Declaration
from haru_fsm.toolbox.arguments import Prepared, Refused
from haru_fsm.toolbox.cutting import cut_for_model
from haru_fsm.toolbox.marks import IdempotencyKey, Marks, Secret, Won, tool
from haru_fsm.toolbox.running import Outcome
from haru_fsm.toolbox.threads import THREADS, Threads
from haru_fsm.toolbox.tools import Tool, name_of
from haru_fsm.toolbox.wording import names, nearest, show

__all__ = [
    "IdempotencyKey",
    "Marks",
    "Outcome",
    "Prepared",
    "Refused",
    "Secret",
    "Threads",
    "Tool",
    "Toolbox",
    "Won",
    "cut_for_model",
    "tool",
]

_PREFIXES = frozenset(("default_api", "functions", "function", "tools", "tool", "api"))
"""What models write before a name, from the forms of call they were trained on."""

Functions = Mapping[str, Callable[..., Any]] | Iterable[Callable[..., Any]]


class Toolbox:
    """The tools of one conversation, as `make_tools(session)` gave them: a list, or a dictionary by name.

    Raises ToolError, naming the tool, the parameter and the way out, for what cannot be declared to a model.
    """

    def __init__(self, functions: Functions, limits: Limits, *, threads: Threads = THREADS) -> None:
        self._tools: dict[str, Tool] = {}
        for name, function in _named(functions):
            if name in self._tools:
                raise ToolError(f"tool {name}: there are two of this name; rename one of the functions")
            self._tools[name] = Tool(name, function, limits, threads)
        self.declarations: tuple[Declaration, ...] = tuple(each.declaration for each in self._tools.values())
        self.warnings: tuple[str, ...] = tuple(
            f"tool {each.name} says nothing about its effect, so it is treated as one that acts on the world; "
            "mark it with @tool(read_only=True), or with @tool(read_only=False)"
            for each in self._tools.values()
            if each.marks.says_nothing
        )

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, in the order given."""
        return tuple(self._tools.values())

    def find(self, name: str) -> Tool | None:
        """The tool of this name, also with a prefix such as `default_api.` before it, blanks around it, or the marks of
        a server behind it (`get_order<|channel|>commentary`); None where there is none."""
        found = self._tools.get(name)
        if found is not None:
            return found
        name = name.partition("<|")[0].strip()
        if name in self._tools:
            return self._tools[name]
        for separator in (".", ":", "/"):
            prefix, _, rest = name.rpartition(separator)
            if prefix in _PREFIXES and rest in self._tools:
                return self._tools[rest]
        return None

    def unknown(self, name: str) -> str:
        """What to tell a model that asked for a tool that does not exist."""
        if not self._tools:
            return f"There is no tool {show(name)}: there are no tools here. Answer without one."
        text = f"There is no tool {show(name)}. Available: {names(self._tools)}."
        close = nearest(name, self._tools)
        return f"{text} Nearest: {close}." if close is not None else text


def _named(functions: Functions) -> Iterable[tuple[str, Callable[..., Any]]]:
    pairs = functions.items() if isinstance(functions, Mapping) else ((name_of(each), each) for each in functions)
    for name, function in pairs:
        if not callable(function):
            raise ToolError(f"tool {name}: {type(function).__name__} is not a function; give a function")
        yield name, function
