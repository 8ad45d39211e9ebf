"""What errors mean, in the words of OpenAI and of servers that speak like it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haru_fsm.conversation import JSON, FailureReason
from haru_fsm.models.openai_errors import read_error, refused_field


def worded(message: str, code: str | None = None, type_: str | None = "invalid_request_error") -> JSON:
    return {"error": {"message": message, "type": type_, "param": None, "code": code}}


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (401, worded("Incorrect API key provided", "invalid_api_key"), "wrong_key"),
        (403, worded("Country, region, or territory not supported", "unsupported_country_region_territory"), "wrong_key"),
        (400, worded("Invalid API key"), "wrong_key"),
        (404, worded("The model `gpt-9` does not exist or you do not have access to it.", "model_not_found"), "unknown_model"),
        (403, worded("Project does not have access to model `o1`", "model_not_found"), "unknown_model"),
        (400, worded("gpt-9 is not a valid model ID"), "unknown_model"),
        (404, {"detail": "Not Found"}, "unknown_model"),
        (400, worded("Please reduce the length of the messages.", "context_length_exceeded"), "too_large"),
        (400, {"object": "error", "message": "This model's maximum context length is 4096 tokens. However, you requested "
               "5000 tokens (4000 in the messages, 1000 in max_tokens).", "code": 400}, "too_large"),
        (413, "<html>413</html>", "too_large"),
        (429, worded("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 61034.",
                     "rate_limit_exceeded", "tokens"), "too_large"),
        (429, worded("You exceeded your current quota", "insufficient_quota", "insufficient_quota"), "quota"),
        (429, worded("Rate limit reached on requests per day (RPD): Limit 200, Used 200. Please try again in 7m12s.",
                     "rate_limit_exceeded", "requests"), "quota"),
        (402, worded("Insufficient credits"), "quota"),
        (429, worded("Rate limit reached for gpt-4o on tokens per min (TPM). Please try again in 20s.",
                     "rate_limit_exceeded", "tokens"), "rate_limited"),
        (400, worded("The response was filtered", "content_filter", None), "prompt_blocked"),
        (400, worded("Invalid prompt: your prompt was flagged", "invalid_prompt"), "prompt_blocked"),
        (400, worded("Failed to call a function.", "tool_use_failed"), "malformed_call"),
        (400, worded("messages with role 'tool' must be a response to a preceeding message"), "bad_request"),
        (422, {"detail": [{"loc": ["body", "x"], "msg": "extra fields not permitted"}]}, "bad_request"),
        (408, "", "timeout"),
        (409, worded("conflict"), "server"),
        (500, worded("The server had an error", None, "server_error"), "server"),
        (529, worded("overloaded"), "server"),
        (503, "no healthy upstream", "server"),
        (418, "teapot", "bad_request"),
        (422, worded("Invalid API key"), "wrong_key"),
        (422, worded("gpt-9 is not a valid model ID"), "unknown_model"),
        (422, worded("too many tokens"), "too_large"),
        (413, worded("too many input tokens"), "too_large"),
        (400, worded("gone", "DeploymentNotFound"), "unknown_model"),
        (400, {"detail": "prompt is too long"}, "too_large"),
        (500, worded("upstream", "context_length_exceeded"), "server"),
        (500, worded("maximum context length is 4096 tokens"), "server"),
        (500, worded("Invalid API key"), "server"),
        (502, worded("model not found"), "server"),
        (500, worded("You exceeded your current quota"), "server"),
    ],
)  # fmt: skip
def test_each_error_has_one_meaning(status: int, body: object, reason: str) -> None:
    problem = read_error(status, body)
    assert (problem.reason, problem.http_status) == (reason, status)
    assert str(status) in problem.detail


def test_what_the_provider_said_is_told_in_its_words() -> None:
    assert read_error(400, worded("wrong", "some_code", "some_type")).detail == "400: some_code: wrong"
    assert read_error(400, worded("wrong", None, "some_type")).detail == "400: some_type: wrong"
    assert "not permitted" in read_error(422, {"detail": [{"msg": "not permitted"}]}).detail
    assert read_error(400, {"error": {"code": "server_error", "message": "x"}}).http_status == 400


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({"retry-after-ms": "1500"}, "slow down", 1.5),
        ({"retry-after-ms": "1500", "retry-after": "7"}, "slow down", 1.5),
        ({"retry-after": "7"}, "try again in 3s", 7.0),
        ({}, "Please try again in 1m2.5s.", 62.5),
        ({}, "Please TRY AGAIN IN 1H 20MS", 3600.02),
        ({}, "Please try again later", None),
    ],
)
def test_the_wait_that_is_told(headers: dict[str, str], message: str, seconds: float | None) -> None:
    assert read_error(429, worded(message), headers).retry_after_s == seconds


def test_hints_say_where_to_look() -> None:
    assert "HARU_MODEL=openai:NAME" in read_error(404, worded("no such model")).detail
    assert "OPENAI_API_KEY" in read_error(401, worded("wrong")).detail


@pytest.mark.parametrize("header", ["", "soon", "-3", "Mon, 30 Nov 2026 08:00:07 GMT"])
def test_a_wait_that_nobody_can_read_is_none(header: str) -> None:
    assert read_error(429, worded("slow down"), {"retry-after": header}).retry_after_s is None


def test_a_date_in_the_past_is_no_wait() -> None:
    date = {"date": "Mon, 30 Nov 2026 08:00:00 GMT", "retry-after": "Mon, 30 Nov 2026 07:00:00 GMT"}
    assert read_error(429, worded("slow down"), date).retry_after_s == 0.0


@pytest.mark.parametrize(
    ("status", "message", "field"),
    [
        (400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'.", "max_tokens"),
        (422, "{'type': 'extra_forbidden', 'loc': ['body', 'stream_options', 'include_usage']}", "stream_options"),
        (400, "Unsupported value: 'temperature' does not support 0.2 with this model.", "temperature"),
        (400, "maximum context length is 4096 tokens (1000 in max_tokens)", None),
        (500, "stream_options crashed", None),
        (418, "temperature is not supported", None),
        (400, "messages must alternate", None),
    ],
)  # fmt: skip
def test_a_refused_field_is_named_by_the_provider(status: int, message: str, field: str | None) -> None:
    sent = ["stream_options", "max_tokens", "temperature"]
    assert refused_field(read_error(status, worded(message)), sent) == field


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["error", "code", "message"]), inner),
    max_leaves=6,
)


@given(st.integers(0, 600), json_values, st.dictionaries(st.sampled_from(["retry-after", "date"]), st.text(max_size=8)))
def test_no_body_and_no_header_raises(status: int, body: object, headers: dict[str, str]) -> None:
    assert isinstance(read_error(status, body, headers).reason, FailureReason)
