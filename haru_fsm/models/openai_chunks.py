"""The chunks of a streamed chat completion, put together into the body that an unstreamed request would have had.

A call comes in pieces: its id and name first, then its arguments letter by letter. Gateways differ in how they say
which call a piece belongs to: by index, as OpenAI does; by a new id under the same index; or by nothing, one after the
other. Gemini behind its own gateway has given every call the index 0 and no id, each whole in one piece
(NousResearch/hermes-agent#62940): where the arguments of a call are whole, what begins anew is another one. A server
that ends with the whole message, after all of its pieces, has said it twice. Only the first choice is looked at: we
never ask for more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from haru_fsm.conversation import JSON
from haru_fsm.models.openai_signatures import FIELD
from haru_fsm.models.replies import as_dict, as_list, as_text, counts_so_far
from haru_fsm.models.snapshots import said_again

_COUNTS = ("prompt_tokens", "completion_tokens")
_TOTAL = "total_tokens"


@dataclass(slots=True)
class _Message:
    """The message that is being written."""

    texts: dict[str, str] = field(default_factory=dict)
    calls: list[JSON] = field(default_factory=list)
    places: dict[object, int] = field(default_factory=dict)
    legacy: JSON = field(default_factory=dict)

    @property
    def begun(self) -> bool:
        """Whether anything of it has come."""
        return bool(self.texts or self.calls or self.legacy)

    def hear(self, delta: JSON) -> None:
        """Add one delta."""
        for name in ("content", "refusal"):
            if text := delta_text(delta.get(name)):
                self.texts[name] = self.texts.get(name, "") + text
        for piece in map(as_dict, as_list(delta.get("tool_calls"))):
            self._hear_call(piece)
        if function := as_dict(delta.get("function_call")):
            _extend(self.legacy, function)

    def _hear_call(self, piece: JSON) -> None:
        call, index = self._call_of(piece), piece.get("index")
        if call is not None and _begins_anew(call, piece) and _is_whole(call):
            if _is_again(call, piece):
                if FIELD in piece:  # only one of the two may be signed
                    call.setdefault(FIELD, piece[FIELD])
                return
            call = _reopened(call, piece)
        if call is None:
            self.calls.append(call := {})
            self.places[index] = len(self.calls) - 1
        for key in ("id", "type", FIELD):
            if piece.get(key):
                call[key] = piece[key]
        _extend(call.setdefault("function", {}), as_dict(piece.get("function")))

    def _call_of(self, piece: JSON) -> JSON | None:
        """The call that this is a piece of; None where a new one begins."""
        index, given = piece.get("index"), piece.get("id")
        at = self.places.get(index) if index is not None else len(self.calls) - 1
        if at is None or at < 0:
            return None
        known = self.calls[at]
        if given and known.get("id"):
            return known if known["id"] == given else None
        # Where nothing else says which, a name begins a call.
        named = index is None and as_dict(piece.get("function")).get("name")
        return None if named and known["function"].get("name") else known

    def whole(self) -> JSON:
        """The message as far as it has come."""
        message: JSON = {"role": "assistant", "content": None, **self.texts}
        if self.calls:
            message["tool_calls"] = _told_once(self.calls)
        if self.legacy:
            message["function_call"] = self.legacy
        return message


def _told_once(calls: list[JSON]) -> list[JSON]:
    """The calls without those that were told again under another index, with their own id and arguments. What stands
    beside either of the two (a signature) stays."""
    told: dict[object, JSON] = {}
    for place, call in enumerate(calls):
        function = call["function"]
        same = (str(call.get("id")), str(function.get("name")), _arguments(function).strip())
        key = same if call.get("id") else place
        told[key] = {**call, **told.get(key, {})}
    return list(told.values())


def _arguments(function: JSON) -> str:
    """The arguments of a call, or of a piece of one, as a text: some gateways send an object."""
    arguments = function.get("arguments")
    return json.dumps(arguments) if isinstance(arguments, dict) else as_text(arguments)


def _is_whole(call: JSON) -> bool:
    """Whether the arguments of a call are complete: an object that more could only spoil."""
    arguments = _arguments(call["function"])
    if not arguments.rstrip().endswith("}"):
        return False
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


def _begins_anew(call: JSON, piece: JSON) -> bool:
    """Whether a piece has arguments from their beginning, or another name than the call."""
    function = as_dict(piece.get("function"))
    named = function.get("name") or call["function"].get("name")
    return _arguments(function).lstrip().startswith("{") or named != call["function"].get("name")


def _is_again(call: JSON, piece: JSON) -> bool:
    """Whether it is the same call under its own id, told twice."""
    function = as_dict(piece.get("function"))
    told = (function.get("name") or call["function"].get("name"), _arguments(function).strip())
    known = (call["function"].get("name"), _arguments(call["function"]).strip())
    return bool(piece.get("id")) and piece["id"] == call.get("id") and told == known


def _reopened(call: JSON, piece: JSON) -> JSON | None:
    """The call where its arguments only held the place of those that now begin, else None."""
    held = _arguments(call["function"]).strip() == "{}" and not as_dict(piece.get("function")).get("name")
    if held:
        call["function"]["arguments"] = ""
    return call if held else None


def _extend(function: JSON, piece: JSON) -> None:
    """A name comes whole, and by some gateways again with each piece; arguments come in pieces, or as an object."""
    if piece.get("name"):
        function["name"] = piece["name"]
    arguments = piece.get("arguments")
    if isinstance(arguments, str):
        function["arguments"] = as_text(function.get("arguments")) + arguments
    elif arguments is not None:
        function["arguments"] = arguments


def delta_text(content: object) -> str:
    """The text of a delta's or a message's content: a string, or a list of parts of which some are text."""
    if isinstance(content, str):
        return content
    parts = map(as_dict, as_list(content))
    return "".join(as_text(part.get("text")) for part in parts if part.get("type") in ("text", None))


def merge_chunks(chunks: Iterable[object]) -> JSON:
    """One body out of many. `usage` comes last, mostly in a chunk without choices; some gateways count in each, or the
    prompt in the first."""
    body: JSON = {}
    message, choice, heard = _Message(), dict[str, object](), False
    told_in_pieces = list(map(as_dict, chunks))
    again = said_again(list(map(chunk_text, told_in_pieces)))
    for number, chunk in enumerate(told_in_pieces):
        told = ((key, value) for key, value in chunk.items() if key not in ("choices", "usage") and value is not None)
        body.update(told)
        if usage := counts_so_far(as_dict(body.get("usage")), chunk.get("usage"), _COUNTS, _TOTAL):
            body["usage"] = usage
        if (latest := first_choice(chunk)) is None:
            continue
        heard = True
        delta = as_dict(latest.get("delta")) or ({} if message.begun else as_dict(latest.get("message")))
        message.hear({**delta, "content": None} if number in again else delta)
        if latest.get("finish_reason"):
            choice["finish_reason"] = latest["finish_reason"]
        if latest.get("error"):
            choice["error"] = latest["error"]
    return body | ({"choices": [{"index": 0, **choice, "message": message.whole()}]} if heard else {})


def chunk_text(chunk: object) -> str:
    """The text of one chunk that belongs to the answer: no reasoning."""
    return delta_text(as_dict((first_choice(as_dict(chunk)) or {}).get("delta")).get("content"))


def is_finished(body: JSON) -> bool:
    """Whether the stream came to its end: it said why it stopped, or that it failed."""
    return bool("error" in body or (first_choice(body) or {}).get("finish_reason"))


def first_choice(body: JSON) -> JSON | None:
    """The first choice of a body or a chunk, or None."""
    for choice in map(as_dict, as_list(body.get("choices"))):
        if choice.get("index") in (None, 0):
            return choice
    return None
