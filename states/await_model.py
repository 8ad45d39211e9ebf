"""AWAIT_MODEL: the model has the word."""

from __future__ import annotations

from haru_fsm.asking import ask_model
from haru_fsm.conversation import Conversation, ModelAnswered, ModelFailed, ToolsRequested
from haru_fsm.services import Services


async def await_model(conversation: Conversation, services: Services) -> ModelAnswered | ToolsRequested | ModelFailed:
    """Send the history, compacted where it has grown too long; what comes back is an answer, a wish for tools, or a
    failure with a reason."""
    return await ask_model(conversation, services)
