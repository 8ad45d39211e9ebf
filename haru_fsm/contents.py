"""From the journal to what the model reads: the API's `contents`, valid after anything that may have happened.

The rules of the API that are kept here, whatever the journal holds (see `testing/strict.py`, which checks them):

* roles are `user` and `model`; the first content is a plain user turn, the last one a user turn;
* a turn with calls comes right after a user turn, and right after it comes one turn with exactly one response for each
  call, in the order of the calls, with the call's own name and id;
* no content without parts, no part without data; the model's own parts go back as they came, signatures included.

A `History` is a fold of the journal: one more step costs the same at any length, and what was put into words once is
not put into words again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from haru_fsm.conversation import (
    JSON,
    Event,
    FailureReason,
    HistoryAdopted,
    MessageReceived,
    ModelAnswered,
    ModelEvent,
    ModelFailed,
    ObservationAppended,
    ResultStatus,
    Resumed,
    Step,
    TicketClosed,
    TicketOpened,
    ToolCall,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
)
from haru_fsm.toolbox.cutting import cut_for_model

BLOCKED_LINE = "(이 메시지는 안전 정책에 따라 표시되지 않습니다.)"
"""Stands for a customer's message that the provider has blocked: replayed, it would block every later request too."""
GO_ON_LINE = "(계속해 주세요.)"
"""A neutral user turn, where the API wants one and nobody has said anything."""
BEGUN = "It is not known whether this call took place: the process that ran it stopped, and a person took over."
NOT_RUN = "This call was not run: the conversation was handed over to a person."


@dataclass(frozen=True, slots=True)
class History:
    """The contents so far, and the calls of the last reply that still wait for their responses."""

    contents: tuple[JSON, ...] = ()
    open_calls: tuple[ToolCall, ...] = ()
    results: Mapping[int, ToolResult] = field(default_factory=dict)
    output_chars: int = 20_000
    """Characters of one result that the model reads."""

    def fold(self, step: Step) -> History:
        """The history after one more step."""
        return _settle(self, step.event)._fold(step)

    def _fold(self, step: Step) -> History:
        match step.event:
            case MessageReceived(text=text):
                return self._closed()._user({"text": text})
            case ModelAnswered(content=content) if step.trip is None:
                return self._model(content)
            case ToolsRequested(content=content, calls=calls):
                return replace(self._model(content), open_calls=calls, results={})
            case ModelFailed(reason=FailureReason.PROMPT_BLOCKED):
                return self._blocked()
            case ToolsExecuted(results=results):
                return replace(self, results={result.position: result for result in results})
            case Resumed(begun=begun) if begun:
                return replace(self, results={result.position: result for result in map(_begun, begun)})
            case ObservationAppended(refusals=refusals):
                return self._observed(refusals)
            case TicketOpened(notice=notice):
                return self._model(_model_turn(notice))
            case TicketClosed(reply=reply):
                return self._model(_model_turn(reply))
            case HistoryAdopted(contents=contents):
                return replace(self, contents=(*self.contents, *contents))
        return self

    def request(self) -> tuple[JSON, ...]:
        """The contents to send: the last turn is the user's."""
        return self._closed()._user_last().contents

    # -- turns

    def _user(self, *parts: JSON) -> History:
        """Say something as the user; two user turns in a row are one, but responses stand alone before a message."""
        return replace(self, contents=(*self.contents, {"role": "user", "parts": list(parts)}))

    def _model(self, content: JSON) -> History:
        """Let the model speak; whatever it had asked for before is closed first, and an empty content is left out."""
        if not content.get("parts"):
            return self
        history = self._closed()
        if not history.contents or any("functionCall" in part for part in content["parts"]):
            history = history._user_last()
        return replace(history, contents=(*history.contents, content))

    def _user_last(self) -> History:
        if self.contents and self.contents[-1]["role"] == "user":
            return self
        return self._user({"text": GO_ON_LINE})

    def _observed(self, refusals: Mapping[int, str]) -> History:
        if not self.open_calls:
            return self
        responses = [self._response(call, refusals.get(call.position)) for call in self.open_calls]
        return replace(self._user(*responses), open_calls=(), results={})

    def _closed(self) -> History:
        """The same with every open call answered, for turns that cannot follow a call."""
        return self._observed({})

    def _response(self, call: ToolCall, refusal: str | None) -> JSON:
        result = self.results.get(call.position)
        if refusal is not None or result is None:
            response: JSON = {"error": refusal if refusal is not None else NOT_RUN}
        else:
            response = _read_by_model(result, self.output_chars)
        said: JSON = {"name": call.name, "response": response}
        if call.id is not None:
            said["id"] = call.id
        return {"functionResponse": said}

    def _blocked(self) -> History:
        contents = list(self.contents)
        for index in range(len(contents) - 1, -1, -1):
            if contents[index]["role"] == "user" and all("text" in part for part in contents[index]["parts"]):
                contents[index] = {"role": "user", "parts": [{"text": BLOCKED_LINE}]}
                break
        return replace(self, contents=tuple(contents))


def _begun(call: str) -> ToolResult:
    """Stands for a call that was begun before a crash, until it is dealt with; perhaps it never is."""
    position = int(call.partition(".")[2])
    return ToolResult(position=position, status=ResultStatus.IN_DOUBT, response={"error": BEGUN})


def _read_by_model(result: ToolResult, chars: int) -> JSON:
    """A result cut to size, with what was repaired in the arguments as part of its note."""
    response = cut_for_model(result.response, chars)
    if not result.repairs:
        return response
    return {**response, "note": " ".join([*result.repairs, *filter(None, [response.get("note")])])}


def _settle(history: History, event: Event) -> History:
    """A model event carries outcomes that came to be known before its request: the model read them as part of the
    last user turn."""
    if not isinstance(event, ModelEvent) or not event.settled:
        return history
    return with_outcomes(history, event.settled)


def with_outcomes(history: History, settled: Mapping[str, JSON]) -> History:
    """The history with late outcomes told to the model, as text in the last user turn."""
    if not settled:
        return history
    history = history._closed()._user_last()
    last = history.contents[-1]
    lines = [
        {"text": f"(Outcome of call {call}, which was in doubt: {json.dumps(response, ensure_ascii=False)})"}
        for call, response in settled.items()
    ]
    return replace(history, contents=(*history.contents[:-1], {**last, "parts": [*last["parts"], *lines]}))


def _model_turn(text: str) -> JSON:
    return {"role": "model", "parts": [{"text": text}]}
