"""What it takes to begin: an import and a command, each in a process of its own, in turns with a bare interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from statistics import median

from bench.figures import Figure, Target
from bench.haru import ROOT
from bench.measuring import Plan, tell, timed

NAMES = "from haru_fsm import App, Engine, Limits, Row, Workflow, load_app, tool"
IMPORT_MS = 150
HELP_MS = 300
COMMANDS = {
    "bare": ("-c", "pass"),
    "import": ("-c", "import haru_fsm"),
    "names": ("-c", NAMES),
    "help": ("-m", "haru_fsm", "--help"),
}


def figures(plan: Plan) -> Iterator[Figure]:
    """All figures of this module, in the order of the table."""
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for arguments in COMMANDS.values():
        _start(arguments)  # writes the compiled modules, and fills the disk's cache
    for turn in range(plan.processes):
        tell(f"starting: {turn + 1} of {plan.processes}")
        for name, arguments in COMMANDS.items():
            taken[name].append(timed(partial(_start, arguments)).clock_s * 1000)
    bare, imported, named, helped = (median(taken[name]) for name in COMMANDS)
    group = "starting (raw: a bare interpreter)"
    yield Figure(group, "import haru_fsm", imported - bare, "ms", target=Target(IMPORT_MS))
    yield Figure(group, "and every name of the engine, whole process", named, "ms", bare)
    yield Figure(group, "haru --help, whole process", helped, "ms", bare, Target(HELP_MS))


def _start(arguments: tuple[str, ...]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, cwd=ROOT, env=environment)
