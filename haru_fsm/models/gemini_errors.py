"""What an error of the Gemini API means: an HTTP status and the body that came with it, or the exception instead of
both. Pure, and without any exception's class: they belong to three libraries, two of which may not be installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from haru_fsm.conversation import JSON, FailureReason
from haru_fsm.json_safe import json_safe
from haru_fsm.models.replies import Problem, as_dict, as_list, as_text, said

_TOO_LARGE = re.compile(
    r"token count.{0,40}exceeds|exceeds? the (?:maximum|limit).{0,40}tokens"
    r"|payload size exceeds|request.{0,20}too large",
    re.IGNORECASE | re.DOTALL,
)
_WRONG_KEY = re.compile(r"API[ _]key (?:not valid|expired|not found|invalid)|API_KEY_INVALID", re.IGNORECASE)
_SPENT = re.compile(r"per[ _-]?(?:day|month)|spend(?:ing)? cap|credits are depleted", re.IGNORECASE)
_RETRY_IN = re.compile(r"retry in (\d+(?:\.\d+)?)\s*(ms|s)", re.IGNORECASE)
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s?")

_STATUS: dict[int, FailureReason] = {
    401: FailureReason.WRONG_KEY,
    403: FailureReason.WRONG_KEY,
    404: FailureReason.UNKNOWN_MODEL,
    408: FailureReason.TIMEOUT,
    413: FailureReason.TOO_LARGE,
    429: FailureReason.RATE_LIMITED,
    499: FailureReason.TRANSPORT,
}


def read_error(status: int, body: object, headers: Mapping[str, str] | None = None) -> Problem:
    """What an HTTP error of this status, with this body (JSON, a list around it, or text), means. Never raises."""
    error = _error_of(json_safe(body))
    words = said(status, error.get("status"), error.get("message"))
    reason = _reason(status, error)
    return Problem(
        reason,
        words + _hint(reason),
        http_status=status,
        retry_after_s=_retry_after(error, headers or {}),
    )


def read_exception(error: BaseException) -> Problem:
    """What an exception means that came instead of a response. Told apart by names: see the head of this module."""
    origin, kind = type(error).__module__, type(error).__name__
    words = said(kind, str(error))
    if isinstance(error, TimeoutError) or (kind.endswith("Timeout") and origin.startswith(("httpx", "aiohttp"))):
        return Problem(FailureReason.TIMEOUT, words)
    if origin.startswith("google.auth"):
        return Problem(FailureReason.TRANSPORT if kind == "TransportError" else FailureReason.WRONG_KEY, words)
    if isinstance(error, OSError) or origin.startswith(("httpx", "httpcore", "aiohttp", "anyio")):
        return Problem(FailureReason.TRANSPORT, words)
    if kind in ("JSONDecodeError", "UnknownApiResponseError", "UnicodeDecodeError"):
        return Problem(FailureReason.UNREADABLE, words)
    # What is left was raised while the request was being put together; it would be again.
    return Problem(FailureReason.BAD_REQUEST, words)


def _error_of(body: object) -> JSON:
    """The error object, wherever a proxy has put it. A body that is no JSON is its own message."""
    if isinstance(body, list):
        body = next(iter(body), None)
    if not isinstance(body, dict):
        return {"message": body}
    inner = body.get("error", body)
    return inner if isinstance(inner, dict) else {"message": inner}


def _reason(status: int, error: JSON) -> FailureReason:
    message = as_text(error.get("message"))
    if status == 429:
        return FailureReason.QUOTA if _is_spent(error, message) else FailureReason.RATE_LIMITED
    if status == 400 and (_WRONG_KEY.search(message) or "API_KEY_INVALID" in _details(error, "reason")):
        return FailureReason.WRONG_KEY
    if status in (400, 413) and _TOO_LARGE.search(message):
        return FailureReason.TOO_LARGE
    if 500 <= status <= 599:
        return FailureReason.SERVER
    if status == 200:
        return FailureReason.UNREADABLE
    return _STATUS.get(status, FailureReason.BAD_REQUEST)


def _is_spent(error: JSON, message: str) -> bool:
    """Whether a quota is spent that no waiting within a conversation brings back."""
    violations = [
        as_text(as_dict(violation).get("quotaId"))
        for detail in map(as_dict, as_list(error.get("details")))
        for violation in as_list(detail.get("violations"))
    ]
    return any(_SPENT.search(words) for words in (message, *violations))


def _details(error: JSON, field: str) -> Iterator[str]:
    for detail in map(as_dict, as_list(error.get("details"))):
        yield as_text(detail.get(field))


def _retry_after(error: JSON, headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, as told: by google.rpc.RetryInfo, by the header Retry-After, or in the message's own words."""
    for told in (*_details(error, "retryDelay"), headers.get("retry-after", "")):
        if seconds := _SECONDS.fullmatch(told.strip()):
            return float(seconds[1])
    if words := _RETRY_IN.search(as_text(error.get("message"))):
        return float(words[1]) / (1000 if words[2].lower() == "ms" else 1)
    return None


def _hint(reason: FailureReason) -> str:
    if reason is FailureReason.UNKNOWN_MODEL:
        return " (Check the model's name in HARU_MODEL=gemini:NAME, and HARU_GEMINI_API_VERSION if you set it.)"
    if reason is FailureReason.WRONG_KEY:
        return " (Check GEMINI_API_KEY, and what this key may use.)"
    return ""
