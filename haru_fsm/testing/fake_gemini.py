"""A Gemini that says what a script tells it to, over real HTTP, to the real client.

    async with FakeGemini([reply("안녕하세요!")]) as gemini:
        model = GeminiModel("gemini-flash-latest", api_key="test", base_url=gemini.base_url)
        ...
    assert gemini.requests[0]["contents"] == [...]
    assert not gemini.violations

What a script is, see `scripted_http.py`; the rules by which requests are judged are in `strict.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from haru_fsm.conversation import JSON
from haru_fsm.testing.local_http import Request
from haru_fsm.testing.scripted_http import Item, ScriptedServer, as_object, pieces_of
from haru_fsm.testing.strict import check_contents, check_responses_alone, decode_signature

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


class FakeGemini(ScriptedServer):
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
        super().__init__(script, strict=strict, pause_s=pause_s)
        self._api_key = api_key
        self._models = models
        self._require_signatures = require_signatures
        self._signatures = _Signatures() if check_signatures else None

    def _asked(self, request: Request, body: JSON) -> tuple[str, bool] | None:
        resource, _, method = request.path.rpartition(":")
        if method not in ("generateContent", "streamGenerateContent"):
            return None
        return resource.rpartition("/")[2], method == "streamGenerateContent"

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

    def _rules(self, body: object) -> Iterator[str]:
        if not isinstance(body, dict):
            yield "Invalid JSON payload received."
            return
        for name in body.keys() - _FIELDS:
            yield f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
        known = None if self._signatures is None else self._signatures.known
        contents = body.get("contents")
        yield from check_contents(contents, known, self._require_signatures)
        yield from check_responses_alone(contents if isinstance(contents, list) else [])

    def _error(self, status: int, message: str) -> Item:
        return error(status, message)

    def _events(self, body: object) -> tuple[bytes, ...]:
        chunks = body if isinstance(body, list) else list(split_into_chunks(as_object(body)))
        return tuple(f"data: {json.dumps(chunk)}\r\n\r\n".encode() for chunk in chunks)

    def _sent(self, item: Item) -> None:
        if self._signatures is not None:
            self._signatures.note(item)


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
    for piece in pieces_of(text):
        yield {**part, "text": piece}


def _part(part: str | JSON) -> JSON:
    return {"text": part} if isinstance(part, str) else part
