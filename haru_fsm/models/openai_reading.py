"""What a chat completion means. Pure: a body as it came over the wire goes in, something usable or a typed problem
comes out, and no body whatsoever raises.

The raw body is read rather than the SDK's objects (openai 3.57.0): they are built without validation, so that nothing
would be gained, and what gateways add or leave out would be harder to see. The reply is put into the form in which all
models are journaled, Gemini's contents; ids stay, and a call that came without one has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from haru_fsm.conversation import JSON, FailureReason, Usage
from haru_fsm.json_safe import json_safe
from haru_fsm.models.gemini_signatures import unsigned
from haru_fsm.models.openai_chunks import delta_text, first_choice, is_finished, merge_chunks
from haru_fsm.models.openai_errors import read_error
from haru_fsm.models.openai_signatures import signature_of
from haru_fsm.models.parts import Parts, kind_of, meaning, mend_id
from haru_fsm.models.replies import Problem, Reply, as_count, as_dict, as_list, as_text, parse_reply, said
from haru_fsm.models.tokens import estimated_usage

CALLS = frozenset({"tool_calls", "function_call", "tool_use"})
COMPLETE = CALLS | {"", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete"}
"""Finish reasons of a reply that is whole: OpenAI's, and what gateways say in their place. Some leave it out; a stream
that does so was cut half-way."""

PROBLEMS: dict[str, FailureReason] = {
    "length": FailureReason.CUT_OFF,
    "max_tokens": FailureReason.CUT_OFF,
    "model_length": FailureReason.CUT_OFF,
    "content_filter": FailureReason.ANSWER_BLOCKED,
    "safety": FailureReason.ANSWER_BLOCKED,
    "recitation": FailureReason.RECITATION,
    "malformed_function_call": FailureReason.MALFORMED_CALL,
    "error": FailureReason.SERVER,
}
"""What each other finish reason comes to. One that is not here is an UNKNOWN_FINISH."""

_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\r\n]*")


def read_text(text: str, request: JSON | None = None) -> Reply:
    """What the text of a 200 response means; see `read_body`. A text that is no JSON is UNREADABLE."""
    body = parse_reply(text)
    if isinstance(body, Problem):
        return body
    return read_chunks(body, request) if body and isinstance(body, list) else read_body(body, request)


def read_chunks(chunks: Sequence[object], request: JSON | None = None) -> Reply:
    """What the chunks of a stream mean. One that does not say why it stopped was cut half-way: no answer, no call."""
    body = merge_chunks(json_safe(chunks))
    if is_finished(body):
        return read_body(body, request)
    detail = f"the stream ended after {len(chunks)} chunks without a finish reason"
    return Problem(FailureReason.TRANSPORT, detail, usage=_usage(body, request))


def read_body(body: object, request: JSON | None = None) -> Reply:
    """What the body of a 200 response means.

    `request` is the body that was sent; tokens are estimated from it where the reply does not count them.
    """
    safe = json_safe(body)
    if not isinstance(safe, dict):
        return Problem(FailureReason.UNREADABLE, said("the reply is no object", safe))
    choice = first_choice(safe)
    if error := safe.get("error") or (choice or {}).get("error"):
        # Gateways that have begun to answer before they knew send their errors with status 200, behind half a reply.
        problem = read_error(as_count(as_dict(error).get("code")) or 200, {"error": error})
        return problem if choice is None else replace(problem, usage=_usage(safe, request))
    if choice is None:
        if isinstance(safe.get("choices"), list):
            return Problem(FailureReason.EMPTY, "a reply without choices", usage=_usage(safe, request))
        return Problem(FailureReason.UNREADABLE, said("the reply is no chat completion", safe))
    return _read(choice, _usage(safe, request))


def _read(choice: JSON, usage: Usage) -> Reply:
    message = as_dict(choice.get("message"))
    finish = as_text(choice.get("finish_reason")).lower()
    found = message_parts(message)
    if finish not in COMPLETE:
        reason = found.stopped(PROBLEMS.get(finish, FailureReason.UNKNOWN_FINISH))
        return Problem(reason, _told(message, finish), finish, wanted=found.wanted, usage=usage)
    if refusal := _refusal(message):
        return Problem(
            FailureReason.ANSWER_BLOCKED, said("the model has refused", refusal), finish or None, usage=usage
        )
    if found.reason is not None:
        return Problem(found.reason, found.detail, finish or None, wanted=found.wanted, usage=usage)
    if finish in CALLS and not found.calls:
        return Problem(FailureReason.MALFORMED_CALL, "a call was announced and did not come", finish, usage=usage)
    return meaning(found, finish or None, usage)


def _told(message: JSON, finish: str) -> str:
    return said(_refusal(message) or f"the reply ended with {finish}")


def _refusal(message: JSON) -> str:
    """The words of a model that declines, which are no answer; some gateways have them among the content's parts."""
    parts = map(as_dict, as_list(message.get("content")))
    return as_text(message.get("refusal")).strip() or "".join(as_text(part.get("refusal")) for part in parts)


def message_parts(message: JSON) -> Parts:
    """The message as parts. What it says of its reasoning is left out: it belongs to this one reply."""
    found = Parts()
    if text := delta_text(message.get("content")):
        found.parts.append({"text": text})
    for position, wanted in enumerate(_wanted(message)):
        _add_call(found, position, *wanted)
    return found


def _wanted(message: JSON) -> list[tuple[object, JSON, str | None]]:
    """The calls of a message: the id, the function, and the signature of each."""
    calls = message.get("tool_calls")
    wanted: list[tuple[object, JSON, str | None]] = []
    for call in map(as_dict, [calls] if isinstance(calls, dict) else as_list(calls)):
        # A tool of another kind ("custom") was never declared; it is called by its name as any other. Some gateways
        # leave the level between out.
        function = as_dict(call.get("function") or call.get("custom")) or call
        several = _several(function.get("arguments"))
        wanted += [(call.get("id"), {**function, "arguments": each}, signature_of(call)) for each in several]
    # Whoever says both says it twice: the older field is for those who do not know the newer one.
    if not wanted and (function := as_dict(message.get("function_call"))):
        wanted.append((None, function, None))
    return wanted


def _add_call(found: Parts, position: int, given: object, function: JSON, signature: str | None) -> None:
    name = function.get("name")
    if not isinstance(name, str) or not name.strip():
        found.refuse(FailureReason.MALFORMED_CALL, "a function call without a name")
    call: JSON = {"name": name}
    if given is not None:
        call["id"] = given
        mend_id(call)
    args, why = _arguments(function.get("arguments"))
    if why:
        found.unusable[position] = why
    part: JSON = {"functionCall": call | {"args": args}}
    if signature is not None:
        part["thoughtSignature"] = signature
    found.parts.append(unsigned(part) if position == 0 and signature is None else part)


def _several(arguments: object) -> list[object]:
    """The arguments of each call, where several were run together into one (`{...}{...}`, BerriAI/litellm#40582).

    The same ones again are the same call told twice, as in most of those reported.
    """
    found = _objects(arguments) if isinstance(arguments, str) else []
    if len(found) < 2:
        return [arguments]
    return list({json.dumps(value, sort_keys=True): value for value in found}.values())


def _objects(text: str) -> list[JSON]:
    """The JSON objects that a text consists of, one behind the other; none where it is anything else."""
    found, at = list[JSON](), 0
    try:
        while (at := _past_blanks(text, at)) < len(text):
            value, at = _DECODER.raw_decode(text, at)
            if not isinstance(value, dict):
                return []
            found.append(json_safe(value))
    except (ValueError, RecursionError):
        return []
    return found


def _past_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _arguments(arguments: object) -> tuple[JSON, str]:
    """The arguments of a call, and why they cannot be used where they cannot.

    They come as the text of a JSON object. Seen besides: nothing at all for none, the object itself, and the text of
    a text of an object.
    """
    for _ in range(2):
        if isinstance(arguments, str) and arguments.strip():
            try:
                arguments = json_safe(json.loads(arguments))
            except (ValueError, RecursionError):
                return {}, "the arguments are no valid JSON"
    if isinstance(arguments, dict):
        return arguments, ""
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}, ""
    return {}, f"the arguments came as {kind_of(arguments)} instead of an object"


# --------------------------------------------------------------------------- tokens


def read_usage(body: object) -> Usage | None:
    """The tokens that a reply, or one chunk of it, counts; None where it counts none.

    `completion_tokens` includes the reasoning at OpenAI, and leaves it out at some gateways: `total_tokens` tells
    which. What the total has more than its parts is charged as answer, since it costs money all the same.
    """
    counts = as_dict(as_dict(body).get("usage"))
    prompt, completion = as_count(counts.get("prompt_tokens")), as_count(counts.get("completion_tokens"))
    thoughts = as_count(as_dict(counts.get("completion_tokens_details")).get("reasoning_tokens"))
    total = as_count(counts.get("total_tokens"))
    answer = completion if thoughts > completion else completion - thoughts
    usage = Usage(
        prompt=prompt,
        cached=min(prompt, _cached(counts)),
        thoughts=thoughts,
        answer=max(answer, total - prompt - thoughts),
    )
    return usage if usage.total else None


def _cached(counts: JSON) -> int:
    """Tokens read from a cache: OpenAI's word for it, then DeepSeek's, then Moonshot's."""
    details = as_dict(counts.get("prompt_tokens_details"))
    told = (details.get("cached_tokens"), counts.get("prompt_cache_hit_tokens"), counts.get("cached_tokens"))
    return next(filter(None, map(as_count, told)), 0)


def _usage(body: JSON, request: JSON | None) -> Usage:
    written = (first_choice(body) or {}).get("message")
    return read_usage(body) or estimated_usage(request, written)
