"""Recorded conversations, told to a model that speaks chat completions."""

import gzip
import json
from pathlib import Path

from haru_fsm.adoption import repaired
from haru_fsm.conversation import JSON, content_calls
from haru_fsm.models.openai_messages import messages_of
from haru_fsm.models.openai_reading import read_body, read_chunks
from haru_fsm.models.replies import Usable
from haru_fsm.testing.fake_openai import call, reply, split_into_chunks
from haru_fsm.testing.strict import check_contents
from haru_fsm.testing.strict_openai import check_messages


def lines(folder: Path, name: str) -> list[JSON]:
    with gzip.open(folder / name, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def said_by_gpt(turn: JSON) -> JSON:
    """A recorded turn of the model as chat completions would have sent it."""
    calls = [call(one["name"], id=one.get("id"), **(one["args"] or {})) for one in turn.get("calls") or ()]
    return reply(*([turn["text"]] if turn.get("text") else []), *calls)


def as_contents(turns: list[JSON]) -> list[JSON]:
    """The conversation as the journal keeps it, each reply read from the wire."""
    contents = []
    for turn in turns:
        if turn["role"] == "model":
            body = said_by_gpt(turn)
            read = read_body(body)
            assert read == read_chunks(list(split_into_chunks(body)))
            assert isinstance(read, Usable)
            contents.append(read.content)
        elif turn["role"] == "user":
            contents.append({"role": "user", "parts": [{"text": turn["text"]}]})
        else:
            asked = content_calls(contents[-1])
            answers = [
                {"name": one.name, "response": {"result": response["response"]}} | ({"id": one.id} if one.id else {})
                for one, response in zip(asked, turn["responses"], strict=True)
            ]
            contents.append({"role": "user", "parts": [{"functionResponse": answer} for answer in answers]})
    return contents


def test_conversations_of_gpt_4o_are_read_and_told_again(shared_data: Path) -> None:
    """tau-bench, airline: ids repeat inside these conversations, and must not in a request."""
    told = calls = 0
    for line in lines(shared_data, "tau_bench_airline_gpt4o.jsonl.gz"):
        turns = line["turns"]
        while turns and turns[-1]["role"] == "model":
            turns = turns[:-1]
        if not turns:
            continue
        contents = as_contents(turns)
        assert check_contents(contents) == []
        messages = messages_of("", contents)
        assert check_messages(messages) == []
        ours = [one for message in messages for one in message.get("tool_calls") or ()]
        theirs = [one for turn in turns for one in turn.get("calls") or ()]
        assert [(one["function"]["name"], json.loads(one["function"]["arguments"])) for one in ours] == [
            (one["name"], one["args"] or {}) for one in theirs
        ]
        assert [json.loads(message["content"])["result"] for message in messages if message["role"] == "tool"] == [
            response["response"] for turn in turns for response in turn.get("responses") or ()
        ]
        told, calls = told + 1, calls + len(ours)
    assert told > 150
    assert calls > 500


def test_histories_that_were_sent_to_gemini_can_be_sent_to_others(shared_data: Path) -> None:
    told = 0
    for line in lines(shared_data, "gemini_http.jsonl.gz"):
        contents, _ = repaired((line["request_body"] or {}).get("contents") or ())
        if not contents or contents[-1]["role"] != "user" or check_contents(list(contents)):
            continue
        messages = messages_of("", contents)
        assert check_messages(messages) == [], line["path"]
        told += 1
    assert told > 500
