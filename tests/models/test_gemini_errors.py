"""What the API's errors mean, in its own words as they were recorded, and in those of proxies."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haru_fsm.conversation import JSON, FailureReason
from haru_fsm.models.faults import read_exception
from haru_fsm.models.gemini_errors import read_error
from haru_fsm.models.scrub import GONE, scrub


def worded(status: int, message: str, *details: JSON, name: str = "INVALID_ARGUMENT") -> JSON:
    return {"error": {"code": status, "message": message, "status": name, "details": list(details)}}


def quota(*ids: str) -> JSON:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": one} for one in ids]}


def retry_in(delay: str) -> JSON:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


KEY = "API key not valid. Please pass a valid API key."
KEY_DETAIL = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (400, worded(400, "Please ensure that the number of function response parts..."), FailureReason.BAD_REQUEST),
        (400, worded(400, "The input token count (1250074) exceeds the maximum number of tokens allowed (1048576)."),
         FailureReason.TOO_LARGE),
        (400, worded(400, "Request payload size exceeds the limit: 20971520 bytes."), FailureReason.TOO_LARGE),
        (413, "<html>413 Request Entity Too Large</html>", FailureReason.TOO_LARGE),
        (400, worded(400, KEY, KEY_DETAIL), FailureReason.WRONG_KEY),
        (400, worded(400, "Invalid credentials", KEY_DETAIL), FailureReason.WRONG_KEY),
        (400, worded(400, "API key expired. Please renew the API key."), FailureReason.WRONG_KEY),
        (401, None, FailureReason.WRONG_KEY),
        (403, worded(403, "Your API key was reported as leaked."), FailureReason.WRONG_KEY),
        (404, worded(404, "models/gemini-3.6-flahs is not found for API version v1beta"), FailureReason.UNKNOWN_MODEL),
        (408, "", FailureReason.TIMEOUT),
        (409, worded(409, "The operation was aborted."), FailureReason.SERVER),
        (429, worded(429, "Resource exhausted"), FailureReason.RATE_LIMITED),
        (429, worded(429, "quota", quota("GenerateRequestsPerMinutePerProjectPerModel")), FailureReason.RATE_LIMITED),
        (429, worded(429, "quota", quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), retry_in("38s")),
         FailureReason.QUOTA),
        (429, worded(429, "* Quota exceeded for metric: free_tier_requests, limit: 0, model: gemini-3.1-pro\nPlease retry in 11.6s."),
         FailureReason.QUOTA),
        (429, worded(429, "Quota exceeded for metric: free_tier_requests, limit: 0. Please retry in 11s."), FailureReason.QUOTA),
        (429, worded(429, "* Quota exceeded for metric: free_tier_requests, limit: 0.5, model: x"), FailureReason.RATE_LIMITED),
        (429, worded(429, "* Quota exceeded for metric: free_tier_requests, limit: 10"), FailureReason.RATE_LIMITED),
        (429, worded(429, "Your prepayment credits are depleted."), FailureReason.QUOTA),
        (500, worded(500, "internal"), FailureReason.SERVER),
        (503, [worded(503, "overloaded")], FailureReason.SERVER),
        (502, "<html>Bad gateway</html>", FailureReason.SERVER),
        (504, "", FailureReason.SERVER),
        (500, worded(500, KEY, KEY_DETAIL), FailureReason.SERVER),
        (500, worded(500, "The input token count exceeds the maximum number of tokens allowed."), FailureReason.SERVER),
        (429, {"error": {"message": "slow", "details": [3, "x", None]}}, FailureReason.RATE_LIMITED),
        (529, "", FailureReason.SERVER),
        (204, "", FailureReason.UNREADABLE),
        (418, "", FailureReason.BAD_REQUEST),
        (0, None, FailureReason.BAD_REQUEST),
    ],
)  # fmt: skip
def test_statuses_and_words(status: int, body: object, reason: FailureReason) -> None:
    problem = read_error(status, body)
    assert (problem.reason, problem.http_status) == (reason, status)


@pytest.mark.parametrize(
    ("body", "headers", "seconds"),
    [
        (worded(429, "Please retry in 2.1s.", retry_in("2s")), {}, 2.0),
        (worded(429, "quota", retry_in("48.939935699s")), {}, 48.939935699),
        (worded(429, "Please retry in 48.9s."), {}, 48.9),
        (worded(429, "Please retry in 350ms."), {}, 0.35),
        (worded(429, "quota"), {"retry-after": "7"}, 7.0),
        (worded(429, "quota"), {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        (
            worded(429, "quota"),
            {"date": "Wed, 21 Oct 2026 07:27:50 GMT", "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"},
            10.0,
        ),
        (worded(429, "quota", retry_in("soon")), {}, None),
        (worded(503, "overloaded"), {"retry-after": "3"}, 3.0),
    ],
)
def test_how_long_to_wait_is_read_wherever_it_is_told(
    body: JSON, headers: dict[str, str], seconds: float | None
) -> None:
    assert read_error(body["error"]["code"], body, headers).retry_after_s == seconds


def test_a_wrong_model_name_gets_the_providers_words_and_a_hint() -> None:
    detail = read_error(404, worded(404, "models/gemini-3.6-flahs is not found for API version v1beta")).detail
    assert "gemini-3.6-flahs is not found" in detail
    assert "HARU_MODEL" in detail
    assert "HARU_GEMINI_API_VERSION" in detail


def test_a_long_page_is_cut() -> None:
    assert len(read_error(502, "<html>" + "x" * 100_000).detail) < 1000


@given(
    st.integers(0, 999),
    st.recursive(
        st.none() | st.integers() | st.text(st.characters(exclude_categories=[])),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["error", "message", "status", "details", "violations"]), inner, max_size=4
            )
        ),
        max_leaves=8,
    ),
)
def test_no_error_raises(status: int, body: object) -> None:
    json.dumps(read_error(status, body).incident().model_dump(), allow_nan=False, ensure_ascii=False).encode()


class ReadTimeout(Exception):
    pass


class ReadError(Exception):
    pass


class RefreshError(Exception):
    pass


class TransportError(Exception):
    pass


ReadTimeout.__module__ = ReadError.__module__ = "httpx2"
RefreshError.__module__ = TransportError.__module__ = "google.auth.exceptions"


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        (ReadTimeout("slow"), FailureReason.TIMEOUT),
        (TimeoutError(), FailureReason.TIMEOUT),
        (ReadError("gone"), FailureReason.TRANSPORT),
        (ConnectionResetError("reset"), FailureReason.TRANSPORT),
        (TransportError("no network"), FailureReason.TRANSPORT),
        (RefreshError("no token"), FailureReason.WRONG_KEY),
        (json.JSONDecodeError("no", "", 0), FailureReason.UNREADABLE),
        (TypeError("not serialisable"), FailureReason.BAD_REQUEST),
        (RuntimeError("Event loop is closed"), FailureReason.TRANSPORT),
        (RuntimeError(), FailureReason.BAD_REQUEST),
    ],
)
def test_exceptions_that_come_instead_of_an_answer(raised: Exception, reason: FailureReason) -> None:
    problem = read_exception(raised)
    assert problem.reason is reason
    assert type(raised).__name__ in problem.detail


@pytest.mark.parametrize(
    "text",
    [
        "x-goog-api-key: AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "https://x/v1?key=topsecret1&alt=sse",
        "Authorization: Bearer abcdefgh.ijkl",
        "sk-proj-abcdefghijklmnop1234",
        "my own topsecret1",
    ],
)
def test_keys_are_taken_out(text: str) -> None:
    clean = scrub(text, "topsecret1", None, "")
    assert GONE in clean
    assert not any(secret in clean for secret in ("AIza", "topsecret1", "abcdefgh"))


def test_only_a_signature_that_was_refused_is_left_out_of_the_next_request() -> None:
    words = "Function call is missing a thought_signature in functionCall parts."
    assert [read_error(status, worded(status, words)).adapted for status in (400, 500)] == [True, False]
    assert not read_error(400, worded(400, "Please ensure that the number of function response parts...")).adapted


def test_a_hint_says_where_to_look_where_there_is_something_to_look_at() -> None:
    assert "GEMINI_API_KEY" in read_error(400, worded(400, KEY, KEY_DETAIL)).detail
    assert "HARU_MODEL=gemini:NAME" in read_error(404, worded(404, "not found")).detail
    assert read_error(500, worded(500, "internal", name="INTERNAL")).detail == "500: INTERNAL: internal"
    assert read_error(429, worded(429, "Please Retry In 500MS")).retry_after_s == 0.5
