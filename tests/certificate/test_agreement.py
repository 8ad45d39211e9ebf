"""The certificate against trying everything out, on random small tables. HARU_RANDOM_TABLES raises their number."""

from __future__ import annotations

import os

import pytest

from haru_fsm.certificate.arcs import Arc, Graph, read
from haru_fsm.certificate.figures import Costs, Figures
from haru_fsm.certificate.loops import endless_loop
from haru_fsm.certificate.worst_case import Runs, estimate
from haru_fsm.conversation import Resumed
from haru_fsm.machine import Workflow

from .driving import drive, round_and_round
from .explorer import explore, heaviest, shortest_loop
from .tables import Decided, random_table

TABLES = int(os.environ.get("HARU_RANDOM_TABLES", "5000"))
PARTS = 10


@pytest.mark.parametrize("part", range(PARTS))
def test_the_certificate_agrees_with_trying_everything_out(part: int) -> None:
    verdicts = [agrees(seed) for seed in range(part, TABLES, PARTS)]
    assert 0.25 < sum(verdicts) / len(verdicts) < 0.75, "the tables no longer test both verdicts"


def agrees(seed: int) -> bool:
    """Whether runs of this table end; compares everything that both sides know of it."""
    workflow = random_table(seed)
    graph = read(workflow)
    everything = explore(workflow, resumes=True)
    exact = heaviest(workflow, everything)
    loop = endless_loop(graph)
    assert (loop is None) == (exact is not None), f"seed {seed}: {loop} against {exact}"
    if loop is not None:
        assert loop.confirmed
        if len(everything) < 60:
            assert len(loop.loop) == shortest_loop(everything), f"seed {seed}"
        if seed % 8 == 0 and journaled(*loop.path, *loop.loop):
            round_and_round(workflow, loop, steps=60)
    else:
        if any(row.event is Resumed for row in workflow.rows):
            exact = heaviest(workflow, explore(workflow, resumes=False))
        figures_agree(seed, workflow, graph, exact or (0, 0))
    return loop is None


def figures_agree(seed: int, workflow: Workflow, graph: Graph, exact: tuple[int, int]) -> None:
    figures = Figures(graph, Costs())
    for worst_case, figure in zip((figures.transitions, figures.visits), exact, strict=True):
        assert (worst_case.value, worst_case.at_most) == (figure, False), f"seed {seed}"
    assert len(figures.transitions.path) == exact[0]
    if seed % 8 == 0 and journaled(*figures.transitions.path):
        assert drive(workflow, figures.transitions.path).seq == exact[0]
    assert estimate(graph.undisturbed, one) >= exact[0], f"seed {seed}: arithmetic is no bound"
    half = Runs(graph.undisturbed).worst(one, most_spots=12)
    assert half.value >= exact[0], f"seed {seed}: a half unfolding is no bound"


def one(_arc: Arc) -> int:
    return 1


def journaled(*arcs: Arc) -> bool:
    """Whether the journal knows all these events; it does not know the tests' own."""
    return all(arc.event is not Decided for arc in arcs)
