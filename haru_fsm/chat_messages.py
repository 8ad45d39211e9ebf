"""Messages of chat completions as contents: what most loops keep their history in that were not written for Gemini.

    OpenAI       calls in `tool_calls`, their arguments a text; a message of the role `tool` for each result
    Anthropic    parts with a `type`: `tool_use` where the model speaks, `tool_result` where the user does
    Bedrock      the same as `toolUse` and `toolResult`; Vercel's SDK: `tool-call`, `tool-result`
    LangChain    `type` in the place of a role: `human`, `ai`, `tool`, or the name of its class; calls with `args`,
                 which behind Anthropic's models stand in the content too

Read as a content, such a message would lose its calls, and what a tool has said would become the customer's own words.
Nothing is mended here; that is for `adoption.py`, which also leaves out what nobody can read. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from haru_fsm.models.gemini_signatures import unsigned
from haru_fsm.models.openai_reading import message_parts
from haru_fsm.models.replies import as_dict, as_list, as_text

_ROLES = {"human": "user", "ai": "assistant"}
_TEXTS = ("text", "input_text", "output_text", "refusal")
_PARTS = (*_TEXTS, "image", "image_url", "input_image", "input_file", "document")
_INSTRUCTIONS = ("system", "developer")


def instructs(message: Any) -> bool:
    """Whether a message is no part of the conversation, but says how it is to be held."""
    return isinstance(message, Mapping) and _role(message) in _INSTRUCTIONS


def as_content(message: Mapping[str, Any], repairs: dict[str, None]) -> Mapping[str, Any]:
    """The message as a content; what is one already, or is something else, as it is. `repairs` gets a line for what no
    content can hold."""
    if message.get("parts") or not message.keys() & {"content", "tool_calls", "function_call"}:
        return message
    said = message.get("content")
    if isinstance(said, Mapping) and "parts" in said:
        return said  # a candidate, as Gemini's replies have them
    if _role(message) in ("tool", "function"):
        if any(as_dict(item).get("type") == "tool-result" for item in as_list(said)):
            return {"role": "user", "parts": list(_said(said, repairs))}
        return {"role": "user", "parts": [_result(message, message.get("tool_call_id"))]}
    return {"role": _role(message), "parts": [*_said(_without_calls_beside(message), repairs), *_calls(message)]}


def _without_calls_beside(message: Mapping[str, Any]) -> Any:
    """The content without the calls that stand beside it too, where a stream has left their arguments whole."""
    said, beside = message.get("content"), map(as_dict, as_list(message.get("tool_calls")))
    ids = {str(call["id"]) for call in beside if call.get("id")}
    if not (ids and isinstance(said, list)):
        return said
    return [item for item in said if not (as_dict(item).get("type") == "tool_use" and str(item.get("id")) in ids)]


def _role(message: Mapping[str, Any]) -> Any:
    role = message.get("role") or message.get("type")
    if not isinstance(role, str):
        return role
    named = role.removesuffix("Chunk").removesuffix("Message").lower()
    return _ROLES.get(named, named)


def _said(content: Any, repairs: dict[str, None]) -> Iterator[Any]:
    """The parts of a message's content: a text, or a list of parts of many types."""
    called = False
    for item in map(_in_one_form, content if isinstance(content, list | tuple) else [content]):
        kind = item.get("type") if isinstance(item, Mapping) else None
        if kind in _TEXTS:
            yield {"text": as_text(item.get("text") or item.get("refusal"))}
        elif kind == "tool_use":
            call = {"functionCall": {"name": item.get("name"), "id": item.get("id"), "args": item.get("input")}}
            yield call if called else unsigned(call)  # only the first call of a turn has to be signed
            called = True
        elif kind == "tool_result":
            yield _result(item, item.get("tool_use_id"))
            called = False
        elif kind is not None:
            repairs[f"a part of the type {kind!r} was left out"] = None
        elif item is not None:
            yield item  # a text, or a part as Gemini has them


def _in_one_form(item: Any) -> Any:
    """A part with a call or a result as Anthropic has it, where it is one of Bedrock's (`toolUse`) or of Vercel's SDK
    (`tool-call`)."""
    if not isinstance(item, Mapping):
        return item
    if call := as_dict(item.get("toolUse")):
        return {"type": "tool_use", "id": call.get("toolUseId"), "name": call.get("name"), "input": call.get("input")}
    if result := as_dict(item.get("toolResult")):
        told = list(map(as_dict, as_list(result.get("content"))))
        content = _value(told[0]["json"]) if len(told) == 1 and "json" in told[0] else _texts(told)
        return {"type": "tool_result", "tool_use_id": result.get("toolUseId"), "content": content}
    called = {"id": item.get("toolCallId"), "tool_use_id": item.get("toolCallId"), "name": item.get("toolName")}
    if item.get("type") == "tool-call":
        return {**called, "type": "tool_use", "input": item.get("input", item.get("args"))}
    if item.get("type") == "tool-result":
        output = item.get("output", item.get("result"))
        typed = as_dict(output) if as_dict(output).keys() == {"type", "value"} else {"type": None, "value": output}
        said = typed["value"] if typed["type"] == "content" else _value(typed["value"])
        return {**called, "type": "tool_result", "content": said}
    return item


def _texts(told: Sequence[Mapping[str, Any]]) -> list[Any]:
    """What Bedrock says in many pieces, as parts."""
    return [each.get("json", {"type": "text", **each}) for each in told]


def _value(value: Any) -> Any:
    """What a tool has given, which may be a list, and is none of parts then."""
    return {"result": value} if isinstance(value, list) else value


def _calls(message: Mapping[str, Any]) -> list[Any]:
    """The calls of a message, as they stand beside its content."""
    calls = [
        {**call, "arguments": call["args"]} if "args" in call else call
        for call in map(as_dict, as_list(message.get("tool_calls")))
    ]
    return message_parts({"tool_calls": calls, "function_call": message.get("function_call")}).parts


def _result(message: Mapping[str, Any], call_id: Any) -> dict[str, Any]:
    """What a tool has said. Messages mostly name the call alone, and `pairing.py` knows whose it was."""
    answer = {"name": message.get("name") or call_id, "response": _response(message.get("content"))}
    return {"functionResponse": answer if call_id is None else {**answer, "id": call_id}}


def _response(content: Any) -> dict[str, Any]:
    text = _joined(content)
    try:
        said = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        said = text
    if isinstance(said, dict):
        return said
    # A text that could be a number ("1.10", "1e5") may be none.
    return {"result": said if isinstance(said, list | str) else text}


def _joined(content: Any) -> Any:
    """The text of a list of parts; a result that is something else as it is."""
    items = content if isinstance(content, list) else [None]
    if not all(isinstance(item, str) or as_dict(item).get("type") in _PARTS for item in items):
        return content
    return "".join(item if isinstance(item, str) else as_text(as_dict(item).get("text")) for item in items)
