"""A stored conversation run again from its journal: the same under the same app, and else the first difference."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm import App, Engine, Limits, Row, Workflow, tool
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import (
    ApprovalDecided,
    ApprovalRequested,
    FailureReason,
    HistoryAdopted,
    MessageReceived,
    ModelAnswered,
    ModelFailed,
    ObservationAppended,
    Resumed,
    TicketClosed,
    TicketOpened,
    ToolsRequested,
    Usage,
)
from haru_fsm.differences import Difference
from haru_fsm.ledger import Ledger
from haru_fsm.machine import CHANGED
from haru_fsm.models import ModelRequest
from haru_fsm.models.cassette import CassetteModel, Recorder
from haru_fsm.models.scripted import Line, ScriptedModel, answer, calls
from haru_fsm.notices import KOREAN
from haru_fsm.replaying import Replay, replay
from haru_fsm.services import Services
from haru_fsm.stores import Outcome, Record
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.testing.strict import check_contents
from haru_fsm.tickets import StoreDesk, draft
from tests.engine.shopless import Tools, broken, engine, not_done


def app(tools: Tools | None = None, **limits: Any) -> App:
    return engine(ScriptedModel([]), tools=tools, **limits).app


async def stored(haru: Engine, *messages: str) -> Record:
    """The journal of these messages, in one conversation."""
    conversation_id = None
    for message in messages:
        run = await haru.ask(message, customer_id="C1", conversation_id=conversation_id)
        conversation_id = run.conversation_id
    assert conversation_id is not None
    record = await haru.store.load(conversation_id)
    assert record is not None
    return record


def difference(now: App, record: Record) -> Difference:
    again = replay(now, record)
    assert not again.identical
    assert again.difference is not None
    assert again.same == again.difference.seq - 1
    return again.difference


LOOKS: list[Line] = [[("look", {"what": "A"})], [("look", {"what": "B"})], "A와 B 모두 배송중입니다."]


# --------------------------------------------------------------------------- the same


wanted = st.tuples(
    st.sampled_from(["look", "pay", "book", "nothing_like_it", "default_api.look"]),
    st.sampled_from([{"what": "A"}, {"what": "B"}, {}, {"what": 3}, {"what": None}, {"what": "A", "tool_code": "x"}]),
)
replies = st.one_of(
    st.sampled_from(["네.", "티켓 HT-1234567890을 접수했습니다.", "상담 티켓이 접수되었습니다."]).map(answer),
    st.builds(
        lambda asked, text, tokens: calls(*asked, text=text, usage=Usage(prompt=tokens, cost_usd=tokens / 1e6)),
        st.lists(wanted, min_size=1, max_size=3),
        st.sampled_from(["", "확인해 볼게요"]),
        st.integers(0, 900),
    ),
    # One that is too large is asked for twice within one event.
    st.builds(
        ModelFailed,
        reason=st.sampled_from(FailureReason).filter(lambda reason: reason is not FailureReason.TOO_LARGE),
        requests=st.integers(1, 4),
    ),
)
behaviours = st.sampled_from([broken, not_done, lambda a: "x" * 40_000, lambda a: {1: float("nan"), "s": "\ud800"}])
limits = st.fixed_dictionaries(
    {"max_steps": st.integers(1, 9), "max_tool_calls": st.integers(1, 9), "loop_nudges": st.integers(0, 3)},
    optional={
        "token_budget": st.integers(1, 3000),
        "cost_budget_usd": st.floats(0.0001, 0.003),
        "loop_repeats": st.integers(2, 4),
        "deadline_s": st.just(0.5),
        "compact_at_tokens": st.sampled_from([1, 400]),
        "keep_recent_contents": st.integers(1, 4),
    },
)


@given(
    script=st.lists(replies, max_size=12),
    does=st.dictionaries(st.sampled_from(["look", "pay", "book"]), behaviours),
    chosen=limits,
    messages=st.integers(1, 3),
    stops=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_whatever_happened_comes_out_the_same(script: Any, does: Any, chosen: Any, messages: int, stops: bool) -> None:
    """Nothing is run, nothing is stored, and the requests are those that were made."""

    async def run() -> None:
        model, tools = ScriptedModel(script), Tools(**does)
        async with engine(model, tools=tools, **chosen) as haru:
            if stops:
                await _left_unfinished(haru, "c-1")
                await haru.resume("c-1")
                record = await haru.store.load("c-1")
                assert record is not None
            else:
                record = await stored(haru, *(f"질문 {number}" for number in range(messages)))
            runs, journal = tools.runs.copy(), record.steps
            heard: list[ModelRequest] = []
            again = replay(haru.app, record, lambda request, _: heard.append(request))
            assert again == Replay(
                conversation_id=record.summary.conversation_id, identical=True, steps=len(journal), same=len(journal)
            )
            assert tools.runs == runs
            after = await haru.store.load(record.summary.conversation_id)
            assert after is not None
            assert after.steps == journal
            assert [request.contents for request in heard] == [request.contents for request in model.requests]

    asyncio.run(run())


async def _left_unfinished(haru: Engine, conversation_id: str) -> None:
    """A process has taken the message, and died."""
    begun = haru.app.workflow.begin(conversation_id, "C1")
    message = MessageReceived(text="질문")
    await haru.store.append(haru.app.workflow.advance(begun, message), expected_seq=0, owner=None, over=None, lease_s=0)


async def test_a_long_story_comes_out_the_same() -> None:
    """Tickets, a person's reply, a doubt that was settled, a rehearsal, a history that was taken over."""
    script: list[Line] = [
        [("pay", {"what": "A"})], "잘 모르겠습니다.", [("pay", {"what": "A"})], "결제되었습니다.",
        ModelFailed(reason="server"), *LOOKS,
    ]  # fmt: skip
    async with engine(ScriptedModel(script), tools=Tools(pay=broken)) as haru:
        first = await haru.ask("결제", customer_id="C1", conversation_id="c-1")
        assert first.ticket is not None
        call = (await stored_as(haru, "c-1")).steps[1].seq
        await haru.settle("c-1", f"{call}.0", Outcome(status="done", response={"result": "paid"}, by="person"))
        await haru.close_ticket(first.ticket.ticket_id, "확인했습니다.")
        await haru.ask("됐나요?", customer_id="C1", conversation_id="c-1")
        await haru.ask("그럼 이건요?", customer_id="C1", conversation_id="c-1")
        forked = await haru.fork("c-1", at=2)
        late = await haru.fork("c-1", at=len((await stored_as(haru, "c-1")).steps))
        assert late.ticket is not None
        assert late.ticket.conversation_id == "c-1"
        adopted = await haru.adopt(
            [{"role": "user", "parts": [{"text": "안녕"}]}, {"role": "assistant", "parts": [{"text": "네"}]}],
            customer_id="C1",
        )
        await haru.ask("어디?", customer_id="C1", conversation_id=adopted.conversation_id)
        for conversation_id in ("c-1", *(run.conversation_id for run in (forked, late, adopted))):
            again = replay(haru.app, await stored_as(haru, conversation_id))
            assert again.identical, again.difference


async def test_services_that_are_copied_know_all_that_has_happened() -> None:
    """As for the ticket of a fork's parent: what was folded for the one is folded for the other too."""
    async with engine(ScriptedModel([])) as haru:
        record = await stored(haru, "어디?")
    now = haru.app
    conversation = now.workflow.replay(now.workflow.begin(record.summary.conversation_id, "C1"), record.steps)
    services = Services(
        model=ScriptedModel([]),
        tools=now.toolbox(now.session("C1")),
        ledger=Ledger(haru.store, conversation.conversation_id, {}),
        desk=StoreDesk(haru.store),
        clock=FakeClock(),
        limits=now.limits,
    )
    known = services.history(conversation), services.progress(conversation)
    again = dataclasses.replace(services, rehearsal=True)
    assert (again.history(conversation), again.progress(conversation)) == known


async def stored_as(haru: Engine, conversation_id: str) -> Record:
    record = await haru.store.load(conversation_id)
    assert record is not None
    return record


async def _think(conversation: Any, services: Any) -> ModelAnswered | ToolsRequested | ModelFailed:
    event: ModelAnswered | ToolsRequested | ModelFailed = await services.model.respond(services.request(conversation))
    return event


def _hand_over(conversation: Any, services: Any) -> TicketOpened:
    ticket = draft(conversation, category="other", urgency="normal", at=services.clock.now())
    return TicketOpened(ticket=ticket, notice=KOREAN.ticket(ticket))


def _another(**limits: Any) -> App:
    """An app of another make: its work files tickets by itself, its states have names of their own, and its table says
    nothing of runs that are taken up again."""
    rows = [
        Row(MessageReceived, ("DONE", "PERSON"), "THINK"),
        Row(ModelAnswered, "THINK", "DONE", rests=True),
        Row(ToolsRequested, "THINK", "PERSON"),
        Row(ModelFailed, "THINK", "PERSON"),
        Row(TicketOpened, "PERSON", "PERSON", rests=True),
        Row(TicketClosed, "PERSON", "DONE", rests=True),
    ]
    workflow = Workflow(rows, work={"THINK": _think, "PERSON": _hand_over}, initial="DONE")
    return App(workflow=workflow, make_tools=lambda _: [], limits=Limits(**limits))


async def test_an_app_of_another_make_comes_out_the_same() -> None:
    clock = FakeClock(1_785_000_000.123456)
    async with Engine(_another(), model=ScriptedModel(["네"]), store=MemoryStore(now=clock.now), clock=clock) as haru:
        again = replay(haru.app, await stored(haru, "하나", "둘"))
    assert again.identical, again.difference


async def test_a_run_that_was_taken_up_without_a_row_for_it() -> None:
    async with Engine(_another(), model=ScriptedModel(["네"]), store=MemoryStore()) as haru:
        workflow = haru.app.workflow
        died = workflow.advance(workflow.begin("c-1", "C1"), MessageReceived(text="질문"))
        for _ in range(3):
            died = workflow.stay(died, Resumed(worker="one that dies"))
        await haru.store.append(died, expected_seq=0, owner=None, over=None, lease_s=0)
        await haru.resume("c-1")
        record = await stored_as(haru, "c-1")
    assert [step.event.kind for step in record.steps].count("resumed") == 4
    assert replay(_another(), record).identical
    found = difference(_another(max_resumes=2), record)
    assert (found.seq, found.was) == (4, "→ THINK")
    assert found.now.startswith("→ PERSON, resumed_too_often: ")


async def test_that_an_app_was_changed_under_way_is_a_fact_like_a_crash() -> None:
    async with engine(ScriptedModel(["네"])) as haru:
        workflow = haru.app.workflow
        begun = workflow.advance(workflow.begin("c-1", "C1"), MessageReceived(text="질문"))
        stranded = workflow.strand(begun, Resumed(), CHANGED, "the app was changed while the run was open")
        await haru.store.append(stranded, expected_seq=0, owner=None, over=None, lease_s=0)
        ended = await haru.resume("c-1")
        assert ended.ticket is not None
        again = replay(haru.app, await stored_as(haru, "c-1"))
    assert again.identical, again.difference


async def test_an_unfinished_run_is_the_same_so_far() -> None:
    async with engine(ScriptedModel([])) as haru:
        await _left_unfinished(haru, "c-1")
        again = replay(haru.app, await stored_as(haru, "c-1"))
    assert (again.identical, again.steps) == (True, 1)


# --------------------------------------------------------------------------- limits and tables


async def test_a_lower_limit_stops_where_it_would_have() -> None:
    async with engine(ScriptedModel(LOOKS)) as haru:
        record = await stored(haru, "어디 있나요?")
    found = difference(app(max_steps=2), record)
    assert (found.seq, found.kind, found.what) == (5, "tools_requested", "way")
    assert found.was == "→ EXECUTE_TOOLS"
    assert found.now.startswith("→ ESCALATE_TICKET, StepBudget(2): ")


async def test_a_higher_limit_goes_on_where_it_had_stopped() -> None:
    async with engine(ScriptedModel(LOOKS), max_steps=2) as haru:
        record = await stored(haru, "어디 있나요?")
    found = difference(app(), record)
    assert (found.seq, found.now) == (5, "→ EXECUTE_TOOLS")
    assert "StepBudget(2)" in found.was


async def test_a_compacted_history_is_compacted_as_it_was(tmp_path: Path) -> None:
    """Under whatever limits it is replayed: what the model read then is what it has answered."""
    lines: list[Any] = [[("look", {"what": f"{number} " + "x" * 900})] for number in range(6)]
    script: list[Line] = [*lines, "다 봤습니다."]
    async with engine(ScriptedModel(script), compact_at_tokens=400, keep_recent_contents=2) as haru:
        record = await stored(haru, "다 찾아 주세요")
    assert any(isinstance(step.event, ToolsRequested) and step.event.compaction for step in record.steps)
    file = tmp_path / "c.jsonl"
    assert replay(app(), record, Recorder(file).note).identical
    assert "compaction" not in file.read_text("utf-8")
    async with engine(CassetteModel(file), compact_at_tokens=400, keep_recent_contents=2) as haru:
        assert (await haru.ask("다 찾아 주세요", customer_id="C1")).answer == script[-1]


async def test_a_limit_that_nothing_came_near_changes_nothing() -> None:
    async with engine(ScriptedModel(LOOKS)) as haru:
        record = await stored(haru, "어디 있나요?")
    assert replay(app(max_steps=3, token_budget=10_000, deadline_s=60.0), record).identical


async def test_money_and_time_are_those_of_the_journal() -> None:
    paid = [calls(("look", {"what": name}), usage=Usage(prompt=10, cost_usd=0.4)) for name in "ABC"]
    clock = FakeClock()

    def slow(argument: str) -> str:
        clock.advance(3.0)
        return argument

    async with engine(ScriptedModel([*paid, "네"]), tools=Tools(look=slow), clock=clock) as haru:
        record = await stored(haru, "어디?")
    assert difference(app(cost_budget_usd=1.0), record).seq == 8
    assert difference(app(deadline_s=4.0), record).now.startswith("→ ESCALATE_TICKET, Deadline(4.0)")


async def test_the_time_that_decided_work_took_is_the_journals_too() -> None:
    record = await _looked()
    observed = next(step for step in record.steps if isinstance(step.event, ObservationAppended))
    slow = observed._replace(event=observed.event.model_copy(update={"took_ms": 5000}))
    steps = tuple(slow if step is observed else step for step in record.steps)
    found = difference(app(deadline_s=4.0), dataclasses.replace(record, steps=steps))
    assert (found.seq, found.kind) == (observed.seq, "observation_appended")


async def test_a_table_without_the_row() -> None:
    """Whoever has had an answer may not write again; so nobody may wait for an approval, either."""
    async with engine(ScriptedModel(["네", "네"])) as haru:
        record = await stored(haru, "하나", "둘")
    now = app()
    gone = (MessageReceived, ApprovalRequested, ApprovalDecided)
    rows = [row for row in now.workflow.rows if row.event not in gone]
    rows.append(Row(MessageReceived, "ESCALATE_TICKET", "AWAIT_MODEL"))
    rows.append(Row(ApprovalRequested, "EXECUTE_TOOLS", "ESCALATE_TICKET"))
    found = difference(dataclasses.replace(now, workflow=_with(now, rows, initial="ESCALATE_TICKET")), record)
    assert (found.seq, found.what, found.was) == (3, "way", "→ AWAIT_MODEL")
    assert "message_received came in state DONE, and the table has no row for it" in found.now


def _with(now: App, rows: list[Row], work: dict[str, Any] | None = None, initial: str | None = None) -> Workflow:
    return Workflow(rows, work={**now.workflow.work, **(work or {})}, initial=initial or now.workflow.initial)


async def test_a_state_that_gives_other_events() -> None:
    async with engine(ScriptedModel(LOOKS)) as haru:
        record = await stored(haru, "어디 있나요?")
    now = app()

    async def only_answers(conversation: Any, services: Any) -> ModelAnswered | ModelFailed:
        raise AssertionError("nobody asks it")

    rows = [
        row
        for row in now.workflow.rows
        if row.event is not ToolsRequested and row.source not in ("EXECUTE_TOOLS", "APPEND_OBSERVATION")
    ]
    work = {
        name: each for name, each in now.workflow.work.items() if name not in ("EXECUTE_TOOLS", "APPEND_OBSERVATION")
    }
    answering = dataclasses.replace(
        now, workflow=Workflow(rows, work={**work, "AWAIT_MODEL": only_answers}, initial="DONE")
    )
    found = difference(answering, record)
    assert (found.seq, found.kind) == (2, "tools_requested")
    assert "does not give this event" in found.now


async def test_the_definition_under_which_it_began() -> None:
    async with engine(ScriptedModel(LOOKS)) as haru:
        record = await stored(haru, "어디 있나요?")
    now = app()
    assert not replay(now, record).definition_changed
    rows = [row for row in now.workflow.rows if row.event is not TicketClosed]
    fewer = dataclasses.replace(now, workflow=_with(now, rows))
    again = replay(fewer, record)
    assert (again.identical, again.definition_changed) == (True, True)


# --------------------------------------------------------------------------- words


async def test_what_is_decided_in_other_words() -> None:
    """A refusal is read by the model: other words make another conversation."""
    async with engine(ScriptedModel([[("look", {"what": "A"})]] * 3 + ["네"])) as haru:
        record = await stored(haru, "어디?")
    now = app()
    seq = next(step.seq for step in record.steps if isinstance(step.event, ObservationAppended) and step.event.refusals)

    def kinder(conversation: Any, services: Any) -> ObservationAppended:
        made = now.workflow.work["APPEND_OBSERVATION"](conversation, services)
        assert isinstance(made, ObservationAppended)
        return made.model_copy(update={"refusals": dict.fromkeys(made.refusals, "please stop")})

    found = difference(
        dataclasses.replace(now, workflow=_with(now, list(now.workflow.rows), {"APPEND_OBSERVATION": kinder})), record
    )
    assert (found.seq, found.what, found.now) == (seq, "event", "refusals.0: please stop")
    assert found.was.startswith("refusals.0: This call was not run.")


async def test_a_ticket_that_says_something_else() -> None:
    async with engine(ScriptedModel([])) as haru:
        record = await stored(haru, "어디?")
    now = app()

    def elsewhere(conversation: Any, services: Any) -> TicketOpened:
        wanted = draft(conversation, category="배송", urgency="보통", at=services.clock.now())
        return TicketOpened(ticket=wanted, notice=KOREAN.ticket(wanted))

    found = difference(
        dataclasses.replace(now, workflow=_with(now, list(now.workflow.rows), {"ESCALATE_TICKET": elsewhere})), record
    )
    assert (found.was, found.now) == ("ticket.category: 기타", "ticket.category: 배송")


async def test_work_that_raises() -> None:
    async with engine(ScriptedModel([])) as haru:
        record = await stored(haru, "어디?")
    now = app()

    def falls(conversation: Any, services: Any) -> TicketOpened:
        raise RuntimeError("wires crossed")

    found = difference(
        dataclasses.replace(now, workflow=_with(now, list(now.workflow.rows), {"ESCALATE_TICKET": falls})), record
    )
    assert found.now == "the work raises RuntimeError('wires crossed')"


# --------------------------------------------------------------------------- tools


async def _looked() -> Record:
    async with engine(ScriptedModel(LOOKS)) as haru:
        return await stored(haru, "어디 있나요?")


def _tools(*functions: Any) -> App:
    return app().with_tools(lambda _session: list(functions))


async def test_a_tool_that_is_gone() -> None:
    found = difference(_tools(), await _looked())
    assert (found.seq, found.what) == (3, "tool")
    assert (found.was, found.now) == ("look only reads", "look was refused")


async def test_a_tool_that_takes_other_arguments() -> None:
    @tool(read_only=True)
    def look(order: int) -> str:
        """Look something up."""
        raise AssertionError("nobody runs it")

    assert difference(_tools(look), await _looked()).now == "look was refused"


async def test_a_tool_that_acts_where_it_only_read() -> None:
    @tool(read_only=False)
    def look(what: str) -> str:
        """Look something up."""
        raise AssertionError("nobody runs it")

    assert difference(_tools(look), await _looked()).now == "look may act on the world"


async def test_a_call_that_was_refused_and_could_run_now() -> None:
    async with engine(ScriptedModel([[("find", {"what": "A"})], "없습니다."])) as haru:
        record = await stored(haru, "어디?")

    @tool(read_only=True)
    def find(what: str) -> str:
        """Find something."""
        raise AssertionError("nobody runs it")

    found = difference(_tools(find), record)
    assert (found.was, found.now) == ("find was refused", "find only reads")


async def test_a_tool_that_answers_otherwise_shows_nothing_for_it_is_not_run() -> None:
    record = await _looked()
    assert replay(app(Tools(look=broken)), record).identical


# --------------------------------------------------------------------------- contents


async def test_a_history_that_the_api_would_refuse() -> None:
    orphan = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}
    async with engine(ScriptedModel(["네"])) as haru:
        workflow = haru.app.workflow
        adopted = workflow.adopt(workflow.begin("c-1", "C1"), HistoryAdopted(contents=(orphan,)))
        await haru.store.append(adopted, expected_seq=0, owner=None, over=None, lease_s=0)
        await haru.ask("?", customer_id="C1", conversation_id="c-1")
        record = await stored_as(haru, "c-1")
    found = difference(haru.app, record)
    assert (found.seq, found.what) == (3, "contents")
    assert found.now == "; ".join(check_contents([orphan, {"role": "user", "parts": [{"text": "?"}]}]))


# --------------------------------------------------------------------------- freezing


async def test_a_stored_conversation_becomes_a_cassette(tmp_path: Path) -> None:
    """Two runs with a ticket between them; played in another conversation, which has a ticket of its own."""
    script: list[Line] = [*LOOKS[:1], ModelFailed(reason="server"), "번호는 위에 있습니다."]
    async with engine(ScriptedModel(script)) as haru:
        record = await stored(haru, "어디 있나요?", "접수 번호가 뭐였죠?")
    file = tmp_path / "c.jsonl"
    assert replay(haru.app, record, Recorder(file).note).identical
    async with engine(CassetteModel(file)) as haru:
        played = await stored(haru, "어디 있나요?", "접수 번호가 뭐였죠?")
    assert [step.event.kind for step in played.steps] == [step.event.kind for step in record.steps]
    assert [step.state for step in played.steps] == [step.state for step in record.steps]
    assert isinstance(played.steps[-1].event, ModelAnswered)


@pytest.mark.parametrize("tools", [Tools(), Tools(look=lambda what: {"what": what, "status": "도착"})])
async def test_a_frozen_conversation_shows_what_a_change_of_a_tool_does(tmp_path: Path, tools: Tools) -> None:
    file = tmp_path / "c.jsonl"
    replay(app(), await _looked(), Recorder(file).note)
    async with engine(CassetteModel(file), tools=tools) as haru:
        run = await haru.ask("어디 있나요?", customer_id="C1")
    if not tools.behave:
        assert run.answer == LOOKS[-1]
        return
    assert run.stopped_by is not None
    assert '"status": "배송중"' in run.stopped_by.because
    assert '"status": "도착"' in run.stopped_by.because
