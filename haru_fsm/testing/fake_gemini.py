"""A Gemini that says what a script tells it to, over real HTTP, to the real client.

    async with FakeGemini([reply("안녕하세요!")]) as gemini:
        model = GeminiModel("gemini-flash-latest", api_key="test", base_url=gemini.base_url)
        ...
    assert gemini.requests[0]["contents"] == [...]
    assert not gemini.violations

Each request is first held against the rules of the API (`strict.py`); one that breaks them gets the API's own 400,
is noted in `violations`, and uses up nothing of the script. A script is a list of items, or a function from a
request's body to an item. An item is

* a body as the REST API sends it, for a streamed request too (it is cut into chunks), or a list of chunks;
* `{"http_status": 503, "body": {...}, "headers": {...}}`: an error;
* `{"raw_text": "<html>"}`: this text with status 200;
* `{"transport": "close" | "reset" | "truncate" | "hang" | "stall", "body": {...}}`: see `local_http.Fault`;
* a function from the request's body to any of these.

After the end of the script every request gets an error with status 500 that says so, and is counted in `overruns`.
"""

from __future__ import annotations

import inspect
import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from haru_fsm.conversation import JSON
from haru_fsm.testing.local_http import Answer, Fault, LocalServer, Request
from haru_fsm.testing.strict import check_contents, decode_signature

Item = Any
"""One item of a script: see the head of this module."""

CHUNK_CHARS = 8
"""Characters of a text in one chunk of a stream."""

_FIELDS = frozenset(
    {
        "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "cachedContent",
        "labels", "model", "modelArmorConfig", "serviceTier", "store",
    }
)  # fmt: skip


def reply(*parts: str | JSON, finish: str | None = "STOP", usage: JSON | None = None, **candidate: Any) -> JSON:
    """A body with one candidate: parts are texts, or parts as the API writes them; `candidate` adds fields to it."""
    said: JSON = {"content": {"role": "model", "parts": [_part(part) for part in parts]}, "index": 0, **candidate}
    if finish is not None:
        said["finishReason"] = finish
    counted = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120} if usage is None else usage
    return {"candidates": [said], "usageMetadata": counted, "modelVersion": "fake"}


def call(name: str, /, **args: Any) -> JSON:
    """A part that calls a function."""
    return {"functionCall": {"name": name, "args": args}}


def error(status: int, message: str, *, code: str = "", details: Iterable[JSON] = ()) -> JSON:
    """An item: an error as the API words it, with the status of an HTTP error and its name in capitals."""
    body: JSON = {"error": {"code": status, "message": message, "status": code or _STATUS.get(status, "UNKNOWN")}}
    if listed := list(details):
        body["error"]["details"] = listed
    return {"http_status": status, "body": body}


@dataclass(frozen=True, slots=True)
class Received:
    """One request: its body, how it was sent, and which rules it broke."""

    body: JSON
    model: str
    streamed: bool
    headers: dict[str, str]
    violations: tuple[str, ...] = ()


@dataclass(slots=True)
class _Signatures:
    """The thought signatures that were given out."""

    known: set[bytes] = field(default_factory=set)

    def note(self, item: object) -> None:
        if isinstance(item, dict):
            if signature := decode_signature(item.get("thoughtSignature")):
                self.known.add(signature)
            for value in item.values():
                self.note(value)
        elif isinstance(item, list):
            for value in item:
                self.note(value)


class FakeGemini(LocalServer):
    """Plays a script as the Gemini API; see the head of this module. Entered with `async with`, or with `with`.

    `api_key` and `models`: what else is accepted (None: anything). `strict=False` lets every request pass.
    `require_signatures`: calls in the history must carry thought signatures, as Gemini 3 wants it;
    `check_signatures`: and only those that this server has given out. `pause_s`: seconds between a stream's chunks.
    """

    def __init__(
        self,
        script: Iterable[Item] | Callable[[JSON], Item] = (),
        *,
        api_key: str | None = None,
        models: Collection[str] | None = None,
        strict: bool = True,
        require_signatures: bool = False,
        check_signatures: bool = False,
        pause_s: float = 0.0,
    ) -> None:
        super().__init__(self._respond)
        self._next = script if callable(script) else self._play(deque(script))
        self._api_key = api_key
        self._models = models
        self._strict = strict
        self._require_signatures = require_signatures
        self._signatures = _Signatures() if check_signatures else None
        self._pause_s = pause_s
        self.received: list[Received] = []
        self.overruns = 0

    @property
    def requests(self) -> list[JSON]:
        """The bodies of all requests, in order."""
        return [received.body for received in self.received]

    @property
    def violations(self) -> list[str]:
        """What was wrong with requests."""
        return [violation for received in self.received for violation in received.violations]

    def _play(self, script: deque[Item]) -> Callable[[JSON], Item]:
        def item(_body: JSON) -> Item:
            if script:
                return script.popleft()
            self.overruns += 1
            return error(500, f"the script of this FakeGemini has ended; this is request {len(self.received)}")

        return item

    # -- one request

    async def _respond(self, request: Request) -> Answer:
        resource, _, method = request.path.rpartition(":")
        model = resource.rpartition("/")[2]
        if request.method != "POST" or method not in ("generateContent", "streamGenerateContent"):
            return _answer(error(404, f"{request.method} {request.path} is not known here"), streamed=False)
        body = _parsed(request.body)
        violations = tuple(self._violations(body)) if self._strict else ()
        streamed = method == "streamGenerateContent"
        self.received.append(Received(_object(body), model, streamed, dict(request.headers), violations))
        if (refusal := self._refusal(request, model, violations)) is not None:
            return _answer(refusal, streamed=False)
        item = self._next(_object(body))
        while callable(item) or inspect.isawaitable(item):
            item = await item if inspect.isawaitable(item) else item(_object(body))
        if self._signatures is not None:
            self._signatures.note(item)
        return _answer(item, streamed=streamed, pause_s=self._pause_s)

    def _refusal(self, request: Request, model: str, violations: tuple[str, ...]) -> JSON | None:
        if self._api_key is not None and request.headers.get("x-goog-api-key") != self._api_key:
            details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
            return error(400, "API key not valid. Please pass a valid API key.", details=details)
        if self._models is not None and model not in self._models:
            return error(
                404,
                f"models/{model} is not found for API version v1beta, or is not supported for generateContent. Call "
                "ModelService.ListModels to see the list of available models and their supported methods.",
            )
        if violations:
            return error(400, "; ".join(violations))
        return None

    def _violations(self, body: object) -> Iterator[str]:
        if not isinstance(body, dict):
            yield "Invalid JSON payload received."
            return
        for name in body.keys() - _FIELDS:
            yield f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
        known = None if self._signatures is None else self._signatures.known
        yield from check_contents(body.get("contents"), known, self._require_signatures)


# --------------------------------------------------------------------------- items as answers


_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def _answer(item: Item, *, streamed: bool, pause_s: float = 0.0) -> Answer:
    """The item as it goes over the wire."""
    if not isinstance(item, dict):
        return _bodies(item, streamed, pause_s)
    headers = item.get("headers") or {}
    if "http_status" in item:
        return Answer(item["http_status"], headers, (_text(item.get("body")).encode(),))
    if "raw_text" in item:
        return Answer(200, headers, (item["raw_text"].encode(),))
    if "transport" in item:
        fault = Fault(item["transport"])
        sent = _bodies(item.get("body", {}), streamed, pause_s)
        return Answer(200, sent.headers, sent.pieces, sent.pause_s, fault)
    return _bodies(item, streamed, pause_s)


def _bodies(body: object, streamed: bool, pause_s: float) -> Answer:
    if not streamed:
        return Answer(200, {}, (json.dumps(body).encode(),))
    chunks = body if isinstance(body, list) else list(split_into_chunks(_object(body)))
    events = tuple(f"data: {json.dumps(chunk)}\r\n\r\n".encode() for chunk in chunks)
    return Answer(200, {"content-type": "text/event-stream"}, events, pause_s)


def split_into_chunks(body: JSON) -> Iterator[JSON]:
    """A whole body as the chunks in which it would be streamed: a few letters each, the end in the last one."""
    candidates = body.get("candidates")
    candidate = candidates[0] if isinstance(candidates, list) and candidates else None
    content = candidate.get("content") if isinstance(candidate, dict) else None
    parts = content.get("parts") if isinstance(content, dict) else None
    if not isinstance(parts, list) or not parts or not isinstance(candidate, dict):
        yield body
        return
    *pieces, last = [piece for part in parts for piece in _pieces(part)]
    for piece in pieces:
        yield {"candidates": [{"content": {"role": "model", "parts": [piece]}, "index": 0}]}
    yield {**body, "candidates": [{**candidate, "content": {"role": "model", "parts": [last]}}]}


def _pieces(part: Any) -> Iterator[Any]:
    """Plain text in pieces; everything else, and text with a signature, whole."""
    text = part.get("text") if isinstance(part, dict) and part.keys() <= {"text", "thought"} else None
    if not isinstance(text, str) or not text:
        yield part
        return
    for start in range(0, len(text), CHUNK_CHARS):
        yield {**part, "text": text[start : start + CHUNK_CHARS]}


def _part(part: str | JSON) -> JSON:
    return {"text": part} if isinstance(part, str) else part


def _parsed(body: bytes) -> object:
    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    try:
        return json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None


def _object(value: object) -> JSON:
    return value if isinstance(value, dict) else {}


def _text(body: object) -> str:
    return body if isinstance(body, str) else json.dumps(body)
