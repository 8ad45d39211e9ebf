"""Law 5 for the other wire: whatever the journal holds, the next request is one that chat completions accept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm.contents import History
from haru_fsm.conversation import Event, Step, ToolsRequested
from haru_fsm.models import ModelRequest
from haru_fsm.models.openai_messages import messages_of
from haru_fsm.models.openai_request import build_body
from haru_fsm.models.retrying import Amendment
from haru_fsm.models.scripted import Line, ScriptedModel
from haru_fsm.testing.strict_openai import check_messages, check_request
from tests.engine.shopless import Tools, engine
from tests.engine.test_endings import behaviours, limits, replies
from tests.test_contents import events

ids = st.lists(st.sampled_from([None, "", "same", "call00001", "call00002", "x" * 41, "다른"]), min_size=3, max_size=3)
hints = st.sampled_from(["", "다시 답변해 주세요."])


def numbered(reply: Any, given: list[str | None], signed: bool) -> Any:
    """The reply, its calls with these ids, and with a thought before them."""
    if not isinstance(reply, ToolsRequested):
        return reply
    left = iter(given)
    parts = [
        {**part, "functionCall": part["functionCall"] | {"id": next(left)}} if "functionCall" in part else part
        for part in reply.content["parts"]
    ]
    for part in parts:
        if "functionCall" in part and part["functionCall"]["id"] is None:
            del part["functionCall"]["id"]
    thought = [{"text": "음", "thought": True, "thoughtSignature": "QUJD"}] if signed else []
    return reply.model_copy(update={"content": {"role": "model", "parts": [*thought, *parts]}})


@given(
    script=st.lists(st.builds(numbered, replies, ids, st.booleans()), max_size=12),
    does=st.dictionaries(st.sampled_from(["look", "pay", "book"]), behaviours),
    chosen=limits,
    hint=hints,
)
@settings(max_examples=100, deadline=None)
def test_every_request_of_a_conversation_is_valid(
    script: list[Line], does: dict[str, Callable[[str], Any]], chosen: dict[str, Any], hint: str
) -> None:
    async def run() -> list[ModelRequest]:
        model = ScriptedModel(script)
        async with engine(model, tools=Tools(**does), **chosen) as haru:
            done = await haru.ask("주문 확인해 주세요", customer_id="C1")
            for text in ("또요?", "그리고요?"):
                if done.ticket is not None:
                    await haru.close_ticket(done.ticket.ticket_id, "처리했습니다.")
                done = await haru.ask(text, customer_id="C1", conversation_id=done.conversation_id)
        return model.requests

    for request in asyncio.run(run()):
        assert check_request(build_body(request, Amendment(hint), name="m", max_output_tokens=100, streamed=True)) == []


@given(st.lists(events, max_size=14), st.sampled_from(["", "하루입니다."]))
@settings(max_examples=300, deadline=None)
def test_any_journal_at_all_gives_valid_messages(journal: list[Event], system: str) -> None:
    made = History()
    for seq, event in enumerate(journal, 1):
        made = made.fold(Step(seq=seq, run=1, event=event, source="A", state="B"))
        assert check_messages(messages_of(system, made.request())) == []
