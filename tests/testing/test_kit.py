"""The kit holds for a sound app, and finds each mistake: with a readable conversation, as short as can be, that replays."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from haru_fsm import Session, tool
from haru_fsm.guards import UnfoundedTicketClaim
from haru_fsm.models.scripted import answer, calls
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.testing import (
    assert_effects_once,
    assert_every_run_ends,
    assert_scoped,
    assert_valid_history,
    load_copy,
    replay,
)
from haru_fsm.testing.behaviours import Behaviour, Does
from haru_fsm.testing.comparing import CARRIED_ON
from haru_fsm.testing.crashes import CrashPoint
from haru_fsm.testing.customers import customers_of
from haru_fsm.testing.driving import CONVERSATION
from haru_fsm.testing.hunting import Found, Ground, Subject, hunt
from haru_fsm.testing.plays import Play
from haru_fsm.testing.strategies import hostile_plays
from tests.conftest import ROOT
from tests.testing.broken import (
    ORDERS,
    Cart,
    DropsSteps,
    LateClaims,
    LosesTickets,
    Never,
    NeverTrips,
    OpenClaims,
    careful,
    forgets_responses,
    leaky,
    public,
    small_app,
    trusting,
    weighing,
)

ONE = ("C1",)


def failure(assertion: Callable[..., None], app: Subject, **how: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assertion(app, **how)
    return str(caught.value)


@pytest.mark.parametrize("assertion", [assert_every_run_ends, assert_effects_once, assert_valid_history])
def test_a_sound_app_passes(assertion: Callable[..., None]) -> None:
    assertion(small_app(), save_to=None, customers=ONE)


def test_a_sound_app_with_events_of_its_own_passes_on_any_store(tmp_path: Path) -> None:
    """A file keeps them as plain events, and they come back as what they are."""
    for store in (MemoryStore, tmp_path):
        assert_effects_once(weighing(), customers=ONE, store=store, save_to=None, examples=15)


def test_the_starter_passes_all_four(tmp_path: Path) -> None:
    app = load_copy(ROOT, tmp_path / "app")
    assert_every_run_ends(app, save_to=None, examples=40)
    assert_effects_once(app, save_to=None, examples=40)
    assert_valid_history(app, save_to=None, examples=40)
    assert_scoped(app, save_to=None, examples=40)


def test_a_guard_that_never_trips_is_seen_to_run_on(tmp_path: Path) -> None:
    told = failure(assert_every_run_ends, small_app(budget=NeverTrips(4)), save_to=tmp_path, customers=ONE)
    assert "run 1 went on after" in told
    assert "its certificate allows 12 transitions" in told
    assert len(told.splitlines()) <= 12, told
    assert "times in all" in told, "what repeats is told once"

    (file,) = tmp_path.glob("*.json")
    assert f"haru prove --replay {file}" in told
    with pytest.raises(AssertionError, match="run 1 went on after"):
        replay(small_app(budget=NeverTrips(4)), file)
    replay(small_app(), file)


def test_a_ticket_that_is_only_claimed_is_seen() -> None:
    told = failure(assert_every_run_ends, small_app(unfit=Never()), save_to=None, customers=ONE)
    assert "exactly one ending" in told
    assert "ticket" in told
    assert [line.split()[0] for line in told.splitlines()[-2:]] == ["customer", "model"]


def test_an_answer_over_a_doubt_is_seen() -> None:
    told = failure(
        assert_effects_once, small_app(unfit=UnfoundedTicketClaim()), save_to=None, examples=400, customers=ONE
    )
    assert "it is not known how call" in told


def test_a_ticket_that_was_never_filed_is_seen() -> None:
    told = failure(assert_every_run_ends, small_app(), store=LosesTickets, save_to=None, customers=ONE)
    assert "which does not exist" in told


@pytest.mark.parametrize("store", [LateClaims, OpenClaims])
def test_a_tool_that_runs_twice_is_seen(store: type[MemoryStore]) -> None:
    told = failure(assert_effects_once, small_app(), store=store, save_to=None, customers=ONE)
    assert "effects at most once" in told
    assert "pay" in told or "book" in told


def test_a_store_that_drops_a_step_is_seen() -> None:
    told = failure(assert_effects_once, small_app(), store=DropsSteps, save_to=None, customers=ONE)
    assert "step 3" in told or "step 4" in told


def test_a_history_without_responses_is_seen() -> None:
    told = failure(
        assert_valid_history, small_app(work={"AWAIT_MODEL": forgets_responses}), save_to=None, customers=ONE
    )
    assert "last content must be a user turn" in told


def test_tools_that_leak_are_seen(tmp_path: Path) -> None:
    app = small_app(make_tools=leaky)
    told = failure(assert_scoped, app, customers=("C1", "C2"), save_to=tmp_path)
    assert "which is C" in told
    assert "order(" in told
    assert_scoped(small_app(make_tools=careful), customers=("C1", "C2"), save_to=None)


def test_what_is_given_to_whoever_knows_the_number_is_a_leak(tmp_path: Path) -> None:
    """Nothing in the answer is a word of the other's; it is what the other gets, and what nobody else's number gets."""
    told = failure(assert_scoped, small_app(make_tools=trusting), customers=("C1", "C2"), save_to=tmp_path)
    (file,) = tmp_path.glob("*.json")
    assert told.endswith(f"replay(app, {str(file)!r}).")
    told = told.partition("\n\nKept in")[0]
    assert "what it gives C" in told
    assert "public=['HR" in told
    assert [line.split()[0] for line in told.splitlines()[-4:]] == ["customer", "model", "order", "model"]
    with pytest.raises(AssertionError, match="what it gives C"):
        replay(small_app(make_tools=trusting), file)  # with the customers that it was found with
    replay(small_app(make_tools=careful), file)
    everybody = [number for orders in ORDERS.values() for number in orders]
    assert_scoped(small_app(make_tools=trusting), customers=("C1", "C2"), public=everybody, save_to=None)


def test_what_everybody_gets_is_no_leak() -> None:
    assert_scoped(small_app(make_tools=public), customers=("C1", "C2"), save_to=None)


def test_tools_that_change_what_others_have_are_seen() -> None:
    cart = Cart()
    app = small_app(make_tools=cart.make)
    told = failure(assert_scoped, app, customers=("C1", "C2"), reset=cart.fill, save_to=None)
    assert "has changed from" in told
    assert [line.split()[0] for line in told.splitlines()[-4:]] == ["customer", "model", "remove", "model"]


def test_scope_takes_two_customers() -> None:
    with pytest.raises(ValueError, match="two customers"):
        assert_scoped(small_app(make_tools=careful), customers=("C1",))


async def test_an_assertion_runs_inside_an_event_loop_too() -> None:
    assert_every_run_ends(small_app(), examples=5, save_to=None, customers=ONE)
    await asyncio.sleep(0)


def test_korean_is_told_as_it_is_written(tmp_path: Path) -> None:
    told = failure(assert_every_run_ends, small_app(unfit=Never()), save_to=tmp_path, customers=ONE)
    (file,) = tmp_path.glob("*.json")
    assert "\\u" not in told
    assert "티켓" in told or "ticket" in told
    assert "\\u" not in file.read_text("utf-8")


def test_what_a_crash_has_changed_is_told_with_its_place() -> None:
    """A read that knows how often it was asked, once over: after a death it is asked again."""
    asked: list[str] = []

    def counting(session: Session) -> list[Callable[..., Any]]:
        @tool(read_only=True)
        def look() -> dict[str, Any]:
            """Looks, and counts."""
            asked.append(session.customer_id)
            return {"seen": [len(asked)]}

        return [look]

    play = Play(
        replies=(calls(("look", {})), answer("네.")), crashes=(CrashPoint("write", 3, "before"),), customer="C1"
    )
    with Ground(small_app(make_tools=counting), reset=asked.clear) as ground:
        found = ground.judged(play, (CARRIED_ON,))
    assert found is not None
    place = "tools_executed in EXECUTE_TOOLS has event.results[0].response.result.seen[0] 2, against 1"
    assert found.because == f"after a crash the journal differs from the undisturbed one: {place}"


def test_what_does_not_come_again_is_told_as_that() -> None:
    seen: list[Play] = []

    def judged(play: Play) -> Found | None:
        seen.append(play)
        return Found(CARRIED_ON, "it differs", ground.perform(play)) if len(seen) == 3 else None

    with Ground(small_app()) as ground:
        found = hunt(ground, hostile_plays(ground.app, customers=ONE), judged, examples=10)
    assert found is not None
    assert found.because.startswith("it differs (not each time: something outlives a conversation")


def test_who_dies_with_a_write_under_way_dies_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    late = Behaviour(does=Does.LATE, value={"ok": True})
    play = Play(
        replies=(calls(("pay", {"what": "A"}), ("pay", {"what": "B"})), answer("네.")),
        behaviours={"pay": (late,)},
        crashes=(CrashPoint("write", 5, "before"),),
        customer="C1",
    )
    with Ground(small_app()) as ground:
        assert ground.perform(play).deaths, "while the outcome of a call that was given up was being written"
        logging.getLogger("haru_fsm").warning("The outcome of a call of %s came late", CONVERSATION)
    gc.collect()
    assert [record.getMessage() for record in caplog.records] == []
    logging.getLogger("haru_fsm").warning("Of %s nothing is kept back afterwards", CONVERSATION)
    assert len(caplog.records) == 1


def test_who_an_app_gives_as_an_example_asks_first() -> None:
    app = dataclasses.replace(small_app(), example_customer="u-1")
    assert customers_of(app) == ("u-1", "C001", "C002", "C003")
    assert customers_of(small_app()) == ("C001", "C002", "C003")
