"""A conversation with approvals, a denial and a kept message comes out the same when it is replayed."""

from __future__ import annotations

from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.replaying import replay
from tests.engine.shopless import engine, record_of
from tests.engine.test_approvals import Counter, wipe


async def test_pauses_come_out_the_same() -> None:
    model = ScriptedModel([[*wipe("A", "B"), ("look", {"what": "C"})], "했습니다.", "네."])
    async with engine(model, tools=Counter()) as haru:
        paused = await haru.ask("지워 주세요", customer_id="C1")
        await haru.ask("그리고요?", customer_id="C1", conversation_id=paused.conversation_id)
        await haru.deny(paused.conversation_id, "2.1", reason="안 됩니다")
        await haru.approve(paused.conversation_id, "2.0")
        again = replay(haru.app, await record_of(haru, paused.conversation_id))
    assert again.difference is None
    assert again.identical
