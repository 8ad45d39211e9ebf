"""Taking in a history that another loop has made: whatever it looks like, what comes out is valid `contents`.

Histories of hand-written loops are broken in known ways: roles that the API refuses (tool, function, assistant), keys
in Python's spelling, a call without its response, responses in several turns or under the call's id instead of its
name, empty contents. Each is mended where its meaning is plain, and every mend is said. A checkpoint may also have
been cut off or edited by hand, so that what should be a turn or a part is something else: that is left out, and said.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from haru_fsm.conversation import JSON, content_calls
from haru_fsm.errors import SettingsError
from haru_fsm.json_safe import json_safe
from haru_fsm.models.gemini_parts import is_base64

CAMEL = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "thought_signature": "thoughtSignature",
    "inline_data": "inlineData",
    "file_data": "fileData",
    "executable_code": "executableCode",
    "code_execution_result": "codeExecutionResult",
}
ABOUT_DATA = frozenset({"thought", "thoughtSignature", "partMetadata"})
MODEL_ROLES = frozenset({"model", "assistant"})
LOST = "The result of this call was lost before this conversation was taken over."
BEGINNING = "(이전 대화에서 이어집니다.)"


def repaired(contents: object) -> tuple[tuple[JSON, ...], tuple[str, ...]]:
    """Valid contents in the Gemini REST form, and what was mended to get them.

    `contents` are dictionaries in REST or Python spelling, texts (of the user), or objects with `model_dump`
    (google-genai's Content). Raises SettingsError for what is no list of them.
    """
    if not isinstance(contents, Iterable) or isinstance(contents, str | bytes | Mapping):
        raise SettingsError(
            f"The history is no list of turns, it is {_kind(contents)}. Give Gemini contents: a list of dictionaries, "
            "each with a role and parts."
        )
    repairs: dict[str, None] = {}
    turns: list[JSON] = []
    for number, content in enumerate(contents):
        turn = _turn(content, repairs)
        if turn is None:
            repairs[f"content {number} is {_kind(content)} and was left out"] = None
            continue
        for mend in _take(turns, turn, number):
            repairs[mend] = None
    _answer_open_calls(turns, repairs)
    return tuple(turns), tuple(repairs)


def beside_text(turn: JSON) -> tuple[JSON, ...]:
    """What a turn holds beside its text (a picture, a file), as a turn of its own; none where it holds nothing."""
    parts = [part for part in turn["parts"] if "text" not in part]
    return ({**turn, "parts": parts},) if parts else ()


def _kind(value: object) -> str:
    return "nothing" if value is None else f"of type {type(value).__name__}"


def _turn(content: Any, repairs: dict[str, None]) -> JSON | None:
    """One content in REST spelling, its parts without empty ones; None for what is none."""
    content = _plain(content)
    if isinstance(content, str):
        return {"role": "user", "parts": [{"text": content}] if content else []}
    if not isinstance(content, Mapping):
        return None
    parts = content.get("parts") or content.get("content") or []
    listed = parts if isinstance(parts, list | tuple) else [parts]
    role = content.get("role")
    spelled = [_part(part, repairs) for part in listed]
    return {
        "role": role if isinstance(role, str) and role else "user",
        "parts": [part for part in spelled if _has_data(part)],
    }


def _plain(value: Any) -> Any:
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
    signature = spelled.get("thoughtSignature")
    if isinstance(signature, bytes):
        signature = spelled["thoughtSignature"] = base64.urlsafe_b64encode(signature).decode()
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
    safe: JSON = json_safe(spelled)
    return safe


def _call(call: Mapping[str, Any]) -> JSON:
    """A call as the API wants it: with a name, and with an object as arguments where there are any."""
    named = {key: value for key, value in call.items() if value is not None}
    if not isinstance(named.get("args", {}), dict):
        named["args"] = {}
    if "id" in named:
        named["id"] = str(named["id"])
    return {**named, "name": str(named.get("name") or "unknown")}


def _has_data(part: Mapping[str, Any]) -> bool:
    data = {key: value for key, value in part.items() if key not in ABOUT_DATA}
    return bool(data) and (data != {"text": ""} or "thoughtSignature" in part)


def _take(turns: list[JSON], turn: JSON, number: int) -> Iterator[str]:
    """Add a turn to those before it, so that they stay valid."""
    responses = [part["functionResponse"] for part in turn["parts"] if "functionResponse" in part]
    role = "model" if turn["role"] in MODEL_ROLES else "user"
    if turn["role"] not in ("model", "user"):
        yield f"role {turn['role']!r} became {role!r}"
    if not turn["parts"]:
        yield "a content without parts was left out"
        return
    if responses:
        yield from _take_responses(turns, responses, number)
        turn = {**turn, "parts": [part for part in turn["parts"] if "functionResponse" not in part]}
        if not turn["parts"]:
            return
    calls = content_calls(turn)
    if role == "user" and calls:
        yield "a call in a user turn was left out"
        turn = {**turn, "parts": [part for part in turn["parts"] if "functionCall" not in part]}
        if not turn["parts"]:
            return
    mended: dict[str, None] = {}
    _answer_open_calls(turns, mended)
    yield from mended
    if not turns and role == "model":
        yield "a user turn was put before the first turn of the model"
        turns.append({"role": "user", "parts": [{"text": BEGINNING}]})
    if role == "model" and turns[-1]["role"] == "model":
        yield "two turns of the model in a row were joined"
        turns[-1] = {"role": "model", "parts": [*turns[-1]["parts"], *turn["parts"]]}
        return
    turns.append({"role": role, "parts": turn["parts"]})


def _take_responses(turns: list[JSON], responses: list[JSON], number: int) -> Iterator[str]:
    """Put responses where their calls wait for them: by position, for ids repeat and names get lost."""
    if turns and _is_responses(turns[-1]) and len(turns) > 1:
        waiting, given = content_calls(turns[-2]), [part["functionResponse"] for part in turns[-1]["parts"]]
        yield "responses in several turns were joined into one"
    elif turns and content_calls(turns[-1]):
        waiting, given = content_calls(turns[-1]), []
        turns.append({"role": "user", "parts": []})
    else:
        yield f"a response without a call was left out (content {number})"
        return
    given = [*given, *responses]
    if len(given) > len(waiting):
        yield f"a response without a call was left out (content {number})"
    parts = []
    for call, said in zip(waiting, given, strict=False):
        if said.get("name") != call.name or said.get("id") != call.id:
            yield "a response got the name and the id of its call"
        parts.append(_response(call.name, call.id, said.get("response")))
    turns[-1] = {"role": "user", "parts": parts}


def _is_responses(turn: JSON) -> bool:
    return any("functionResponse" in part for part in turn["parts"])


def _answer_open_calls(turns: list[JSON], repairs: dict[str, None]) -> None:
    """Give every call of the last turns a response before anything else is said."""
    if turns and content_calls(turns[-1]):
        turns.append({"role": "user", "parts": []})
    if len(turns) < 2 or not content_calls(turns[-2]):
        return
    waiting, parts = content_calls(turns[-2]), turns[-1]["parts"]
    if len(parts) < len(waiting):
        repairs["a call without a response got one that says so"] = None
        lost = [_response(call.name, call.id, {"error": LOST}) for call in waiting[len(parts) :]]
        turns[-1] = {"role": "user", "parts": [*parts, *lost]}


def _response(name: str, id_: str | None, response: Any) -> JSON:
    said: JSON = {"name": name, "response": response if isinstance(response, dict) else {"result": response}}
    if id_ is not None:
        said["id"] = id_
    return {"functionResponse": said}
