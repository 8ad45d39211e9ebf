"""Several models in a row stay within what the certificate says of them, whatever each of them meets."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm import Limits
from haru_fsm.certificate import Costs, certify
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import FailureReason, Usage
from haru_fsm.models import ModelOutcome, ModelRequest
from haru_fsm.models.fallback import FallbackModel
from haru_fsm.models.faults import read_exception
from haru_fsm.models.replies import Problem, Reply, Usable
from haru_fsm.models.retrying import Attempt, Persistence
from haru_fsm.models.two_tier import TwoTierModel
from tests.engine.shopless import engine

ANSWER = Usable({"role": "model", "parts": [{"text": "배송중입니다."}]}, usage=Usage(prompt=9, answer=1))
SPENT = Usage(prompt=10)
REPLIES: tuple[Reply, ...] = (
    ANSWER,
    *(
        Usable({"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"what": what}}}]}, 1, usage=SPENT)
        for what in "ABC"
    ),
    Problem(FailureReason.SERVER, usage=SPENT),
    Problem(FailureReason.SERVER, usage=SPENT),
    Problem(FailureReason.EMPTY, usage=SPENT),
    Problem(FailureReason.EMPTY, usage=SPENT),
    Problem(FailureReason.WRONG_KEY, usage=SPENT),
)


class Insisting:
    """A model that insists as all do, on a wire that gives these replies, and SERVER errors after them."""

    def __init__(self, name: str, wire: Iterator[Reply], limits: Limits, clock: FakeClock) -> None:
        self.name = name
        self.attempts = 0
        self._wire = wire
        self._persistence = Persistence(
            model=name, limits=limits, clock=clock, translate=read_exception, rng=random.Random(1)
        )

    async def respond(self, request: ModelRequest) -> ModelOutcome:
        return await self._persistence.ask(request, self._attempt)

    async def _attempt(self, _attempt: Attempt) -> Reply:
        self.attempts += 1
        return next(self._wire, REPLIES[4])


@given(
    wire=st.lists(st.sampled_from(REPLIES), max_size=40),
    chosen=st.fixed_dictionaries(
        {"max_steps": st.integers(1, 5), "model_retries": st.integers(0, 2), "http_retries": st.integers(0, 2)}
    ),
)
@settings(max_examples=150, deadline=None)
def test_no_run_makes_more_requests_than_are_certified_and_all_are_counted(
    wire: list[Reply], chosen: dict[str, Any]
) -> None:
    async def run() -> None:
        limits, clock, replies = Limits(**chosen), FakeClock(), iter(wire)
        models = [Insisting(name, replies, limits, clock) for name in ("first", "second", "strong")]
        model = TwoTierModel(FallbackModel(models[:2], clock=clock), models[2], clock=clock)
        async with engine(model, clock=clock, **chosen) as haru:
            done = await haru.ask("어디쯤?", customer_id="C1")
            costs = replace(Costs.of(haru.app.limits), models=len(models))
            certificate = certify(haru.app.workflow, costs=costs)
        attempts = sum(one.attempts for one in models)
        assert certificate.http_requests.value is not None
        assert done.steps == attempts <= certificate.http_requests.value
        assert done.usage.total == 10 * attempts

    asyncio.run(run())
