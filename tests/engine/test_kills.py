"""Laws 3 and 4, with real processes and SIGKILL: nothing is lost, nothing is done twice."""

from __future__ import annotations

from pathlib import Path

from haru_fsm.testing.kills import Scenario, prove_kills
from tests.cli.apps import STATES, write_app
from tests.engine.shopless import wiping_app

ROOT = Path(__file__).parent.parent.parent
PARCELS = "지금 배송중인 제 주문들 전부, 상품명이랑 택배사·송장번호를 정리해서 알려주세요."


def test_the_main_job_survives_every_kill() -> None:
    verdicts = list(prove_kills(Scenario(ROOT, "C003", (PARCELS,))))
    assert len(verdicts) >= 12
    assert [(verdict.name, verdict.broken) for verdict in verdicts if verdict.broken] == []


def test_an_effect_takes_place_once_or_is_in_doubt() -> None:
    wish = [("create_ticket", {"category": "기타", "urgency": "보통", "summary": "상담원 연결"})]
    scenario = Scenario(ROOT, "C003", ("상담원 연결해 주세요",), ([*wish], "담당자가 곧 연락드립니다."))
    verdicts = list(prove_kills(scenario))
    assert [(verdict.name, verdict.broken) for verdict in verdicts if verdict.broken] == []
    assert any("effect" in verdict.name for verdict in verdicts)


def test_what_was_approved_takes_place_once_or_is_in_doubt(tmp_path: Path) -> None:
    wish = [("wipe", {"what": "A"})]
    verdicts = list(prove_kills(Scenario(wiping_app(tmp_path), "C1", ("지워 주세요",), (wish, "지웠습니다."))))
    assert [(verdict.name, verdict.broken) for verdict in verdicts if verdict.broken] == []
    assert len(verdicts) >= 16


BOOKING = '''
from pathlib import Path

from haru_fsm import NotDone, tool

BOOKED = Path(__file__).parent.parent / "memory_store" / "booked"


def make_tools(session):
    @tool(read_only=False)
    def book() -> str:
        """Book the room, which can be had once."""
        if BOOKED.exists():
            raise NotDone("The room is taken.")
        BOOKED.parent.mkdir(exist_ok=True)
        BOOKED.touch()
        return "booked"

    return [book]
'''


def test_what_the_tools_write_stays_in_a_copy_and_is_no_other_case_s_world(tmp_path: Path) -> None:
    app = write_app(tmp_path / "rooms", states=STATES, tools=BOOKING)
    verdicts = list(prove_kills(Scenario(app, "C1", ("예약해 주세요",), ([("book", {})], "예약했습니다."))))
    assert [(verdict.name, verdict.broken) for verdict in verdicts if verdict.broken] == []
    assert any("effect" in verdict.name for verdict in verdicts)
    assert not (app / "memory_store").exists()
