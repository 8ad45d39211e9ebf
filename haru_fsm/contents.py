"""From the journal to what the model reads: the API's `contents`, valid after anything that may have happened.

The rules of the API that are kept here, whatever the journal holds (see `testing/strict.py`, which checks them):

* roles are `user` and `model`; the first content is a plain user turn, the last one a user turn;
* a turn with calls comes right after a user turn, and right after it comes one turn with exactly one response for each
  call, in the order of the calls, with the call's own name and id;
* no content without parts, no part without data; the model's own parts go back as they came, signatures included.

A `History` is a fold of the journal: one more step costs the same at any length, and what was put into words once is
not put into words again. Where a request was made from a shorter history, its reply says how it was made shorter
(`compaction.py`), and the fold does the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from haru_fsm.compaction import shorter
from haru_fsm.conversation import (
    JSON,
    Compaction,
    FailureReason,
    HistoryAdopted,
    MessageReceived,
    ModelAnswered,
    ModelEvent,
    ModelFailed,
    ObservationAppended,
    ResultsEvent,
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
from haru_fsm.progress import is_model_event
from haru_fsm.toolbox.cutting import cut_and_measured, size_of
from haru_fsm.untrusted import marked_message

BLOCKED_LINE = "(이 메시지는 안전 정책에 따라 표시되지 않습니다.)"
"""Stands for a customer's message that the provider has blocked: replayed, it would block every later request too."""
BLOCKED_RESULT = "This result is not shown: the provider's safety policy has blocked it."
"""The same for what a tool has found."""
GO_ON_LINE = "(계속해 주세요.)"
"""A neutral user turn, where the API wants one and nobody has said anything."""
BEGUN = "It is not known whether this call took place: the process that ran it stopped, and a person took over."
NOT_RUN = "This call was not run: the conversation was handed over to a person."
OUTCOME = "(Outcome of call "
"""How a line begins that tells the model of a late outcome."""
AROUND = 36
"""About how many bytes of JSON stand around a turn, a text or a response."""


class Marks(NamedTuple):
    """Places in the contents that compaction has to know of, and what it has learned so far."""

    message: int = 0
    """Where the customer's latest message is."""
    doubtful: Mapping[str, int] = MappingProxyType({})
    """The calls in doubt, as `seq.position`, and where the turn that asked for them is."""
    recorded: bool = False
    """The second content is the record of what was cut."""
    refused: int | None = None
    """Size of the smallest contents that a provider refused as too large."""
    summary_failed: bool = False
    """A model was asked for a summary, and none could be used."""
    blocked: int = 0
    """Requests that were blocked since the model has spoken last."""
    heard: int = 0
    """How many of the contents the model has spoken to: what stands in them was let through."""

    def spoken_to(self, heard: int) -> Marks:
        """The marks when the model has spoken to so many of the contents."""
        message, doubtful, recorded, refused, summary_failed, _, _ = self
        return Marks(message, doubtful, recorded, refused, summary_failed, 0, heard)

    def moved(self, places: Mapping[int, int], compaction: Compaction) -> Marks:
        """The marks after a compaction that has moved the contents to these places."""
        refused = [each for each in (self.refused, compaction.refused) if each is not None]
        return Marks(
            message=places.get(self.message, 0),
            doubtful={call: places[place] for call, place in self.doubtful.items() if place in places},
            recorded=self.recorded or bool(compaction.record),
            refused=min(refused, default=None),
            summary_failed=self.summary_failed or bool(compaction.failed),
            blocked=self.blocked,
            heard=1 + max((new for old, new in places.items() if old < self.heard), default=-1),
        )


class History(NamedTuple):
    """The contents so far, and the calls of the last reply that still wait for their responses.

    A tuple, for it is made anew with every turn.
    """

    contents: tuple[JSON, ...] = ()
    open_calls: tuple[ToolCall, ...] = ()
    results: Mapping[int, ToolResult] = MappingProxyType({})
    output_chars: int = 20_000
    """Characters of one result that the model reads."""
    size: int = 0
    """About how many bytes the contents have as JSON in UTF-8."""
    asked: int = 0
    """The step that asked for the open calls."""
    counted: tuple[int, int] | None = None
    """The latest request whose prompt a provider has counted: its tokens, and the size of its contents."""
    marks: Marks = Marks()

    def fold(self, step: Step) -> History:
        """The history after one more step."""
        # What comes most often is known by its very class, without a look at any other.
        if type(step.event) is ObservationAppended:
            return self._observed(step.event.refusals)
        if type(step.event) is ToolsExecuted:
            return self._executed(step.event.results)
        return (self.as_asked(step.event) if is_model_event(step.event) else self)._fold(step)

    def as_asked(self, event: ModelEvent) -> History:
        """The history as the model read it before this event: compacted, and with the outcomes that were settled."""
        history = self if event.compaction is None else self.compacted(event.compaction)
        return with_outcomes(history, event.settled)

    def _fold(self, step: Step) -> History:
        match step.event:  # what comes most often is looked for first
            case ToolsRequested(content=content, calls=calls) as event:
                return self._model(content, event, calls, step.seq)
            case ObservationAppended(refusals=refusals):
                return self._observed(refusals)
            case ResultsEvent(results=results):
                return self._executed(results)
            case MessageReceived(text=text):
                return self._closed()._message(text)
            case ModelAnswered(content=content) as event if step.trip is None or step.rests:
                return self._model(content, event)
            case ModelFailed(reason=FailureReason.PROMPT_BLOCKED):
                return self._blocked()
            case Resumed(begun=begun):
                return self._taken_up(begun)
            case TicketOpened(notice=notice):
                return self._model(_model_turn(notice))
            case TicketClosed(reply=reply):
                return self._model(_model_turn(reply))
            case HistoryAdopted(contents=contents):
                history, size = self._closed(), sum(map(size_of, contents))
                return history._replace(contents=(*history.contents, *contents), size=history.size + size)
        return self

    def compacted(self, compaction: Compaction) -> History:
        """The history made shorter as this compaction says."""
        contents, places = shorter(self.contents, compaction)
        marks = self.marks.moved(places, compaction)
        return self._replace(contents=contents, size=sum(map(size_of, contents)), marks=marks)

    @property
    def stays(self) -> frozenset[int]:
        """Positions of what compaction has to leave alone, beside the first content and the recent ones."""
        return frozenset((self.marks.message, *self.marks.doubtful.values()))

    def request(self) -> tuple[JSON, ...]:
        """The contents to send: the last turn is the user's."""
        return self._closed()._user_last().contents

    # -- turns

    def _then(
        self,
        content: JSON,
        size: int,
        calls: tuple[ToolCall, ...] = (),
        asked: int = 0,
        counted: tuple[int, int] | None = None,
        marks: Marks | None = None,
    ) -> History:
        """One more content."""
        return History(
            self.contents + (content,),  # noqa: RUF005 - unpacking would copy them twice
            calls,
            {},
            self.output_chars,
            self.size + size + AROUND,
            asked,
            counted or self.counted,
            marks or self.marks,
        )

    def _with(self, results: Mapping[int, ToolResult]) -> History:
        """The same with these results of the open calls."""
        chars, size, asked, counted, marks = self[3:]
        return History(self.contents, self.open_calls, results, chars, size, asked, counted, marks)

    def _user(self, text: str) -> History:
        """Say something as the user; two user turns in a row are one, but responses stand alone before a message."""
        return self._then({"role": "user", "parts": [{"text": text}]}, size_of(text))

    def _message(self, text: str) -> History:
        """The customer's words, and a mark beside them where they look like instructions."""
        turn: JSON = {"role": "user", "parts": marked_message(text)}
        return self._then(turn, size_of(turn), marks=self.marks._replace(message=len(self.contents)))

    def _model(
        self, content: JSON, event: ModelEvent | None = None, calls: tuple[ToolCall, ...] = (), asked: int = 0
    ) -> History:
        """Let the model speak, unless its content is empty. Calls that are still open are answered first."""
        parts = content.get("parts")
        if not parts:
            return self
        history = self._closed()
        if calls or not history.contents:
            history = history._user_last()
        if event is None:
            return history._then(content, size_of(parts), calls, asked)
        marks = history.marks.spoken_to(len(history.contents))
        return history._then(content, size_of(parts), calls, asked, _counted(event, history.size), marks)

    def _user_last(self) -> History:
        return self if self.contents and self.contents[-1]["role"] == "user" else self._user(GO_ON_LINE)

    def _executed(self, results: Sequence[ToolResult]) -> History:
        history = self._with({result.position: result for result in results})
        doubtful = [
            each.position for each in results if each.status is ResultStatus.IN_DOUBT and each.ran and self.open_calls
        ]
        if not doubtful and not self.marks.doubtful:
            return history
        # A call that was begun before a resume may have been settled since.
        known = {f"{self.asked}.{each.position}" for each in results}
        calls = {call: place for call, place in self.marks.doubtful.items() if call not in known}
        calls |= {f"{self.asked}.{position}": len(self.contents) - 1 for position in doubtful}
        return history._replace(marks=self.marks._replace(doubtful=calls))

    def _taken_up(self, begun: Iterable[str]) -> History:
        """With what is known of the open calls since a restart; what was known of them before it stays known."""
        mine = (call for call in begun if call.startswith(f"{self.asked}."))
        new = [result for result in map(_begun, mine) if result.position not in self.results]
        return self._executed([*self.results.values(), *new]) if new else self

    def _observed(self, refusals: Mapping[int, str]) -> History:
        if not self.open_calls:
            return self
        parts, size = list[JSON](), 0
        for call in self.open_calls:
            part, more = self._response(call, refusals.get(call.position))
            parts.append(part)
            size += more
        return self._then({"role": "user", "parts": parts}, size)

    def _closed(self) -> History:
        """The same with every open call answered, for turns that cannot follow a call."""
        return self._observed({})

    def _response(self, call: ToolCall, refusal: str | None) -> tuple[JSON, int]:
        """What the model reads of a call, and about how many bytes that has."""
        result = self.results.get(call.position)
        if refusal is not None or result is None:
            error = refusal if refusal is not None else NOT_RUN
            response, size = {"error": error}, size_of(error)
        else:
            response, size = _read_by_model(result, self.output_chars)
        said: JSON = {"name": call.name, "response": response}
        if call.id is not None:
            said["id"] = call.id
        return {"functionResponse": said}, size + len(call.name) + AROUND

    def _blocked(self) -> History:
        """The history without what may have blocked the request.

        First only the latest turn from outside is hidden, for the others were let through before. Where the next
        request is blocked all the same, so is every turn that the model has never spoken to (an adopted history). Where
        one more is, every turn from outside is: models differ in what they block.
        """
        said = [place for place in range(len(self.contents)) if self._is_from_outside(place)]
        unheard = [place for place in said if place >= self.marks.heard]
        contents = list(self.contents)
        for place in (said[-1:], unheard, said)[min(self.marks.blocked, 2)]:
            contents[place] = _hidden(contents[place])
        size = self.size + sum(map(size_of, contents)) - sum(map(size_of, self.contents))
        return self._replace(
            contents=tuple(contents), size=size, marks=self.marks._replace(blocked=self.marks.blocked + 1)
        )

    def _is_from_outside(self, place: int) -> bool:
        """Whether this was said by the customer or a tool, and not by the model or by the engine's record."""
        return self.contents[place]["role"] == "user" and not (self.marks.recorded and place == 1)


def _hidden(content: JSON) -> JSON:
    """A user turn that says nothing of what it said, and answers the same calls."""
    unseen: list[JSON] = [
        {"functionResponse": {**part["functionResponse"], "response": {"error": BLOCKED_RESULT}}}
        for part in content["parts"]
        if "functionResponse" in part
    ]
    # An outcome is told once, beside the message or the responses: it must not be lost with them.
    told = [part for part in content["parts"][1:] if part.get("text", "").startswith(OUTCOME)]
    return {"role": "user", "parts": [*(unseen or [{"text": BLOCKED_LINE}]), *told]}


def _begun(call: str) -> ToolResult:
    """Stands for a call that was begun before a crash, until it is dealt with; perhaps it never is."""
    position = int(call.partition(".")[2])
    return ToolResult(position=position, status=ResultStatus.IN_DOUBT, response={"error": BEGUN})


def _read_by_model(result: ToolResult, chars: int) -> tuple[JSON, int]:
    """A result cut to size, with what was repaired in the arguments as part of its note; and its size."""
    response, size = cut_and_measured(result.response, chars)
    if not result.repairs:
        return response, size
    note = " ".join([*result.repairs, *filter(None, [response.get("note")])])
    return {**response, "note": note}, size + size_of(note)


def _counted(event: ModelEvent, size: int) -> tuple[int, int] | None:
    """What the provider has counted, where that was one request's prompt and nothing else's."""
    summary, usage = event.compaction, event.usage
    if not usage.prompt or usage.estimated:
        return None
    prompt = usage.prompt - (summary.usage.prompt if summary else 0)
    alone = event.requests - (summary.requests if summary else 0) == 1
    return (prompt, size) if alone and prompt > 0 else None


def with_outcomes(history: History, settled: Mapping[str, JSON]) -> History:
    """The history with late outcomes told to the model, as text in the last user turn: they were not known before."""
    if not settled:
        return history
    history = history._closed()._user_last()
    last = history.contents[-1]
    lines = [
        {"text": f"{OUTCOME}{call}, which was in doubt: {json.dumps(response, ensure_ascii=False)})"}
        for call, response in settled.items()
    ]
    doubtful = {call: place for call, place in history.marks.doubtful.items() if call not in settled}
    return history._replace(
        contents=(*history.contents[:-1], {**last, "parts": [*last["parts"], *lines]}),
        size=history.size + sum(map(size_of, lines)),
        marks=history.marks._replace(doubtful=doubtful),
    )


def written_at(steps: Iterable[Step], output_chars: int) -> list[int]:
    """For each content of the history of these steps, the number of the step that wrote it."""
    history, seqs = History(output_chars=output_chars), list[int]()
    for step in steps:
        if isinstance(step.event, ModelEvent) and step.event.compaction is not None:
            contents, places = shorter(history.contents, step.event.compaction)
            moved = {place: seqs[position] for position, place in places.items()}
            seqs = [moved.get(place, step.seq) for place in range(len(contents))]
        history = history.fold(step)
        seqs += [step.seq] * (len(history.contents) - len(seqs))
    return seqs


def _model_turn(text: str) -> JSON:
    return {"role": "model", "parts": [{"text": text}]}
