"""A text that shows nothing is none: not as an answer, not as a message, not as a person's reply."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haru_fsm.conversation import FailureReason
from haru_fsm.errors import SettingsError
from haru_fsm.models.gemini_reading import read_body
from haru_fsm.models.replies import Problem, Usable
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.testing.fake_gemini import reply
from haru_fsm.visible import is_blank
from tests.engine.shopless import engine

BLANK = ["", " \t\r\n", "\u200b", "\ufeff", "\u3164", "\u115f\u1160", "\u2800", "\x00\x1b", "\u202e\u2066", "\ufe0f"]
BLANK += ["\u180b", "\ufe00", "\U000e0100", "\u2065", "\U000e0041"]  # selectors and tags: drawn as nothing, all of them
SEEN = ["네", ".", "👍", "\u200b네\u200b", "\ufffd", "0", "❤\ufe0f"]
SEEN += ["\U0001fae8", "\U0001faea", "\uf8ff"]  # signs that are younger than Python's tables, or a font's own


@pytest.mark.parametrize("text", BLANK)
def test_what_shows_nothing_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", SEEN)
def test_what_shows_something_is_not(text: str) -> None:
    assert not is_blank(text)


@given(st.text(), st.text())
def test_two_texts_are_blank_together_where_each_is(one: str, other: str) -> None:
    assert is_blank(one + other) == (is_blank(one) and is_blank(other))
    assert is_blank(one) or one.strip()


@pytest.mark.parametrize("text", BLANK[1:])
def test_a_reply_that_shows_nothing_is_no_answer(text: str) -> None:
    read = read_body(reply(text))
    assert isinstance(read, Problem)
    assert read.reason is FailureReason.EMPTY
    assert isinstance(read_body(reply(f"{text}네.")), Usable)


@pytest.mark.parametrize("text", BLANK)
async def test_a_message_and_a_reply_that_show_nothing_are_refused(text: str) -> None:
    async with engine(ScriptedModel([])) as haru:
        with pytest.raises(SettingsError, match="message is empty"):
            await haru.ask(text, customer_id="C1")
        assert await haru.store.conversations() == []
        run = await haru.ask("환불해 주세요", customer_id="C1")  # the script is over: a ticket
        assert run.ticket is not None
        with pytest.raises(SettingsError, match="reply is empty"):
            await haru.close_ticket(run.ticket.ticket_id, text)
