"""Files of recordings: as they come from elsewhere, and in the forms that others write."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from haru_fsm.conversation import MessageReceived, ModelAnswered, ResultStatus, ToolsExecuted, ToolsRequested
from haru_fsm.errors import SettingsError
from haru_fsm.lab.lines import from_json_lines
from haru_fsm.lab.loops import true_loops
from haru_fsm.lab.recordings import Recording
from tests.lab.recorded import line, written

CALL: dict[str, Any] = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q": 1}'}}
OTHER: dict[str, Any] = {"id": "c2", "type": "function", "function": {"name": "count", "arguments": "{}"}}
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "?"}, {"type": "image_url", "image_url": {"url": "x"}}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL, OTHER]},
    {"role": "tool", "tool_call_id": "c2", "content": "seven"},
    {"role": "tool", "tool_call_id": "c1", "content": "a book"},
    {"role": "assistant", "content": "It is there.", "usage": {"prompt_tokens": 9, "completion_tokens": 2}},
]
LANGCHAIN: list[dict[str, Any]] = [
    {"type": "human", "content": "?"},
    {
        "type": "ai",
        "content": "",
        "tool_calls": [{"name": "look", "args": {"q": 1}, "id": "c1"}, {"name": "count", "args": {}, "id": "c2"}],
    },
    {"type": "tool", "tool_call_id": "c1", "content": "a book"},
    {"type": "tool", "tool_call_id": "c2", "content": "seven"},
    {"type": "ai", "content": "It is there.", "usage_metadata": {"input_tokens": 9, "output_tokens": 2}},
]
GEMINI: list[dict[str, Any]] = [
    {"role": "user", "parts": [{"text": "?"}]},
    {
        "role": "model",
        "parts": [
            {"functionCall": {"name": "look", "args": {"q": 1}}},
            {"function_call": {"name": "count", "args": {}}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "look", "response": {"result": "a book"}}},
            {"function_response": {"name": "count", "response": {"result": "seven"}}},
        ],
    },
    {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "It is there."}]},
]


def one(folder: Path, told: object) -> Recording:
    (path := folder / "one.jsonl").write_text(json.dumps(told), encoding="utf-8")
    [recording] = from_json_lines(path)
    return recording


@pytest.mark.parametrize(
    "told",
    [{"messages": CHAT}, {"traj": CHAT}, {"messages": LANGCHAIN}, {"contents": GEMINI}],
    ids=["openai", "tau-bench", "langchain", "gemini"],
)
def test_the_same_conversation_in_the_forms_of_others(tmp_path: Path, told: dict[str, Any]) -> None:
    recording = one(tmp_path, {**told, "success": 1, "task": 7})
    message, asked, executed, _, answered = [step.event for step in recording.steps]
    assert isinstance(message, MessageReceived)
    assert message.text == "?"
    assert isinstance(asked, ToolsRequested)
    assert [(call.name, call.args) for call in asked.calls] == [("look", {"q": 1}), ("count", {})]
    assert isinstance(executed, ToolsExecuted)
    brought = [str(result.response) for result in executed.results]
    assert ["a book" in brought[0], "seven" in brought[1]] == [True, True], "each in the place of its call"
    assert isinstance(answered, ModelAnswered)
    assert answered.text.endswith("It is there.")
    assert (recording.success, recording.facts) == (True, {"task": 7})


def test_tokens_of_a_chat_are_read(tmp_path: Path) -> None:
    for chat in (CHAT, LANGCHAIN):
        last = one(tmp_path, {"messages": chat}).steps[-1].event
        assert isinstance(last, ModelAnswered)
        assert last.usage.total == 11


def test_a_call_that_nobody_answered_does_not_move_the_others(tmp_path: Path) -> None:
    chat = [*CHAT[:3], CHAT[3], {"role": "user", "content": "hello?"}]
    executed = one(tmp_path, {"messages": chat}).steps[2].event
    assert isinstance(executed, ToolsExecuted)
    assert [result.response["result"] for result in executed.results] == [None, "seven"]


def test_errors_of_tools_are_failures(tmp_path: Path) -> None:
    failed = {"type": "tool", "tool_call_id": "c1", "content": "no", "status": "error"}
    chat = one(tmp_path, {"messages": [*LANGCHAIN[:2], failed]}).steps[2].event
    part = {"functionResponse": {"name": "look", "response": {"error": "no"}}}
    contents = one(tmp_path, {"contents": [*GEMINI[:2], {"role": "user", "parts": [part]}]}).steps[2].event
    for executed in (chat, contents):
        assert isinstance(executed, ToolsExecuted)
        assert executed.results[0].status is ResultStatus.FAILED


def test_a_loop_in_a_chat_is_a_loop(tmp_path: Path) -> None:
    turn = [
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "none"},
    ]
    assert true_loops(one(tmp_path, {"messages": [CHAT[1], *turn * 3]}))[0].third == 2


@pytest.mark.parametrize(
    "name", ["plain.jsonl", "packed.jsonl.gz", "packed.jsonl", "plain.jsonl.gz", "폴더/기록.jsonl"]
)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "bom"])
def test_what_a_file_is_shows_by_how_it_begins(tmp_path: Path, name: str, mark: bytes) -> None:
    text = mark + b"\r\n".join(json.dumps(line(letters)).encode() for letters in ("aaa", "ab")) + b"\r\n\r\n"
    (path := tmp_path / name).parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text) if "packed" in name else text)
    assert [recording.turns for recording in from_json_lines(path)] == [3, 2]


@pytest.mark.parametrize(("told", "success"), [(True, True), (1.0, True), (0, False), (None, None)])
def test_a_label_says_how_it_ended(tmp_path: Path, told: object, success: bool | None) -> None:
    (path := tmp_path / "one.jsonl").write_text(json.dumps({"turns": [], "reward": told}), encoding="utf-8")
    [recording] = from_json_lines(path, success="reward")
    assert (recording.success, recording.facts) == (success, {})


@pytest.mark.parametrize(
    ("told", "because"),
    [
        ({"turns": [], "success": "yes"}, "its 'success' is 'yes', and neither true nor false"),
        ({"turns": [], "success": 0.5}, "is 0.5"),
        ([{"turns": []}], "each conversation has a line of its own"),
        ({"turns": [{"role": "user"}, {"role": "model", "calls": ["look"]}]}, "its turn 2 has something else"),
        ({"turns": [{"text": "?"}]}, "its turn 1 has no 'role'"),
        ({"messages": [{"role": "robot"}]}, "unknown role 'robot'"),
        ({"messages": [{"role": "assistant", "tool_calls": [3]}]}, "its 'messages' are of another form"),
        ({"contents": 3}, "its 'contents' are of another form"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, told: object, because: str) -> None:
    with pytest.raises(SettingsError, match="line 1 is no recording") as refused:
        one(tmp_path, told)
    assert because in str(refused.value)


def test_lines_are_read_one_at_a_time_and_the_bytes_are_told(tmp_path: Path) -> None:
    path = written(tmp_path / "long.jsonl", [line("ab")] * 2_000)
    with path.open("a", encoding="utf-8") as file:
        file.write("{")
    read: list[int] = []
    recordings = from_json_lines(path, read=read.append)
    assert next(recordings).turns == 2, "what is wrong further on has not been seen yet"
    with pytest.raises(SettingsError, match="line 2001"):
        list(recordings)
    assert sum(read) == path.stat().st_size
