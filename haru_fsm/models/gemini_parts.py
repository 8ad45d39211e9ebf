"""The parts of a Gemini reply, made such that the API takes them back.

What is kept is kept verbatim: signatures, ids, a missing `args`, fields that nobody here knows. What would get the
next request refused is mended as little as possible: parts without data, text without letters, null in the place of
nothing, arguments that are no object. A call that cannot be told back at all (no name, or not yet whole) is not
mended; it makes the whole reply unusable.

A response among the model's own parts says that somebody has run the call. For a tool of the provider's (a server of
MCP tools) that is so; for one of ours it cannot be: the model has made up what came of it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection

from haru_fsm.conversation import JSON, FailureReason
from haru_fsm.models.parts import Parts, kind_of, mend_id
from haru_fsm.models.replies import as_dict, as_list, as_text

NO_DATA = frozenset({"thought", "thoughtSignature", "partMetadata"})
"""Fields that say something about a part's data; a part with nothing else is empty, and refused with 400."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


def read_parts(raw: object, ours: Collection[str] = ()) -> Parts:
    """The parts of a candidate's content, from a body that was made JSON-safe. Never raises.

    `ours` names the tools that we have declared, which nobody else can have run.
    """
    parts = [
        part for item in ([raw] if isinstance(raw, dict) else as_list(raw)) for part in _split(_tidy(as_dict(item)))
    ]
    made_up = next((index for index, part in enumerate(parts) if _answers(part) in ours), len(parts))
    found = Parts()
    for index, part in enumerate(parts):
        if "functionCall" in part:
            _add_call(found, part)
        elif index >= made_up:
            continue  # what is said after a result that was made up is founded on it
        elif "functionResponse" in part:
            _take_back_call(found, as_dict(part["functionResponse"]))
        elif part.keys() - NO_DATA and (part.get("text") != "" or "thoughtSignature" in part):
            found.parts.append(part)
    if made_up < len(parts) and not found.calls:
        found.refuse(
            FailureReason.MALFORMED_CALL, f"a result of {_answers(parts[made_up])} was made up, without a call"
        )
    return found


def _answers(part: JSON) -> str:
    """The name of the tool whose response this is; empty for other parts."""
    return as_text(as_dict(part.get("functionResponse")).get("name"))


def _tidy(part: JSON) -> JSON:
    """The part without fields that are null, and without a text or a signature that is none."""
    tidy = {key: value for key, value in part.items() if value is not None}
    if not isinstance(tidy.get("text", ""), str) or (tidy.get("text") == "" and tidy.keys() - NO_DATA - {"text"}):
        del tidy["text"]
    if not is_base64(tidy.get("thoughtSignature", "AA==")):
        del tidy["thoughtSignature"]
    return tidy


def _split(part: JSON) -> list[JSON]:
    """A part is one of text, call and so on. Gateways have sent two in one: the text then goes first, by itself."""
    if "functionCall" not in part or "text" not in part:
        return [part]
    return [{"text": part["text"]}, {key: value for key, value in part.items() if key != "text"}]


def is_base64(signature: object) -> bool:
    """Whether this can be a thought signature: base64 in either alphabet, padded or not."""
    if not isinstance(signature, str) or not _BASE64.fullmatch(signature):
        return False
    bare = signature.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        base64.b64decode(bare + "=" * (-len(bare) % 4))
    except binascii.Error:
        return False
    return True


def _add_call(found: Parts, part: JSON) -> None:
    call = {key: value for key, value in as_dict(part["functionCall"]).items() if value is not None}
    name = call.get("name")
    if call.get("willContinue") or call.get("partialArgs"):
        found.refuse(FailureReason.PARTIAL_CALL, f"the call of {name or 'a tool'} came only in part")
    elif not isinstance(name, str) or not name.strip():
        found.refuse(FailureReason.MALFORMED_CALL, "a function call without a name")
    call = {key: value for key, value in call.items() if key not in ("willContinue", "partialArgs")}
    mend_id(call)
    if not isinstance(args := call.get("args", {}), dict):
        found.unusable[len(found.calls)] = f"the arguments came as {kind_of(args)} instead of an object"
        call["args"] = {}
    found.parts.append({**part, "functionCall": call})


def _take_back_call(found: Parts, response: JSON) -> None:
    """The provider has run a call by itself and answered it in the same content: it is not for us to run, and
    the API takes responses from users only. The words that the model made of the result stay."""
    for index, part in enumerate(found.parts):
        call = part.get("functionCall")
        if call and call.get("name") == response.get("name") and call.get("id") == response.get("id"):
            position = sum("functionCall" in earlier for earlier in found.parts[:index])
            del found.parts[index]
            found.unusable = {at - (at > position): why for at, why in found.unusable.items() if at != position}
            return
