"""Two processes, one conversation, the same instant: one carries on, the other is told, and nothing is done twice."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from haru_fsm.conversation import MessageReceived
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.stores import Record
from haru_fsm.stores.sqlite import SQLiteStore
from tests.engine.racing import race
from tests.engine.shopless import engine

ROUNDS = 8


async def records(folder: Path) -> list[Record]:
    store = SQLiteStore(folder / "haru.db")
    found = [await store.load(summary.conversation_id) for summary in await store.conversations()]
    await store.aclose()
    return [record for record in found if record is not None]


def paid_once(folder: Path) -> None:
    paid = Counter((folder / "paid").read_text().split())
    assert paid == {str(number): 1 for number in range(ROUNDS)}


def without_gaps(record: Record) -> bool:
    return [step.seq for step in record.steps] == list(range(1, len(record.steps) + 1))


async def test_two_processes_resume_the_same_conversation_at_the_same_instant(tmp_path: Path) -> None:
    question = [{"role": "user", "parts": [{"text": "내 주세요"}]}]
    async with engine(ScriptedModel([]), store=SQLiteStore(tmp_path / "haru.db")) as haru:
        for number in range(ROUNDS):
            await haru.adopt(question, customer_id="C1", conversation_id=f"c-{number}")
    for ends in race(tmp_path, "resume", rounds=ROUNDS):
        runs = {end for end in ends if end.startswith("{")}
        # Who comes when all is over is given the run; who comes before is told.
        assert len(runs) == 1, ends
        assert json.loads(runs.pop())["answer"] == "냈습니다."
    paid_once(tmp_path)
    found = await records(tmp_path)
    assert len(found) == ROUNDS
    assert all(map(without_gaps, found))
    assert all(sum(step.event.kind == "resumed" for step in record.steps) == 1 for record in found)


async def test_the_same_message_in_three_processes_at_the_same_instant_is_one_run_with_one_reply(
    tmp_path: Path,
) -> None:
    for ends in race(tmp_path, "ask", rounds=ROUNDS, processes=3):
        assert len(set(ends)) == 1, ends
        assert json.loads(ends[0])["answer"] == "냈습니다."
    paid_once(tmp_path)
    found = await records(tmp_path)
    assert len(found) == ROUNDS
    for record in found:
        assert without_gaps(record)
        assert sum(isinstance(step.event, MessageReceived) for step in record.steps) == 1
