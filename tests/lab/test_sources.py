"""Recordings come from cassettes and databases as well: the same conversation is the same recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from haru_fsm import Limits
from haru_fsm.errors import SettingsError
from haru_fsm.lab.cassettes import from_cassette
from haru_fsm.lab.experiment import cases
from haru_fsm.lab.judging import Table
from haru_fsm.lab.plan import Plan, Source
from haru_fsm.models.cassette import RecordingModel
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.stores.memory import MemoryStore
from tests.engine.shopless import bare, engine

LOOPS = [[("look", {"what": "A"})]] * 3
TABLE = Table(bare(Limits()).workflow)


async def test_the_same_conversation_from_both(tmp_path: Path) -> None:
    tape, store = tmp_path / "tape.jsonl", MemoryStore()
    model = RecordingModel(ScriptedModel([*LOOPS, "A는 배송중입니다.", [("look", {"what": "B"})], "B도요."]), tape)
    async with engine(model, store=store) as haru:
        first = await haru.ask("A 어디 있나요?", customer_id="C1")
        await haru.ask("B는요?", customer_id="C1", conversation_id=first.conversation_id)
        [stored] = [case async for case in cases(Plan(sources=(Source(database="x"),)), lambda _: store)]
    [taped] = from_cassette(tape)
    for recording in (stored.recording, taped):
        assert [len(run) for run in recording.runs] == [3, 1]
        assert recording.success is True
        assert [(mark.run, mark.turn) for mark in TABLE.judge(recording).marks] == [(0, 2)]


def test_what_is_no_cassette_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        list(from_cassette(tmp_path / "none.jsonl"))
