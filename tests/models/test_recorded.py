"""Real traffic: each of the recorded responses means something, and what it means survives journal and wire."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from haru_fsm.clock import FakeClock
from haru_fsm.conversation import JSON, FailureReason, ModelAnswered, ModelFailed, ToolsRequested
from haru_fsm.limits import Limits
from haru_fsm.models import ModelRequest
from haru_fsm.models.gemini import GeminiModel
from haru_fsm.models.gemini_chunks import merge_chunks
from haru_fsm.models.gemini_errors import read_error
from haru_fsm.models.gemini_reading import read_body, read_text
from haru_fsm.models.replies import Problem, Reply, Usable
from haru_fsm.testing.fake_gemini import FakeGemini, split_into_chunks
from haru_fsm.testing.strict import check_contents

TRAFFIC = Path(__file__).parents[3] / "shared" / "data" / "gemini_http.jsonl.gz"
pytestmark = pytest.mark.skipif(not TRAFFIC.is_file(), reason="the recorded traffic is not beside this repository")

USER = {"role": "user", "parts": [{"text": "네"}]}


@cache
def recorded() -> list[JSON]:
    with gzip.open(TRAFFIC, "rt") as lines:
        return [json.loads(line) for line in lines]


@cache
def read() -> list[tuple[JSON, Reply]]:
    """Each response with what it means."""
    return [(row, _read(row)) for row in recorded()]


def _read(row: JSON) -> Reply:
    if row["response_status"] != 200:
        return read_error(row["response_status"], row["response_body"])
    return read_body(row["response_body"], row["request_body"])


def bodies() -> Iterator[tuple[JSON, Reply]]:
    """The bodies of good responses, streams put together."""
    for row, meaning in read():
        if row["response_status"] == 200 and row["response_body"]:
            body = row["response_body"]
            yield (merge_chunks(body) if isinstance(body, list) else body), meaning


def part_list(body: JSON) -> list[JSON]:
    return ((body.get("candidates") or [{}])[0].get("content") or {}).get("parts") or []


def test_each_response_has_a_meaning() -> None:
    meanings = [meaning for _, meaning in read()]
    assert len(meanings) == 768
    usable = [meaning for meaning in meanings if isinstance(meaning, Usable)]
    reasons = [meaning.reason for meaning in meanings if isinstance(meaning, Problem)]
    expected = {
        FailureReason.CUT_OFF: 14,
        FailureReason.UNEXPECTED_CALL: 5,
        FailureReason.ANSWER_BLOCKED: 2,
        FailureReason.PROMPT_BLOCKED: 1,
        FailureReason.UNKNOWN_MODEL: 2,
        FailureReason.WRONG_KEY: 1,
        FailureReason.TOO_LARGE: 1,
        FailureReason.BAD_REQUEST: 3,
        FailureReason.RATE_LIMITED: 1,
        FailureReason.UNREADABLE: 1,
        FailureReason.PARTIAL_CALL: 4,  # streamed arguments, which we never ask for
        FailureReason.EMPTY: 2,  # pictures and sound
    }
    assert Counter(reasons) == expected
    assert len(usable) + sum(expected.values()) == 768


def test_what_is_usable_may_be_replayed() -> None:
    for _, meaning in read():
        if isinstance(meaning, Usable):
            calls = [part["functionCall"] for part in meaning.content["parts"] if "functionCall" in part]
            answers = [
                {"functionResponse": {"response": {}, **{key: call[key] for key in ("name", "id") if key in call}}}
                for call in calls
            ]
            after = {"role": "user", "parts": answers} if answers else USER
            assert check_contents([USER, meaning.content, after]) == []


def test_calls_signatures_and_ids_are_kept_as_they_came() -> None:
    calls = signatures = with_id = 0
    for body, meaning in bodies():
        if not isinstance(meaning, Usable) or any("functionResponse" in part for part in part_list(body)):
            continue
        kept = [part for part in part_list(body) if part != {"text": ""}]
        assert meaning.content["parts"] == kept
        made = [part["functionCall"] for part in kept if "functionCall" in part]
        calls += len(made)
        with_id += sum("id" in call for call in made)
        signatures += sum("thoughtSignature" in part for part in kept)
    assert calls > 330
    assert with_id == 28
    assert signatures > 290


def test_contents_come_back_from_the_journal_as_they_were() -> None:
    for _, meaning in read():
        if not isinstance(meaning, Usable):
            continue
        kind = ToolsRequested if meaning.calls else ModelAnswered
        event = kind(content=meaning.content, usage=meaning.usage)
        again = kind.model_validate_json(event.model_dump_json(exclude_unset=True))
        assert again == event
        assert json.dumps(again.content) == json.dumps(meaning.content)


def test_the_counts_of_the_provider_are_taken_as_they_are() -> None:
    for body, meaning in bodies():
        counted = body.get("usageMetadata", {}).get("totalTokenCount")
        if counted:
            assert (meaning.usage.total, meaning.usage.estimated) == (counted, False)


def test_streamed_or_not_it_means_the_same() -> None:
    for body, meaning in bodies():
        if not (body.get("candidates") and body["candidates"][0].get("finishReason")):
            continue
        text = json.dumps(body)
        chunks = [json.loads(json.dumps(chunk)) for chunk in split_into_chunks(body)]
        if isinstance(meaning, Usable) and len([p for p in part_list(body) if set(p) == {"text"}]) > 1:
            continue  # neighbouring texts become one part in a stream: the boundary cannot be seen there
        assert read_body(chunks) == read_text(text)


def test_the_leaked_thought_among_them_is_not_shown() -> None:
    leaked = [meaning.shown for _, meaning in read() if isinstance(meaning, Usable) and meaning.shown is not None]
    assert len(leaked) == 1
    assert leaked[0].startswith("The returned image shows")


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_real_client_comes_to_the_same_outcomes(streamed: bool) -> None:
    """One in five of them over HTTP, plain or in chunks: nothing is lost between the wire and the reading."""
    rows = [row for row in recorded() if row["response_body"] and row["response_status"] == 200]
    rows = [row for row in rows if row["streaming"] is streamed][::5]
    async with FakeGemini([row["response_body"] for row in rows]) as gemini:
        limits = Limits(model_retries=0, http_retries=0)
        model = GeminiModel("m", api_key="test", base_url=gemini.base_url, limits=limits, clock=FakeClock())
        for row in rows:
            outcome = await model.respond(ModelRequest("", (USER,), on_text=list[str]().append if streamed else None))
            meaning = read_body(row["response_body"])
            if isinstance(meaning, Problem):
                assert isinstance(outcome, ModelFailed)
                assert (outcome.reason, outcome.detail) == (meaning.reason, meaning.incident().detail)
            else:
                assert not isinstance(outcome, ModelFailed)
                assert outcome.content == meaning.content
            assert outcome.usage.total == meaning.usage.total or meaning.usage.estimated
        await model.aclose()
    assert gemini.overruns == 0
