"""Paths through a workflow, for people and for JSON: what happens several times on end is told once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from haru_fsm.certificate.arcs import Arc
from haru_fsm.machine import Workflow

LONGEST_REFRAIN = 24
"""Moves of the longest part whose repetition is looked for."""


class Move(BaseModel):
    """One event, the row of the table (from 0) that fires, and where it leads."""

    model_config = ConfigDict(frozen=True)

    event: str
    source: str
    target: str
    row: int
    rests: bool = False


class Stretch(BaseModel):
    """These moves, one after the other, and that so many times."""

    model_config = ConfigDict(frozen=True)

    moves: tuple[Move, ...]
    times: int = 1

    def __str__(self) -> str:
        steps = " ".join(f"-{move.event}-> {move.target}" for move in self.moves)
        return steps if self.times == 1 else f"({steps}) x {self.times:,}"


def moves(workflow: Workflow, arcs: Iterable[Arc]) -> tuple[Move, ...]:
    """These arcs as moves."""
    known: dict[tuple[int, str], Move] = {}
    found = []
    for arc in arcs:
        key = (arc.row, arc.source.state)
        if key not in known:
            row = workflow.rows[arc.row]
            known[key] = Move(
                event=row.kind, source=arc.source.state, target=str(row.target), row=arc.row, rests=row.rests
            )
        found.append(known[key])
    return tuple(found)


def stretches(workflow: Workflow, arcs: Sequence[Arc]) -> tuple[Stretch, ...]:
    """A path, with what is repeated written once."""
    path = moves(workflow, arcs)
    found: list[Stretch] = []
    once: list[Move] = []
    position = 0
    while position < len(path):
        length, times = _refrain(path, position)
        if times == 1:
            once.append(path[position])
        else:
            found += [Stretch(moves=tuple(once))] if once else []
            found.append(Stretch(moves=path[position : position + length], times=times))
            once = []
        position += length * times
    return (*found, *([Stretch(moves=tuple(once))] if once else []))


def _refrain(path: Sequence[Move], start: int) -> tuple[int, int]:
    """Length and number of the repetitions that cover most of what begins here; (1, 1) if there are none."""
    best = (1, 1)
    for length in range(1, LONGEST_REFRAIN + 1):
        part = path[start : start + length]
        times = 1
        while path[start + times * length : start + (times + 1) * length] == part and len(part) == length:
            times += 1
        if times > 1 and length * times > best[0] * best[1]:
            best = (length, times)
    return best


def in_words(path: Sequence[Stretch]) -> str:
    """A path as a line: `DONE -message_received-> AWAIT_MODEL (-tools_requested-> ...) x 7`."""
    if not path:
        return ""
    return " ".join([path[0].moves[0].source, *map(str, path)])


def one_by_one(path: Sequence[Stretch]) -> tuple[Move, ...]:
    """All moves of a path, repetitions written out."""
    return tuple(move for stretch in path for _ in range(stretch.times) for move in stretch.moves)
