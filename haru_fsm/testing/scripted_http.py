"""A server that plays a script, whatever API it speaks: what the fakes of providers have in common.

A script is a list of items, or a function from a request's body to an item. An item is

* a body as the API sends it, for a streamed request too (it is cut into chunks), or a list of chunks;
* `{"http_status": 503, "body": {...}, "headers": {...}}`: an error;
* `{"raw_text": "<html>"}`: this text with status 200;
* `{"transport": "close" | "reset" | "truncate" | "hang" | "stall", "body": {...}}`: see `local_http.Fault`;
* a function from the request's body to any of these.

Each request is first held against the rules of the API; one that breaks them gets the API's own 400, is noted in
`violations`, and uses up nothing of the script. After the end of the script every request gets an error with status
500 that says so, and is counted in `overruns`.
"""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from haru_fsm.conversation import JSON
from haru_fsm.testing.local_http import Answer, Fault, LocalServer, Request

Item = Any
"""One item of a script: see the head of this module."""

CHUNK_CHARS = 8
"""Characters of a text in one chunk of a stream."""


@dataclass(frozen=True, slots=True)
class Received:
    """One request: its body, how it was sent, and which rules it broke."""

    body: JSON
    model: str
    streamed: bool
    headers: dict[str, str]
    violations: tuple[str, ...] = ()


class ScriptedServer(LocalServer, ABC):
    """Plays a script. Entered with `async with`, or with `with`.

    `strict=False` lets every request pass. `pause_s`: seconds between a stream's chunks.
    """

    def __init__(
        self, script: Iterable[Item] | Callable[[JSON], Item] = (), *, strict: bool = True, pause_s: float = 0.0
    ) -> None:
        super().__init__(self._respond)
        self._next = script if callable(script) else self._play(deque(script))
        self._strict = strict
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

    # -- what each API has its own way of

    @abstractmethod
    def _asked(self, request: Request, body: JSON) -> tuple[str, bool] | None:
        """The model that is asked, and whether for a stream; None for a path that is not served."""

    @abstractmethod
    def _rules(self, body: object) -> Iterator[str]:
        """The rules that a body breaks."""

    @abstractmethod
    def _refusal(self, request: Request, model: str, violations: tuple[str, ...]) -> Item | None:
        """The error for a request with a wrong key, a wrong model or a broken rule; None where there is none."""

    @abstractmethod
    def _error(self, status: int, message: str) -> Item:
        """An error in the API's own form."""

    @abstractmethod
    def _events(self, body: object) -> tuple[bytes, ...]:
        """A body, or the list of its chunks, as server-sent events."""

    def _sent(self, item: Item) -> None:
        """Told of each item before it goes out."""

    # -- one request

    def _play(self, script: deque[Item]) -> Callable[[JSON], Item]:
        def item(_body: JSON) -> Item:
            if script:
                return script.popleft()
            self.overruns += 1
            name, number = type(self).__name__, len(self.received)
            return self._error(500, f"the script of this {name} has ended; this is request {number}")

        return item

    async def _respond(self, request: Request) -> Answer:
        body = parsed(request.body)
        asked = self._asked(request, as_object(body)) if request.method == "POST" else None
        if asked is None:
            return self._as_answer(
                self._error(404, f"{request.method} {request.path} is not known here"), streamed=False
            )
        model, streamed = asked
        violations = tuple(self._rules(body)) if self._strict else ()
        self.received.append(Received(as_object(body), model, streamed, dict(request.headers), violations))
        if (refusal := self._refusal(request, model, violations)) is not None:
            return self._as_answer(refusal, streamed=False)
        item = self._next(as_object(body))
        while callable(item) or inspect.isawaitable(item):
            item = await item if inspect.isawaitable(item) else item(as_object(body))
        self._sent(item)
        return self._as_answer(item, streamed=streamed)

    # -- items as answers

    def _as_answer(self, item: Item, *, streamed: bool) -> Answer:
        """The item as it goes over the wire."""
        if not isinstance(item, dict):
            return self._bodies(item, streamed)
        headers = item.get("headers") or {}
        if "http_status" in item:
            return Answer(item["http_status"], headers, (_text(item.get("body")).encode(),))
        if "raw_text" in item:
            return Answer(200, headers, (item["raw_text"].encode(),))
        if "transport" in item:
            sent = self._bodies(item.get("body", {}), streamed)
            return Answer(200, sent.headers, sent.pieces, sent.pause_s, Fault(item["transport"]))
        return self._bodies(item, streamed)

    def _bodies(self, body: object, streamed: bool) -> Answer:
        if not streamed:
            return Answer(200, {}, (json.dumps(body).encode(),))
        return Answer(200, {"content-type": "text/event-stream"}, self._events(body), self._pause_s)


def pieces_of(text: str) -> Iterator[str]:
    """A text in the pieces in which it would be streamed."""
    for start in range(0, len(text), CHUNK_CHARS):
        yield text[start : start + CHUNK_CHARS]


def parsed(body: bytes) -> object:
    """The JSON of a request, None for what is none: NaN and the infinities are not."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    try:
        return json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None


def as_object(value: object) -> JSON:
    """The value where it is an object; elsewhere an empty one."""
    return value if isinstance(value, dict) else {}


def _text(body: object) -> str:
    return body if isinstance(body, str) else json.dumps(body)
