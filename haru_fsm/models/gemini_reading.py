"""What a Gemini reply means. Pure: a body as it came over the wire goes in, something usable or a typed problem
comes out, and no body whatsoever raises.

The raw body is read rather than what the SDK makes of it (google-genai 3.6.1), because the SDK drops `finishMessage`,
loses the whole reply over arguments that are a list or a signature that is no base64, and warns of every word that
is newer than itself.
"""

from __future__ import annotations

from dataclasses import replace

from haru_fsm.conversation import JSON, FailureReason, Usage
from haru_fsm.json_safe import json_safe
from haru_fsm.models.gemini_chunks import block_of, is_finished, merge_chunks
from haru_fsm.models.gemini_errors import read_error
from haru_fsm.models.gemini_parts import read_parts
from haru_fsm.models.parts import Parts, meaning
from haru_fsm.models.replies import Problem, Reply, as_count, as_dict, as_list, as_text, parse_reply, said
from haru_fsm.models.tokens import estimated_usage

UNSAID = frozenset({"FINISH_REASON_UNSPECIFIED", ""})
COMPLETE = UNSAID | {"STOP"}
"""Finish reasons of a reply that is whole. Gateways leave it out; a stream that does so was cut half-way."""

PROBLEMS: dict[str, FailureReason] = {
    "MAX_TOKENS": FailureReason.CUT_OFF,
    "CONTINUATION": FailureReason.UNFINISHED,
    "MALFORMED_FUNCTION_CALL": FailureReason.MALFORMED_CALL,
    "UNEXPECTED_TOOL_CALL": FailureReason.UNEXPECTED_CALL,
    "TOO_MANY_TOOL_CALLS": FailureReason.UNEXPECTED_CALL,
    "SAFETY": FailureReason.ANSWER_BLOCKED,
    "BLOCKLIST": FailureReason.ANSWER_BLOCKED,
    "PROHIBITED_CONTENT": FailureReason.ANSWER_BLOCKED,
    "SPII": FailureReason.ANSWER_BLOCKED,
    "MODEL_ARMOR": FailureReason.ANSWER_BLOCKED,
    "IMAGE_SAFETY": FailureReason.ANSWER_BLOCKED,
    "IMAGE_PROHIBITED_CONTENT": FailureReason.ANSWER_BLOCKED,
    "RECITATION": FailureReason.RECITATION,
    "IMAGE_RECITATION": FailureReason.RECITATION,
    "LANGUAGE": FailureReason.LANGUAGE,
    "ESCALATION": FailureReason.PROMPT_BLOCKED,
    "PUP_LIMITED_DISABLED": FailureReason.WRONG_KEY,
    "MISSING_THOUGHT_SIGNATURE": FailureReason.BAD_REQUEST,
    "MALFORMED_RESPONSE": FailureReason.UNKNOWN_FINISH,
    "OTHER": FailureReason.UNKNOWN_FINISH,
    "IMAGE_OTHER": FailureReason.UNKNOWN_FINISH,
    "NO_IMAGE": FailureReason.UNKNOWN_FINISH,
}
"""What each finish reason known to google-genai 3.6.1 comes to. One that is not here is an UNKNOWN_FINISH.

ESCALATION says that the *request* was filtered, PUP_LIMITED_DISABLED that the account may not go on, and
MISSING_THOUGHT_SIGNATURE that the history was wrong: asking again in other words would change nothing."""

_DECLARED_NOWHERE = "undeclared function: "
_NO_MESSAGE = "the provider gave no message"


def read_text(text: str, request: JSON | None = None) -> Reply:
    """What the text of a 200 response means; see `read_body`. A text that is no JSON is UNREADABLE."""
    body = parse_reply(text)
    return body if isinstance(body, Problem) else read_body(body, request)


def read_body(body: object, request: JSON | None = None) -> Reply:
    """What the body of a 200 response, or the list of a stream's chunks, means.

    `request` is the body that was sent: tokens are estimated from it where the reply does not count them, and what it
    declares are the tools that nobody but us can have run.
    """
    safe = json_safe(body)
    if isinstance(safe, list) and any(isinstance(chunk, dict) for chunk in safe):
        return _read_stream(merge_chunks(safe), len(safe), request)
    if not isinstance(safe, dict):
        return Problem(FailureReason.UNREADABLE, said("the reply is no object", safe))
    return _read(safe, request)


def _read_stream(body: JSON, chunks: int, request: JSON | None) -> Reply:
    if is_finished(body):
        return _read(body, request)
    detail = f"the stream ended after {chunks} chunks without a finish reason"
    return Problem(FailureReason.TRANSPORT, detail, usage=read_usage(body) or _estimate(body, request))


def _read(body: JSON, request: JSON | None) -> Reply:
    usage = read_usage(body) or _estimate(body, request)
    candidate = as_dict(next(iter(as_list(body.get("candidates"))), None))
    finish = str(candidate.get("finishReason") or "").upper()
    if (error := body.get("error")) and finish in UNSAID:
        # Gateways that have begun to answer before they knew send their errors with status 200, behind half a reply.
        problem = read_error(as_count(as_dict(error).get("code")) or 200, body)
        return replace(problem, usage=usage) if candidate else problem
    found = read_parts(as_dict(candidate.get("content")).get("parts"), _declared(request))
    if (why := block_of(body)) and (finish != "STOP" or not found.parts):
        return Problem(FailureReason.PROMPT_BLOCKED, why, usage=usage)
    if finish not in COMPLETE:
        return _stopped(finish, candidate, found, usage)
    if found.reason is not None:
        return Problem(found.reason, found.detail, finish or None, wanted=_wanted(candidate, found), usage=usage)
    return meaning(found, finish or None, usage)


def _stopped(finish: str, candidate: JSON, found: Parts, usage: Usage) -> Problem:
    """A reply that ended for another reason than being complete. Whatever came with it is not used."""
    return Problem(
        found.stopped(PROBLEMS.get(finish, FailureReason.UNKNOWN_FINISH)),
        said(as_text(candidate.get("finishMessage")) or _NO_MESSAGE),
        finish_reason=finish,
        wanted=_wanted(candidate, found),
        usage=usage,
    )


def _declared(request: JSON | None) -> tuple[str, ...]:
    """The names of the tools that the request has declared."""
    tools = map(as_dict, as_list(as_dict(request).get("tools")))
    declared = (as_dict(one) for tool in tools for one in as_list(tool.get("functionDeclarations")))
    return tuple(as_text(one.get("name")) for one in declared)


def _wanted(candidate: JSON, found: Parts) -> str | None:
    """The tool that a refused call was for: named by the call where there is one, else by the provider."""
    if found.wanted:
        return found.wanted
    _, declared, rest = as_text(candidate.get("finishMessage")).partition(_DECLARED_NOWHERE)
    return said(rest.strip().split()[0].rstrip(".,")) if declared and rest.strip() else None


# --------------------------------------------------------------------------- tokens


def read_usage(body: object) -> Usage | None:
    """The tokens that a reply, or one chunk of it, counts; None where it counts none.

    `totalTokenCount` is the sum of the four kinds (so in all of 920 recorded counts). Where it says more than they
    do, the difference is charged as answer: a kind of token that is not known here costs money all the same. No more
    of the prompt can have come out of a cache than there was.
    """
    counts = as_dict(as_dict(body).get("usageMetadata"))
    prompt = as_count(counts.get("promptTokenCount"))
    usage = Usage(
        prompt=prompt,
        cached=min(prompt, as_count(counts.get("cachedContentTokenCount"))),
        thoughts=as_count(counts.get("thoughtsTokenCount")),
        tool=as_count(counts.get("toolUsePromptTokenCount")),
        answer=as_count(counts.get("candidatesTokenCount")),
    )
    missing = as_count(counts.get("totalTokenCount")) - usage.total
    if missing > 0:
        usage = usage.model_copy(update={"answer": usage.answer + missing})
    return usage if usage.total else None


def _estimate(body: JSON, request: JSON | None) -> Usage:
    """The tokens of a reply that counts none."""
    return estimated_usage(request, as_dict(next(iter(as_list(body.get("candidates"))), None)).get("content"))
