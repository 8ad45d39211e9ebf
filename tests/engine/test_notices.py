"""What the engine itself says, in the words of the app: at each of the places where it speaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from haru_fsm import App, Engine, Limits, load_app, tool
from haru_fsm.app import starter
from haru_fsm.cli.starting import write_app
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import Ticket, TicketOpened
from haru_fsm.errors import AppError
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.notices import ENGLISH, KOREAN, NUMBER, Notices
from haru_fsm.replaying import replay
from haru_fsm.stores.memory import MemoryStore
from tests.engine.shopless import Where, bare

HERE = Where(customer_id="C1", conversation_id="c-1")


def wiping(_session: Any) -> list[Callable[..., Any]]:
    @tool(read_only=False, approval=True)
    def wipe(what: str) -> str:
        """Wipe something out."""
        return what

    return [wipe]


class Down:
    def open(self, ticket: Ticket) -> Ticket:
        raise OSError("out of reach")


def english(script: Any, desk: Any = None) -> Engine:
    app = App(bare(Limits()).workflow, wiping, notices=ENGLISH)
    clock = FakeClock()
    return Engine(app, model=ScriptedModel(script), store=MemoryStore(now=clock.now), desk=desk, clock=clock)


async def test_a_ticket_and_what_is_added_to_it_are_told_in_the_apps_words() -> None:
    haru = english([])
    run = await haru.ask("help", **HERE)
    assert run.ticket is not None
    number = run.ticket.ticket_id
    assert run.answer == ENGLISH.opened.replace(NUMBER, number)
    again = await haru.ask("help", **HERE)
    assert again.answer == ENGLISH.added.replace(NUMBER, number)
    stored = await haru.store.load("c-1")
    assert stored is not None
    opened = [step.event for step in stored.steps if isinstance(step.event, TicketOpened)]
    assert [event.notice for event in opened] == [run.answer, again.answer]
    assert replay(haru.app, stored).identical


async def test_a_pause_and_a_message_in_it_are_told_in_the_apps_words() -> None:
    haru = english([[("wipe", {"what": "A"})]])
    waiting = await haru.ask("wipe it", **HERE)
    assert (waiting.answer, waiting.reply_id) == (ENGLISH.waiting, "c-1/1/waiting")
    assert (await haru.resume("c-1")).answer == ENGLISH.waiting
    held = [await haru.ask("well?", **HERE, message_id="m-2") for _ in range(2)]
    assert {each.answer for each in held} == {ENGLISH.held}


async def test_a_desk_that_is_down_is_told_in_the_apps_words() -> None:
    haru = english([], desk=Down())
    run = await haru.ask("help", **HERE, message_id="m-1")
    assert (run.answer, run.reply_id) == (ENGLISH.holding, "c-1/1/holding")
    assert await haru.ask("help", **HERE, message_id="m-1") == run


async def test_a_run_that_is_still_to_be_begun_is_told_in_the_apps_words() -> None:
    run = await english([]).adopt([{"role": "user", "parts": [{"text": "help"}]}], **HERE)
    assert (run.answer, run.reply_id) == (ENGLISH.working, "c-1/1/working")


def test_a_folder_exports_its_notices(tmp_path: Path) -> None:
    assert load_app(starter()).notices == KOREAN
    write_app(tmp_path / "bank")
    states = tmp_path / "bank" / "states" / "__init__.py"
    states.write_text(f"from haru_fsm.notices import ENGLISH as NOTICES\n{states.read_text('utf-8')}", "utf-8")
    assert load_app(tmp_path / "bank").notices == ENGLISH


def test_what_are_no_notices_is_refused() -> None:
    wrong: Any = {"opened": "A colleague"}
    with pytest.raises(AppError, match="its notices are a dict"):
        App(bare(Limits()).workflow, wiping, notices=wrong)


@pytest.mark.parametrize("name", [field.name for field in fields(Notices)])
def test_a_notice_that_says_nothing_is_refused_before_a_customer_reads_it(name: str) -> None:
    nothing: Any
    for nothing in (None, 5, " \u200b"):
        with pytest.raises(AppError, match=f"its notice `{name}` is .* Say what the customer is to read"):
            App(bare(Limits()).workflow, wiping, notices=replace(ENGLISH, **{name: nothing}))


@pytest.mark.parametrize("name", ["holding", "working", "waiting", "held"])
def test_a_number_is_told_where_there_is_a_ticket(name: str) -> None:
    with pytest.raises(AppError, match=f"its notice `{name}` tells {{ticket_id}}, and there is no ticket then"):
        App(bare(Limits()).workflow, wiping, notices=replace(ENGLISH, **{name: f"Number {NUMBER}"}))


@pytest.mark.parametrize("notices", [KOREAN, ENGLISH])
def test_only_what_is_told_of_a_ticket_names_a_number(notices: Notices) -> None:
    named = {field.name for field in fields(Notices) if NUMBER in getattr(notices, field.name)}
    assert named == {"opened", "added"}
    assert not any(mark in getattr(notices, field.name) for field in fields(Notices) for mark in "*#`")
