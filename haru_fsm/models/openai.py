"""OpenAI's models, and every server that speaks chat completions, over the official asynchronous client. The one module
that imports the SDK (extra `[openai]`), and only when a model is made.

As with Gemini the SDK asks once and waits only as long as it is told: its retries are off, a time-out is always set.
Bodies pass through it unconverted in both directions: the request as `openai_request.py` writes it, the reply as the
text that came over the wire (`openai_reading.py`). A field that a server refuses and that can be done without is left
out from then on: there are many servers, and each knows another selection.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from haru_fsm.clock import Clock, SystemClock
from haru_fsm.conversation import JSON, FailureReason
from haru_fsm.errors import ModelError
from haru_fsm.limits import Limits
from haru_fsm.models import ModelOutcome, ModelRequest
from haru_fsm.models.faults import UNPARSED, read_exception, unparsed
from haru_fsm.models.openai_chunks import chunk_text, is_finished, merge_chunks
from haru_fsm.models.openai_errors import read_error, refused_field
from haru_fsm.models.openai_reading import read_chunks, read_text
from haru_fsm.models.openai_request import OPTIONAL, build_body
from haru_fsm.models.replies import Problem, Reply, as_count, as_dict, said
from haru_fsm.models.retrying import Attempt, Persistence
from haru_fsm.models.scrub import scrub

if TYPE_CHECKING:
    from openai import AsyncAPIResponse, AsyncOpenAI

NO_KEY = "no-key"
"""Sent where a server of one's own wants none; the client does not work without any."""

LENGTH_FIELDS = ("max_completion_tokens", "max_tokens")
"""What says how long a reply may be: OpenAI's word, and the older one that other servers know."""

_OWN_HOSTS = ("api.openai.com", ".openai.azure.com")
_WHOLE = ("json", "html")
"""In the content type of what is no stream, though one was asked for: a whole reply, or the page of a proxy's error."""


class OpenAIModel:
    """A model by its name ("gpt-5-mini"), at OpenAI or any server that speaks its chat completions.

    Give a ready `client`, or an `api_key` (default: OPENAI_API_KEY in the environment) and, where it is not OpenAI's
    own, a `base_url` (default: OPENAI_BASE_URL); a server of one's own needs no key. `limits` bound time, re-asks,
    retries and the length of a reply; `clock` waits between retries; `rng` draws their jitter. No `temperature` is sent
    unless one is given, since reasoning models refuse it.

    Raises ModelError where no client can be made: the extra is not installed, there is no key, or the SDK refuses.
    """

    def __init__(
        self,
        name: str,
        *,
        client: AsyncOpenAI | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        limits: Limits | None = None,
        clock: Clock | None = None,
        temperature: float | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._name = name
        self._limits = limits or Limits()
        self._temperature = temperature
        self._client = (client or _connect(api_key, base_url)).with_options(max_retries=0)
        self._refused: set[str] = set()
        address = str(self._client.base_url)
        own = (urlsplit(address).hostname or "").endswith(_OWN_HOSTS)
        self._lengths = LENGTH_FIELDS if own else LENGTH_FIELDS[::-1]
        key = str(self._client.api_key)
        self._persistence = Persistence(
            model=name,
            limits=self._limits,
            clock=clock or SystemClock(),
            translate=_translate,
            keys=(key,) if key not in ("", NO_KEY) else (),
            rng=rng or random.Random(),
            seller="openai" if own else address,
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
        await self._client.close()

    async def _attempt(self, request: ModelRequest, attempt: Attempt) -> Reply:
        body = build_body(
            request,
            attempt.amendment,
            name=self._name,
            temperature=self._temperature,
            max_output_tokens=self._limits.max_output_tokens,
            length_in=next((field for field in self._lengths if field not in self._refused), self._lengths[0]),
            streamed=attempt.streamed,
            refused=self._refused,
        )
        try:
            return await self._sent(body, attempt)
        except Exception as error:
            return replace(self._adapted(_translate(error), body), usage=attempt.spent)

    def _adapted(self, problem: Problem, body: JSON) -> Problem:
        """The problem, after which the next request may do without a field that this one was refused for."""
        field = refused_field(problem, [field for field in OPTIONAL if field in body])
        if field is None:
            return problem
        self._refused.add(field)
        return replace(problem, adapted=True)

    async def _sent(self, body: JSON, attempt: Attempt) -> Reply:
        """The reply to one request, told while it is being written if it is streamed."""
        streamed = bool(body.get("stream"))
        sending = self._client.chat.completions.with_streaming_response.create(
            model=self._name,
            messages=(),  # never sent: `extra_body` holds the real ones, in the form in which they go out
            stream=streamed,
            extra_body=body,
            timeout=attempt.timeout_s,
        )
        async with sending as response:
            if streamed and not any(word in response.headers.get("content-type", "") for word in _WHOLE):
                return await _heard(response, body, attempt)
            # JSON is UTF-8 (RFC 8259), whatever charset a proxy has written beside it.
            return read_text((await response.read()).decode("utf-8", "replace"), body)


async def _heard(response: AsyncAPIResponse[Any], body: JSON, attempt: Attempt) -> Reply:
    """The reply that is streamed, told while it comes."""
    from openai import AsyncStream

    chunks: list[object] = []
    try:
        async with await response.parse(to=AsyncStream[object]) as stream:
            async for chunk in stream:
                chunks.append(chunk)
                attempt.hear(chunk_text(chunk))
    except BaseException as error:
        attempt.broken_off(read_chunks(chunks, body), finished=is_finished(merge_chunks(chunks)))
        if isinstance(error, UNPARSED):
            raise unparsed(error) from error
        raise
    return read_chunks(chunks, body)


def _connect(api_key: str | None, base_url: str | None) -> AsyncOpenAI:
    try:
        from openai import AsyncOpenAI
    except ImportError as error:
        raise ModelError("OpenAI's client is not installed. Install it: pip install 'haru-fsm[openai]'") from error
    base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
    key = api_key or os.environ.get("OPENAI_API_KEY") or (NO_KEY if base_url else None)
    if key is None:
        raise ModelError("OpenAI needs a key: set OPENAI_API_KEY (or OPENAI_BASE_URL, for a server of your own).")
    if base_url is not None and not _is_address(base_url):
        raise ModelError(f"OPENAI_BASE_URL is {base_url!r}. Use an address such as http://localhost:8000/v1.")
    if not key.isascii() or not key.isprintable():
        raise ModelError("OPENAI_API_KEY holds characters that no key has. Copy it again, without what is around it.")
    try:
        return AsyncOpenAI(api_key=key, base_url=base_url)
    except Exception as error:
        raise ModelError(f"The OpenAI client cannot be set up: {scrub(str(error), key)}") from error


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _translate(error: Exception) -> Problem:
    """An exception of the SDK, or of the transport below it, as a problem."""
    from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError

    match error:
        case APITimeoutError():
            return Problem(FailureReason.TIMEOUT, said(error.message))
        case APIConnectionError():
            return Problem(FailureReason.TRANSPORT, said(type(error.__cause__).__name__, str(error.__cause__ or error)))
        case APIStatusError():
            return read_error(error.status_code, error.body or error.response.reason_phrase, error.response.headers)
        case APIError():
            # A stream that had begun went on with an error, and with no status.
            return read_error(as_count(as_dict(error.body).get("code")) or 200, {"error": error.body or error.message})
    return read_exception(error)
