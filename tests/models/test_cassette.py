"""Cassettes: what is recorded is played back, and what differs is shown."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haru_fsm.conversation import FailureReason, Incident, ModelAnswered, ModelFailed, ToolsRequested, Usage
from haru_fsm.errors import ModelError
from haru_fsm.models import Declaration, ModelOutcome, ModelRequest
from haru_fsm.models.cassette import CASSETTE, CassetteModel, RecordingModel
from haru_fsm.models.cassette_lines import read_lines
from haru_fsm.models.scripted import ScriptedModel, answer, calls
from haru_fsm.models.scrub import GONE

KEY = "AIzaSyA-a-key-that-nobody-may-ever-read-0"
TOOL = Declaration("get_stock", "How many there are.", {"type": "object", "properties": {"item": {"type": "string"}}})


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": text}]}


def request(*texts: str, **facts: Any) -> ModelRequest:
    """A conversation in which the user and the model take turns."""
    contents = [
        {"role": "model" if number % 2 else "user", "parts": [{"text": text}]} for number, text in enumerate(texts)
    ]
    return ModelRequest(**{"system": "Be brief.", "contents": contents, "declarations": (TOOL,), **facts})


async def record(path: Path, *pairs: tuple[ModelRequest, ModelOutcome], keys: tuple[str, ...] = ()) -> None:
    model = RecordingModel(ScriptedModel([outcome for _, outcome in pairs]), path, keys=keys)
    for asked, _ in pairs:
        await model.respond(asked)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cassette.jsonl"


# --------------------------------------------------------------------------- round trips


OUTCOMES: list[ModelOutcome] = [
    answer(
        "네, 있습니다 🎧", model="m", usage=Usage(prompt=9, cached=3, thoughts=2, answer=4, cost_usd=0.25), requests=2
    ),
    ModelAnswered(content={"role": "model", "parts": [{"text": "THOUGHT: hm\n네"}]}, shown="네"),
    calls(("get_stock", {"item": "이어폰"}), text="보겠습니다."),
    ToolsRequested(
        content={"role": "model", "parts": [{"functionCall": {"name": "f", "id": "7"}, "thoughtSignature": "c2ln"}]},
        unusable={0: "the arguments came as a list instead of an object"},
    ),
    ModelFailed(
        reason=FailureReason.QUOTA, detail="429", incidents=(Incident(reason="quota", detail="429", http_status=429),)
    ),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: outcome.kind)
async def test_what_was_recorded_is_played(file: Path, outcome: ModelOutcome) -> None:
    await record(file, (request("이어폰 있나요?"), outcome))
    played = await CassetteModel(file).respond(request("이어폰 있나요?"))
    assert played == outcome
    assert played.model_fields_set == outcome.model_fields_set


odd_texts = st.sampled_from(["", "가", "🎧", "\u2028", '"\\', "\n\r", "\ud83d", "\x00"])
odd_values: st.SearchStrategy[object] = st.one_of(
    odd_texts, st.none(), st.booleans(), st.sampled_from([0, -1.5, 10**30]), st.just([{"a": []}])
)
exchanges = st.tuples(
    st.builds(
        lambda said, system, declared, allowed: ModelRequest(
            system=system, contents=[user(text) for text in said], declarations=declared, tools_allowed=allowed
        ),
        st.lists(st.sampled_from(["가", "나", "다"]), min_size=1, max_size=4),
        st.sampled_from(["a", "b"]),
        st.sampled_from([(), (TOOL,)]),
        st.booleans(),
    ),
    st.dictionaries(odd_texts, odd_values, max_size=3).map(lambda args: calls(("f", args))),
)


@given(st.lists(exchanges, min_size=1, max_size=6))
def test_each_line_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, pairs: Any) -> None:
    """Whatever a request shares with earlier ones, in any order, with any system prompt and tools."""
    file = tmp_path_factory.mktemp("cassette") / "c.jsonl"
    asyncio.run(record(file, *pairs))
    tape = read_lines(file.read_bytes())
    assert not tape.unreadable
    for one, (asked, said) in zip(tape.exchanges, pairs, strict=True):
        assert (one.system, list(one.contents), one.tools_allowed) == (
            asked.system,
            list(asked.contents),
            asked.tools_allowed,
        )
        assert bool(one.declarations) == bool(asked.declarations)
        assert isinstance(one.outcome, ToolsRequested)
        assert one.outcome.content == said.content


async def test_a_history_is_written_once(file: Path) -> None:
    long = [f"message {number} " + "x" * 1000 for number in range(41)]
    await record(file, *((request(*long[: count + 1]), answer("?")) for count in range(0, 41, 2)))
    assert file.stat().st_size < 41 * 1_300
    assert [len(one.contents) for one in read_lines(file.read_bytes()).exchanges] == list(range(1, 42, 2))


async def test_a_line_can_be_read_by_people(file: Path) -> None:
    await record(
        file,
        (request("이어폰 🎧 있나요?"), answer("네, 12개요 👍")),
        (request("이어폰 🎧 있나요?", "네", "살게요"), answer("네")),
    )
    text = file.read_text("utf-8")
    assert "이어폰 🎧 있나요?" in text
    assert "네, 12개요 👍" in text
    first, second = lines(file)
    assert list(first) == ["format", "id", "system", "declarations", "contents", "outcome"]
    assert list(second) == ["format", "id", "follows", "same", "contents", "outcome"]
    assert (second["follows"], second["same"]) == (first["id"], 1)


async def test_what_the_engine_adds_to_an_outcome_is_not_recorded(file: Path) -> None:
    said = answer("네", model="m")
    added = said.model_copy(update={"at": 1.5, "took_ms": 7, "settled": {"1.0": {"result": 1}}})
    await record(file, (request("?"), added))
    assert await CassetteModel(file).respond(request("?")) == said


async def test_conversations_with_the_same_tools_share_their_declarations(file: Path) -> None:
    await record(file, *((request(f"question {number}"), answer("!")) for number in range(3)))
    await record(file, (request("in another process"), answer("!")))
    assert [line["same"] for line in lines(file)[1:]] == [0, 0, 0]
    assert file.read_text("utf-8").count("How many there are.") == 1


async def test_half_a_surrogate_pair_can_be_written(file: Path) -> None:
    await record(file, (request("half \ud83d"), answer("ok")))
    assert (await CassetteModel(file).respond(request("half \ud83d"))).kind == "model_answered"


# --------------------------------------------------------------------------- the same request


async def test_harmless_changes(file: Path) -> None:
    """Prompts are edited, tools described in other words, limits and deadlines moved: the request stays the same."""
    await record(file, (request("있나요?", requests_left=3, timeout_s=20.0), answer("네")))
    changed = request("있나요?", system="Be kind.", declarations=(), requests_left=1, timeout_s=None)
    assert (await CassetteModel(file).respond(changed)).kind == "model_answered"


async def test_the_same_request_again_gets_the_next_reply_and_then_the_last(file: Path) -> None:
    await record(file, (request("?"), answer("1")), (request("other"), answer("x")), (request("?"), answer("2")))
    model = CassetteModel(file)
    said = [await model.respond(request("?")) for _ in range(3)]
    assert [each.text for each in said if isinstance(each, ModelAnswered)] == ["1", "2", "2"]


async def test_numbers_of_tickets_are_those_of_the_replay(file: Path) -> None:
    told = "접수 번호는 HT-0000000001입니다."
    await record(file, (request("?", told, "몇 번이죠?"), answer("HT-0000000001입니다. HT-0000000009는 아닙니다.")))
    now = [text.replace("0000000001", "7777777777") for text in ("?", told, "몇 번이죠?")]
    played = await CassetteModel(file).respond(request(*now))
    assert isinstance(played, ModelAnswered)
    assert played.text == "HT-7777777777입니다. HT-0000000009는 아닙니다."


async def test_another_number_in_the_place_of_a_known_one_is_another_request(file: Path) -> None:
    await record(file, (request("HT-0000000001", "HT-0000000001", "?"), answer("네")))
    played = await CassetteModel(file).respond(request("HT-0000000001", "HT-0000000002", "?"))
    assert isinstance(played, ModelFailed)


async def test_more_may_be_called_volatile(file: Path) -> None:
    await record(file, (request("오늘은 2026-11-30"), answer("2026-11-30이군요")))
    played = await CassetteModel(file, volatile=(r"\d{4}-\d\d-\d\d",)).respond(request("오늘은 2027-01-02"))
    assert isinstance(played, ModelAnswered)
    assert played.text == "2027-01-02이군요"
    assert isinstance(await CassetteModel(file, volatile=()).respond(request("오늘은 2027-01-02")), ModelFailed)


async def test_the_answer_is_told_as_it_was_written(file: Path) -> None:
    await record(file, (request("?"), ModelAnswered(content=answer("THOUGHT: x\n네").content, shown="네")))
    heard: list[str] = []
    await CassetteModel(file).respond(request("?", on_text=heard.append))
    assert "".join(heard) == "네"


async def test_a_recording_has_the_names_of_those_who_were_recorded(file: Path) -> None:
    heard: list[str] = []
    await record(file, (request("1"), OUTCOMES[1]))
    assert CassetteModel(file).name == CASSETTE
    said: list[tuple[ModelRequest, ModelOutcome]] = [
        (request("2"), answer("네.", model="a")),
        (request("3"), calls(("f", {}), model="b")),
        (request("4"), OUTCOMES[0]),
    ]
    await record(file, *said, (request("5"), answer("네.", model="a")))
    model = CassetteModel(file)
    assert model.name == "a > b > m"
    assert (await model.respond(request("3", on_text=heard.append))).kind == "tools_requested"
    assert (await model.respond(request("?"))).model == CASSETTE
    assert heard == []


# --------------------------------------------------------------------------- another request


async def failed(file: Path, asked: ModelRequest) -> str:
    outcome = await CassetteModel(file).respond(asked)
    assert isinstance(outcome, ModelFailed)
    assert outcome.reason == FailureReason.REPLAY
    return outcome.detail


async def test_a_difference_is_shown_where_it_begins(file: Path) -> None:
    await record(
        file,
        (request("one"), answer("1")),
        (request("one", "1", "two"), answer("2")),
        (request("one", "1", "two", "2", "three"), answer("3")),
        (request("other"), answer("x")),
    )
    detail = await failed(file, request("one", "1", "zwei"))
    assert "first 2 contents" in detail
    assert '-   "text": "two"' in detail
    assert '+   "text": "zwei"' in detail
    assert "other" not in detail


async def test_a_recording_that_ends_too_early_says_so(file: Path) -> None:
    await record(file, (request("one"), answer("1")))
    detail = await failed(file, request("one", "1", "더 있나요?"))
    assert "(1 in all, 3 now)" in detail
    assert "+" in detail


async def test_tools_that_are_off_make_another_request(file: Path) -> None:
    await record(file, (request("one"), answer("1")))
    assert "Tools were allowed when it was recorded" in await failed(file, request("one", tools_allowed=False))


async def test_a_large_difference_is_cut(file: Path) -> None:
    parts = [{"text": "x" * 5000} for _ in range(100)]
    await record(file, (request(contents=[user("one")]), answer("1")))
    detail = await failed(file, request(contents=[{"role": "user", "parts": parts}]))
    assert "more lines" in detail
    assert len(detail) < 10_000


# --------------------------------------------------------------------------- keys


async def test_no_key_is_in_the_file(file: Path) -> None:
    secret = "a-secret-of-no-known-shape"
    outcome = ModelFailed(reason="wrong_key", detail=f"the key {secret} is wrong", incidents=(Incident(reason=KEY),))
    asked = request(f"mine is {KEY}", f'and {secret}" too', "?", system=f"key={secret}")
    await record(file, (asked, outcome), keys=(secret,))
    text = file.read_text()
    assert KEY not in text
    assert secret not in text
    assert GONE in text


async def test_a_request_with_what_looks_like_a_key_is_found_again(file: Path) -> None:
    await record(file, (request(f"Is {KEY} a key?"), answer("Yes.")))
    assert (await CassetteModel(file).respond(request(f"Is {KEY} a key?"))).kind == "model_answered"


# --------------------------------------------------------------------------- files


async def test_a_recording_goes_on_after_a_crash(file: Path) -> None:
    """The process died in the middle of a write: what was whole stays, what comes next is whole."""
    await record(file, (request("one"), answer("1")), (request("one", "1", "two"), answer("2")))
    file.write_bytes(file.read_bytes()[:-20])
    await record(file, (request("one", "1", "two"), answer("zwei")))
    tape = read_lines(file.read_bytes())
    assert tape.unreadable == [2]
    model = CassetteModel(file)
    said = [await model.respond(asked) for asked in (request("one"), request("one", "1", "two"))]
    assert [each.text for each in said if isinstance(each, ModelAnswered)] == ["1", "zwei"]
    assert "Lines that could not be read: 2" in await failed(file, request("three"))


async def test_a_line_never_refers_to_one_that_was_cut_off(file: Path) -> None:
    await record(file, (request("one"), answer("1")))
    file.write_bytes(file.read_bytes()[:-20])
    await record(file, (request("one"), answer("1")))
    assert (await CassetteModel(file).respond(request("one"))).kind == "model_answered"


def _in_a_process(path: Path, name: int) -> None:
    async def work() -> None:
        model = RecordingModel(ScriptedModel(lambda asked: f"{asked.contents[-1]['parts'][0]['text']}!" * 200), path)
        for number in range(20):
            await model.respond(request(f"{name}-{number} 안녕 👋"))

    asyncio.run(work())


def test_several_processes_write_to_one_file_without_tearing_lines(file: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=_in_a_process, args=(file, name)) for name in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    tape = read_lines(file.read_bytes())
    assert not tape.unreadable
    assert {one.contents[0]["parts"][0]["text"] for one in tape.exchanges} == {
        f"{name}-{number} 안녕 👋" for name in range(3) for number in range(20)
    }


async def test_conversations_side_by_side_share_one_recorder(file: Path) -> None:
    class Slow:
        name = "slow"

        async def respond(self, asked: ModelRequest) -> ModelOutcome:
            await asyncio.sleep(0)
            return answer(asked.contents[0]["parts"][0]["text"])

    model = RecordingModel(Slow(), file)
    await asyncio.gather(*(model.respond(request(f"q{number}")) for number in range(50)))
    played = CassetteModel(file)
    for number in range(50):
        said = await played.respond(request(f"q{number}"))
        assert isinstance(said, ModelAnswered)
        assert said.text == f"q{number}"


async def test_a_cancelled_request_leaves_nothing(file: Path) -> None:
    class Never:
        name = "never"

        async def respond(self, asked: ModelRequest) -> ModelOutcome:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await RecordingModel(Never(), file).respond(request("?"))
    assert file.read_bytes() == b""


async def test_a_file_that_can_no_longer_be_written_costs_no_answer(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    model = RecordingModel(ScriptedModel(["1"]), folder / "c.jsonl")
    (folder / "c.jsonl").unlink()
    folder.rmdir()
    assert (await model.respond(request("?"))).kind == "model_answered"


async def test_what_cannot_be_written_costs_no_answer(file: Path) -> None:
    asked = request("?", contents=[{"role": "user", "parts": [{"inlineData": object()}]}])
    assert (await RecordingModel(ScriptedModel(["1"]), file).respond(asked)).kind == "model_answered"


async def test_a_write_that_failed_costs_only_its_own_exchange(tmp_path: Path) -> None:
    folder, aside = tmp_path / "folder", tmp_path / "aside"
    folder.mkdir()
    said = ["one", "1", "two", "2", "three"]
    model = RecordingModel(ScriptedModel(["1", "2", "3"]), folder / "c.jsonl")
    for count in (1, 3, 5):
        if count == 3:
            folder.rename(aside)
        await model.respond(request(*said[:count]))
        if count == 3:
            aside.rename(folder)
    tape = read_lines((folder / "c.jsonl").read_bytes())
    assert tape.unreadable == []
    assert [len(one.contents) for one in tape.exchanges] == [1, 5]


async def test_the_recorder_closes_its_model(file: Path) -> None:
    closed: list[bool] = []

    class Closing(ScriptedModel):
        async def aclose(self) -> None:
            closed.append(True)

    model = RecordingModel(Closing([]), file)
    assert model.name == "scripted"
    await model.aclose()
    await RecordingModel(ScriptedModel([]), file).aclose()
    assert closed == [True]


def test_files_that_are_no_cassettes(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        CassetteModel(tmp_path / "missing.jsonl")
    with pytest.raises(ModelError, match="cannot be written"):
        RecordingModel(ScriptedModel([]), tmp_path / "missing" / "c.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(ModelError, match="holds no exchange"):
        CassetteModel(tmp_path / "empty.jsonl")


async def test_a_newer_format_is_refused(file: Path) -> None:
    await record(file, (request("?"), answer("!")))
    file.write_text(file.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(ModelError, match="format 2"):
        CassetteModel(file)


@pytest.mark.parametrize(
    "odd",
    [
        b"[]",
        b"1",
        b"{}",
        b'{"format": 1}',
        b'{"format": "x"}',
        b'{"format": 1, "id": "a", "follows": "b"}',
        b"\xff",
        b"null",
    ],
)
async def test_odd_lines_are_left_out(file: Path, odd: bytes) -> None:
    await record(file, (request("?"), answer("!")))
    file.write_bytes(odd + b"\n" + file.read_bytes())
    assert read_lines(file.read_bytes()).unreadable == [1]
    assert (await CassetteModel(file).respond(request("?"))).kind == "model_answered"


def test_only_the_owner_may_read_what_customers_wrote(file: Path) -> None:
    RecordingModel(ScriptedModel([]), file)
    assert os.stat(file).st_mode & 0o077 == 0
