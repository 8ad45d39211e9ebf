"""A history that several models have made, as Gemini takes it."""

import copy
import random
from collections.abc import Sequence
from typing import Any

import pytest

from haru_fsm.clock import FakeClock
from haru_fsm.conversation import JSON, ModelAnswered, ModelFailed
from haru_fsm.limits import Limits
from haru_fsm.models import ModelOutcome, ModelRequest
from haru_fsm.models.gemini import GeminiModel
from haru_fsm.models.gemini_signatures import UNSIGNED, countersigned, unsigned, wants_signatures, without_signatures
from haru_fsm.testing.fake_gemini import FakeGemini, call, error, reply
from haru_fsm.testing.scripted_http import Item
from haru_fsm.testing.strict import check_contents, decode_signature

USER = {"role": "user", "parts": [{"text": "주문 어디쯤 왔나요?"}]}


def results(*names: str) -> JSON:
    return {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {}}} for name in names]}


def model(*parts: str | JSON) -> JSON:
    return {"role": "model", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


BARE = [USER, model("볼게요.", call("a"), call("b")), results("a", "b")]
FOREIGN = [USER, model("볼게요.", unsigned(call("a")), call("b")), results("a", "b")]
"""Of another provider's model: whoever has read it says that nobody has signed it."""
OWN = [USER, model({**call("a"), "thoughtSignature": "AQID"}, call("b")), results("a", "b")]
THOUGHTS = [
    USER,
    model({"text": "음", "thought": True, "thoughtSignature": "AQID"}, {**call("a"), "thoughtSignature": "BAUG"}),
    results("a"),
    model("네.", {"text": "", "thoughtSignature": "BAUG"}),
    USER,
    model({"text": "", "thoughtSignature": "BAUG"}),
    USER,
]


@pytest.mark.parametrize(
    ("name", "wants"),
    [
        ("gemini-3-flash", True),
        ("gemini-3.8-pro-preview", True),
        ("models/gemini-flash-latest", True),
        ("gemini-2.5-flash", False),
        ("models/gemini-1.5-pro", False),
        ("gemma-3-27b-it", False),
        ("m", False),
    ],
)
def test_which_models_want_signatures(name: str, wants: bool) -> None:
    assert wants_signatures(name) is wants


def test_only_calls_that_nobody_signed_are_countersigned_and_the_journal_is_not_touched() -> None:
    before = copy.deepcopy(BARE)
    made = list(countersigned(BARE))
    assert made[1]["parts"] == [{"text": "볼게요."}, {**call("a"), "thoughtSignature": UNSIGNED}, call("b")]
    assert check_contents(made, known_signatures=(), require_signatures=True) == []
    assert before == BARE
    assert list(countersigned(OWN)) == OWN
    assert all(new is old for new, old in zip(countersigned(OWN), OWN, strict=True))


def test_the_word_is_base64() -> None:
    assert decode_signature(UNSIGNED)


def test_without_signatures_the_contents_are_still_valid() -> None:
    made = list(without_signatures(THOUGHTS))
    assert "Signature" not in repr(made)
    assert check_contents(made) == []
    assert made[3] == model("네.")
    assert check_contents(list(countersigned(made)), known_signatures=(), require_signatures=True) == []


async def respond(
    *script: Item, contents: Sequence[JSON], name: str = "gemini-3-flash", limits: Limits | None = None, **server: Any
) -> tuple[FakeGemini, ModelOutcome]:
    async with FakeGemini(script, **server) as gemini:
        asked = GeminiModel(
            name,
            api_key="k",
            base_url=gemini.base_url,
            clock=FakeClock(),
            limits=limits or Limits(),
            rng=random.Random(1),
        )
        outcome = await asked.respond(ModelRequest("", tuple(contents), requests_left=8))
        await asked.aclose()
    return gemini, outcome


async def test_calls_of_another_providers_model_are_taken_by_a_server_that_checks() -> None:
    gemini, outcome = await respond(reply("네."), contents=FOREIGN, require_signatures=True, check_signatures=True)
    assert isinstance(outcome, ModelAnswered)
    assert gemini.violations == []


async def test_an_earlier_model_gets_what_it_always_got() -> None:
    gemini, _ = await respond(reply("네."), contents=FOREIGN, name="gemini-2.5-flash")
    assert gemini.requests[0]["contents"] == BARE
    gemini, _ = await respond(reply("네."), contents=OWN, name="gemini-2.5-flash")
    assert gemini.requests[0]["contents"] == OWN


@pytest.mark.parametrize("contents", [BARE, OWN])
async def test_what_a_gemini_said_goes_back_as_it_came(contents: list[JSON]) -> None:
    """Nothing is made up for a call that it has not signed, as long as nobody misses it."""
    gemini, _ = await respond(reply("네."), contents=contents)
    assert gemini.requests[0]["contents"] == contents


async def test_a_signature_that_is_missed_is_stood_for_at_once() -> None:
    gemini, outcome = await respond(reply("네."), contents=BARE, require_signatures=True, check_signatures=True)
    assert isinstance(outcome, ModelAnswered)
    assert [one["contents"][1]["parts"][1].get("thoughtSignature") for one in gemini.requests] == [None, UNSIGNED]


async def test_signatures_that_are_refused_are_left_out_at_once() -> None:
    """Signed by another Gemini, or under another key: nobody knows before the API has said so."""
    gemini, outcome = await respond(reply("네."), contents=OWN, require_signatures=True, check_signatures=True)
    assert isinstance(outcome, ModelAnswered)
    assert outcome.requests == 2
    assert "unknown or corrupted" in outcome.incidents[0].detail
    assert [one["contents"][1]["parts"][0].get("thoughtSignature") for one in gemini.requests] == ["AQID", UNSIGNED]


async def test_a_server_that_is_not_content_with_that_either_is_not_asked_for_ever() -> None:
    refusal = error(400, "Corrupted thought signature.")
    gemini, outcome = await respond(*[refusal] * 5, contents=OWN, limits=Limits(http_retries=3))
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, len(gemini.requests)) == ("bad_request", 4)


async def test_words_of_what_was_left_out_survive_a_re_ask() -> None:
    gemini, outcome = await respond(
        error(400, "Corrupted thought signature."), reply("반쯤", finish="MAX_TOKENS"), reply("네."), contents=OWN
    )
    assert isinstance(outcome, ModelAnswered)
    assert [one["contents"][1]["parts"][0]["thoughtSignature"] for one in gemini.requests] == [
        "AQID",
        UNSIGNED,
        UNSIGNED,
    ]


def _signatures(gemini: FakeGemini) -> list[str | None]:
    return [one["contents"][1]["parts"][0].get("thoughtSignature") for one in gemini.requests]


async def test_a_gemini_that_is_silent_at_its_own_signatures_is_asked_without_them() -> None:
    gemini, outcome = await respond(reply(), reply(""), reply("네."), contents=OWN)
    assert isinstance(outcome, ModelAnswered)
    assert _signatures(gemini) == ["AQID", "AQID", UNSIGNED]
    assert gemini.violations == []
    gemini, _ = await respond(reply(), reply(), reply("네."), contents=OWN, name="gemini-2.5-flash")
    assert _signatures(gemini) == ["AQID", "AQID", None]


async def test_another_unusable_reply_is_no_silence() -> None:
    malformed = reply(finish="MALFORMED_FUNCTION_CALL")
    gemini, _ = await respond(reply(), malformed, reply("네."), contents=OWN)
    assert _signatures(gemini) == ["AQID"] * 3
