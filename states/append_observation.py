"""APPEND_OBSERVATION: what came of the calls becomes what the model reads next."""

from __future__ import annotations

from haru_fsm.conversation import Answer, Conversation, ObservationAppended, ToolsExecuted, ToolsRequested, Trip
from haru_fsm.services import Services

NUDGE = (
    "This call was not run. {because}, so running it again would bring nothing new. "
    "Try another way, ask the customer for what is missing, or give a simple answer from what you already know."
)
SIMPLIFY = (
    "This call was not run. {because}, so running it again would bring nothing new. "
    "Do not try another way: give a simple answer to the customer's question now, and say what is missing."
)
LAST_WORD = (
    "This call was not run, and no tool can be used any more. {because}. "
    "Answer the customer's question from what you already know, and say plainly what you could not find out."
)
REFUSALS = {Answer.NUDGE: NUDGE, Answer.SIMPLIFY: SIMPLIFY, Answer.LAST_WORD: LAST_WORD}
"""What the model reads in the place of a result, by the answer of the row that refused its calls."""


def append_observation(conversation: Conversation, services: Services) -> ObservationAppended:
    """Touches nothing outside. Calls that a guard stopped get a refusal that says why; the others have results."""
    step = next(step for step in reversed(conversation.steps) if isinstance(step.event, ToolsRequested | ToolsExecuted))
    if step.answer in REFUSALS and step.trip is not None and isinstance(step.event, ToolsRequested):
        why = refusal(step.trip, step.answer)
        return ObservationAppended(refusals={call.position: why for call in step.event.calls})
    return ObservationAppended()


def refusal(trip: Trip, answer: Answer) -> str:
    """Why a call was not run, for the model."""
    return REFUSALS[answer].format(because=trip.because[:1].upper() + trip.because[1:])
