"""Law 5 judged: every request is one that the API takes, and the model reads what was said."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from haru_fsm.contents import History
from haru_fsm.conversation import MessageReceived, ModelEvent, Step, TicketOpened, ToolsExecuted, ToolsRequested
from haru_fsm.testing.driving import Performance
from haru_fsm.testing.strict import check_contents, decode_signature


def valid(seen: Performance) -> Iterator[str]:
    known = {signature for reply in seen.play.replies for signature in _signatures(getattr(reply, "content", {}))}
    for number, request in enumerate(seen.requests, 1):
        for wrong in check_contents(list(request.contents), known):
            yield f"request {number}: {wrong}"
    yield from _read(seen)
    history = History(output_chars=seen.app.limits.tool_output_chars)
    for step in seen.steps:
        history = history.fold(step)
        for wrong in check_contents(list(history.request()), known):
            yield f"a request after step {step.seq} would be refused: {wrong}"


def _signatures(content: Mapping[str, Any]) -> Iterator[bytes]:
    for part in content.get("parts") or ():
        signature = decode_signature(part.get("thoughtSignature"))
        if signature is not None:
            yield signature


def _read(seen: Performance) -> Iterator[str]:
    """The model reads what was said: the calls it made, to the letter, and what came of them."""
    for request in seen.requests:
        place = _place(seen.steps, request.run, request.position)
        if place is None:
            continue
        said, message, calls, results = place
        texts = [part.get("text") for content in request.contents for part in content["parts"]]
        if message is not None and message not in texts:
            yield f"the model did not read the customer's message {message!r}"
        if said and said not in texts:
            yield f"the model did not read what the customer was told before: {said!r}"
        if calls is not None and calls not in request.contents:
            yield "a call of the model's did not come back to it as it was made"
        answers = [part["functionResponse"]["response"] for part in _last_responses(request.contents)]
        for response in results:
            if not any(_same(response, read) for read in answers):
                yield f"the model did not read {json.dumps(response, ensure_ascii=False)[:120]}"


_Place = tuple[str, str | None, Any, list[Any]]


def _place(steps: tuple[Step, ...], run: int, position: int) -> _Place | None:
    """What was journaled before this reply of the model's: how the run before ended, the message, the last calls, and
    what came of them. None where the reply was lost, and no other was asked for in this run."""
    said, message, calls, results = "", None, None, list[Any]()
    for step in steps:
        match step.event:
            case ModelEvent() if position == 0:
                return (said, message, calls, results) if step.run == run else None
            case TicketOpened(notice=notice):
                said = notice
            case MessageReceived(text=text):
                message, calls, results = text, None, []
            case ToolsRequested(content=content):
                calls, results = content, []
            case ToolsExecuted(results=done):
                results = [dict(result.response) for result in done if len(str(result.response)) < 500]
        position -= isinstance(step.event, ModelEvent)
    return None


def _last_responses(contents: Iterable[Any]) -> list[Any]:
    turns = [[part for part in content["parts"] if "functionResponse" in part] for content in contents]
    return next((turn for turn in reversed(turns) if turn), [])


def _same(response: Mapping[str, Any], read: Mapping[str, Any]) -> bool:
    return all(read.get(name) == value for name, value in response.items() if name != "note")
