"""What an error of an API that speaks like OpenAI's means: an HTTP status and the body that came with it. Pure.

The codes and types are OpenAI's; the words beside them are what gateways (vLLM, Groq, OpenRouter, Azure, DeepSeek) say
where they have no code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from haru_fsm.conversation import JSON, FailureReason
from haru_fsm.json_safe import json_safe
from haru_fsm.models.faults import error_of, is_spent, of_status, told_by_header, told_seconds
from haru_fsm.models.replies import Problem, as_text, said

_CODES: Mapping[str, FailureReason] = {
    "insufficient_quota": FailureReason.QUOTA,
    "billing_hard_limit_reached": FailureReason.QUOTA,
    "billing_not_active": FailureReason.QUOTA,
    "invalid_api_key": FailureReason.WRONG_KEY,
    "model_not_found": FailureReason.UNKNOWN_MODEL,
    "deploymentnotfound": FailureReason.UNKNOWN_MODEL,
    "context_length_exceeded": FailureReason.TOO_LARGE,
    "content_filter": FailureReason.PROMPT_BLOCKED,
    "content_policy_violation": FailureReason.PROMPT_BLOCKED,
    "invalid_prompt": FailureReason.PROMPT_BLOCKED,
    "tool_use_failed": FailureReason.MALFORMED_CALL,
}
"""What an error's `code`, or its `type`, says better than the status."""

_STATUS: Mapping[str, int] = {"rate_limit_exceeded": 429, "server_error": 500, "internal_error": 500, "overloaded": 503}
"""What the status would have been of an error that came when the response had begun."""

_TOO_LARGE = re.compile(
    r"maximum context length|context (?:length|window|size).{0,40}exceed|exceeds?.{0,40}context (?:length|window|size)"
    r"|request too large|prompt is too long|too many (?:input )?tokens",
    re.IGNORECASE | re.DOTALL,
)
_UNKNOWN_MODEL = re.compile(
    r"model\b.{0,80}(?:not found|does not exist|not exist)|not a valid model|invalid model", re.IGNORECASE | re.DOTALL
)
_WRONG_KEY = re.compile(r"(?:invalid|incorrect|missing|no) (?:api|auth)[ _-]?(?:key|token|credentials)", re.IGNORECASE)
_AGAIN_IN = re.compile(r"(?:try again|retry) in ((?:\d+(?:\.\d+)?(?:ms|h|m|s)\s*)+)", re.IGNORECASE)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def read_error(status: int, body: object, headers: Mapping[str, str] | None = None) -> Problem:
    """What an HTTP error of this status, with this body (JSON or text), means. Never raises."""
    error = error_of(json_safe(body))
    if status == 200:
        status = next(filter(None, (_STATUS.get(as_text(error.get(name))) for name in ("code", "type"))), status)
    reason = _reason(status, error)
    # FastAPI, and what is built on it, says `detail` for `message`.
    words = said(status, error.get("code") or error.get("type"), error.get("message") or error.get("detail"))
    return Problem(reason, words + _hint(reason), http_status=status, retry_after_s=_retry_after(error, headers or {}))


def refused_field(problem: Problem, sent: Iterable[str]) -> str | None:
    """Which of these fields of the request the provider does not take, as far as its words tell; None for none."""
    if problem.http_status not in (400, 422) or problem.reason is not FailureReason.BAD_REQUEST:
        return None
    named = (field for field in sent if re.search(rf"\b{field}\b", problem.detail))
    return next(named, None)


def _reason(status: int, error: JSON) -> FailureReason:
    message = said(error.get("message") or error.get("detail"))
    if status < 500 and (known := _by_code(error)) is not None:
        return known
    if status in (400, 413, 422, 429) and _TOO_LARGE.search(message):
        return FailureReason.TOO_LARGE
    if status == 402 or (status == 429 and is_spent([message])):
        return FailureReason.QUOTA
    if status in (400, 422) and _WRONG_KEY.search(message):
        return FailureReason.WRONG_KEY
    if status in (400, 422) and _UNKNOWN_MODEL.search(message):
        return FailureReason.UNKNOWN_MODEL
    return of_status(status)


def _by_code(error: JSON) -> FailureReason | None:
    words = (as_text(error.get(name)).lower() for name in ("code", "type"))
    return next(filter(None, map(_CODES.get, words)), None)


def _retry_after(error: JSON, headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, as told: by a header, or in the message's own words ("Please try again in 1m2.5s")."""
    if (told := told_seconds([headers.get("retry-after-ms", "")])) is not None:
        return told / 1000
    if (told := told_by_header(headers)) is not None:
        return told
    if words := _AGAIN_IN.search(as_text(error.get("message"))):
        return sum(float(number) * _UNIT_S[unit] for number, unit in _SPAN.findall(words[1].lower()))
    return None


def _hint(reason: FailureReason) -> str:
    if reason is FailureReason.UNKNOWN_MODEL:
        return " (Check the model's name in HARU_MODEL=openai:NAME, and OPENAI_BASE_URL if you set it.)"
    if reason is FailureReason.WRONG_KEY:
        return " (Check OPENAI_API_KEY, and what this key may use.)"
    return ""
