"""Several models in a row: the next one is asked where one has failed.

Only after a failure with a type, never after an answer that somebody might like less, and never when the run's time is
over: then nobody else would have any either. The event's `model` says which one spoke.
"""

from __future__ import annotations

from collections.abc import Sequence

from haru_fsm.clock import Clock, SystemClock
from haru_fsm.conversation import FailureReason, ModelFailed
from haru_fsm.errors import ModelError
from haru_fsm.models import Model, ModelOutcome, ModelRequest
from haru_fsm.models.relay import Relay, close_all, spent

_ACTED_UPON = (FailureReason.PROMPT_BLOCKED, FailureReason.TOO_LARGE)
"""Reasons after which later requests differ. Where all have failed they are told, whoever came upon them."""


class FallbackModel:
    """The first of these models that does not fail. `clock` measures what each leaves of the time to the next.

    Each model insists by itself (re-asks, retries) before it counts as failed: so this is slower than one model and
    never less available. Raises ModelError for an empty list.
    """

    def __init__(self, models: Sequence[Model], *, clock: Clock | None = None) -> None:
        if not models:
            raise ModelError("FallbackModel needs at least one model.")
        self._models = tuple(models)
        self._clock = clock or SystemClock()

    @property
    def name(self) -> str:
        """The names of all, the first choice first."""
        return " > ".join(model.name for model in self._models)

    async def respond(self, request: ModelRequest) -> ModelOutcome:
        """The first outcome that is no failure, or one failure that tells of all."""
        relay, failed = Relay(request, self._clock), list[ModelFailed]()
        for model in self._models:
            if failed and relay.left_s is not None and relay.left_s <= 0:
                break
            outcome = await relay.ask(model)
            if not isinstance(outcome, ModelFailed):
                return spent(outcome, before=failed)
            failed.append(outcome)
            if outcome.reason == FailureReason.DEADLINE:
                break
        return _all_failed(failed)

    async def aclose(self) -> None:
        """Close all models."""
        await close_all(self._models)


def _all_failed(failed: Sequence[ModelFailed]) -> ModelOutcome:
    told = next((each for reason in _ACTED_UPON for each in failed if each.reason == reason), failed[-1])
    detail = failed[0].detail if len(failed) == 1 else "; ".join(f"{each.model}: {each.detail}" for each in failed)
    return spent(failed[-1], before=failed[:-1]).model_copy(
        update={"reason": told.reason, "model": told.model, "detail": detail}
    )
