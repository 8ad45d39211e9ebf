"""The rule book: what the Gemini API accepts as `contents`, as far as its refusals have been reported in public.

`check_contents` lists everything in a request's contents that would get it refused with 400, in the camelCase JSON
that goes over the wire. The fake server (`fake_gemini.py`) answers by it; tests of an app may ask it directly.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

ROLES = ("user", "model")
_HALF = re.compile("[\ud800-\udfff]")
NO_DATA = frozenset({"thought", "thoughtSignature", "partMetadata"})
"""Fields of a part that say something about its data and are none."""
UNCHECKED = frozenset({"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"})
"""Words that are documented to stand for a signature where another model has made the call."""


@dataclass(slots=True)
class _Turn:
    """One content, taken apart as far as it can be."""

    path: str
    role: object
    parts: list[dict[str, Any]] = field(default_factory=list)

    @property
    def calls(self) -> list[dict[str, Any]]:
        return self._all("functionCall")

    @property
    def responses(self) -> list[dict[str, Any]]:
        return self._all("functionResponse")

    def _all(self, name: str) -> list[dict[str, Any]]:
        return [_object(part[name]) for part in self.parts if name in part]


def check_contents(
    contents: Any,
    known_signatures: Collection[bytes] | None = None,
    require_signatures: bool = False,
    *,
    checked: int = 0,
) -> list[str]:
    """What is wrong with these contents, each with its path; an empty list for valid ones.

    `known_signatures`: the thought signatures that the model has given out; any other is a violation.
    `require_signatures`: the first call of each turn has to carry one, as Gemini 3 wants it. `checked`: so many
    contents at the beginning were found valid in a shorter request, and are not looked at again.
    """
    if not isinstance(contents, list) or not contents:
        return ["contents empty"]
    start = max(0, checked - 1)
    turns = [_turn(f"contents[{index}]", content) for index, content in enumerate(contents[start:], start)]
    found = [wrong for index, content in enumerate(contents[start:]) for wrong in _no_json(content, turns[index].path)]
    before = turns.pop(0) if checked else None
    for turn in turns:
        found += _in_turn(turn)
        found += _signatures(turn, known_signatures, require_signatures)
        found += _after(before, turn)
        before = turn
    if not checked and (turns[0].role != "user" or turns[0].responses):
        found.append("first content must be a plain user turn")
    last = turns[-1] if turns else before
    if last is not None and last.role != "user":
        found.append("last content must be a user turn")
    return found


def check_responses_alone(contents: Any) -> list[str]:
    """What stands beside a function response in its content, as it goes over the wire.

    Gemini 3.6 and later refuse it ("Requests ending with a model turn are not supported"), earlier models do not.
    """
    turns = [_turn(f"contents[{index}]", content) for index, content in enumerate(contents)]
    return [
        f"{turn.path}: a function response shares its content with something else"
        for turn in turns
        if turn.responses and len(turn.responses) < len(turn.parts)
    ]


def _turn(path: str, content: object) -> _Turn:
    said = _object(content)
    parts = said.get("parts")
    return _Turn(path, said.get("role"), [_object(part) for part in parts] if isinstance(parts, list) else [])


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _no_json(value: object, path: str) -> Iterator[str]:
    """Numbers and texts that Python writes and no JSON parser reads."""
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{path}: NaN/Infinity is not JSON"
    elif isinstance(value, str) and _HALF.search(value):
        yield f"{path}: lone surrogate"
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _no_json(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _no_json(item, f"{path}[{index}]")


def _in_turn(turn: _Turn) -> Iterator[str]:
    """Rules that look at one content alone."""
    if turn.role not in ROLES:
        yield f"{turn.path}.role {turn.role!r} is not user or model"
    if not turn.parts:
        yield f"{turn.path}.parts is empty"
    for index, part in enumerate(turn.parts):
        if not part.keys() - NO_DATA:
            yield f"{turn.path}.parts[{index}] has no data field"
    for call in turn.calls:
        if not call.get("name"):
            yield f"{turn.path}: functionCall without a name"
        if not isinstance(call.get("args", {}), dict):
            yield f"{turn.path}: functionCall.args is no object"
    for response in turn.responses:
        if not isinstance(response.get("response"), dict):
            yield f"{turn.path}: functionResponse.response is no object"
    if turn.calls and turn.role != "model":
        yield f"{turn.path}: functionCall in role {turn.role}"
    if turn.responses and turn.role != "user":
        yield f"{turn.path}: functionResponse in role {turn.role}"


def _signatures(turn: _Turn, known: Collection[bytes] | None, required: bool) -> Iterator[str]:
    for index, part in enumerate(turn.parts):
        if "thoughtSignature" not in part:
            continue
        signature = decode_signature(part["thoughtSignature"])
        if signature is None:
            yield f"{turn.path}.parts[{index}]: thoughtSignature is not base64"
        elif known is not None and signature not in known and part["thoughtSignature"] not in UNCHECKED:
            yield f"{turn.path}.parts[{index}]: thoughtSignature is unknown or corrupted"
    calling = [part for part in turn.parts if "functionCall" in part]
    if required and calling and "thoughtSignature" not in calling[0]:
        yield f"{turn.path}: the first functionCall lacks its thoughtSignature"


def decode_signature(signature: object) -> bytes | None:
    """The bytes of a signature, in either alphabet, padded or not."""
    if not isinstance(signature, str):
        return None
    try:
        return base64.b64decode(signature.replace("-", "+").replace("_", "/") + "==")
    except (binascii.Error, ValueError):
        return None


def _after(before: _Turn | None, turn: _Turn) -> Iterator[str]:
    """Rules about what may follow what."""
    if turn.calls and (before is None or before.role != "user"):
        yield f"{turn.path}: a call turn must come right after a user or function response turn"
    if turn.responses and not (before and before.calls):
        yield f"{turn.path}: function response without a call turn before it"
    if before is None or not before.calls:
        return
    if len(turn.responses) != len(before.calls):
        yield (
            f"{turn.path}: {len(turn.responses)} function responses for {len(before.calls)} calls. Please ensure that "
            "the number of function response parts is equal to the number of function call parts of the function "
            "call turn."
        )
    for call, response in zip(before.calls, turn.responses, strict=False):
        for name in ("name", "id"):
            if call.get(name) != response.get(name):
                yield f"{turn.path}: response {name} {response.get(name)!r} is not the call's {call.get(name)!r}"
