"""The mutation score of the engine by the kit: `python tests/mutants/run.py [WORDS]`.

Each mutant of `mutants.toml` is one mistake, put into a copy of the repository and judged there by `judge.py`. A mutant
is killed when the judge says so, or crashes, or does not come to an end; one that is not killed is shown as survived.
WORDS: only the mutants whose name or file holds them. Exit code 0 when at least 95 % were killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory

from haru_fsm.clock import SystemClock

ROOT = Path(__file__).parent.parent.parent
COPIED = ("haru_fsm", "states", "tools", "data", "tests/engine", "tests/mutants", "tests/__init__.py")
TOGETHER = 2
TIMEOUT_S = 240.0
"""Seconds after which a mutant counts as one that does not come to an end."""
WANTED = 0.95


@dataclass(frozen=True)
class Mutant:
    """A mistake: where `old` stands in `file`, exactly once, `new` is put."""

    name: str
    file: str
    old: str
    new: str

    def apply(self, tree: Path) -> None:
        """Make the mistake. Raises ValueError where the text no longer fits."""
        (tree / self.file).write_text(self.made_in(tree), "utf-8")

    def made_in(self, tree: Path) -> str:
        """The text of its file with the mistake. Raises ValueError where it no longer fits."""
        text = (tree / self.file).read_text("utf-8")
        if text.count(self.old) != 1:
            raise ValueError(
                f"{self.name}: its text stands {text.count(self.old)} times in {self.file}; mend the mutant"
            )
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    mutant: Mutant
    killed_by: str
    """What the judge said; empty for a survivor."""
    seconds: float


def mutants(*words: str) -> list[Mutant]:
    """All of them, or those whose name or file holds one of the words."""
    listed = tomllib.loads((Path(__file__).parent / "mutants.toml").read_text("utf-8"))["mutant"]
    found = [Mutant(**each) for each in listed]
    return [each for each in found if not words or any(word in each.name + each.file for word in words)]


def copy(tree: Path) -> Path:
    """A copy of what is judged."""
    for name in COPIED:
        source, target = ROOT / name, tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        else:
            shutil.copy(source, target)
    return tree


def judged(mutant: Mutant, tree: Path) -> Verdict:
    """Put the mutant into the tree, judge it, and take it out again."""
    clock = SystemClock()
    began, sound = clock.monotonic(), (tree / mutant.file).read_text("utf-8")
    mutant.apply(tree)
    try:
        said = _judge(tree)
    finally:
        (tree / mutant.file).write_text(sound, "utf-8")
    return Verdict(mutant, said, clock.monotonic() - began)


def _judge(tree: Path) -> str:
    """What the judge has against this tree; empty for nothing."""
    try:
        ended = subprocess.run(
            [sys.executable, "-B", "-m", "tests.mutants.judge"],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "does not come to an end"
    if ended.returncode == 0:
        return ""
    return (ended.stdout.strip() or ended.stderr.strip()).splitlines()[-1]


def verdicts(chosen: list[Mutant]) -> Iterator[Verdict]:
    """Each mutant's verdict, as it comes; several trees are at work at once."""
    with TemporaryDirectory(prefix="haru-mutants-") as folder, ThreadPoolExecutor(TOGETHER) as pool:
        trees: Queue[Path] = Queue()
        for number in range(TOGETHER):
            trees.put(copy(Path(folder) / str(number)))

        def work(mutant: Mutant) -> Verdict:
            tree = trees.get()
            try:
                return judged(mutant, tree)
            finally:
                trees.put(tree)

        yield from pool.map(work, chosen)


def main(*words: str) -> int:
    """Judge the repository itself, then every mutant; print a table."""
    chosen = mutants(*words)
    with TemporaryDirectory(prefix="haru-mutants-") as folder:
        tree = copy(Path(folder) / "tree")
        for mutant in chosen:
            sound = (tree / mutant.file).read_text("utf-8")
            mutant.apply(tree)
            (tree / mutant.file).write_text(sound, "utf-8")
        if said := _judge(tree):
            print(f"the repository itself does not pass: {said}")
            return 2
    done = []
    print("| mutant | file | verdict | said | s |\n|---|---|---|---|---|")
    for verdict in verdicts(chosen):
        done.append(verdict)
        how = "killed" if verdict.killed_by else "SURVIVED"
        said = verdict.killed_by.replace("|", "/")[:140]
        print(
            f"| {verdict.mutant.name} | `{verdict.mutant.file}` | {how} | {said} | {verdict.seconds:.0f} |", flush=True
        )
    killed = sum(bool(verdict.killed_by) for verdict in done)
    print(f"\n{killed} of {len(done)} mutants killed ({killed / len(done):.1%})")
    return 0 if killed / len(done) >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
