"""Mistakes in parts of one's own: told with the part's name, and the run can be taken up when they are mended."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, cast

import pytest

from haru_fsm import App, Engine, Limits, Row, Workflow
from haru_fsm.cli.figures import ending
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import (
    Conversation,
    Event,
    FailureReason,
    MessageReceived,
    ModelAnswered,
    ModelFailed,
    Resumed,
    Ticket,
    TicketClosed,
    TicketOpened,
    ToolsRequested,
    Trip,
)
from haru_fsm.errors import AppError
from haru_fsm.escalating import hand_over
from haru_fsm.guards import Guard, ResumeBudget, StepBudget, UnfoundedTicketClaim
from haru_fsm.models import Model, ModelRequest
from haru_fsm.models.scripted import ScriptedModel, answer
from haru_fsm.models.two_tier import TwoTierModel
from haru_fsm.notices import KOREAN
from haru_fsm.services import Services
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.testing import assert_every_run_ends, assert_valid_history
from tests.engine.shopless import Tools, bare, engine


class Mine:
    """A model that gives this, whatever is asked."""

    name = "mine"

    def __init__(self, gives: Any) -> None:
        self.gives = gives

    async def respond(self, _request: ModelRequest) -> Any:
        return self.gives


class Plain(Mine):
    """The same, and not async."""

    def respond(self, _request: ModelRequest) -> Any:
        return self.gives


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (Mine(None), "The model mine gave None"),
        (Mine("네, 배송중입니다."), "The model mine gave '네, 배송중입니다.'"),
        (Plain({"text": "네."}), "The model mine gave {'text': '네.'}"),
        (TwoTierModel(Mine(None), ScriptedModel(["네."])), "The model mine gave None"),
    ],
)
async def test_what_is_no_outcome_of_a_model_is_told(model: Model, told: str) -> None:
    store = MemoryStore()
    with pytest.raises(AppError, match=re.escape(told)):
        await engine(model, store=store).ask("언제 와요?", customer_id="C001", conversation_id="c-1")
    run = await engine(Plain(answer("내일요.")), store=store).resume("c-1")
    assert (run.state, run.answer) == ("DONE", "내일요.")


async def test_a_model_without_a_name_is_refused() -> None:
    nameless: Any = object()
    with pytest.raises(AppError, match="has no `name`"):
        engine(nameless)


async def test_what_is_no_event_of_a_state_s_work_is_told() -> None:
    def work(_conversation: Any, _services: Any) -> ModelAnswered | ModelFailed | ToolsRequested:
        return cast(ModelAnswered, "done")

    table = bare(Limits()).workflow
    broken = Workflow(table.rows, work={**table.work, "AWAIT_MODEL": work}, initial=table.initial)
    app = App(workflow=broken, make_tools=Tools().make, system_prompt="하루")
    with pytest.raises(AppError, match="The work of AWAIT_MODEL gave 'done', which is no event"):
        await Engine(app, model=ScriptedModel([]), store=MemoryStore()).ask("언제 와요?", customer_id="C001")


async def test_work_that_does_not_wait_for_its_model_is_told_so() -> None:
    async def work(_conversation: Any, services: Any) -> ModelAnswered | ModelFailed | ToolsRequested:
        return cast(ModelAnswered, services.model.respond(None))

    table = bare(Limits()).workflow
    broken = Workflow(table.rows, work={**table.work, "AWAIT_MODEL": work}, initial=table.initial)
    app = App(workflow=broken, make_tools=Tools().make, system_prompt="하루")
    with pytest.raises(AppError, match="of AWAIT_MODEL gave a coroutine that was not awaited"):
        await Engine(app, model=ScriptedModel([]), store=MemoryStore()).ask("언제 와요?", customer_id="C001")


# --------------------------------------------------------------------------- a state between the answer and the customer


class AnswerChecked(Event):
    kind: Literal["answer_checked"] = "answer_checked"
    polite: bool


@dataclass(frozen=True)
class Rude(Guard):
    judges = (AnswerChecked,)
    folds = ()

    def judge(self, memo: Any, event: Event) -> Trip | None:
        assert isinstance(event, AnswerChecked)
        return None if event.polite else self.trip(1, "the answer is rude")


async def think(conversation: Conversation, services: Services) -> ModelAnswered | ToolsRequested | ModelFailed:
    return await services.model.respond(services.request(conversation))


def check(conversation: Conversation, services: Services) -> AnswerChecked:
    answered = conversation.steps[-1].event
    assert isinstance(answered, ModelAnswered)
    return AnswerChecked(polite="몰라" not in answered.text)


def person(conversation: Conversation, services: Services) -> TicketOpened:
    return cast(TicketOpened, hand_over(conversation, services, category="help", urgency="low"))


CHECKED = Workflow(
    [
        Row(MessageReceived, ("DONE", "PERSON"), "THINK"),
        Row(ModelAnswered, "THINK", "PERSON", when=UnfoundedTicketClaim()),
        Row(ModelAnswered, "THINK", "CHECK"),
        Row(ToolsRequested, "THINK", "PERSON"),
        Row(ModelFailed, "THINK", "PERSON"),
        Row(AnswerChecked, "CHECK", "PERSON", when=Rude()),
        Row(AnswerChecked, "CHECK", "DONE", rests=True),
        Row(Resumed, ("THINK", "CHECK"), "PERSON", when=ResumeBudget(3)),
        Row(Resumed, "THINK", "THINK"),
        Row(Resumed, "CHECK", "CHECK"),
        Row(TicketOpened, "PERSON", "PERSON", rests=True),
        Row(TicketClosed, ("DONE", "PERSON"), "DONE", rests=True),
    ],
    work={"THINK": think, "CHECK": check, "PERSON": person},
    initial="DONE",
)


async def test_an_answer_that_was_looked_at_before_the_run_rests_is_what_the_customer_reads() -> None:
    app = App(workflow=CHECKED, make_tools=lambda session: [])
    haru = Engine(app, model=ScriptedModel(["내일 가요.", "몰라", "모레 가요."]), store=MemoryStore())
    run = await haru.ask("언제 와요?", customer_id="C001", conversation_id="c-1", message_id="m-1")
    assert (run.state, run.answer, run.reply_id, run.ticket) == ("DONE", "내일 가요.", "c-1/1/reply", None)
    assert await haru.ask("언제 와요?", customer_id="C001", conversation_id="c-1", message_id="m-1") == run
    rude = await haru.ask("정말요?", customer_id="C001", conversation_id="c-1")
    assert rude.ticket is not None
    assert rude.ticket.ticket_id in rude.answer
    assert "몰라" not in rude.answer
    assert (await haru.ask("네?", customer_id="C001", conversation_id="c-1")).answer == "모레 가요."
    stored = await haru.store.load("c-1")
    assert stored is not None
    by_run = [ending([step for step in stored.steps if step.run == number]) for number in (1, 2, 3)]
    assert by_run == ["answer", "ticket", "answer"]


def test_such_a_table_keeps_its_promises_under_attack() -> None:
    app = App(workflow=CHECKED, make_tools=lambda session: [])
    assert_every_run_ends(app, examples=15, customers=("C001",), save_to=None)
    assert_valid_history(app, examples=15, customers=("C001",), save_to=None)


class Down:
    def open(self, ticket: Ticket) -> Ticket:
        raise OSError("out of reach")


async def test_an_answer_that_was_refused_is_not_read_while_the_desk_is_down() -> None:
    app = App(workflow=CHECKED, make_tools=lambda session: [])
    clock = FakeClock()
    store = MemoryStore(now=clock.now)
    haru = Engine(app, model=ScriptedModel(["몰라"]), store=store, desk=Down(), clock=clock)
    run = await haru.ask("언제 와요?", customer_id="C001")
    assert (run.finished, run.answer) == (False, KOREAN.holding)


AGAIN = Workflow(
    [
        Row(MessageReceived, "DONE", "THINK"),
        Row(ModelAnswered, "THINK", "CHECK"),
        Row(ToolsRequested, "THINK", "DONE", rests=True),
        Row(ModelFailed, "THINK", "DONE", rests=True),
        Row(AnswerChecked, "CHECK", "DONE", when=StepBudget(3, visits=frozenset({"THINK"})), rests=True),
        Row(AnswerChecked, "CHECK", "THINK", when=Rude()),
        Row(AnswerChecked, "CHECK", "DONE", rests=True),
        Row(Resumed, ("THINK", "CHECK"), "DONE", when=ResumeBudget(3), rests=True),
        Row(Resumed, "THINK", "THINK"),
        Row(Resumed, "CHECK", "CHECK"),
    ],
    work={"THINK": think, "CHECK": check},
    initial="DONE",
)


async def test_an_answer_that_was_sent_back_is_not_read_where_the_model_gave_no_other() -> None:
    app = App(workflow=AGAIN, make_tools=lambda session: [])
    model = ScriptedModel(["몰라", ModelFailed(reason=FailureReason.SERVER, detail="down")])
    run = await Engine(app, model=model, store=MemoryStore()).ask("언제 와요?", customer_id="C001")
    assert (run.state, run.finished) == ("DONE", True)
    assert "몰라" not in run.answer
