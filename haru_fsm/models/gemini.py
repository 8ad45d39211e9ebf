"""Gemini, over google-genai's asynchronous client. The one module that imports the SDK, and only when it is used.

The loop belongs to us, so everything in the SDK that would ask again by itself is off: automatic function calling,
automatic continuation, retries; and a time-out, which it has none of by itself, is always set. Bodies pass through
it unconverted in both directions: the request in the REST form in which it is journaled (`gemini_request.py`), the
reply as the text that came over the wire (`gemini_reading.py`).

It speaks through httpx alone. Where aiohttp is installed, for whatever other library, the SDK would take that, and read
replies by the charset that stands beside them and not by our hook.

Not perfect: `generate_content_stream` refuses to give raw replies (3.6.1: "not supported in streaming methods"), and
one odd chunk there loses the whole reply. So streams are read from the client one level below it, which is not a
public one; `tests/models/test_gemini_streams.py` fails when that level moves.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from haru_fsm.clock import Clock, SystemClock
from haru_fsm.conversation import JSON, FailureReason
from haru_fsm.errors import ModelError
from haru_fsm.limits import Limits
from haru_fsm.models import ModelOutcome, ModelRequest
from haru_fsm.models.faults import UNPARSED, read_exception, unparsed
from haru_fsm.models.gemini_chunks import chunk_text, is_finished, merge_chunks
from haru_fsm.models.gemini_errors import read_error
from haru_fsm.models.gemini_lines import data_lines
from haru_fsm.models.gemini_reading import read_body, read_text
from haru_fsm.models.gemini_request import build_body
from haru_fsm.models.replies import Problem, Reply
from haru_fsm.models.retrying import Attempt, Persistence
from haru_fsm.models.scrub import scrub

if TYPE_CHECKING:
    from google.genai import Client
    from google.genai.types import HttpOptions

UNSTREAMED = 20
"""Requests that are made without a stream after one that could not be read: the next is likely to be as bad, and each
costs a request. A server that was mended is found out by then."""
_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")


class GeminiModel:
    """A Gemini model by its name ("gemini-flash-latest"), on the Developer API or any server that speaks it.

    Give a ready `client`, which is left as it is (its streams cost a request more where a gateway sends comments in
    them), or an `api_key` (default: GEMINI_API_KEY or GOOGLE_API_KEY in the environment) and, where
    it is not Google's own, a `base_url`; `api_version` defaults to the SDK's. `limits` bound time, re-asks, retries
    and the length of a reply; `clock` waits between retries; `rng` draws their jitter.

    Raises ModelError where no client can be made: no key, or settings that the SDK refuses.
    """

    def __init__(
        self,
        name: str,
        *,
        client: Client | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        api_version: str | None = None,
        limits: Limits | None = None,
        clock: Clock | None = None,
        temperature: float = 1.0,
        rng: random.Random | None = None,
    ) -> None:
        self._name = name
        self._limits = limits or Limits()
        self._temperature = temperature
        key = api_key or next(filter(None, map(os.environ.get, _KEYS)), None)
        self._client = client or _connect(key, base_url, api_version)
        self._http = None if client else _through_httpx(self._client)
        self._unstreamed = 0
        self._persistence = Persistence(
            model=name,
            limits=self._limits,
            clock=clock or SystemClock(),
            translate=_translate,
            keys=(key,) if key else (),
            rng=rng or random.Random(),
            seller="gemini",
        )

    @property
    def name(self) -> str:
        """The model's name, as it is journaled with what it said."""
        return self._name

    async def respond(self, request: ModelRequest) -> ModelOutcome:
        """The reply, whatever came over the wire. Raises nothing but CancelledError, which closes the request."""
        return await self._persistence.ask(request, partial(self._attempt, request))

    async def aclose(self) -> None:
        """Close the client's connections."""
        await self._client.aio.aclose()
        if self._http is not None:
            await self._http.aclose()
        self._client.close()

    async def _attempt(self, request: ModelRequest, attempt: Attempt) -> Reply:
        body = build_body(
            request,
            attempt.amendment,
            name=self._name,
            temperature=self._temperature,
            max_output_tokens=self._limits.max_output_tokens,
        )
        if attempt.streamed and not self._unstreamed:
            return await self._streamed(body, attempt)
        self._unstreamed = max(0, self._unstreamed - 1)
        return read_text(await self._whole(body, attempt.timeout_s), body)

    async def _whole(self, body: JSON, timeout_s: float) -> str:
        """The text of the reply to one unstreamed request."""
        from google.genai.types import AutomaticFunctionCallingConfig, GenerateContentConfig

        response = await self._client.aio.models.generate_content(
            model=self._name,
            contents=".",  # never sent: `extra_body` holds the real ones, in the form in which they go out
            config=GenerateContentConfig(
                http_options=_http_options(timeout_s, body),
                automatic_function_calling=AutomaticFunctionCallingConfig(disable=True),
                automatic_continuation=False,
                should_return_http_response=True,
            ),
        )
        http = response.sdk_http_response
        return (http.body if http else None) or ""

    async def _streamed(self, body: JSON, attempt: Attempt) -> Reply:
        """The reply to one streamed request, told while it is being written. Where a line of it cannot be read, this
        server is asked without streams for a while."""
        chunks: list[Any] = []
        try:
            async with aclosing(self._chunks(body, attempt.timeout_s)) as stream:
                async for chunk in stream:
                    chunks.append(chunk)
                    attempt.hear(chunk_text(chunk))
        except BaseException as error:
            finished = is_finished(merge_chunks(chunks))
            attempt.broken_off(read_body(chunks, body), finished=finished)
            if isinstance(error, Exception) and not finished and _translate(error).reason is FailureReason.UNREADABLE:
                self._unstreamed = UNSTREAMED
            raise
        return read_body(chunks, body)

    async def _chunks(self, body: JSON, timeout_s: float) -> AsyncGenerator[Any, None]:
        from google.genai._transformers import t_model

        api = self._client._api_client
        path = f"{t_model(api, self._name)}:streamGenerateContent?alt=sse"
        stream = await api.async_request_streamed("post", path, body, _http_options(timeout_s))
        try:
            async for event in stream:
                yield json.loads(event.body)
        except UNPARSED as error:
            raise unparsed(error) from error


def _connect(key: str | None, base_url: str | None, api_version: str | None) -> Client:
    from google.genai import Client
    from google.genai.types import HttpOptions

    if key is None:
        raise ModelError("Gemini needs a key: set GEMINI_API_KEY (or choose another model with HARU_MODEL).")
    hooks: dict[str, Any] = {"event_hooks": {"response": [_readable]}}
    options = HttpOptions(base_url=base_url, api_version=api_version, async_client_args=hooks)
    try:
        return Client(api_key=key, http_options=options)
    except Exception as error:
        raise ModelError(f"The Gemini client cannot be set up: {scrub(str(error), key)}") from error


def _through_httpx(client: Client) -> Any:
    """The client that a Client has made of httpx for itself, given to it as if it were the user's own: nothing but that
    keeps it from aiohttp, and a fresh one would know neither its certificates nor that event loops come and go."""
    api = client._api_client
    api._http_options.httpx_async_client = api._async_httpx_client
    return api._async_httpx_client


async def _readable(response: Any) -> None:
    """JSON is UTF-8 (RFC 8259), whatever charset a proxy has written beside it: read by that, Hangul is destroyed. Of a
    stream, only the lines with data."""
    response.encoding = "utf-8"
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        response.aiter_bytes = partial(data_lines, response.aiter_bytes)


def _http_options(timeout_s: float, body: JSON | None = None) -> HttpOptions:
    from google.genai.types import HttpOptions, HttpRetryOptions

    return HttpOptions(
        timeout=max(1, round(timeout_s * 1000)),
        extra_body=body,
        retry_options=HttpRetryOptions(attempts=1),
    )


def _translate(error: Exception) -> Problem:
    """An exception of the SDK, or of whatever transport it uses, as a problem."""
    from google.genai.errors import APIError

    if isinstance(error, APIError):
        headers = getattr(error.response, "headers", None) or {}
        return read_error(error.code or 0, error.details, cast("dict[str, str]", headers))
    return read_exception(error)
