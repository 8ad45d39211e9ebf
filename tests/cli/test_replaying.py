"""haru replay: what it says, with which exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import PARCELS, Haru


@pytest.fixture
def asked(haru: Haru) -> str:
    return str(haru("ask", PARCELS, "--customer", "C003", "--json").json["conversation_id"])


def test_identical(haru: Haru, asked: str) -> None:
    told = haru("replay", asked)
    assert (told.code, told.out, told.err) == (0, f"identical: all 8 steps of {asked}\n", "")
    again = haru("replay", asked, "--json").json
    assert (again["identical"], again["steps"], again["same"], again["difference"]) == (True, 8, 8, None)


def test_the_first_difference(haru: Haru, asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARU_LIMITS__MAX_STEPS", "2")
    told = haru("replay", asked)
    assert told.code == 1
    assert told.out.splitlines() == [
        "differs at step 5 of 8: tools_requested (way)",
        "  was  → EXECUTE_TOOLS",
        "  now  → ESCALATE_TICKET, StepBudget(2): the model was asked 2 times, the limit is 2",
    ]
    again = haru("replay", asked, "--json")
    assert (again.code, again.json["identical"], again.json["difference"]["seq"]) == (1, False, 5)


def test_nothing_is_stored(haru: Haru, asked: str) -> None:
    before = haru("show", asked, "--json").out
    haru("replay", asked)
    assert haru("show", asked, "--json").out == before
    assert len(haru("list", "--json").json) == 1


def test_a_conversation_is_frozen_and_played(haru: Haru, asked: str, tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    assert haru("replay", asked, "--save", str(file)).code == 0
    played = haru("ask", PARCELS, "--customer", "C003", "--model", f"cassette:{file}", "--json").json
    assert (played["state"], played["steps"], played["tool_runs"]) == ("DONE", 3, 4)
    again = haru("replay", asked, "--save", str(file))
    assert again.code == 2
    assert "is there already" in again.complaint


def test_what_differs_is_frozen_as_far_as_it_goes(
    haru: Haru, asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARU_LIMITS__MAX_STEPS", "2")
    file = tmp_path / "c.jsonl"
    assert haru("replay", asked, "--save", str(file)).code == 1
    assert len(file.read_text("utf-8").splitlines()) == 2


def test_a_conversation_that_is_not_there(haru: Haru) -> None:
    told = haru("replay", "c-0000000000")
    assert told.code == 2
    assert not Path("haru.db").exists()
