"""Items of OpenAI's Responses API as messages, which `chat_messages.py` reads: a history there is no list of turns, but
of things that happened.

    message                 what somebody said, as in chat completions
    function_call           one call, beside the message that it belongs to (`custom_tool_call`: with a text for all)
    function_call_output    what came of it
    reasoning               the model's own, of use to nobody else: left out

Read as a content, a call would be nothing, and its result a response without a call. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from haru_fsm.conversation import JSON

_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = tuple(f"{call}_output" for call in _CALLS)
_THOUGHTS = "reasoning"
_OF_MESSAGES = {"role", "content", "parts", "tool_calls"}


def as_messages(history: Iterable[Any], repairs: dict[str, None]) -> Iterator[Any]:
    """The history with items as messages; what is none, as it is. `repairs` gets a line for items without a meaning to
    other models."""
    spoken: JSON | None = None
    for each in history:
        kind = each.get("type") if isinstance(each, Mapping) and _is_item(each) else None
        if kind in _CALLS:
            spoken = _with_call(spoken, each)
            continue
        if isinstance(kind, str) and kind not in _OUTPUTS and not (each.keys() & _OF_MESSAGES and kind != _THOUGHTS):
            repairs[f"an item of the type {kind!r} was left out"] = None
            continue
        if spoken is not None:
            yield spoken
        spoken = dict(each) if _is_said_by_the_model(each) else None
        if spoken is None:
            yield _output(each) if kind in _OUTPUTS else each
    if spoken is not None:
        yield spoken


def _is_item(each: Mapping[str, Any]) -> bool:
    """Whether it is no message: what thoughts hold is nobody's words, though it is called their content."""
    return each.get("type") == _THOUGHTS or not any(map(each.get, _OF_MESSAGES))


def _is_said_by_the_model(each: Any) -> bool:
    """Whether calls may follow that belong to this message: it is one of the Responses API, or could be."""
    return isinstance(each, Mapping) and each.get("role") == "assistant" and "tool_calls" not in each


def _with_call(spoken: JSON | None, item: Mapping[str, Any]) -> JSON:
    said = spoken or {"role": "assistant", "content": None}
    arguments = {"input": item.get("input")} if "input" in item else item.get("arguments")
    call = {"id": item.get("call_id") or item.get("id"), "name": item.get("name"), "arguments": arguments}
    return {**said, "tool_calls": [*said.get("tool_calls", ()), call]}


def _output(item: Mapping[str, Any]) -> JSON:
    return {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
