"""Field cases that the model's side decides alone: requests made, what the customer reads, what the log says.

Only the model is ours here; tools answer at once and nothing is stored. The whole engine plays every case elsewhere.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest

from haru_fsm.clock import FakeClock
from haru_fsm.conversation import JSON, Incident, ModelAnswered, ModelFailed, ToolCall, ToolsRequested
from haru_fsm.limits import Limits
from haru_fsm.models import Declaration, ModelOutcome, ModelRequest
from haru_fsm.models.gemini import GeminiModel
from haru_fsm.testing.fake_gemini import FakeGemini

CASES = Path(__file__).parents[3] / "shared" / "field" / "cases"
NUMBERS = (1, 4, 5, 7, 8, 11, 13, 15, 28, 29, 31, 33, 34, 46, 48, 50, 53, 54, 55, 91, 97, 99)
ENDS: dict[type[ModelOutcome], str] = {ModelAnswered: "DONE", ModelFailed: "ESCALATE_TICKET", ToolsRequested: "cut"}

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the field cases are not beside this repository")


class Played:
    """One case, played to its end: a ReAct loop of a dozen lines around GeminiModel."""

    def __init__(self, number: int) -> None:
        self.case = json.loads(next(CASES.glob(f"{number:03d}-*.json")).read_text())
        self.script, self.expected = self.case["script"], self.case["expected"]
        self.clock = FakeClock()
        self.contents, self.outcomes, self.answers = list[JSON](), list[ModelOutcome](), list[str]()

    async def play(self, on_text: Callable[[str], None] | None = None) -> Self:
        guards = self.script["guards"]
        given = {name: guards[name] for name in Limits.model_fields.keys() & guards.keys()}
        async with FakeGemini(self.script["model"]) as self.gemini:
            self.model = GeminiModel(
                "gemini-3-flash",
                api_key="test",
                base_url=self.gemini.base_url,
                limits=Limits(**given),
                clock=self.clock,
                rng=random.Random(1),
            )
            for message in self.script["user"]:
                self.contents.append({"role": "user", "parts": [{"text": message["text"]}]})
                await self._turn(guards, on_text)
            await self.model.aclose()
        return self

    async def _turn(self, guards: JSON, on_text: Callable[[str], None] | None) -> None:
        left = guards["max_steps"]
        while left > 0:
            declared = [Declaration(tool["name"], tool["behaviour"]) for tool in self.script["tools"]]
            outcome = await self.model.respond(
                ModelRequest("", tuple(self.contents), declared, True, left, guards["turn_deadline_s"], on_text)
            )
            self.outcomes.append(outcome)
            left -= outcome.requests
            if isinstance(outcome, ModelFailed):
                self.contents.pop()
                return
            self.contents.append(outcome.content)
            if isinstance(outcome, ModelAnswered):
                self.answers.append(outcome.text)
                return
            self.contents.append({"role": "user", "parts": [self._result(call) for call in outcome.calls]})

    def _result(self, call: ToolCall) -> JSON:
        response = {"error": call.unusable} if call.unusable else {"result": "ok"}
        named = {"name": call.name, "response": response}
        return {"functionResponse": named | ({"id": call.id} if call.id is not None else {})}

    @property
    def incidents(self) -> list[Incident]:
        return [incident for outcome in self.outcomes for incident in outcome.incidents]

    def check(self) -> None:
        """What the case states of requests, endings and words."""
        made, stated = len(self.gemini.requests), self.expected["model_requests"]
        assert made == sum(outcome.requests for outcome in self.outcomes)
        if isinstance(stated, dict):
            assert stated.get("min", 0) <= made <= stated["max"]
        else:
            assert made in (stated if isinstance(stated, list) else [stated])
        ends = ENDS[type(self.outcomes[-1])]
        allowed = self.expected["end_state"]
        assert ends in ([allowed] if isinstance(allowed, str) else allowed)
        assert not self.gemini.violations
        assert not self.gemini.overruns
        reads = self.expected["customer_reads"]
        for turn, answer in enumerate(self.answers, 1):
            assert answer == reads.get(f"turn{turn}_is", reads.get("is", answer))
            assert answer != reads.get("never_is")


@pytest.mark.parametrize("number", NUMBERS)
async def test_the_case_ends_as_it_should(number: int) -> None:
    (await Played(number).play()).check()


@pytest.mark.parametrize("number", NUMBERS)
async def test_the_case_ends_so_when_it_is_streamed_too(number: int) -> None:
    (await Played(number).play(on_text=list[str]().append)).check()


async def test_f001_an_empty_turn_is_an_incident_and_never_sent_back() -> None:
    played = await Played(1).play()
    assert [(incident.reason, incident.finish_reason) for incident in played.incidents] == [("empty", "STOP")]
    *_, responses, hint = played.gemini.requests[2]["contents"]
    assert [part.keys() for part in responses["parts"]] == [{"functionResponse"}]
    assert (hint["role"], [part.keys() for part in hint["parts"]]) == ("user", [{"text"}])


async def test_f005_nothing_of_a_malformed_turn_is_sent_but_its_tokens_are_charged() -> None:
    played = await Played(5).play()
    assert len(played.gemini.requests[1]["contents"]) == 1
    assert sum(outcome.usage.total for outcome in played.outcomes) == 2595 + 140 + 140


async def test_f007_the_log_has_the_providers_words_and_each_re_ask_a_hint() -> None:
    played = await Played(7).play()
    assert all("print(default_api.get_order" in incident.detail for incident in played.incidents)
    for body in played.gemini.requests[1:]:
        assert "get_order" in body["contents"][-1]["parts"][-1]["text"]


async def test_f008_the_log_names_the_tool_that_was_wanted() -> None:
    played = await Played(8).play()
    assert "get_points" in played.incidents[0].detail


async def test_f011_the_second_request_has_more_room_and_thoughts_are_charged() -> None:
    played = await Played(11).play()
    first, second = (body["generationConfig"]["maxOutputTokens"] for body in played.gemini.requests)
    assert second > first == 1024
    assert played.outcomes[0].usage.thoughts == 1024


async def test_f013_a_shorter_answer_is_asked_for() -> None:
    played = await Played(13).play()
    assert "더 짧게" in played.gemini.requests[1]["contents"][-1]["parts"][-1]["text"]


async def test_f014_a_blocked_prompt_is_not_sent_again() -> None:
    played = Played(14)
    played.script["user"] = played.script["user"][:1]
    await played.play()
    assert len(played.gemini.requests) == 1
    assert played.incidents[0].detail == "PROHIBITED_CONTENT"


async def test_f048_the_wait_that_was_told_is_kept() -> None:
    played = await Played(48).play()
    assert played.clock.slept == [2.0]


async def test_f054_arguments_that_are_no_object_are_not_run() -> None:
    played = await Played(54).play()
    made = [outcome for outcome in played.outcomes[:3] if isinstance(outcome, ToolsRequested)]
    unusable = [call.unusable is not None for outcome in made for call in outcome.calls]
    assert unusable == [True, True, False]
