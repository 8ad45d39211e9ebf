"""Laws 3 and 4 as properties: model scripts x tool behaviours x crash points, several deaths in one run, real SQLite."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haru_fsm import App, Limits
from haru_fsm.conversation import Resumed, Step, TicketOpened
from haru_fsm.models.scripted import answer, calls
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.testing import Behaviour, CrashPoint, Does, Play, crash_points, model_replies, tool_behaviours
from haru_fsm.testing.crashes import Place, When
from haru_fsm.testing.hunting import ALL_PROMISES, Ground
from haru_fsm.testing.plays import Reply
from haru_fsm.testing.telling import tell
from tests.engine.shopless import Tools, bare

TOOLS = Tools().make(None)


def app(**limits: int) -> App:
    """The default table with three small tools."""
    made = bare(Limits(**limits))
    return App(workflow=made.workflow, make_tools=Tools().make, limits=made.limits)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with Ground(app(), tmp_path_factory.mktemp("databases")) as ground:
        yield ground


@given(replies=model_replies(TOOLS), does=tool_behaviours(TOOLS), crashes=crash_points(4), two=st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_journal_ends_as_if_nothing_had_died(
    ground: Ground,
    replies: tuple[Reply, ...],
    does: dict[str, tuple[Behaviour, ...]],
    crashes: tuple[CrashPoint, ...],
    two: bool,
) -> None:
    """The final journal is the undisturbed one but for times and `resumed`; effects at most once; one ending."""
    messages = ("주문 확인해 주세요", "다시요")[: 1 + two]
    found = ground.judged(Play(messages=messages, replies=replies, behaviours=does, crashes=crashes), ALL_PROMISES)
    assert found is None, tell(found)


@pytest.mark.parametrize("place", ["write", "effect"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6, 7])
def test_each_point_of_a_run_with_effects_and_reads(ground: Ground, place: Place, when: When, number: int) -> None:
    """Once at each point, and a second time at the first write of the recovery."""
    replies = (
        calls(("look", {"what": "A"}), ("pay", {"what": "A"}), ("book", {"what": "B"})),
        calls(("look", {"what": "B"})),
        answer("네."),
    )
    crashes = (CrashPoint(place, number, when), CrashPoint("write", 1, "after"))
    found = ground.judged(Play(replies=replies, crashes=crashes), ALL_PROMISES)
    assert found is None, tell(found)


@given(deaths=st.integers(0, 9), most=st.integers(0, 4))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_budgets_survive_any_number_of_restarts(
    tmp_path_factory: pytest.TempPathFactory, deaths: int, most: int
) -> None:
    """A drifting model is stopped at the same request, however often its process dies; a run that dies too often is
    given up at `max_resumes`."""
    replies = tuple(calls(("look", {"what": str(number)})) for number in range(9))
    behaviours = {"look": tuple(Behaviour(does=Does.RETURNS, value=number) for number in range(9))}
    crashes = (CrashPoint("write", 2, "after"),) * deaths
    with Ground(app(max_steps=5, max_resumes=most), tmp_path_factory.mktemp("databases")) as ground:
        play = Play(replies=replies, behaviours=behaviours, crashes=crashes)
        found = ground.judged(play, ALL_PROMISES)
        assert found is None, tell(found)
        seen = ground.perform(play)
    [run] = seen.runs
    resumed = sum(isinstance(step.event, Resumed) for step in seen.steps)
    assert run.stopped_by is not None
    if resumed <= most:
        assert (run.steps, run.stopped_by.figure, run.stopped_by.limit) == (5, 5, 5)
    else:
        assert resumed == most + 1
        assert run.stopped_by.guard == f"ResumeBudget({most})"


SUICIDE = '''
import asyncio, os, signal, sys
from haru_fsm import App, Engine, Limits, load_app, tool
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.stores.sqlite import SQLiteStore

def make_tools(session):
    @tool(read_only=sys.argv[3] == "read")
    def segfault(what: str) -> str:
        """Ends the interpreter."""
        os.kill(os.getpid(), signal.SIGKILL)
    return [segfault]

def reply(request):
    if sys.argv[3] == "reply":
        os.kill(os.getpid(), signal.SIGKILL)
    return [("segfault", {"what": "A"})]

async def main():
    made = load_app(sys.argv[1], limits=Limits(max_resumes=2))
    app = App(workflow=made.workflow, make_tools=make_tools, limits=made.limits)
    async with Engine(app, model=ScriptedModel(reply), store=SQLiteStore(sys.argv[2])) as engine:
        await engine.resume_all()
        run = await engine.ask("안녕하세요", customer_id="C1", conversation_id="c-1", message_id="m1")
        print(run.state, run.stopped_by.guard)

asyncio.run(main())
'''


@pytest.mark.parametrize(("what", "guard", "lives"), [("reply", "ResumeBudget(2)", 4), ("read", "ResumeBudget(2)", 4)])
def test_what_kills_its_process_each_time_ends_in_a_ticket(tmp_path: Path, what: str, guard: str, lives: int) -> None:
    """Real processes: a reply, or a read-only tool, that crashes the interpreter, again and again."""
    ended = _lives(tmp_path, what)
    assert [code for code, _ in ended] == [-signal.SIGKILL] * (lives - 1) + [0]
    assert ended[-1][1].split() == ["ESCALATE_TICKET", guard]
    steps = asyncio.run(_steps(tmp_path / "haru.db"))
    assert sum(isinstance(step.event, Resumed) for step in steps) == 3
    assert isinstance(steps[-1].event, TicketOpened)


def test_an_effect_that_kills_its_process_is_tried_once_and_ends_in_a_ticket(tmp_path: Path) -> None:
    ended = _lives(tmp_path, "effect")
    assert [code for code, _ in ended] == [-signal.SIGKILL, 0]
    steps = asyncio.run(_steps(tmp_path / "haru.db"))
    assert isinstance(steps[-1].event, TicketOpened)
    assert "segfault" in steps[-1].event.ticket.summary


def _lives(folder: Path, what: str) -> list[tuple[int, str]]:
    """Processes, one after the other, until one lives; at most eight."""
    from tests.conftest import ROOT

    lives: list[tuple[int, str]] = []
    while len(lives) < 8 and (not lives or lives[-1][0] != 0):
        child = subprocess.run(
            [sys.executable, "-c", SUICIDE, str(ROOT), str(folder / "haru.db"), what],
            env={"PYTHONPATH": str(ROOT), "PATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        assert child.returncode <= 0, child.stderr
        lives.append((child.returncode, child.stdout))
    return lives


async def _steps(database: Path) -> tuple[Step, ...]:
    store = SQLiteStore(database)
    record = await store.load("c-1")
    await store.aclose()
    assert record is not None
    return record.steps
