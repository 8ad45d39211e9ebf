"""The engine with histories that outgrow the window: what is sent, what is journaled, what nobody notices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm import Limits, Run
from haru_fsm.asking import SUMMARISER
from haru_fsm.clock import FakeClock
from haru_fsm.contents import History
from haru_fsm.conversation import (
    JSON,
    Answer,
    Compaction,
    FailureReason,
    HistoryAdopted,
    ModelEvent,
    ModelFailed,
    Share,
    Step,
    ToolsRequested,
    Trip,
    Usage,
)
from haru_fsm.digest import HEAD
from haru_fsm.models import ModelOutcome, ModelRequest
from haru_fsm.models.scripted import Line, ScriptedModel, answer, calls
from haru_fsm.replaying import replay
from haru_fsm.runs import Piece
from haru_fsm.stores import Outcome, Record
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.testing.comparing import plain
from haru_fsm.testing.strict import check_contents
from haru_fsm.toolbox.cutting import size_of
from tests.engine.shopless import Tools, bare, engine, not_done, record_of

SMALL: dict[str, Any] = {"compact_at_tokens": 1, "keep_recent_contents": 2}
"""Every request is too large, so that whatever can be cut is."""


Wish = str | list[tuple[str, JSON]]
"""An answer, or calls: lines of a script."""


def long(_argument: str) -> JSON:
    return {"status": "배송중", "text": "Picked up by the carrier. " * 60}


def compactions(record: Record) -> list[Compaction]:
    asked = [step.event for step in record.steps if isinstance(step.event, ModelEvent)]
    return [event.compaction for event in asked if event.compaction is not None]


def sent(model: ScriptedModel) -> list[int]:
    return [sum(map(size_of, request.contents)) for request in model.requests if request.system != SUMMARISER]


def too_large(**more: Any) -> ModelFailed:
    return ModelFailed(reason=FailureReason.TOO_LARGE, detail="400: the input token count exceeds the maximum", **more)


def looking(count: int, end: str = "네, 오고 있습니다.") -> list[Wish]:
    return [*[[("look", {"what": f"HR2026072500{number}"})] for number in range(count)], end]


# --------------------------------------------------------------------------- nobody notices


WANTS: st.SearchStrategy[list[tuple[str, JSON]]] = st.one_of(
    st.lists(
        st.tuples(
            st.sampled_from(["look", "pay", "book", "nothing"]), st.fixed_dictionaries({"what": st.sampled_from("AB")})
        ),
        min_size=1,
        max_size=3,
    ),
    st.just([("look", {})]),
)
LINES = st.lists(st.one_of(WANTS, WANTS, WANTS, st.sampled_from(["네.", "답" * 400])), max_size=12)


def wishes(lines: list[Wish]) -> list[Line]:
    """The lines as replies with signatures and counted prompts."""
    return [line if isinstance(line, str) else _signed(number, line) for number, line in enumerate(lines)]


def _signed(number: int, wanted: list[tuple[str, JSON]]) -> ToolsRequested:
    content = calls(*wanted).content
    parts = [{**content["parts"][0], "thoughtSignature": "QUJD" * (1 + number)}, *content["parts"][1:]]
    usage = Usage(prompt=400, answer=20)
    return calls().model_copy(update={"content": {"role": "model", "parts": parts}, "usage": usage, "model": "m"})


HISTORY: list[JSON] = [
    {"role": "user", "parts": [{"text": "전에 물었던 것"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "look", "id": "z", "args": {}}, "thoughtSignature": "QUJD"}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "look", "id": "z", "response": {"s": "1" * 900}}}]},
    {"role": "model", "parts": [{"text": "전에 한 답"}]},
]


@given(
    LINES,
    st.lists(st.sampled_from(["어디쯤 왔나요?", "그럼 " + "취소해 주세요. " * 90]), min_size=1, max_size=3),
    st.fixed_dictionaries(
        {"keep_recent_contents": st.integers(1, 7), "compact_at_tokens": st.sampled_from([1, 400, 2_000])}
    ),
    st.sampled_from([{}, {"pay": lambda _: 1 / 0}, {"pay": not_done}]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_runs_are_the_same_with_compaction_and_without(
    lines: list[Wish],
    questions: list[str],
    limits: dict[str, Any],
    behave: dict[str, Callable[[str], Any]],
    adopted: bool,
) -> None:
    async def run() -> None:
        whole, _ = await _talk(lines, questions, behave, adopted, {})
        short, model = await _talk(lines, questions, behave, adopted, limits)
        assert plain(_bald(short.steps)) == plain(_bald(whole.steps))
        for request in model.requests:
            assert check_contents(list(request.contents)) == []
            said = [part.get("text") for content in request.contents for part in content["parts"]]
            assert said[0] == (HISTORY[0]["parts"][0]["text"] if adopted else questions[0])
            assert set(said) & set(questions)
        assert _judged(short.steps) == _judged(_bald(short.steps))

    asyncio.run(run())


async def _talk(
    lines: list[Wish],
    questions: list[str],
    behave: dict[str, Callable[[str], Any]],
    adopted: bool,
    limits: dict[str, Any],
) -> tuple[Record, ScriptedModel]:
    """A conversation whose tickets are closed by a person, and its journal; a fork of it reads what it read."""
    tools = Tools(look=long, **behave)
    async with engine(model := ScriptedModel(wishes(lines)), tools=tools, **limits) as haru:
        if adopted:
            await haru.adopt(HISTORY, customer_id="C1", conversation_id="c-1")
        for question in questions:
            done = await haru.ask(question, customer_id="C1", conversation_id="c-1")
            if done.ticket is not None:
                await haru.close_ticket(done.ticket.ticket_id, "처리했습니다.")
        record = await record_of(haru, "c-1")
        requests = [list(request.contents) for request in model.requests]
        assert _sent_again(record.steps, haru.app.limits) == requests
        asked = [step.seq for step in record.steps if isinstance(step.event, ModelEvent)]
        await haru.fork("c-1", at=asked[-1] - 1)
        assert list(model.requests[len(requests)].contents) == requests[-1]
    return record, model


def _bald(steps: Iterable[Step]) -> tuple[Step, ...]:
    """The steps without compactions."""
    return tuple(
        step._replace(event=step.event.model_copy(update={"compaction": None}))
        if isinstance(step.event, ModelEvent)
        else step
        for step in steps
    )


def _sent_again(steps: Iterable[Step], limits: Limits) -> list[list[JSON]]:
    """The contents of each request, made from the journal alone."""
    history, requests = History(output_chars=limits.tool_output_chars), list[list[JSON]]()
    for step in steps:
        if isinstance(step.event, ModelEvent):
            requests.append(list(history.as_asked(step.event).request()))
        history = history.fold(step)
    return requests


def _judged(steps: Iterable[Step], **limits: Any) -> list[tuple[str, Trip | None, Answer | None]]:
    """Where the table leads these events, and which guards trip, when they are judged again under other limits."""
    workflow = bare(Limits(token_budget=3_000, **limits)).workflow
    conversation = workflow.begin("c", "C1")
    for step in steps:
        if isinstance(step.event, HistoryAdopted):
            conversation = workflow.adopt(conversation, step.event)
        elif workflow.accepts(conversation.state, type(step.event)):
            conversation = workflow.advance(conversation, step.event)
    return [(step.state, step.trip, step.answer) for step in conversation.steps]


async def test_a_long_run_sends_less_and_ends_alike() -> None:
    async def ask(**limits: Any) -> tuple[Run, list[int]]:
        model = ScriptedModel(looking(7))
        async with engine(model, tools=Tools(look=long), **limits) as haru:
            done = await haru.ask("다 어디쯤 왔나요?", customer_id="C1")
        return done, sent(model)

    whole, before = await ask()
    short, after = await ask(**SMALL)
    assert (short.answer, short.steps, short.state) == (whole.answer, whole.steps, whole.state)
    assert all(one <= other for one, other in zip(after, before, strict=True))
    assert after[-1] < before[-1] / 3


async def test_the_journal_says_up_to_which_step_was_cut() -> None:
    async with engine(ScriptedModel(looking(5)), tools=Tools(look=long), **SMALL) as haru:
        done = await haru.ask("다 어디쯤 왔나요?", customer_id="C1")
        record = await record_of(haru, done.conversation_id)
    observed = [step.seq for step in record.steps if step.event.kind == "observation_appended"]
    assert [found.seq for found in compactions(record)] == observed[:-1], "all but the recent one"


async def test_it_survives_the_process(tmp_path: Path) -> None:
    clock = FakeClock()
    async with engine(
        first := ScriptedModel(looking(5)),
        tools=Tools(look=long),
        store=SQLiteStore(tmp_path / "db"),
        clock=clock,
        **SMALL,
    ) as haru:
        done = await haru.ask("다 어디쯤 왔나요?", customer_id="C1")
    async with engine(
        second := ScriptedModel(["네."]), store=SQLiteStore(tmp_path / "db"), clock=clock, compact_at_tokens=10**6
    ) as haru:
        await haru.ask("그럼 언제 오나요?", customer_id="C1", conversation_id=done.conversation_id)
        record = await record_of(haru, done.conversation_id)
    assert len(compactions(record)) >= 2
    before, (request,) = first.requests[-1].contents, second.requests
    assert list(request.contents[: len(before)]) == list(before)
    assert HEAD in str(request.contents[1])


async def test_a_fork_reads_what_its_parent_read() -> None:
    model = ScriptedModel([*looking(5), "다르게 답합니다."])
    async with engine(model, tools=Tools(look=long), **SMALL) as haru:
        done = await haru.ask("다 어디쯤 왔나요?", customer_id="C1")
        record = await record_of(haru, done.conversation_id)
        last = record.steps[-1].seq
        await haru.fork(done.conversation_id, at=last - 1)
    assert list(model.requests[-1].contents) == list(model.requests[-2].contents)


async def test_a_replay_reads_what_was_read() -> None:
    model, heard = ScriptedModel(looking(5)), list[list[JSON]]()
    async with engine(model, tools=Tools(look=long), **SMALL) as haru:
        done = await haru.ask("다 어디쯤 왔나요?", customer_id="C1")
        record = await record_of(haru, done.conversation_id)
        again = replay(haru.app, record, lambda request, _: heard.append(list(request.contents)))
    assert compactions(record)
    assert again.identical, again
    assert heard == [list(request.contents) for request in model.requests]


async def test_what_is_in_doubt_stays_in_sight_until_it_is_settled() -> None:
    tools = Tools(look=long, pay=lambda _: 1 / 0)
    model = ScriptedModel([[("pay", {"what": "HR1"})], *looking(4, "확인했습니다."), *looking(4)])
    async with engine(model, tools=tools, max_steps=20, **SMALL) as haru:
        first = await haru.ask("결제해 주세요", customer_id="C1")
        assert first.ticket is not None
        _, _, call, response, *_ = model.requests[-1].contents
        assert call["parts"][0]["functionCall"] == {"name": "pay", "args": {"what": "HR1"}}
        assert "It is not known whether pay took place" in str(response)
        paid = Outcome(status="done", response={"result": {"paid": "HR1"}})
        await haru.settle(first.conversation_id, "2.0", paid)
        again = await haru.ask("됐나요?", customer_id="C1", conversation_id=first.conversation_id)
    assert again.state == "DONE"
    assert "'name': 'pay'" not in str(model.requests[-1].contents)
    assert "Outcome of call 2.0" in str(model.requests[-1].contents)


@pytest.mark.parametrize("limits", [{}, SMALL], ids=["whole", "made shorter"])
async def test_an_outcome_that_came_late_is_told_with_the_next_request(limits: dict[str, Any]) -> None:
    model = ScriptedModel([[("pay", {"what": "HR1"})], *looking(3), "네."])
    async with engine(model, tools=Tools(look=long, pay=lambda _: 1 / 0), **limits) as haru:
        first = await haru.ask("결제해 주세요", customer_id="C1", conversation_id="c-1")
        assert first.state == "ESCALATE_TICKET"
        await haru.settle("c-1", "2.0", Outcome(status="done", response={"result": {"paid": "HR1"}}))
        await haru.ask("됐나요?", customer_id="C1", conversation_id="c-1")
        record = await record_of(haru, "c-1")
    assert bool(compactions(record)) == bool(limits)
    assert "Outcome of call 2.0" in str(model.requests[-1].contents)
    assert _sent_again(record.steps, Limits()) == [list(request.contents) for request in model.requests]


# --------------------------------------------------------------------------- too large


class Window:
    """A model with a window: it refuses what is larger, and else plays its lines."""

    name = "unheard-of"

    def __init__(self, size: int, lines: Iterable[Wish]) -> None:
        self.requests, self._size, self._lines = list[ModelRequest](), size, iter(lines)

    async def respond(self, request: ModelRequest) -> ModelOutcome:
        self.requests.append(request)
        if sum(map(size_of, request.contents)) > self._size:
            return too_large(incidents=({"reason": "too_large"},))
        line = next(self._lines)
        return answer(line) if isinstance(line, str) else calls(*line)


async def test_a_refused_request_is_sent_once_more_and_shorter() -> None:
    model = Window(8_000, looking(6))
    async with engine(model, tools=Tools(look=long), max_steps=12) as haru:
        done = await haru.ask("다 어디쯤 왔나요?", customer_id="C1")
        record = await record_of(haru, done.conversation_id)
    assert done.state == "DONE"
    assert done.steps == len(model.requests) == 8
    (found,) = compactions(record)
    assert found.refused == pytest.approx(sum(map(size_of, model.requests[5].contents)), rel=0.1)
    assert found.refused is not None
    assert found.after < found.refused / 2
    asked = [step.event for step in record.steps if isinstance(step.event, ModelEvent)]
    event = next(event for event in asked if event.compaction)
    assert (event.requests, [each.reason for each in event.incidents]) == (2, ["too_large"])


async def test_a_refusal_is_remembered() -> None:
    model = Window(8_000, [*looking(6), *looking(6)])
    async with engine(model, tools=Tools(look=long), max_steps=12) as haru:
        first = await haru.ask("다 어디쯤 왔나요?", customer_id="C1")
        again = await haru.ask("다시요", customer_id="C1", conversation_id=first.conversation_id)
        record = await record_of(haru, first.conversation_id)
    assert again.steps == 7, "compacted before it was refused again"
    assert {found.recent_chars for found in compactions(record)[1:]} == {None}, "and no more than it takes"


async def test_what_was_refused_before_is_not_sent_again_for_its_recent_results() -> None:
    model = Window(8_000, [*looking(1), *looking(1)])
    async with engine(model, tools=Tools(look=lambda _: "배송중 " * 1_200)) as haru:
        first = await haru.ask("어디쯤 왔나요?", customer_id="C1")
        again = await haru.ask("다시요", customer_id="C1", conversation_id=first.conversation_id)
        record = await record_of(haru, first.conversation_id)
    assert (first.steps, again.steps) == (3, 2), "refused once, and never again"
    assert (first.state, again.state) == ("DONE", "DONE")
    assert compactions(record)[-1].refused is None
    assert check_contents(list(_sent_again(record.steps, Limits())[-1])) == []


async def test_what_cannot_be_made_to_fit_ends_in_a_ticket_after_two_requests() -> None:
    model = Window(200, ["네."])
    async with engine(model, tools=Tools(look=long)) as haru:
        done = await haru.ask("가" * 2_000, customer_id="C1")
        second = await haru.ask("네?", customer_id="C1", conversation_id=done.conversation_id)
        record = await record_of(haru, done.conversation_id)
    assert (done.state, done.steps) == ("ESCALATE_TICKET", 1), "there was nothing to cut"
    assert second.state == "ESCALATE_TICKET"
    assert done.ticket is not None
    assert "too_large" in done.ticket.summary
    assert check_contents(list(_sent_again(record.steps, Limits())[-1])) == []


async def test_a_first_message_that_was_too_large_does_not_spoil_the_conversation() -> None:
    model = Window(9_000, ["네.", "네, 또요."])
    async with engine(model) as haru:
        first = await haru.ask("가" * 5_000, customer_id="C1")
        second = await haru.ask("네?", customer_id="C1", conversation_id=first.conversation_id)
        third = await haru.ask("고마워요", customer_id="C1", conversation_id=first.conversation_id)
        record = await record_of(haru, first.conversation_id)
    assert (first.state, second.state, second.steps) == ("ESCALATE_TICKET", "DONE", 2)
    assert (third.state, third.steps) == ("DONE", 1), "it stays cut"
    assert first.ticket is not None
    assert first.ticket.ticket_id in str(model.requests[-1].contents), "what the customer was told is still there"
    assert check_contents(list(_sent_again(record.steps, Limits())[-1])) == []


async def test_a_second_try_keeps_apart_what_each_model_has_spent() -> None:
    shares = (Share(model="a", usage=Usage(prompt=5)), Share(model="b", usage=Usage(prompt=7)))
    last = answer("네.", model="b", requests=2, usage=Usage(prompt=12), shares=shares)
    model = ScriptedModel([*looking(5)[:-1], too_large(model="a", usage=Usage(prompt=3)), last])
    async with engine(model, tools=Tools(look=long), max_steps=12) as haru:
        done = await haru.ask("다 어디쯤 왔나요?", customer_id="C1")
        record = await record_of(haru, done.conversation_id)
    event = record.steps[-1].event
    assert isinstance(event, ModelEvent)
    assert (event.requests, event.usage.prompt) == (3, 15)
    assert [(share.model, share.requests, share.usage.prompt) for share in event.shares] == [
        ("a", 1, 3), ("a", 1, 5), ("b", 1, 7),
    ]  # fmt: skip


@pytest.mark.parametrize(("retries", "left"), [(1, 1), (2, 2)])
async def test_a_second_try_has_the_re_asks_that_are_left(retries: int, left: int) -> None:
    model = Window(8_000, looking(6))
    async with engine(model, tools=Tools(look=long), max_steps=12, model_retries=retries) as haru:
        done = await haru.ask("다 어디쯤 왔나요?", customer_id="C1")
    assert (done.state, done.steps) == ("DONE", 8)
    assert model.requests[6].requests_left == left


async def test_who_has_asked_for_all_there_is_has_no_second_try() -> None:
    model = ScriptedModel([*looking(5)[:-1], too_large(requests=3), "네."])
    async with engine(model, tools=Tools(look=long), max_steps=12, model_retries=2) as haru:
        done = await haru.ask("다 어디쯤 왔나요?", customer_id="C1")
    assert (done.state, done.steps, len(model.requests)) == ("ESCALATE_TICKET", 8, 6)


@pytest.mark.parametrize("limits", [{"max_steps": 6}, {"model_retries": 0}])
async def test_a_second_try_is_charged_like_a_re_ask(limits: dict[str, Any]) -> None:
    model = Window(8_000, looking(6))
    async with engine(model, tools=Tools(look=long), **{"max_steps": 12, **limits}) as haru:
        done = await haru.ask("다 어디쯤 왔나요?", customer_id="C1")
    assert done.state == "ESCALATE_TICKET"
    assert done.steps == len(model.requests) == 6


async def test_the_same_contents_are_not_sent_again() -> None:
    model = ScriptedModel([*looking(3)[:-1], too_large(), "네."])
    limits: dict[str, Any] = {"compact_at_tokens": 1, "keep_recent_contents": 1}
    async with engine(model, tools=Tools(look=lambda _: "배송중 " * 60), **limits) as haru:
        done = await haru.ask("다 어디쯤 왔나요?", customer_id="C1")
        record = await record_of(haru, done.conversation_id)
    assert compactions(record), "what could be cut was cut before the refusal"
    assert (done.state, done.steps, len(model.requests)) == ("ESCALATE_TICKET", 4, 4)


# --------------------------------------------------------------------------- summaries


def summarising(*summaries: Line, steps: int = 4) -> ScriptedModel:
    """A model that gives these summaries when it is asked for one, and else looks and answers."""
    told, lines = iter(summaries), iter(looking(steps) * 3)
    return ScriptedModel(lambda request: next(told) if request.system == SUMMARISER else next(lines))


def asked_for_summary(model: ScriptedModel) -> list[ModelRequest]:
    return [request for request in model.requests if request.system == SUMMARISER]


async def test_a_model_sums_up_where_that_is_chosen() -> None:
    used = answer("HR20260725000은 배송중.", usage=Usage(prompt=70, answer=7, cost_usd=0.5))
    model = summarising(*[used] * 3)
    pieces: list[Step | Piece] = []
    async with engine(model, tools=Tools(look=long), summarise="model", **SMALL) as haru:
        done = await haru.ask("어디쯤 왔나요?", customer_id="C1", watch=pieces.append)
        record = await record_of(haru, done.conversation_id)
    requests = asked_for_summary(model)
    assert requests
    for request in requests:
        assert (list(request.declarations), request.tools_allowed, request.on_text) == ([], False, None)
        assert check_contents(list(request.contents)) == []
    found = compactions(record)
    assert {(each.by, each.requests, each.usage.prompt) for each in found} == {("model", 1, 70)}
    assert (done.usage.prompt, done.usage.cost_usd) == (70 * len(requests), 0.5 * len(requests))
    assert done.steps == len(model.requests) == 5 + len(requests)
    assert 'summary: "HR20260725000은 배송중."' in str(model.requests[-1].contents[1])
    assert not any("배송중" in getattr(piece, "text", "") for piece in pieces), "nobody else reads it"


@pytest.mark.parametrize(
    ("failing", "why"),
    [
        (ModelFailed(reason=FailureReason.SERVER, requests=4), "server"),
        ([("look", {"what": "A"})], "no text"),
        (answer("   "), "no text"),
        (answer("다" * 5_000), "5,000 characters are too long"),
    ],
)
async def test_what_is_no_summary_falls_back_to_the_digest_and_is_asked_for_once(failing: Line, why: str) -> None:
    model = summarising(failing, steps=3)
    async with engine(model, tools=Tools(look=long), summarise="model", max_steps=20, **SMALL) as haru:
        done = await haru.ask("어디쯤 왔나요?", customer_id="C1")
        await haru.ask("또요", customer_id="C1", conversation_id=done.conversation_id)
        record = await record_of(haru, done.conversation_id)
    assert len(asked_for_summary(model)) == 1
    found = compactions(record)
    assert len(found) > 1
    assert [each.failed for each in found] == [why, *[""] * (len(found) - 1)]
    assert [each.requests for each in found] == [getattr(failing, "requests", 1), *[0] * (len(found) - 1)]
    assert {each.by for each in found} == {"digest"}
    assert done.steps == 4 + getattr(failing, "requests", 1)


async def test_a_refusal_after_a_summary_keeps_what_the_summary_has_spent() -> None:
    def line(request: ModelRequest) -> Line:
        if request.system == SUMMARISER:
            return answer("배송중.", usage=Usage(prompt=70))
        return next(lines)

    lines = iter([*looking(2)[:-1], too_large(usage=Usage(prompt=5)), answer("네.", usage=Usage(prompt=3))])
    tools = Tools(look=lambda _: "배송중 " * 1_200)
    async with engine(ScriptedModel(line), tools=tools, summarise="model", **SMALL) as haru:
        done = await haru.ask("어디쯤 왔나요?", customer_id="C1")
        record = await record_of(haru, done.conversation_id)
    (found,) = compactions(record)
    assert found.refused is not None
    assert (found.requests, found.usage.prompt) == (1, 70)
    assert (done.state, done.steps, done.usage.prompt) == ("DONE", 5, 78)


async def test_no_summary_is_asked_for_where_notes_are_enough() -> None:
    model = summarising(answer("배송중."), steps=5)
    limits: dict[str, Any] = {"compact_at_tokens": 2_000, "keep_recent_contents": 2}
    async with engine(model, tools=Tools(look=long), summarise="model", **limits) as haru:
        done = await haru.ask("어디쯤 왔나요?", customer_id="C1")
        record = await record_of(haru, done.conversation_id)
    assert [found.record for found in compactions(record)] == [""]
    assert asked_for_summary(model) == []


async def test_no_summary_is_asked_for_with_the_last_request() -> None:
    model = summarising()
    async with engine(model, tools=Tools(look=long), summarise="model", max_steps=5, model_retries=0, **SMALL) as haru:
        done = await haru.ask("어디쯤 왔나요?", customer_id="C1")
        record = await record_of(haru, done.conversation_id)
    assert (done.state, done.steps) == ("DONE", 5)
    assert {(each.by, each.failed) for each in compactions(record)} == {("digest", "")}


async def test_a_summary_takes_its_time_from_the_run() -> None:
    clock = FakeClock()
    left: list[float | None] = []

    def line(request: ModelRequest) -> Line:
        left.append(request.timeout_s)
        if request.system == SUMMARISER:
            clock.advance(4)
            return "배송중."
        return next(lines)

    lines = iter(looking(2))
    async with engine(
        ScriptedModel(line), tools=Tools(look=long), clock=clock, summarise="model", deadline_s=10, **SMALL
    ) as haru:
        await haru.ask("어디쯤 왔나요?", customer_id="C1")
    assert left == [10, 10, 10, 6]
