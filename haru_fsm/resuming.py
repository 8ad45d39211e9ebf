"""A run that its process has left unfinished is taken up again: what the table says of that, else what holds anyway.

A table may have rows for `resumed`, with a ResumeBudget. Where it has none, the run goes on in the state in which it
was; but a run that keeps killing its process must end there, too, and so it goes to a person after `max_resumes`.
"""

from __future__ import annotations

from haru_fsm.conversation import Conversation, Resumed
from haru_fsm.machine import RESUMED_TOO_OFTEN, Workflow


def taken_up(workflow: Workflow, conversation: Conversation, event: Resumed, *, max_resumes: int) -> Conversation:
    """The conversation with this resumption in its journal."""
    if workflow.accepts(conversation.state, Resumed):
        return workflow.advance(conversation, event)
    if _too_often(workflow, conversation, max_resumes):
        because = f"the run was taken up again {max_resumes} times"
        return workflow.strand(conversation, event, RESUMED_TOO_OFTEN, because)
    return workflow.stay(conversation, event)


def _too_often(workflow: Workflow, conversation: Conversation, max_resumes: int) -> bool:
    """Whether the run was resumed as often as it may be, and can go to a person, and is not on its way there."""
    resumes = sum(isinstance(step.event, Resumed) for step in conversation.run_steps)
    can_go = bool(workflow.opens_tickets) and conversation.state not in workflow.opens_tickets
    return resumes >= max_resumes and can_go
