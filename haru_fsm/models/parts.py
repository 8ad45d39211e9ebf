"""The parts of a reply, in the form in which the journal keeps them, and what they come to. For every wire format:
its reader puts parts together, and what makes an answer of them is the same for all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from haru_fsm.conversation import JSON, FailureReason, Usage
from haru_fsm.models.leaks import without_thoughts
from haru_fsm.models.repeating import is_repeating
from haru_fsm.models.replies import Problem, Reply, Usable, said
from haru_fsm.models.spoken_calls import is_spoken_call
from haru_fsm.models.turn_marks import without_made_up_turns
from haru_fsm.visible import is_blank


@dataclass(slots=True)
class Parts:
    """A content's parts as they may be replayed, what could not be read of its calls, and what forbids its use."""

    parts: list[JSON] = field(default_factory=list)
    unusable: dict[int, str] = field(default_factory=dict)
    reason: FailureReason | None = None
    detail: str = ""

    @property
    def calls(self) -> list[JSON]:
        """The function calls, in order."""
        return [part["functionCall"] for part in self.parts if "functionCall" in part]

    @property
    def texts(self) -> list[str]:
        """The texts that are no thoughts, one a part."""
        return [part["text"] for part in self.parts if part.get("text") and not part.get("thought")]

    @property
    def wanted(self) -> str | None:
        """The tools that the calls are for, as far as they are named; None where none is."""
        named = [call["name"] for call in self.calls if isinstance(call.get("name"), str)]
        return said(", ".join(named)) if named else None

    def stopped(self, reason: FailureReason) -> FailureReason:
        """Why a reply is of no use that ended for this reason: one that repeats itself has not too little room."""
        cut = reason is FailureReason.CUT_OFF
        return FailureReason.REPEATING if cut and is_repeating("".join(self.texts)) else reason

    def refuse(self, reason: FailureReason, detail: str) -> None:
        """The reply cannot be used; the first reason counts."""
        if self.reason is None:
            self.reason, self.detail = reason, detail


def meaning(found: Parts, finish: str | None, usage: Usage) -> Reply:
    """What the parts of a complete reply come to: calls, an answer, or neither."""
    found.parts = without_made_up_turns(found.parts)
    content: JSON = {"role": "model", "parts": found.parts}
    shown = without_thoughts(found.texts)
    if found.calls:
        return Usable(content, len(found.calls), found.unusable, shown, usage)
    text = "".join(found.texts)
    if is_spoken_call(text):
        return Problem(FailureReason.MALFORMED_CALL, said("a call written as text", text), finish, usage=usage)
    if is_blank(text if shown is None else shown):
        detail = "an empty reply" if not found.parts else "a reply without an answer in it: only thoughts, or no text"
        return Problem(FailureReason.EMPTY, detail, finish, usage=usage)
    return Usable(content, shown=shown, usage=usage)


def mend_id(call: JSON) -> None:
    """An id is a string, or there is none: the response has to repeat it exactly."""
    if "id" in call:
        call["id"] = str(call["id"])
        if not call["id"]:
            del call["id"]


def kind_of(args: object) -> str:
    """What a call's arguments came as, where they are no object."""
    match args:
        case list():
            return "a list"
        case str():
            return "a string"
        case bool():
            return "true or false"
        case _:
            return "a number"
