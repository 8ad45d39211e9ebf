"""EXECUTE_TOOLS: our code runs what the model asked for."""

from __future__ import annotations

from haru_fsm.conversation import Conversation, ToolsExecuted, last_request
from haru_fsm.services import Services


async def execute_tools(conversation: Conversation, services: Services) -> ToolsExecuted:
    """Run every call of the last reply; an unknown tool and a raised exception are results like any other."""
    seq, request = last_request(conversation)
    return ToolsExecuted(results=await services.run_calls(conversation, seq, request.calls))
