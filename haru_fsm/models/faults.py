"""What goes wrong between us and a provider, whoever it is: the exception that came instead of a response, and the
words that all of them share. What one provider says in its own words is read beside its wire format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime

from haru_fsm.conversation import JSON, FailureReason
from haru_fsm.foreign import without_numbers
from haru_fsm.models.replies import Problem, said

STATUS: Mapping[int, FailureReason] = {
    401: FailureReason.WRONG_KEY,
    403: FailureReason.WRONG_KEY,
    404: FailureReason.UNKNOWN_MODEL,
    408: FailureReason.TIMEOUT,
    409: FailureReason.SERVER,
    413: FailureReason.TOO_LARGE,
    429: FailureReason.RATE_LIMITED,
    499: FailureReason.TRANSPORT,
}
"""What an HTTP status means where the body says nothing better."""

_SPENT = re.compile(
    r"per[ _-]?(?:day|month)|spend(?:ing)? cap|credits are depleted"
    r"|\blimit: 0(?!\.?\d)",  # nothing was ever granted, though "Please retry in 11 s" stands behind it
    re.IGNORECASE,
)
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s?")


def of_status(status: int) -> FailureReason:
    """What a status means by itself. One that is no error came with a body that was none of ours."""
    if 500 <= status <= 599:
        return FailureReason.SERVER
    if 200 <= status <= 299:
        return FailureReason.UNREADABLE
    return STATUS.get(status, FailureReason.BAD_REQUEST)


def error_of(body: object) -> JSON:
    """The error object, wherever a proxy has put it. A body that is no JSON is its own message."""
    if isinstance(body, list):
        body = next(iter(body), None)
    if not isinstance(body, dict):
        return {"message": body}
    inner = body.get("error", body)
    return inner if isinstance(inner, dict) else {"message": inner}


def is_spent(words: Iterable[str]) -> bool:
    """Whether a quota is spent that no waiting within a conversation brings back."""
    return any(map(_SPENT.search, words))


def told_seconds(told: Iterable[str]) -> float | None:
    """The first of these that is a number of seconds ("3", "3.5s")."""
    for words in told:
        if seconds := _SECONDS.fullmatch(words.strip()):
            return float(seconds[1])
    return None


def told_by_header(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by the header Retry-After: a number of them, or a date, held against the response's own."""
    until = headers.get("retry-after", "")
    if (told := told_seconds([until])) is not None:
        return told
    try:
        span = parsedate_to_datetime(until) - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, span.total_seconds())


UNPARSED = (ValueError, RecursionError)
"""What parsing JSON raises: also for numbers of too many digits, and for what is nested too deeply."""


def unparsed(error: Exception) -> json.JSONDecodeError:
    """One of these as what it is, where it came while a reply was being read."""
    return json.JSONDecodeError(f"{type(error).__name__}: {error}", "", 0)


def read_exception(error: BaseException) -> Problem:
    """What an exception means that came instead of a response.

    Told apart by names, not by classes: they belong to several libraries, of which not all are installed.
    """
    origin, kind = type(error).__module__, type(error).__name__
    words = said(kind, without_numbers(str(error)))
    if isinstance(error, TimeoutError) or (kind.endswith("Timeout") and origin.startswith(("httpx", "aiohttp"))):
        return Problem(FailureReason.TIMEOUT, words)
    if origin.startswith("google.auth"):
        return Problem(FailureReason.TRANSPORT if kind == "TransportError" else FailureReason.WRONG_KEY, words)
    if isinstance(error, RuntimeError) and "event loop is closed" in words.lower():
        # A connection that was opened in an event loop which is over (`asyncio.run` twice): the next one is another.
        return Problem(FailureReason.TRANSPORT, words)
    if isinstance(error, OSError) or origin.startswith(("httpx", "httpcore", "aiohttp", "anyio")):
        return Problem(FailureReason.TRANSPORT, words)
    if kind in ("JSONDecodeError", "UnknownApiResponseError", "UnicodeDecodeError"):
        return Problem(FailureReason.UNREADABLE, words)
    # What is left was raised while the request was being put together; it would be again.
    return Problem(FailureReason.BAD_REQUEST, words)
