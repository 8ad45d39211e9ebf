"""EXECUTE_TOOLS: our code runs what the model asked for."""

from __future__ import annotations

from haru_fsm.conversation import ApprovalRequested, Conversation, ToolsExecuted, last_request
from haru_fsm.services import Services


async def execute_tools(conversation: Conversation, services: Services) -> ToolsExecuted | ApprovalRequested:
    """Run every call of the last reply; an unknown tool and a raised exception are results like any other.

    A call that needs a person's approval waits for it, and no other call waits with it.
    """
    seq, request = last_request(conversation)
    return await services.deal_with_calls(conversation, seq, request.calls)
