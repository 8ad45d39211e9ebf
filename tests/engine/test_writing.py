"""What is written when: each step once, in as few appends as its work allows, asked for again where the store fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from haru_fsm import Engine, tool
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import Conversation, MessageReceived, Resumed, Step
from haru_fsm.errors import ConversationMoved, FormatTooNew, HaruError, JournalDamaged, StoreError
from haru_fsm.models import ModelOutcome, ModelRequest
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.runs import Piece
from haru_fsm.session import Session
from haru_fsm.stores import Started
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.worker import APPEND_ATTEMPTS
from tests.engine.shopless import Where, engine, record_of

HERE = Where(customer_id="C1", conversation_id="c-1")
LOOK = [("look", {"what": "A"})]
PAY = [("pay", {"what": "A"})]


class Failing(MemoryStore):
    """Counts what it is asked to append, and fails as often as it is told to."""

    def __init__(self, *errors: HaruError, release: HaruError | None = None) -> None:
        super().__init__()
        self.errors, self.release_error = list(errors), release
        self.appends: list[int] = []

    async def append(self, conversation: Conversation, **place: Any) -> None:
        self.appends.append(conversation.seq - place["expected_seq"])
        if self.errors:
            raise self.errors.pop(0)
        await super().append(conversation, **place)

    async def release(self, conversation_id: str, owner: str) -> None:
        if self.release_error is not None:
            raise self.release_error
        await super().release(conversation_id, owner)


@pytest.mark.parametrize(
    ("script", "appends"),
    [(["네."], [1, 1]), ([LOOK, "네."], [1, 1, 2, 1]), ([PAY, LOOK, "네."], [1, 1, 2, 1, 2, 1])],
)
async def test_a_step_is_durable_before_the_work_after_it_and_costs_no_more_appends(
    script: list[Any], appends: list[int]
) -> None:
    """The message; then for each step its reply, and its results together with the observation; then the answer."""
    store = Failing()
    await engine(ScriptedModel(script), store=store).ask("안녕하세요", **HERE)
    assert store.appends == appends


async def test_who_watches_sees_each_step_once_and_only_those_of_this_time() -> None:
    haru = engine(ScriptedModel([LOOK, "네.", PAY, "네."]))
    seen: list[Step] = []
    for text in ("하나", "둘"):
        await haru.ask(text, **HERE, watch=lambda item: seen.append(item) if isinstance(item, Step) else None)
    assert tuple(seen) == (await record_of(haru, "c-1")).steps


async def test_a_store_that_fails_for_a_moment_is_asked_again() -> None:
    store, clock = Failing(*[StoreError("busy")] * (APPEND_ATTEMPTS - 1)), FakeClock()
    began = clock.monotonic()
    assert (await engine(ScriptedModel(["네."]), store=store, clock=clock).ask("안녕", **HERE)).answer == "네."
    assert clock.monotonic() - began == pytest.approx(0.1 + 0.2)


async def test_a_store_that_goes_on_failing_is_told() -> None:
    store = Failing(*[StoreError("down")] * 9)
    with pytest.raises(StoreError, match="down"):
        await engine(ScriptedModel(["네."]), store=store).ask("안녕", **HERE)
    assert len(store.appends) == APPEND_ATTEMPTS


@pytest.mark.parametrize("error", [ConversationMoved("x"), JournalDamaged("x"), FormatTooNew("x")])
async def test_what_no_asking_again_can_mend_is_told_at_once(error: HaruError) -> None:
    store = Failing(error)
    with pytest.raises(type(error)):
        await engine(ScriptedModel(["네."]), store=store).ask("안녕", **HERE)
    assert store.appends == [1]


async def test_what_went_wrong_is_told_and_not_that_the_lease_could_not_be_given_back() -> None:
    class Broken(ScriptedModel):
        async def respond(self, request: ModelRequest) -> ModelOutcome:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await engine(Broken([]), store=Failing(release=StoreError("down"))).ask("안녕", **HERE)


async def test_tools_and_models_are_told_what_they_work_for() -> None:
    sessions: list[tuple[int, str, bool, float]] = []

    def made(session: Session) -> list[Callable[..., Any]]:
        @tool(read_only=True)
        def look(what: str) -> str:
            """Look something up."""
            sessions.append((session.run, session.conversation_id, session.rehearsal, session.now()))
            return what

        return [look]

    model, clock = ScriptedModel([LOOK, "네."] * 3), FakeClock()
    base = engine(model, clock=clock)
    haru = Engine(base.app.with_tools(made), model=model, store=base.store, clock=clock)
    pieces: list[str] = []
    for text in ("하나", "둘"):
        await haru.ask(text, **HERE, watch=lambda item: pieces.append(item.text) if isinstance(item, Piece) else None)
    forked = await haru.fork("c-1", at=1)
    now = clock.now()
    assert sessions == [(1, "c-1", False, now), (2, "c-1", False, now), (1, forked.conversation_id, True, now)]
    assert pieces == ["네.", "네."]
    assert {request.system for request in model.requests} == {haru.app.system_prompt}
    assert haru.app.system_prompt


async def test_who_takes_a_run_up_again_notes_what_was_begun_in_it_and_nothing_of_earlier_runs() -> None:
    """An effect of the first run is in doubt as well: that is the first run's."""
    haru = engine(ScriptedModel([]))
    await haru.ask("하나", **HERE)
    store = haru.store
    await store.note("c-1", "2.0", Started(run=1, name="pay", digest="x"))
    dying = engine(ScriptedModel([PAY]), store=store)
    worker = dying._conversations.worker(await dying._conversations.load("c-1"), None)
    await worker._receive(MessageReceived(text="둘"))
    await worker._save()
    await worker._let_go()
    await store.note("c-1", "5.0", Started(run=2, name="pay", digest="x"))
    await haru.resume("c-1")
    [resumed] = [step.event for step in (await record_of(haru, "c-1")).steps if isinstance(step.event, Resumed)]
    assert resumed.begun == ("5.0",)
