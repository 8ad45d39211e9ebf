"""Other people's recordings as turns of ours: chat messages (OpenAI, LangChain, tau-bench) and Gemini contents.

A chat answers each call in a message of its own, by the call's id; a turn of ours answers all of them by position.
What was said by the system is left out: no guard reads it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from haru_fsm.conversation import JSON

CHATS = ("messages", "traj")
"""Where a chat is found: OpenAI's and LangChain's word, tau-bench's."""
A_LIST = "it is a list, and each conversation has a line of its own (jq -c '.[]' writes them so)"
SPEAKERS: Mapping[str, str] = {
    "user": "user",
    "human": "user",
    "assistant": "model",
    "ai": "model",
    "tool": "tool",
    "function": "tool",
    "system": "",
    "developer": "",
}


def turns_of(told: Any) -> tuple[list[JSON], dict[str, Any]]:
    """The turns of a recording, and its labels. Raises ValueError for what is none."""
    shape = next((name for name in SHAPES if isinstance(told, dict) and name in told), None)
    if shape is None:
        raise ValueError(A_LIST if isinstance(told, list) else f"it has none of {', '.join(map(repr, SHAPES))}")
    labels = {name: value for name, value in told.items() if name != shape}
    try:
        return list(SHAPES[shape](told[shape])), labels
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"its {shape!r} are of another form") from error


# --------------------------------------------------------------------------- chats


def _from_chat(messages: Sequence[JSON]) -> Iterator[JSON]:
    said: list[JSON] = []
    for message in messages:
        speaker = _speaker(message)
        if speaker == "tool" and said:
            said.append(message)
            continue
        yield from _answered(said)
        said = [message] if speaker == "model" else []
        if speaker == "user":
            yield {"role": "user", "text": _text(message.get("content"))}
    yield from _answered(said)


def _speaker(message: JSON) -> str:
    role = str(message.get("role") or message.get("type"))
    if role not in SPEAKERS:
        raise ValueError(f"unknown role {role!r}")
    return SPEAKERS[role]


def _answered(said: Sequence[JSON]) -> Iterator[JSON]:
    """What the assistant said, and the messages of tools that came back, each in its call's place."""
    if not said:
        return
    message, came = said[0], list(said[1:])
    legacy = message.get("function_call")
    wanted = message.get("tool_calls") or ([legacy] if legacy else [])
    calls = [_call(call) for call in wanted]
    yield {
        "role": "model",
        "text": _text(message.get("content")),
        "thought": _text(message.get("reasoning_content")),
        "calls": [{"name": name, "args": args} for name, args, _ in calls],
        "usage": message.get("usage") or message.get("usage_metadata"),
    }
    if came:
        yield {"role": "tool", "responses": [_result(_taken(came, call_id)) for _, _, call_id in calls]}


def _call(call: JSON) -> tuple[str, Any, str | None]:
    made = call.get("function", call)
    args = made.get("args", made.get("arguments"))
    return made["name"], _parsed(args), call.get("id")


def _parsed(args: Any) -> Any:
    try:
        return json.loads(args) if isinstance(args, str) else args
    except ValueError:
        return args


def _taken(came: list[JSON], call_id: str | None) -> JSON:
    """The message that answers this call, taken out; where no id tells it, the next one. None came: nothing."""
    mine = (place for place, each in enumerate(came) if each.get("tool_call_id") in (call_id, None))
    place = next(mine, None)
    return {} if place is None else came.pop(place)


def _result(message: JSON) -> JSON:
    return {"response": message.get("content"), "is_error": message.get("status") == "error"}


def _text(content: Any) -> str:
    """The words of a message; its pictures and files are no words."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") if isinstance(part, dict) else str(part) for part in content)
    return str(content or "")


# --------------------------------------------------------------------------- Gemini contents


def _from_contents(contents: Sequence[JSON]) -> Iterator[JSON]:
    for content in contents:
        parts = content.get("parts") or []
        calls = [call for part in parts if (call := part.get("functionCall") or part.get("function_call"))]
        results = [said for part in parts if (said := part.get("functionResponse") or part.get("function_response"))]
        text, thought = (_text([part for part in parts if bool(part.get("thought")) is each]) for each in (False, True))
        if content.get("role") == "model":
            yield {"role": "model", "text": text, "thought": thought, "calls": calls}
        elif results:
            yield {"role": "tool", "responses": [_response(said.get("response")) for said in results]}
        else:
            yield {"role": "user", "text": text}


def _response(said: Any) -> JSON:
    return {"response": said, "is_error": isinstance(said, dict) and "error" in said}


SHAPES: Mapping[str, Callable[[Sequence[JSON]], Iterable[JSON]]] = {
    "turns": iter,
    **dict.fromkeys(CHATS, _from_chat),
    "contents": _from_contents,
}
"""Where a line has its conversation, and how it is read."""
