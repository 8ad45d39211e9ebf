"""APPEND_OBSERVATION: what came of the calls becomes what the model reads next."""

from __future__ import annotations

from haru_fsm.conversation import Answer, Conversation, ObservationAppended, ToolsExecuted, ToolsRequested, Trip
from haru_fsm.services import Services

NUDGE = (
    "This call was not run. {because}, so running it again would bring nothing new. "
    "Try another way, ask the customer for what is missing, or give a simple answer from what you already know."
)


def append_observation(conversation: Conversation, services: Services) -> ObservationAppended:
    """Touches nothing outside. Calls that a guard stopped get a refusal that says why; the others have results."""
    step = next(step for step in reversed(conversation.steps) if isinstance(step.event, ToolsRequested | ToolsExecuted))
    if step.answer is Answer.NUDGE and step.trip is not None and isinstance(step.event, ToolsRequested):
        return ObservationAppended(refusals={call.position: refusal(step.trip) for call in step.event.calls})
    return ObservationAppended()


def refusal(trip: Trip) -> str:
    """Why a call was not run, for the model."""
    return NUDGE.format(because=trip.because[:1].upper() + trip.because[1:])
