"""A cassette that `haru replay --save` has made plays, whoever spoke and however often one event had asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from haru_fsm import App, Run
from haru_fsm.conversation import ModelFailed, Usage
from haru_fsm.models import Model, ModelOutcome, ModelRequest
from haru_fsm.models.cassette import CassetteModel, Recorder
from haru_fsm.models.fallback import FallbackModel
from haru_fsm.models.scripted import Line, ScriptedModel, answer, calls
from haru_fsm.models.two_tier import TwoTierModel
from haru_fsm.replaying import replay
from haru_fsm.stores import Store
from haru_fsm.stores.memory import MemoryStore
from tests.engine.shopless import Tools, engine
from tests.engine.test_compacting import SMALL, long, looking, summarising, too_large

USED = Usage(prompt=100, cached=10, answer=5, cost_usd=0.25)
SUMMARISED = {**SMALL, "summarise": "model", "max_steps": 20}


def fallback() -> FallbackModel:
    first = ScriptedModel(
        [ModelFailed(reason="server", model="a", usage=USED), calls(("look", {"what": "A"}), model="a", usage=USED)]
    )
    second: list[ModelOutcome] = [
        calls(("look", {"what": "B"}), model="b", usage=USED),
        answer("b", model="b", usage=USED),
    ]
    return FallbackModel([first, ScriptedModel([*second, answer("once more", model="b")])])


def two_tier() -> TwoTierModel:
    cheap: list[ModelOutcome] = [
        calls(("look", {"what": "A"}), model="a", usage=USED),
        *[answer("draft", model="a", usage=USED)] * 2,
    ]
    strong: list[ModelOutcome] = [
        answer("final", model="b", usage=USED),
        ModelFailed(reason="server", model="b", usage=USED),
    ]
    return TwoTierModel(ScriptedModel(cheap), ScriptedModel(strong))


def summaries(*said: Line) -> Callable[[], ScriptedModel]:
    return lambda: summarising(*said * 9)


def refused_at(*requests: int) -> Callable[[], ScriptedModel]:
    """A model that refuses these of its requests as too large."""

    def made() -> ScriptedModel:
        lines, count = iter(looking(4) * 3), [0]

        def line(request: ModelRequest) -> Line:
            count[0] += 1
            return too_large(model="g") if count[0] in requests else next(lines)

        return ScriptedModel(line)

    return made


STORIES: dict[str, tuple[Callable[[], Model], dict[str, Any]]] = {
    "one model": (lambda: ScriptedModel(looking(2) * 2), {}),
    "another stood in": (fallback, {}),
    "another rewrote the answer": (two_tier, {}),
    "a summary": (summaries(answer("HR20260725000은 배송중.\n둘째 줄", usage=USED)), SUMMARISED),
    "a summary that failed": (summaries(ModelFailed(reason="server", requests=4, usage=USED)), SUMMARISED),
    "no summary": (summaries(answer("   ")), SUMMARISED),
    "a summary that was too long": (summaries(answer("다" * 5_000, usage=USED)), SUMMARISED),
    "a refusal": (refused_at(4), {"keep_recent_contents": 1}),
    "a refusal of what was shorter already": (refused_at(5), {"compact_at_tokens": 700, "keep_recent_contents": 4}),
}
MESSAGES = ("어디쯤 왔나요?", "또 하나요.")


async def played(model: Model, limits: dict[str, Any], store: Store) -> tuple[list[Run], App]:
    runs: list[Run] = []
    known = None
    async with engine(model, store=store, tools=Tools(look=long), **limits) as haru:
        for message in MESSAGES:
            runs.append(await haru.ask(message, customer_id="C1", conversation_id=known))
            known = runs[-1].conversation_id
        return runs, haru.app


@pytest.mark.parametrize("story", STORIES)
async def test_what_a_replay_saves_plays(story: str, tmp_path: Path) -> None:
    make, limits = STORIES[story]
    store, again = MemoryStore(), MemoryStore()
    runs, app = await played(make(), limits, store)
    assert {run.state for run in runs} == {"DONE"}, "this story is worth telling"
    file = tmp_path / "c.jsonl"
    record = await store.load(runs[0].conversation_id)
    assert record is not None
    assert replay(app, record, Recorder(file).note).identical
    once_more, _ = await played(CassetteModel(file), limits, again)
    for was, now in zip(runs, once_more, strict=True):
        same = ("state", "answer", "steps", "tool_runs", "stopped_by", "usage")
        assert [getattr(now, name) for name in same] == [getattr(was, name) for name in same]
    compactions = [made for step in record.steps if (made := getattr(step.event, "compaction", None)) is not None]
    assert any(made.refused for made in compactions) is story.startswith("a refusal")
    assert any(made.requests for made in compactions) is ("summary" in story)


def test_a_cassette_can_read_as_much_as_those_who_were_recorded(tmp_path: Path) -> None:
    recorder = Recorder(file := tmp_path / "c.jsonl")
    request = ModelRequest(system="", contents=({"role": "user", "parts": [{"text": "?"}]},))
    for model in ("gpt-4o", "gemini-flash-latest", "gpt-4o", ""):
        recorder.note(request, answer("!", model=model))
    assert CassetteModel(file).name == "gpt-4o > gemini-flash-latest"
