"""Messages as frameworks write them into their own checkpoints, as messages that `chat_messages.py` reads.

    LangChain      `{"type": "ai", "data": {...}}` (messages_to_dict) and `{"lc": 1, "kwargs": {...}}` (dumpd): unpacked
    pydantic-ai    requests and responses of parts, each of a `part_kind`
    Vercel's SDK   messages of its user interface: parts of a `type`, where a call and its result are one

Read as contents, such parts would have gone to the API as they are, which refuses every request with one of them. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from haru_fsm.conversation import JSON
from haru_fsm.models.replies import as_dict, as_list

_SPEAKERS = {"request": "user", "response": "assistant"}


def as_message(message: Any, repairs: dict[str, None]) -> Any:
    """The message unpacked, and as a chat completion's; what is no framework's, as it is."""
    if not isinstance(message, Mapping):
        return message
    if isinstance(inner := message.get("kwargs" if "lc" in message else "data"), Mapping) and "content" in inner:
        named = as_list(message.get("id"))[-1:] or [message.get("type")]  # dumpd has the class's name there
        return {"type": named[0], **inner}
    parts = as_list(message.get("parts"))
    if message.get("kind") in _SPEAKERS and all("part_kind" in as_dict(part) for part in parts):
        said = [item for part in map(as_dict, parts) for item in _items(part, repairs)]
        return {"role": _SPEAKERS[message["kind"]], "content": said}
    if parts and all(isinstance(as_dict(part).get("type"), str) for part in parts):
        return {"role": message.get("role"), "content": [item for part in parts for item in _shown(part)]}
    return message


def _shown(part: JSON) -> Iterator[JSON]:
    """A part of what Vercel's SDK shows to a user, as parts of a message in its own words."""
    kind, call = part["type"], as_dict(part.get("toolInvocation")) or part  # the latter since its version 5
    if not (kind == "dynamic-tool" or kind.startswith("tool-")):
        yield part
        return
    called = {"toolCallId": call.get("toolCallId"), "toolName": call.get("toolName") or kind.removeprefix("tool-")}
    yield {**called, "type": "tool-call", "input": call.get("input", call.get("args"))}
    if "errorText" in call:
        yield {**called, "type": "tool-result", "output": {"error": call["errorText"]}}
    elif "output" in call or "result" in call:
        yield {**called, "type": "tool-result", "output": call.get("output", call.get("result"))}


def _items(part: JSON, repairs: dict[str, None]) -> Iterator[JSON]:
    """A part of pydantic-ai's as parts of a message in Anthropic's words."""
    kind, content, call_id = part["part_kind"], part.get("content"), part.get("tool_call_id")
    if kind == "tool-call":
        yield {"type": "tool_use", "id": call_id, "name": part.get("tool_name"), "input": _arguments(part.get("args"))}
    elif kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name")):
        said = content
        if kind == "retry-prompt":
            said = {"error": content}
        elif isinstance(content, list):  # what the tool has given, and no parts
            said = {"result": content}
        yield {"type": "tool_result", "tool_use_id": call_id, "name": part.get("tool_name"), "content": said}
    elif kind in ("text", "user-prompt", "retry-prompt"):
        pieces = content if isinstance(content, list) else [content]
        texts = [piece for piece in pieces if isinstance(piece, str)]
        if len(texts) < len(pieces):
            repairs["a part that is no text was left out"] = None
        yield from ({"type": "text", "text": text} for text in texts)
    else:
        repairs[f"a part of the kind {kind!r} was left out"] = None


def _arguments(args: Any) -> Any:
    """The arguments of a call, which are an object, or the text of one."""
    try:
        return json.loads(args) if isinstance(args, str) else args
    except (ValueError, RecursionError):
        return None
