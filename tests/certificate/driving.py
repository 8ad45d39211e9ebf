"""Making real what the certificate says can happen: arcs, driven through `Workflow.advance` one event at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from itertools import chain, cycle, islice

from haru_fsm.certificate.arcs import Arc
from haru_fsm.certificate.loops import Loop
from haru_fsm.conversation import Conversation
from haru_fsm.machine import Workflow

from .tables import scripted


def drive(workflow: Workflow, arcs: Iterable[Arc]) -> Conversation:
    """The conversation in which all this has happened. Fails where the table goes elsewhere."""
    conversation = workflow.begin("c1", "C003")
    for number, arc in enumerate(arcs):
        if not number:
            # A run may begin wherever a conversation can rest; how it has come there is no part of the path.
            conversation = dataclasses.replace(conversation, state=arc.source.state)
        conversation = workflow.advance(conversation, scripted(arc.event, arc.source.state, arc.verdicts))
        assert (conversation.state, conversation.resting) == tuple(arc.target), f"row {arc.row} did not fire"
    return conversation


def round_and_round(workflow: Workflow, loop: Loop, steps: int) -> None:
    """Go to the loop and through it again and again, for so many steps."""
    conversation = drive(workflow, islice(chain(loop.path, cycle(loop.loop)), steps))
    assert conversation.seq == steps
