"""A guard that claims a limit it does not keep is caught, whoever wrote it."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from haru_fsm import Limits
from haru_fsm.certificate.claims import broken_claims, untried_claims
from haru_fsm.certificate.histories import made_up, whole
from haru_fsm.cli import main
from haru_fsm.conversation import EVENTS, Event, HistoryAdopted, Step, ToolsExecuted, ToolsRequested, Trip
from haru_fsm.guards import (
    ApprovalBudget,
    Guard,
    LastWord,
    Nudged,
    ResumeBudget,
    StepBudget,
    TokenBudget,
    ToolCallBudget,
)
from haru_fsm.guards.guard import Counted
from haru_fsm.machine import Row, Workflow
from tests.engine.shopless import bare
from tests.tables import SMALL

ROOT = Path(__file__).parent.parent.parent
ASK = frozenset({"ASK"})


def asking(guard: Guard, event: type[Event] = ToolsRequested) -> Workflow:
    """The small table, which asks this guard before anything else."""
    source = next(str(row.sources[0]) for row in SMALL.rows if row.event is event)
    return Workflow([Row(event, source, "ESCALATE", when=guard), *SMALL.rows], work=SMALL.work, initial="DONE")


@dataclass(frozen=True)
class Asked(Guard):
    """Claims so many askings, and counts them in one way or another."""

    times: int

    @property
    def limit(self) -> int | None:
        return self.times

    def initial(self) -> int:
        return 0

    def fold(self, memo: int, step: Step) -> int:
        return memo + isinstance(step.event, ToolsRequested)

    def judge(self, memo: int, event: Event) -> Trip | None:
        return self.trip(memo, "asked too often") if memo >= self.times else None


class Forgets(Asked):
    """Counts anew whenever a tool was run."""

    def fold(self, memo: int, step: Step) -> int:
        return 0 if isinstance(step.event, ToolsExecuted) else super().fold(memo, step)


class OneTooMany(Asked):
    """Trips one later than it says."""

    def judge(self, memo: int, event: Event) -> Trip | None:
        return super().judge(memo - 1, event)


class ComesBack(Asked):
    """Trips once, and lets the next one pass."""

    def judge(self, memo: int, event: Event) -> Trip | None:
        return super().judge(memo, event) if memo != self.times + 1 else None


class CountsCalls(Asked):
    """A reply may come with no call at all, and then is not counted."""

    def fold(self, memo: int, step: Step) -> int:
        return memo + (len(step.event.calls) if isinstance(step.event, ToolsRequested) else 0)


class CountsTokens(StepBudget):
    """A request may cost nothing."""

    def fold(self, memo: int, step: Step) -> int:
        return memo + (step.event.usage.total if isinstance(step.event, ToolsRequested) else 0)


class Breaks(Asked):
    """Cannot judge a reply without calls."""

    def judge(self, memo: int, event: Event) -> Trip | None:
        assert isinstance(event, ToolsRequested)
        return super().judge(memo, event) if event.calls[0].name else None


class ForgetsAsking(Counted):
    """Is asked, and looks at something else."""

    def fold(self, memo: int, step: Step) -> int:
        return memo + isinstance(step.event, ToolsExecuted)


LIARS = [
    Forgets(3),
    OneTooMany(3),
    ComesBack(3),
    CountsCalls(3),
    CountsTokens(3, visits=ASK),
    ForgetsAsking(2),
    Breaks(2),
]
HONEST = [
    *(Asked(3), Asked(0), StepBudget(3, visits=ASK), StepBudget(1, visits=ASK), ToolCallBudget(5)),
    *(
        TokenBudget(7, visits=ASK),
        TokenBudget(1, visits=ASK),
        Nudged(2),
        ResumeBudget(5),
        ApprovalBudget(1),
        LastWord(),
    ),
    *(ToolCallBudget(5, scope="conversation"), StepBudget(300, visits=ASK)),
]


@pytest.mark.parametrize("guard", LIARS, ids=lambda guard: type(guard).__name__)
def test_a_broken_claim_is_found_and_told(guard: Guard) -> None:
    [claim] = broken_claims(asking(guard))
    assert claim.guard == guard
    assert guard.name in str(claim)
    assert ("claims to trip" in str(claim)) is not isinstance(guard, Breaks)


@pytest.mark.parametrize("guard", HONEST, ids=lambda guard: guard.name)
def test_a_kept_claim_is_not_doubted(guard: Guard) -> None:
    assert broken_claims(asking(guard)) == ()


@pytest.mark.parametrize("limits", [{}, {"final_answer_without_tools": True, "token_budget": 900, "max_steps": 2}])
def test_the_default_tables_guards_keep_their_claims(limits: dict[str, Any]) -> None:
    assert broken_claims(bare(Limits(**limits)).workflow) == ()


def test_every_event_of_the_journal_can_be_made_up() -> None:
    draw = random.Random(1)
    for event in EVENTS:
        if event is not HistoryAdopted:  # it begins a conversation, and no row is asked about it
            assert whole(made_up(event, draw)), event


def test_the_same_answer_every_time() -> None:
    told = {str(broken_claims(asking(Forgets(3)))[0]) for _ in range(3)}
    assert len(told) == 1


LYING = '''
from dataclasses import dataclass

from haru_fsm.guards import StepBudget as Honest


@dataclass(frozen=True)
class StepBudget(Honest):
    """Claims more than it keeps: after a tool has run it begins anew."""

    folds = None
    folds_by_kind = False

    def fold(self, memo, step):
        return 0 if step.event.kind == "tools_executed" else super().fold(memo, step)
'''


def test_a_claim_beyond_every_history_is_said_not_to_be_tried() -> None:
    assert untried_claims(asking(Forgets(2_000))) == ()
    assert untried_claims(asking(Forgets(2_001))) == (Forgets(2_001),)
    assert untried_claims(asking(StepBudget(2_001, visits=ASK))) == (), "the engine's own are tested with the engine"


@pytest.fixture
def lying(tmp_path: Path) -> Path:
    """The starter app with a budget of its own that does not keep what it claims."""
    for folder in ("states", "tools", "data"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "states" / "lying.py").write_text(LYING)
    table = tmp_path / "states" / "workflow.py"
    text = table.read_text().replace("    StepBudget,\n", "")
    table.write_text(text + "\n\nfrom .lying import StepBudget  # noqa: E402\n")
    return tmp_path


def test_check_says_what_it_could_not_try(lying: Path, capsys: pytest.CaptureFixture[str]) -> None:
    large = ("check", "--app", str(lying), "--max-steps", "2001")
    assert main(large) == 0
    [told] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("not tried: ")]
    assert "StepBudget(2001) claims to trip after 2,001" in told
    assert main([*large, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["not_tried"] == ["StepBudget(2001)"]
    assert main(["check", "--app", str(ROOT), "--max-steps", "2001"]) == 0
    assert "not tried" not in capsys.readouterr().out


def test_check_refuses_an_app_whose_guard_lies(lying: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--app", str(lying), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["accepted"] is False
    assert "StepBudget(8) claims to trip" in told["because"]
