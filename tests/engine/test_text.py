"""Text is safe: whatever comes in as a message, an argument, a result, a reply or an id comes out as it should, anywhere."""

from __future__ import annotations

import asyncio
import json
import math
import tempfile
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from haru_fsm.cli.looking import as_object, show_record
from haru_fsm.cli.wiring import Given
from haru_fsm.conversation import MessageReceived, ResultStatus, executed
from haru_fsm.errors import SettingsError, StoreError, UnknownConversation
from haru_fsm.json_safe import json_safe, safe_text
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.runs import Run
from haru_fsm.stores import Outcome
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.testing.strict import check_contents
from haru_fsm.transfer import export, import_lines, verify
from haru_fsm.visible import is_blank
from tests.engine.shopless import Tools, engine

NASTY = (
    "\x00",
    "a\x00b",
    "\ud800",
    "가\udfff나",
    unicodedata.normalize("NFD", "한글 주문"),
    "👩‍👩‍👧‍👦",
    "\u2028줄\u2029바꿈\x85\x1c\x0b\r\n",
    "\ufeff",
    "[bold]마크업[/]",
    "{{}}%s'\"\\",
    "NaN",
    "한" * 30_000,
)
texts = st.one_of(st.sampled_from(NASTY), st.text(st.characters(exclude_categories=()), max_size=20))
ids = st.one_of(st.sampled_from(NASTY[:-1]), st.text(min_size=1, max_size=12))
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
keys = scalars.filter(lambda key: not isinstance(key, float) or not math.isnan(key))
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)
arguments = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)


def whole(text: str) -> bool:
    return text == safe_text(text)


@given(text=texts, argument=arguments, result=values, reply=texts, conversation=ids, message=ids, customer=ids)
@example("주문\x00", {"k\x00": math.inf}, {None: math.nan, 1: "\ud800"}, "네\ud800", "c\x00", "한", "C\u2028")
@example("\ud800", None, None, "\x00", "\x00", "\x00", "\x00")
@example("가", "A", "x" * 3_000_000, "나" * 10_000, "c-1", "m-1", "C1")
@settings(max_examples=80, deadline=None)
def test_anything_goes_through_everything(
    text: str, argument: object, result: object, reply: str, conversation: str, message: str, customer: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_through(Path(folder), text, argument, result, reply, (conversation, message, customer)))


async def _through(folder: Path, text: str, argument: Any, result: Any, reply: str, given_ids: tuple[str, ...]) -> None:
    conversation_id, message_id, customer_id = given_ids
    model = ScriptedModel([[("look", {"what": argument}), ("pay", {"what": "A"})], [("pay", {"what": "B"})]])
    tools = Tools(look=lambda _what: result, pay=lambda _what: result)
    async with engine(model, tools=tools, store=SQLiteStore(folder / "haru.db")) as haru:

        async def ask() -> Run:
            return await haru.ask(text, customer_id=customer_id, conversation_id=conversation_id, message_id=message_id)

        known = all(whole(each) and each.strip() for each in given_ids)
        if not (known and not is_blank(safe_text(text)) and len(text) <= 20_000):
            with pytest.raises((SettingsError, UnknownConversation)):
                await ask()
            assert await haru.store.conversations() == []
            return
        run = await ask()
        assert await ask() == run, "the same ids are the same message"
        assert run.ticket is not None, "the script is over"
        if not is_blank(safe_text(reply)):
            closed = await haru.close_ticket(run.ticket.ticket_id, reply)
            assert closed.answer == safe_text(reply).strip()

        record = await haru.store.load(conversation_id)
        assert record is not None
        first = record.steps[0].event
        assert isinstance(first, MessageReceived)
        assert first.text == safe_text(text)
        done = [each for _, call, each in executed(record.steps) if call.name == "pay" and each.ran]
        assert all(each.status in (ResultStatus.DONE, ResultStatus.FAILED) for each in done)
        assert all(check_contents(list(request.contents)) == [] for request in model.requests)
        _are_json(record.steps)

        shown = as_object(record, await haru.store.tickets())
        json.loads(json.dumps(shown, ensure_ascii=False, allow_nan=False).encode())
        show_record(record, await haru.store.tickets(), Given())

        lines = "\n".join([line async for line in export(haru.store)]).encode().decode().split("\n")
        other = SQLiteStore(folder / "moved.db")
        assert await import_lines(other, lines) == (1, 0)
        moved = await other.load(conversation_id)
        assert moved is not None
        assert [step.event.kind for step in moved.steps] == [step.event.kind for step in record.steps]
        assert _responses(moved.steps) == _responses(record.steps)
        assert moved.ledger == record.ledger
        for store in (haru.store, other):
            assert [finding.damage async for finding in verify(store)] == [None]
        await other.aclose()


def _responses(steps: Any) -> list[Any]:
    return [(key, call, result.status, result.response) for key, call, result in executed(steps)]


def _are_json(steps: Any) -> None:
    for step in steps:
        text = json.dumps(step.written(), ensure_ascii=False)
        assert json_safe(json.loads(text)) == json.loads(text)
        json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.mark.parametrize("bad", ["", "  ", "\ud800", "가" * 1_001])
async def test_what_can_be_no_id_is_refused_by_name(bad: str) -> None:
    async with engine(ScriptedModel(["네."])) as haru:
        await haru.ask("안녕", customer_id="C1", conversation_id="c-1")
        with pytest.raises((SettingsError, UnknownConversation), match="customer's number"):
            await haru.ask("안녕", customer_id=bad)
        with pytest.raises(SettingsError, match="message's id"):
            await haru.ask("안녕", customer_id="C1", message_id=bad)
        for attempt in (haru.resume(bad), haru.fork(bad, at=1)):
            with pytest.raises(SettingsError, match="conversation's id"):
                await attempt


async def test_a_number_of_a_database_is_no_id_yet() -> None:
    haru = engine(ScriptedModel(["네."]))
    given: Any = 3
    for how in ({"customer_id": given}, {"customer_id": "C1", "conversation_id": given}):
        with pytest.raises(SettingsError, match="is 3, and has to be a text: '3'"):
            await haru.ask("안녕하세요", **how)


async def test_what_is_no_text_is_refused_by_name() -> None:
    """Messengers number their messages, and webhooks pass the numbers on."""
    no_text: Any = 7
    async with engine(ScriptedModel([])) as haru:
        with pytest.raises(SettingsError, match="message's id is 7"):
            await haru.ask("안녕", customer_id="C1", message_id=no_text)
        with pytest.raises(SettingsError, match="message is of type int"):
            await haru.ask(no_text, customer_id="C1")


async def test_a_settled_outcome_is_made_safe_as_well(tmp_path: Path) -> None:
    model = ScriptedModel([[("pay", {"what": "A"})]])

    def lost(_what: str) -> Any:
        raise OSError("the line is dead")

    async with engine(model, tools=Tools(pay=lost), store=SQLiteStore(tmp_path / "haru.db")) as haru:
        run = await haru.ask("A", customer_id="C1")
        outcome = Outcome(status=ResultStatus.DONE, response={"result": ["\ud800", math.nan, {1: None}]}, by="person")
        await haru.settle(run.conversation_id, "2.0", outcome)
        record = await haru.store.load(run.conversation_id)
        assert record is not None
        known = record.ledger["2.0"].outcome
        assert known is not None
        assert known.response == {"result": ["\ufffd", "NaN", {"1": None}]}


async def test_an_import_that_is_cut_short_is_never_without_its_claims(tmp_path: Path) -> None:
    async with engine(ScriptedModel([[("pay", {"what": "A"})], "네."])) as haru:
        run = await haru.ask("A", customer_id="C1")
        lines = [line async for line in export(haru.store)]

    class Stopping(SQLiteStore):
        async def note(self, *args: Any) -> bool:
            raise StoreError("the process is stopped here")

    cut = Stopping(tmp_path / "haru.db")
    with pytest.raises(StoreError, match="stopped here"):
        await import_lines(cut, lines)
    record = await cut.load(run.conversation_id)
    assert record is not None
    assert record.steps == ()
    await cut.aclose()
    again = SQLiteStore(tmp_path / "haru.db")
    assert await import_lines(again, lines) == (1, 0)
    record = await again.load(run.conversation_id)
    assert record is not None
    assert record.ledger["2.0"].outcome is not None
    await again.aclose()
