"""What an error of the Gemini API means: an HTTP status and the body that came with it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from haru_fsm.conversation import JSON, FailureReason
from haru_fsm.json_safe import json_safe
from haru_fsm.models.faults import error_of, is_spent, of_status, told_by_header, told_seconds
from haru_fsm.models.replies import Problem, as_dict, as_list, as_text, said

_TOO_LARGE = re.compile(
    r"token count.{0,40}exceeds|exceeds? the (?:maximum|limit).{0,40}tokens"
    r"|payload size exceeds|request.{0,20}too large",
    re.IGNORECASE | re.DOTALL,
)
_WRONG_KEY = re.compile(r"API[ _]key (?:not valid|expired|not found|invalid)|API_KEY_INVALID", re.IGNORECASE)
_SIGNATURE = re.compile(r"thought[ _]?signature", re.IGNORECASE)
_RETRY_IN = re.compile(r"retry in (\d+(?:\.\d+)?)\s*(ms|s)", re.IGNORECASE)


def read_error(status: int, body: object, headers: Mapping[str, str] | None = None) -> Problem:
    """What an HTTP error of this status, with this body (JSON, a list around it, or text), means. Never raises."""
    error = error_of(json_safe(body))
    words = said(status, error.get("status"), error.get("message"))
    reason = _reason(status, error)
    return Problem(
        reason,
        words + _hint(reason),
        http_status=status,
        retry_after_s=_retry_after(error, headers or {}),
        adapted=status == 400 and bool(_SIGNATURE.search(words)),
    )


def _reason(status: int, error: JSON) -> FailureReason:
    message = as_text(error.get("message"))
    if status == 429:
        return FailureReason.QUOTA if _is_spent(error, message) else FailureReason.RATE_LIMITED
    if status == 400 and (_WRONG_KEY.search(message) or "API_KEY_INVALID" in _details(error, "reason")):
        return FailureReason.WRONG_KEY
    if status in (400, 413) and _TOO_LARGE.search(message):
        return FailureReason.TOO_LARGE
    return of_status(status)


def _is_spent(error: JSON, message: str) -> bool:
    violations = [
        as_text(as_dict(violation).get("quotaId"))
        for detail in map(as_dict, as_list(error.get("details")))
        for violation in as_list(detail.get("violations"))
    ]
    return is_spent([message, *violations])


def _details(error: JSON, field: str) -> Iterator[str]:
    for detail in map(as_dict, as_list(error.get("details"))):
        yield as_text(detail.get(field))


def _retry_after(error: JSON, headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, as told: by google.rpc.RetryInfo, by the header Retry-After, or in the message's own words."""
    told = told_seconds(_details(error, "retryDelay"))
    if told is not None or (told := told_by_header(headers)) is not None:
        return told
    if words := _RETRY_IN.search(as_text(error.get("message"))):
        return float(words[1]) / (1000 if words[2].lower() == "ms" else 1)
    return None


def _hint(reason: FailureReason) -> str:
    if reason is FailureReason.UNKNOWN_MODEL:
        return " (Check the model's name in HARU_MODEL=gemini:NAME, and HARU_GEMINI_API_VERSION if you set it.)"
    if reason is FailureReason.WRONG_KEY:
        return " (Check GEMINI_API_KEY, and what this key may use.)"
    return ""
