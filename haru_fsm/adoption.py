"""Taking in a history that another loop has made: whatever it looks like, what comes out is valid `contents`.

Histories of hand-written loops are broken in known ways: roles that the API refuses (tool, function, assistant), keys
in Python's spelling, a call without its response, responses in several turns or under the call's id instead of its
name, empty contents. Each is mended where its meaning is plain, and every mend is said. A checkpoint may also have
been cut off or edited by hand, so that what should be a turn or a part is something else: that is left out, and said.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from itertools import dropwhile, groupby
from typing import Any

from pydantic_core import to_jsonable_python

from haru_fsm.chat_messages import as_content, instructs
from haru_fsm.conversation import JSON
from haru_fsm.errors import SettingsError
from haru_fsm.framework_messages import as_message
from haru_fsm.json_safe import json_safe
from haru_fsm.models.gemini_parts import NO_DATA, is_base64
from haru_fsm.pairing import paired
from haru_fsm.response_items import as_messages

CAMEL = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "thought_signature": "thoughtSignature",
    "inline_data": "inlineData",
    "file_data": "fileData",
    "executable_code": "executableCode",
    "code_execution_result": "codeExecutionResult",
}
_DATA = frozenset((*CAMEL.values(), "text", "toolCall", "toolResponse", "tool_call", "tool_response"))
"""What a part may consist of. The API refuses a request, and every one after it, for a part of anything else."""
MODEL_ROLES = ("model", "assistant")


def repaired(contents: object) -> tuple[tuple[JSON, ...], tuple[str, ...]]:
    """Valid contents in the Gemini REST form, and what was mended to get them.

    `contents` are dictionaries in REST or Python spelling, texts (of the user), objects with `model_dump`
    (google-genai's Content), messages of chat completions (`chat_messages.py`) or of frameworks
    (`framework_messages.py`), or items of OpenAI's Responses API (`response_items.py`). Raises SettingsError for what
    is no list of them. Instructions at the beginning are left out: the app has its own.
    """
    if not isinstance(contents, Iterable) or isinstance(contents, str | bytes | Mapping):
        raise SettingsError(
            f"The history is no list of turns, it is {_kind(contents)}. Give Gemini contents: a list of dictionaries, "
            "each with a role and parts."
        )
    repairs: dict[str, None] = {}
    plain = [as_message(_plain(content), repairs) for content in contents]
    spoken = list(dropwhile(instructs, plain))
    if len(spoken) < len(plain):
        repairs["instructions at the beginning were left out: the app has its own"] = None
    first = len(plain) - len(spoken)
    spoken = list(as_messages(spoken, repairs))
    turns = [turn for number, content in enumerate(spoken, first) for turn in _turns(number, content, repairs)]
    return tuple(paired(turns, repairs)), tuple(repairs)


def beside_text(turn: JSON) -> tuple[JSON, ...]:
    """What a turn holds beside its text (a picture, a file), as a turn of its own; none where it holds nothing."""
    parts = [part for part in turn["parts"] if "text" not in part]
    return ({**turn, "parts": parts},) if parts else ()


def _kind(value: object) -> str:
    return "nothing" if value is None else f"of type {type(value).__name__}"


def _turns(number: int, content: Any, repairs: dict[str, None]) -> Iterator[JSON]:
    """One content in REST spelling, of the user or of the model; responses are turns of their own, and the user's."""
    if isinstance(content, str):
        content = {"role": "user", "parts": [content]}
    if not isinstance(content, Mapping):
        repairs[f"content {number} is {_kind(content)} and was left out"] = None
        return
    content = as_content(content, repairs)
    parts = content.get("parts") or []
    spelled = [_part(part, repairs) for part in (parts if isinstance(parts, list | tuple) else [parts])]
    role = _role(content.get("role"), repairs)
    kept = [part for part in spelled if _has_data(part)]
    if not kept:
        repairs["a content without parts was left out"] = None
    if role == "user" and any("functionCall" in part for part in kept):
        repairs["a call in a user turn was left out"] = None
        kept = [part for part in kept if "functionCall" not in part]
    for responds, run in groupby(kept, key=lambda part: "functionResponse" in part):
        yield {"role": "user" if responds else role, "parts": list(run)}


def _role(said: object, repairs: dict[str, None]) -> str:
    role = "model" if said in MODEL_ROLES else "user"
    if isinstance(said, str) and said not in ("", role):
        repairs[f"role {said!r} became {role!r}"] = None
    return role


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return to_jsonable_python(value, exclude_none=True, bytes_mode="base64", serialize_unknown=True)
    return value.model_dump(exclude_none=True) if hasattr(value, "model_dump") else value


def _part(part: Any, repairs: dict[str, None]) -> JSON:
    """A part in REST spelling; an empty one for what is none."""
    part = _plain(part)
    if isinstance(part, str):
        return {"text": part}
    if not isinstance(part, Mapping):
        repairs[f"a part was {_kind(part)} and was left out"] = None
        return {}
    spelled = {CAMEL.get(key, key): value for key, value in part.items() if value is not None}
    if "thoughtSignature" in spelled:
        spelled["thoughtSignature"] = _on_the_wire(spelled["thoughtSignature"])
    if isinstance(inline := spelled.get("inlineData"), Mapping):
        spelled["inlineData"] = {key: _on_the_wire(value) for key, value in inline.items()}
    signature = spelled.get("thoughtSignature")
    if signature is not None and not is_base64(signature):
        repairs["a thought signature that is none was left out"] = None
        del spelled["thoughtSignature"]
    for name in ("functionCall", "functionResponse"):
        if name in spelled and not isinstance(spelled[name], Mapping):
            repairs[f"a {name} was {_kind(spelled[name])} and was left out"] = None
            del spelled[name]
    if "text" in spelled:
        spelled["text"] = str(spelled["text"])
    if "functionCall" in spelled:
        spelled["functionCall"] = _call(spelled["functionCall"])
    if "functionResponse" in spelled:
        spelled["functionResponse"] = _named(spelled["functionResponse"])
    if spelled.keys() - NO_DATA and not spelled.keys() & _DATA:
        repairs[f"a part of {', '.join(map(repr, spelled))} was left out"] = None
        return {}
    safe: JSON = json_safe(spelled)
    return safe


def _on_the_wire(value: Any) -> Any:
    """Bytes as they go over the wire, whatever they are the bytes of."""
    return base64.urlsafe_b64encode(value).decode() if isinstance(value, bytes) else value


def _call(call: Mapping[str, Any]) -> JSON:
    """A call as the API wants it: with a name, and with an object as arguments where there are any."""
    named = _named(call)
    if not isinstance(named.get("args", {}), dict):
        named["args"] = {}
    return {**named, "name": named.get("name") or "unknown"}


def _named(part: Mapping[str, Any]) -> JSON:
    """A call or a response with texts for its name and its id, by which they find each other."""
    told = {key: value for key, value in part.items() if value is not None}
    return told | {key: str(told[key]) for key in ("name", "id") if key in told}


def _has_data(part: Mapping[str, Any]) -> bool:
    data = {key: value for key, value in part.items() if key not in NO_DATA}
    return bool(data) and (data != {"text": ""} or "thoughtSignature" in part)
