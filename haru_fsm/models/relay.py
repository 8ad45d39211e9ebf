"""When a second model takes up what a first one was asked: what is left of the request, and what both have spent.

A budget counts what was really spent, whoever spent it. So the outcome of the one who spoke last carries the requests,
tokens and incidents of the others; an incident says whose it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from haru_fsm.clock import Clock
from haru_fsm.conversation import JSON, Incident, Share
from haru_fsm.models import Model, ModelOutcome, ModelRequest, outcome_of
from haru_fsm.models.speech import Speech


@dataclass(slots=True)
class Relay:
    """One request on its way through several models, on one clock."""

    request: ModelRequest
    clock: Clock
    requests: int = 0
    """HTTP requests that were made so far."""
    heard: bool = False
    """Whether a watcher has heard a piece of an answer; what was heard is not taken back by another model."""
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock.monotonic()

    @property
    def left_s(self) -> float | None:
        """Seconds that are left, or None where they are not limited."""
        if self.request.timeout_s is None:
            return None
        return self.request.timeout_s - (self.clock.monotonic() - self.began)

    @property
    def left_requests(self) -> int:
        """Requests that the run may still make; may be negative, since retries are not limited by it."""
        return self.request.requests_left - self.requests

    async def ask(self, model: Model, *more: JSON, aloud: bool = True, tools_allowed: bool = True) -> ModelOutcome:
        """What this model makes of the request, with `more` contents at its end, in what is left.

        `aloud`: pieces of the answer are told as they come, unless something was heard of another one's.
        """
        asked = replace(
            self.request,
            contents=(*self.request.contents, *more),
            tools_allowed=self.request.tools_allowed and tools_allowed,
            requests_left=max(1, self.left_requests),
            timeout_s=self.left_s,
            on_text=self._tell if aloud and not self.heard and self.request.on_text else None,
        )
        outcome = await outcome_of(model, asked)
        self.requests += outcome.requests
        return outcome

    def tell(self, text: str) -> None:
        """Tell the whole of an answer, where nothing was heard so far."""
        if not self.heard:
            Speech(self.request.on_text).attempt_succeeded(text)

    def _tell(self, piece: str) -> None:
        if piece and self.request.on_text is not None:
            self.heard = True
            self.request.on_text(piece)


def spent(
    outcome: ModelOutcome, *, before: Sequence[ModelOutcome] = (), after: Sequence[ModelOutcome] = ()
) -> ModelOutcome:
    """The outcome with what others have spent before it and after it; what it says, and who says it, stays."""
    told: list[ModelOutcome] = [*before, outcome, *after]
    usage = told[0].usage
    for each in told[1:]:
        usage += each.usage
    return outcome.model_copy(
        update={
            "requests": sum(each.requests for each in told),
            "usage": usage,
            "shares": tuple(share for each in told for share in _shares(each)) if told[1:] else outcome.shares,
            "incidents": tuple(incident for each in told for incident in _incidents(each, signed=each is not outcome)),
        }
    )


def _shares(outcome: ModelOutcome) -> tuple[Share, ...]:
    # A model whose time was over before it could ask has made no request, and none is counted here.
    return outcome.shares or (Share(model=outcome.model, requests=outcome.requests, usage=outcome.usage),)


def _incidents(outcome: ModelOutcome, signed: bool) -> Iterable[Incident]:
    for incident in outcome.incidents:
        yield incident.model_copy(update={"detail": f"{outcome.model}: {incident.detail}"}) if signed else incident


async def close_all(models: Iterable[Model]) -> None:
    """Close the models that can be closed."""
    closing = (getattr(model, "aclose", None) for model in models)
    await asyncio.gather(*(close() for close in closing if close is not None))
