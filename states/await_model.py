"""AWAIT_MODEL: the model has the word."""

from __future__ import annotations

from haru_fsm.conversation import Conversation, ModelAnswered, ModelFailed, ToolsRequested
from haru_fsm.services import Services


async def await_model(conversation: Conversation, services: Services) -> ModelAnswered | ToolsRequested | ModelFailed:
    """Send the whole history; what comes back is an answer, a wish for tools, or a failure with a reason."""
    settled = await services.late_outcomes(conversation)
    event = await services.model.respond(services.request(conversation, settled=settled))
    return event.model_copy(update={"settled": settled}) if settled else event
