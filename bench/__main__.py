"""`python -m bench [--quick] [--json] [--dir DIR]`: the table to standard output, progress to standard error."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench import calls, durable, lab, processor, resting, starting, wire, workers
from bench.figures import Figure, as_json, machine, show
from bench.measuring import Plan


def main() -> None:
    """Measure everything and show it."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="haru-bench-", dir=options.dir) as folder:
        plan = Plan(Path(folder))
        if options.quick:
            plan = replace(plan, repetitions=3, samples=100, processes=3)
        figures = list(_measured(plan))
    if options.json:
        json.dump(as_json(figures, {"repetitions": plan.repetitions}), sys.stdout, ensure_ascii=False, indent=2)
        print()
    else:
        show(figures, _caption(plan))


def _measured(plan: Plan) -> Iterator[Figure]:
    yield from durable.figures(plan)
    yield from workers.figures(plan)
    yield from processor.figures(plan)
    yield from calls.figures(plan)
    yield from wire.figures(plan)
    yield from resting.figures(plan)
    yield from lab.figures(plan)
    yield from starting.figures(plan)


def _caption(plan: Plan) -> str:
    return (
        f"{machine()}. Medians of {plan.repetitions}, in turns. Both: WAL, synchronous=FULL, two commits a step; raw "
        "sqlite3 has no engine, no guards and no validation. Processor figures are processor time."
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="What the engine costs, beside raw sqlite3.")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: a look, no proof")
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    parser.add_argument("--dir", type=Path, help="where the databases are made: the disk that is measured")
    return parser.parse_args()


if __name__ == "__main__":
    main()
