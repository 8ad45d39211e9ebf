"""Insisting on an answer: every model's re-asks and retries, in one place.

Two things go wrong in two ways. A reply that is *unusable* (empty, malformed, cut off) is asked for again, with the
request changed by a note that says what was wrong and, where the length was, by more room: sent again as it was, the
same request mostly fails the same way. A request that *did not arrive*, or not back, is sent again as it was, after
a wait. Neither is done without end:

* re-asks: at most `limits.model_retries`, and none once `request.requests_left` requests were made;
* retries: at most `limits.http_retries`, after the wait that the provider has asked for, else after a wait that
  doubles, with jitter, so that two hundred conversations do not come back in the same instant; at once where a
  provider refuses a field that the next request does without; unstreamed where a stream has broken off;
* everything: within `request.timeout_s` on the clock that was handed in. A wait that would end later is not begun, and
  no attempt before the last takes more than half of it (or ten seconds): nobody knows whether a silent server works.

A blocked prompt, a refused request, a wrong key, a spent quota are final at once. Every attempt is counted, with its
tokens, and leaves an incident; what comes out is an event, and no exception but a cancellation ever does.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from haru_fsm.clock import Clock
from haru_fsm.conversation import (
    FailureReason,
    Incident,
    ModelAnswered,
    ModelFailed,
    ToolsRequested,
    Usage,
    content_text,
)
from haru_fsm.limits import Limits
from haru_fsm.models import ModelOutcome, ModelRequest
from haru_fsm.models.hints import hint_for, is_worth_asking_again
from haru_fsm.models.prices import priced
from haru_fsm.models.replies import Problem, Reply, Usable
from haru_fsm.models.scrub import scrub
from haru_fsm.models.speech import Speech

log = logging.getLogger(__name__)

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 16.0
"""Seconds between two retries, where nobody says how many: 0.5, 1, 2, ... 16, each shortened by up to a half."""
LEAST_ATTEMPT_S = 10.0
"""Seconds that an attempt is given, where there are so many, before time is put aside for another one."""
LONGEST_TOLD_WAIT_S = 300.0
"""Seconds that are waited for a provider who names a time, when the run itself has no deadline."""

_WORTH_RETRYING = frozenset(
    {
        FailureReason.RATE_LIMITED,
        FailureReason.SERVER,
        FailureReason.TIMEOUT,
        FailureReason.TRANSPORT,
        FailureReason.UNREADABLE,
    }
)

_BROKEN_OFF = frozenset({FailureReason.TRANSPORT, FailureReason.UNREADABLE})
"""What comes of a stream that could not be read to its end."""


@dataclass(frozen=True, slots=True)
class Amendment:
    """How a re-ask differs from the request as it was given. The first request has an empty amendment."""

    hint: str = ""
    """Said to the model at the end of the last user turn."""
    cut_off: int = 0
    """How many replies had not enough room so far."""
    thought: bool = False
    """The last of these had spent tokens on thinking."""
    adapted: bool = False
    """A request was refused for something that it can do without, or not answered twice."""


@dataclass(slots=True)
class Attempt:
    """One HTTP request: what it changes, how many seconds it has, who listens to the text as it is written.

    The last three fields are set by whoever carries the request out, where the reply is a stream.
    """

    amendment: Amendment
    timeout_s: float
    speech: Speech
    streamed: bool = False
    """Somebody listens, so the reply is asked for as a stream."""
    spent: Usage = field(default_factory=Usage)
    """Tokens of a stream that broke off: they count, although no reply has come of them."""
    begun: bool = False
    """Some of the stream has come."""
    ended: Reply | None = None
    """The whole reply, where the stream had said that it is over before it broke off."""

    def hear(self, piece: str) -> None:
        """Some more of the stream has come; `piece` is what it adds to the answer."""
        self.begun = True
        self.speech.hear(piece)

    def broken_off(self, reply: Reply, *, finished: bool) -> None:
        """The stream can be read no further. What has come by then is paid for, whether anybody has counted it or not.

        `finished`: the model had said all by then, and only the stream did not end as it should. A proxy may add a line
        of its own, or close too early, or not at all.
        """
        self.spent = reply.usage
        self.ended = reply if finished else None


Asking = Callable[[Attempt], Awaitable[Reply]]
"""Carries out one attempt. It may raise what it likes: see `Persistence.translate`."""


@dataclass(frozen=True, slots=True)
class Persistence:
    """Everything that insisting on an answer depends on, except what is asked.

    `translate` makes a problem of an exception that an attempt has raised. `keys` are secrets that nothing may
    repeat. `rng` draws the jitter. `seller` is who asks money for the tokens: see `prices.py`; empty: nobody knows.
    """

    model: str
    limits: Limits
    clock: Clock
    translate: Callable[[Exception], Problem]
    keys: tuple[str, ...] = field(default=(), repr=False)
    rng: random.Random = field(default_factory=random.Random, repr=False)
    seller: str = ""

    async def ask(self, request: ModelRequest, asking: Asking) -> ModelOutcome:
        """Ask until there is something usable, or until a limit is reached. Raises nothing but CancelledError."""
        work = _Work(self, request, asking, Speech(request.on_text), self.clock.monotonic())
        while (outcome := await work.go_on()) is None:
            pass
        return outcome


@dataclass(slots=True)
class _Work:
    """One piece of work under way: what was asked for and spent so far, and how the next attempt will differ."""

    persistence: Persistence
    request: ModelRequest
    asking: Asking
    speech: Speech
    began: float
    amendment: Amendment = field(default_factory=Amendment)
    requests: int = 0
    re_asks: int = 0
    retries: int = 0
    streams: bool = True
    """The next attempt may be a stream: none of this request has begun and then broken off so far."""
    usage: Usage = field(default_factory=Usage)
    incidents: list[Incident] = field(default_factory=list)

    @property
    def left(self) -> float:
        """Seconds that are left of the request's time."""
        if self.request.timeout_s is None:
            return float("inf")
        return self.request.timeout_s - (self.persistence.clock.monotonic() - self.began)

    async def go_on(self) -> ModelOutcome | None:
        """One attempt; the outcome, or None when there is to be another one."""
        if self.left <= 0:
            return self._failed(Problem(FailureReason.DEADLINE, f"no time left after {self.requests} requests"))
        self.requests += 1
        reply = _allowed(await self._attempt(), self.request)
        self.usage += priced(
            reply.usage,
            seller=self.persistence.seller,
            model=self.persistence.model,
            at=self.persistence.clock.now(),
        )
        if isinstance(reply, Usable):
            self.speech.attempt_succeeded(content_text(reply.content) if reply.shown is None else reply.shown)
            return self._usable(reply)
        self.speech.attempt_failed()
        self.incidents.append(reply.incident())
        log.info("%s: %s: %s", self.persistence.model, reply.reason.value, reply.detail)
        if is_worth_asking_again(reply):
            return self._ask_again(reply)
        if reply.reason in _WORTH_RETRYING or reply.adapted:
            return await self._retry(reply)
        return self._failed(reply)

    async def _attempt(self) -> Reply:
        """One attempt within its time. The transport's own time-outs are per read, so that a trickle outlives them."""
        left = self.left
        streamed = self.streams and self.speech.listening
        attempt = Attempt(self.amendment, self._seconds(left), self.speech, streamed)
        try:
            async with asyncio.timeout(attempt.timeout_s):
                reply = await self.asking(attempt)
        except TimeoutError:
            reason = FailureReason.TIMEOUT if attempt.timeout_s < left else FailureReason.DEADLINE
            reply = Problem(reason, f"no complete reply within {attempt.timeout_s:g} s", usage=attempt.spent)
        except Exception as error:
            reply = replace(self.persistence.translate(error), usage=attempt.spent)
        reply = attempt.ended or reply
        if isinstance(reply, Problem):
            # Some servers never end a stream as they should, and answer well when they are asked without one.
            self.streams = self.streams and not (attempt.begun and reply.reason in _BROKEN_OFF)
            return replace(reply, detail=scrub(reply.detail, *self.persistence.keys))
        return reply

    def _seconds(self, left: float) -> float:
        """What one attempt may take: a server that says nothing must leave time for another attempt."""
        limits = self.persistence.limits
        alone = self.retries >= limits.http_retries
        return min(limits.model_timeout_s, left if alone else min(left, max(left / 2, LEAST_ATTEMPT_S)))

    def _ask_again(self, problem: Problem) -> ModelFailed | None:
        """Have the next attempt ask for another reply, in other words, if that is still allowed."""
        if self.re_asks >= self.persistence.limits.model_retries or self.requests >= self.request.requests_left:
            return self._failed(problem)
        self.re_asks += 1
        names = [one.name for one in self.request.declarations] if self.request.tools_allowed else []
        self.amendment = _amended(self.amendment, problem, hint_for(problem, names, self.re_asks))
        return None

    async def _retry(self, problem: Problem) -> ModelFailed | None:
        """Wait for the next attempt, which asks the same, if that is still allowed and the wait fits in."""
        if self.retries >= self.persistence.limits.http_retries:
            return self._failed(problem)
        wait = 0.0 if problem.adapted else problem.retry_after_s or self._wait()
        if wait >= min(self.left, LONGEST_TOLD_WAIT_S):
            detail = f"{problem.detail} (not waited for: {wait:g} s are more than is left)"
            return self._failed(replace(problem, detail=detail))
        self.retries += 1
        self.amendment = replace(self.amendment, adapted=self.amendment.adapted or problem.adapted)
        await self.persistence.clock.sleep(wait)
        return None

    def _wait(self) -> float:
        return min(FIRST_WAIT_S * 2.0**self.retries, LONGEST_WAIT_S) * self.persistence.rng.uniform(0.5, 1.0)

    # -- outcomes

    def _usable(self, reply: Usable) -> ModelAnswered | ToolsRequested:
        if reply.calls:
            return ToolsRequested(content=reply.content, unusable=reply.unusable, **self._spent())
        return ModelAnswered(content=reply.content, shown=reply.shown, **self._spent())

    def _failed(self, problem: Problem) -> ModelFailed:
        return ModelFailed(reason=problem.reason.value, detail=problem.incident().detail, **self._spent())

    def _spent(self) -> dict[str, Any]:
        return {
            "model": self.persistence.model,
            "requests": self.requests,
            "usage": self.usage,
            "incidents": tuple(self.incidents),
        }


def _allowed(reply: Reply, request: ModelRequest) -> Reply:
    """A call where tools were off is no reply: nobody would run it."""
    if isinstance(reply, Problem) or request.tools_allowed or not reply.calls:
        return reply
    names = ", ".join(part["functionCall"]["name"] for part in reply.content["parts"] if "functionCall" in part)
    return Problem(FailureReason.UNEXPECTED_CALL, "a call although tools were off", wanted=names, usage=reply.usage)


def _amended(amendment: Amendment, problem: Problem, hint: str) -> Amendment:
    if problem.reason is FailureReason.EMPTY and amendment.hint:
        # Words did not help. Gemini may say nothing, each time, to its own signatures (googleapis/js-genai#1769).
        return replace(amendment, hint=hint, adapted=True)
    if problem.reason is not FailureReason.CUT_OFF:
        return replace(amendment, hint=hint)
    return replace(amendment, hint=hint, cut_off=amendment.cut_off + 1, thought=problem.usage.thoughts > 0)
