"""The rule book: what OpenAI's chat completions accept as a request, as far as their refusals have been reported in
public, and what gateways that follow them more strictly than they themselves have refused.

`check_request` lists everything in a request's body that would get it refused with 400. The fake server
(`fake_openai.py`) answers by it; tests of an app may ask it directly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

ROLES = ("system", "developer", "user", "assistant", "tool")
ID_CHARS = 40
DESCRIPTION_CHARS = 1024
MOST_TOOLS = 128

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_NOT_AT_THE_TOP = ("anyOf", "oneOf", "allOf", "not", "enum")


def check_request(body: Any) -> list[str]:
    """What is wrong with the body of a request, each with its path; an empty list for a valid one."""
    if not isinstance(body, dict):
        return ["the body is no object"]
    found = [] if isinstance(body.get("model"), str) and body["model"] else ["you must provide a model parameter"]
    found += check_messages(body.get("messages"))
    found += _tools(body)
    if "stream_options" in body and not body.get("stream"):
        found.append("stream_options is only allowed when stream is enabled")
    if "max_tokens" in body and "max_completion_tokens" in body:
        found.append("max_tokens and max_completion_tokens are not allowed at once")
    return found


def check_messages(messages: Any) -> list[str]:
    """What is wrong with the messages alone."""
    if not isinstance(messages, list) or not messages:
        return ["messages: too short"]
    found: list[str] = []
    open_ids: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        if not isinstance(message, dict):
            found.append(f"{path} is no object")
            continue
        found += _surrogates(message, path)
        found += _message(message, path)
        found += _pairing(message, path, open_ids)
        for call_id in _ids(message):
            if call_id in seen:
                found.append(f"{path}: duplicate tool call id {call_id!r}")
            seen.add(call_id)
    if open_ids:
        found.append(f"an assistant message with tool_calls must be followed by tool messages for {open_ids}")
    if isinstance(messages[-1], dict) and messages[-1].get("role") == "assistant":
        found.append("the last message must be from the user or a tool")
    return found


def _pairing(message: dict[str, Any], path: str, open_ids: list[str]) -> Iterator[str]:
    """Results come right after the calls that they answer, one for each. Changes `open_ids`."""
    if message.get("role") == "tool":
        if message.get("tool_call_id") in open_ids:
            open_ids.remove(message["tool_call_id"])
        else:
            yield f"{path}: role tool must be a response to a preceding message with tool_calls"
        return
    if open_ids:
        yield f"{path}: an assistant message with tool_calls must be followed by tool messages for {open_ids}"
    open_ids[:] = _ids(message)


def _ids(message: dict[str, Any]) -> list[str]:
    calls = message.get("tool_calls")
    if message.get("role") != "assistant" or not isinstance(calls, list):
        return []
    return [call["id"] for call in calls if isinstance(call, dict) and isinstance(call.get("id"), str)]


def _message(message: dict[str, Any], path: str) -> Iterator[str]:
    """Rules that look at one message alone."""
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        yield f"{path}.role {role!r} is not one of {', '.join(ROLES)}"
    calls = message.get("tool_calls")
    if calls is not None and role != "assistant":
        yield f"{path}: tool_calls in role {role}"
    if calls is not None and (not isinstance(calls, list) or not calls):
        yield f"{path}.tool_calls: [] is too short"
    if not (content is None and role == "assistant" and calls):
        yield from _content(content, f"{path}.content")
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        yield f"{path}: missing required parameter tool_call_id"
    for number, call in enumerate(calls if isinstance(calls, list) else ()):
        yield from _call(call, f"{path}.tool_calls[{number}]")


def _content(content: Any, path: str) -> Iterator[str]:
    """Text, or parts with something in them. An empty one is taken by OpenAI and by hardly anybody else."""
    if isinstance(content, str):
        if not content.strip():
            yield f"{path} is empty"
        return
    if not isinstance(content, list) or not content:
        yield f"{path}: expected a string, got {type(content).__name__}"
        return
    for number, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in ("text", "image_url") or not part.get(kind):
            yield f"{path}[{number}]: {kind!r} without data"


def _call(call: Any, path: str) -> Iterator[str]:
    if not isinstance(call, dict) or call.get("type") != "function":
        yield f"{path}: missing required parameter type"
        return
    if not isinstance(call.get("id"), str) or not call["id"]:
        yield f"{path}: missing required parameter id"
    elif len(call["id"]) > ID_CHARS:
        yield f"{path}.id: string too long. Expected a string with maximum length {ID_CHARS}"
    function = call.get("function")
    if not isinstance(function, dict):
        yield f"{path}: missing required parameter function"
        return
    yield from _name(function.get("name"), f"{path}.function.name")
    try:
        arguments = json.loads(function["arguments"], parse_constant=_refuse)
    except (KeyError, TypeError, ValueError):
        arguments = None
    if not isinstance(arguments, dict):
        yield f"{path}.function.arguments is no JSON object in a string"


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _name(name: Any, path: str) -> Iterator[str]:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f"{path}: {name!r} does not match the pattern '^[a-zA-Z0-9_-]+$', or has more than 64 characters"


def _surrogates(value: object, path: str) -> Iterator[str]:
    if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
        yield f"{path}: lone surrogate"
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _surrogates(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _surrogates(item, f"{path}[{index}]")


# --------------------------------------------------------------------------- tools


def _tools(body: dict[str, Any]) -> Iterator[str]:
    tools = body.get("tools")
    if tools is None:
        if "tool_choice" in body or "parallel_tool_calls" in body:
            yield "tool_choice is only allowed when tools are specified"
        return
    if not isinstance(tools, list) or not 0 < len(tools) <= MOST_TOOLS:
        yield f"tools: expected 1 to {MOST_TOOLS} of them"
        return
    for index, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
        if isinstance(function, dict):
            yield from _function(function, f"tools[{index}].function")
        else:
            yield f"tools[{index}]: no function"


def _function(function: dict[str, Any], path: str) -> Iterator[str]:
    yield from _name(function.get("name"), f"{path}.name")
    if len(function.get("description") or "") > DESCRIPTION_CHARS:
        yield f"{path}.description: string too long. Expected a string with maximum length {DESCRIPTION_CHARS}"
    parameters = function.get("parameters", {"type": "object"})
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        yield f"{path}.parameters: schema must be a JSON Schema of type 'object'"
        return
    for word in _NOT_AT_THE_TOP:
        if word in parameters:
            yield f"{path}.parameters: schema must not have {word!r} at the top level"
    yield from _schema(parameters, f"{path}.parameters")


def _schema(schema: Any, path: str) -> Iterator[str]:
    """What OpenAI finds wrong with a schema anywhere in it."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield f"{path}: {schema!r} is not of type 'object', 'boolean'"
        return
    kinds = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type", "string")]
    if not _TYPES.issuperset(kinds):
        yield f"{path}: {schema['type']!r} is no type"
    if "array" in kinds and not isinstance(schema.get("items"), dict):
        yield f"{path}: array schema missing items"
    for name in ("properties", "$defs"):
        for key, inner in (schema.get(name) or {}).items():
            yield from _schema(inner, f"{path}.{name}.{key}")
    for name in ("anyOf", "allOf", "oneOf"):
        for number, inner in enumerate(schema.get(name) or ()):
            yield from _schema(inner, f"{path}.{name}[{number}]")
    for name in ("items", "additionalProperties"):
        if name in schema:
            yield from _schema(schema[name], f"{path}.{name}")
