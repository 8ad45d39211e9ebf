"""A server that speaks chat completions and says what a script tells it to, over real HTTP, to the real client.

    async with FakeOpenAI([reply("안녕하세요!")]) as server:
        model = OpenAIModel("gpt-5-mini", api_key="test", base_url=server.base_url)
        ...
    assert server.requests[0]["messages"] == [...]
    assert not server.violations

What a script is, see `scripted_http.py`; the rules by which requests are judged are in `strict_openai.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Self

from haru_fsm.conversation import JSON
from haru_fsm.testing.local_http import Request
from haru_fsm.testing.scripted_http import Item, ScriptedServer, as_object, pieces_of
from haru_fsm.testing.strict_openai import check_request

PATH = "/v1/chat/completions"
"""`base_url` ends with the /v1 of it, as OPENAI_BASE_URL does."""


def reply(*parts: str | JSON, finish: str | None = None, usage: JSON | None = None, **message: Any) -> JSON:
    """A body with one choice: texts and calls (see `call`); `message` adds fields to its message.

    `finish` defaults to what fits. Calls without an id get one, unless it is stated as None.
    """
    text = "".join(part for part in parts if isinstance(part, str))
    calls = [_numbered(part, number) for number, part in enumerate(p for p in parts if not isinstance(p, str))]
    said: JSON = {"role": "assistant", "content": text or None, "refusal": None, **message}
    if calls:
        said["tool_calls"] = calls
    counted = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120} if usage is None else usage
    finish = finish if finish is not None else ("tool_calls" if calls else "stop")
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "created": 1_785_000_000,
        "model": "fake",
        "choices": [{"index": 0, "message": said, "finish_reason": finish}],
        "usage": counted,
    }


def call(name: str, /, *, id: str | None = "", **args: Any) -> JSON:
    """A call of a function. `id`: "" for one that `reply` numbers, None for a gateway that gives none."""
    function = {"name": name, "arguments": json.dumps(args, ensure_ascii=False)}
    return {"id": id, "type": "function", "function": function}


def error(status: int, message: str, *, code: str | None = None, type: str | None = None, **headers: str) -> JSON:
    """An item: an error as the API words it. Headers are given with `_` for `-`."""
    kind = type or ("server_error" if status >= 500 else "invalid_request_error")
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"http_status": status, "body": body, "headers": named}


def _numbered(wanted: JSON, number: int) -> JSON:
    given = {key: value for key, value in wanted.items() if key != "id" or value is not None}
    return given | ({"id": f"call_{wanted['function']['name']}_{number}"} if given.get("id") == "" else {})


class FakeOpenAI(ScriptedServer):
    """Plays a script as chat completions; see the head of this module. Entered with `async with`, or with `with`.

    `api_key` and `models`: what else is accepted (None: anything). `strict=False` lets every request pass.
    `refuses`: fields of a request that are not known here, as at many gateways. `pause_s`: seconds between chunks.
    """

    def __init__(
        self,
        script: Iterable[Item] | Callable[[JSON], Item] = (),
        *,
        api_key: str | None = None,
        models: Collection[str] | None = None,
        refuses: Collection[str] = (),
        strict: bool = True,
        pause_s: float = 0.0,
    ) -> None:
        super().__init__(script, strict=strict, pause_s=pause_s)
        self._api_key = api_key
        self._models = models
        self._refuses = refuses

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.base_url += "/v1"
        return self

    def _asked(self, request: Request, body: JSON) -> tuple[str, bool] | None:
        if request.path != PATH:
            return None
        return str(body.get("model") or ""), bool(body.get("stream"))

    def _rules(self, body: object) -> Iterator[str]:
        yield from check_request(body)

    def _refusal(self, request: Request, model: str, violations: tuple[str, ...]) -> Item | None:
        if self._api_key is not None and request.headers.get("authorization") != f"Bearer {self._api_key}":
            return error(401, "Incorrect API key provided.", code="invalid_api_key")
        if self._models is not None and model not in self._models:
            words = f"The model `{model}` does not exist or you do not have access to it."
            return error(404, words, code="model_not_found")
        if violations:
            return error(400, "; ".join(violations))
        unknown = [field for field in self._refuses if field in self.requests[-1]]
        if unknown:
            return error(400, f"Unrecognized request argument supplied: {unknown[0]}")
        return None

    def _error(self, status: int, message: str) -> Item:
        return error(status, message)

    def _events(self, body: object) -> tuple[bytes, ...]:
        asked = as_object(self.requests[-1].get("stream_options") if self.requests else None)
        chunks = (
            body if isinstance(body, list) else split_into_chunks(as_object(body), bool(asked.get("include_usage")))
        )
        told = [*map(json.dumps, chunks), "[DONE]"]
        return tuple(f"data: {chunk}\n\n".encode() for chunk in told)


def split_into_chunks(body: JSON, with_usage: bool = True) -> Iterator[JSON]:
    """A whole body as the chunks in which it would be streamed: a few letters each, why it ended, then the usage."""
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        yield body
        return
    shared = {key: value for key, value in body.items() if key not in ("choices", "usage")}
    message, finish = as_object(choices[0].get("message")), choices[0].get("finish_reason")
    deltas: list[JSON] = [{"role": "assistant", "content": ""}, *_deltas(message)]
    for delta in deltas:
        yield {**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**shared, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    if with_usage and "usage" in body:
        yield {**shared, "choices": [], "usage": body["usage"]}


def _deltas(message: JSON) -> Iterator[JSON]:
    for name in ("reasoning_content", "content", "refusal"):
        for piece in pieces_of(message.get(name) or ""):
            yield {name: piece}
    for index, wanted in enumerate(message.get("tool_calls") or ()):
        function = wanted["function"]
        yield {"tool_calls": [{**wanted, "index": index, "function": {**function, "arguments": ""}}]}
        for piece in pieces_of(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
