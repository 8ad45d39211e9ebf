"""What a history from elsewhere comes to: nothing is promised that nobody does, and nothing of it is lost."""

from __future__ import annotations

from typing import Any

import pytest

from haru_fsm.conversation import HistoryAdopted, MessageReceived
from haru_fsm.errors import ConversationMoved, SettingsError
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.notices import KOREAN
from haru_fsm.testing.strict import check_contents
from tests.engine.shopless import engine, record_of

HELLO = {"role": "user", "parts": [{"text": "안녕하세요"}]}
CALL = {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]}
PICTURE = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}


@pytest.mark.parametrize(
    ("last", "read"),
    [
        (
            {"role": "model", "parts": [{"text": "생각", "thought": True}, {"text": "무엇을 도와드릴까요?"}]},
            "무엇을 도와드릴까요?",
        ),
        ({"role": "model", "parts": [{"text": "생각뿐", "thought": True}]}, ""),
        (CALL, ""),
        ({"role": "user", "parts": [PICTURE]}, ""),
        ({"role": "user", "parts": [{"text": "\u200b"}]}, ""),
    ],
)
async def test_a_history_that_rests_has_been_answered_by_its_last_turn(last: Any, read: str) -> None:
    """It had promised the number of a ticket that nobody files."""
    async with engine(ScriptedModel(["네."])) as haru:
        run = await haru.adopt([HELLO, last], customer_id="C1")
        assert (run.finished, run.answer, run.ticket) == (True, read, None)
        assert await haru.resume(run.conversation_id) == run


async def test_a_question_that_is_still_to_be_answered_promises_no_number() -> None:
    async with engine(ScriptedModel(["네."])) as haru:
        run = await haru.adopt([HELLO], customer_id="C1")
        assert (run.finished, run.answer) == (False, KOREAN.working)
        assert (await haru.resume(run.conversation_id)).answer == "네."


async def test_a_picture_beside_the_last_question_is_sent_too() -> None:
    asked = {"role": "user", "parts": [PICTURE, {"text": "이 상품 있나요?"}]}
    model = ScriptedModel(["네."])
    async with engine(model) as haru:
        run = await haru.adopt([asked], customer_id="C1")
        await haru.resume(run.conversation_id)
    contents = list(model.requests[0].contents)
    assert check_contents(contents) == []
    parts = [part for content in contents for part in content["parts"]]
    assert parts == [PICTURE, {"text": "이 상품 있나요?"}]


@pytest.mark.parametrize("bad", ["", "  ", "\ud800"])
async def test_a_history_is_somebody_s_and_has_turns(bad: str) -> None:
    async with engine(ScriptedModel([])) as haru:
        with pytest.raises(SettingsError, match="customer's number"):
            await haru.adopt([HELLO], customer_id=bad)
        with pytest.raises(SettingsError, match="history is empty"):
            await haru.adopt([], customer_id="C1")
        assert await haru.store.conversations() == []


async def test_a_history_is_taken_in_once_with_its_time_and_what_its_run_began_under() -> None:
    said = [HELLO, {"role": "model", "parts": [{"text": "무엇을 도와드릴까요?"}]}, HELLO]
    async with engine(ScriptedModel(["네."])) as haru:
        await haru.adopt(said, customer_id="C1", conversation_id="c-1")
        adopted, asked = (step.event for step in (await record_of(haru, "c-1")).steps)
        assert isinstance(adopted, HistoryAdopted)
        assert isinstance(asked, MessageReceived)
        assert list(adopted.contents) == said[:2]
        assert adopted.at == round(haru.clock.now(), 3)
        assert asked.definition == haru.app.definition(haru.app.toolbox(haru.app.session("C1")))
        with pytest.raises(ConversationMoved):
            await haru.adopt(said, customer_id="C1", conversation_id="c-1")
