"""The requests that stand behind one event of a model, made again from the journal: what a cassette has to hold.

One piece of work asks more than once where the history had become too long: for a summary, or with less after the
provider has refused. Its one event says how the history was made shorter and what the summary cost, and so each request
can be told with the outcome that leads to the next. Two things the journal does not hold: what a refused request has
cost (providers charge nothing), and a summary that was part of a request which was refused then. In its place an empty
one is told, which leads to the digest; what comes after such a request may play otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from haru_fsm.asking import SUMMARISER
from haru_fsm.compaction import transcript
from haru_fsm.conversation import COST_DIGITS, Compaction, Conversation, FailureReason, ModelFailed, Usage
from haru_fsm.digest import read_record
from haru_fsm.fitting import planned
from haru_fsm.models import ModelOutcome, ModelRequest
from haru_fsm.models.scripted import answer
from haru_fsm.services import Services

_SUMMARY = "summary: "

Exchanged = tuple[ModelRequest, ModelOutcome]


def exchanged(conversation: Conversation, services: Services, event: ModelOutcome) -> Iterator[Exchanged]:
    """Each request with its outcome, in their order; the last one is the event's own. `conversation` is as it was
    before the event."""
    yield from _Behind(conversation, services, event).all()


@dataclass(frozen=True, slots=True)
class _Behind:
    """The requests behind one event. `conversation` is as it was before the event."""

    conversation: Conversation
    services: Services
    event: ModelOutcome

    def all(self) -> Iterator[Exchanged]:
        made = self.event.compaction
        if made is None:
            yield self._request(None), self.event
            return
        first = made if made.refused is None else self._first(made.refused)
        before = [*self._summary(made, first), *([(self._request(first), self._refusal())] if made.refused else [])]
        yield from before
        yield self._request(made), _less(self.event, [outcome for _, outcome in before])

    def _request(self, compaction: Compaction | None) -> ModelRequest:
        return self.services.request(self.conversation, settled=self.event.settled, compaction=compaction)

    def _first(self, refused: int) -> Compaction | None:
        """How the history was made shorter for the request that was refused; None where it was not."""
        history, limits = self.services.history(self.conversation), self.services.limits
        if refused == history.size:
            return None
        return planned(history, self.services.overhead, limits, self.event.model)

    def _refusal(self) -> ModelFailed:
        return ModelFailed(reason=FailureReason.TOO_LARGE, model=self.event.model)

    def _summary(self, made: Compaction, first: Compaction | None) -> Iterator[Exchanged]:
        """The request for a summary, where there was one and the journal knows what came of it."""
        if not made.requests or first is None:
            return
        history = self.services.history(self.conversation)
        text = transcript(history.contents, first, recorded=history.marks.recorded)
        contents = ({"role": "user", "parts": [{"text": text}]},)
        spent = {"model": self.event.model, "requests": made.requests, "usage": made.usage}
        said: ModelOutcome
        if made.failed:
            said = ModelFailed(reason=made.failed, detail="the journal does not hold what it said").model_copy(
                update=spent
            )
        else:
            said = answer(_text_of(made.record) if made.by == "model" else "").model_copy(update=spent)
        yield ModelRequest(system=SUMMARISER, contents=contents, tools_allowed=False), said


def _text_of(record: str) -> str:
    """The summary that a model wrote, out of the record that holds it; nothing where it holds none."""
    lines, _ = read_record(record)
    return next((str(json.loads(line.removeprefix(_SUMMARY))) for line in lines if line.startswith(_SUMMARY)), "")


def _less(event: ModelOutcome, before: list[ModelOutcome]) -> ModelOutcome:
    """The event without what was spent on the requests before its own: those stand beside it."""
    if not before:
        return event
    usage = event.usage
    for each in before:
        usage = _minus(usage, each.usage)
    requests = event.requests - sum(each.requests for each in before)
    return event.model_copy(update={"requests": max(1, requests), "usage": usage, "shares": ()})


def _minus(whole: Usage, part: Usage) -> Usage:
    counts = {
        name: getattr(whole, name) - getattr(part, name) for name in ("prompt", "cached", "thoughts", "tool", "answer")
    }
    cost = whole.cost_usd
    if cost is not None and part.cost_usd is not None:
        cost = round(cost - part.cost_usd, COST_DIGITS)
    return whole.model_copy(update={**counts, "cost_usd": cost})
