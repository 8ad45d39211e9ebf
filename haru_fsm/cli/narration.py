"""A run told line by line, as it happens.

    [step 1] Action: get_my_orders({})
    [step 2] Action: get_order_status({'order_id': 'HR20260725002'})
    [step 3] 최종 답변

The number is that of the run's model requests so far. What went as it should is not worth a line; what was refused,
repaired, repeated or lost is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from haru_fsm.cli.output import printable, results
from haru_fsm.conversation import (
    Answer,
    ApprovalDecided,
    ApprovalRequested,
    MessageHeld,
    MessageReceived,
    ModelAnswered,
    ModelEvent,
    ModelFailed,
    ResultStatus,
    Resumed,
    Step,
    TicketClosed,
    TicketOpened,
    ToolCall,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
    Trip,
)
from haru_fsm.runs import Piece

if TYPE_CHECKING:
    from rich.live import Live

FINAL_ANSWER = "최종 답변"
VERBS = {
    ResultStatus.FAILED: "Failed",
    ResultStatus.NOT_DONE: "Not done",
    ResultStatus.IN_DOUBT: "In doubt",
}
ANSWERED = {
    Answer.NUDGE: "Nudged",
    Answer.SIMPLIFY: "Asked for a simple answer",
    Answer.LAST_WORD: "Last word",
    Answer.ESCALATE: "Stopped",
    None: "Stopped",
}


class Narration:
    """The lines of one conversation's steps. `earlier` are steps that were told before, or never will be."""

    def __init__(self, earlier: Iterable[Step] = ()) -> None:
        self._requests = 0
        self._calls: tuple[ToolCall, ...] = ()
        for step in earlier:
            self._count(step)

    def lines(self, step: Step) -> Iterator[str]:
        """What there is to say about this step."""
        self._count(step)
        for line in _told(step, self._calls):
            yield f"[step {self._requests}] {line}"

    def _count(self, step: Step) -> None:
        match step.event:
            case MessageReceived():
                self._requests = 0
            case ModelEvent(requests=requests):
                self._requests += max(1, requests)
        if isinstance(step.event, ToolsRequested):
            self._calls = step.event.calls


def _told(step: Step, calls: tuple[ToolCall, ...]) -> Iterator[str]:
    match step.event:
        case ToolsRequested():
            verb = "Action" if step.trip is None else "Not run"
            yield from (f"{verb}: {as_code(call)}" for call in calls)
        case ToolsExecuted(results=results):
            for result in results:
                yield from _noteworthy(calls[result.position], result)
        case ApprovalRequested(waiting=waiting) if step.rests:
            yield from (f"Waits for approval: {each.tool}({each.args!r}) [call {each.call}]" for each in waiting)
        case ApprovalDecided() as decided:
            yield decision_line(decided)
        case MessageHeld():
            yield "Kept for the next run: a message that came in the pause"
        case ModelAnswered() if step.rests:
            yield FINAL_ANSWER
        case ModelFailed(reason=reason, detail=detail):
            yield f"Model failed: {reason}{f': {detail}' if detail else ''}"
        case Resumed(worker=worker, definition=definition, begun=begun):
            yield f"Resumed by {worker}"
            yield from resumed_under(definition, begun)
        case TicketOpened(ticket=ticket, added=added):
            yield f"Ticket: {'added to ' if added else ''}{ticket.ticket_id}"
        case TicketClosed(ticket_id=ticket_id):
            yield f"Ticket closed: {ticket_id}"
    if step.trip is not None:
        yield trip_line(step.trip, step.answer)


def resumed_under(definition: str, begun: tuple[str, ...]) -> Iterator[str]:
    """What a resume found: an app that was changed, and calls of which nobody knows how they ended."""
    if definition:
        yield f"The app was changed while the run was open; it goes on under definition {definition}"
    if begun:
        yield f"Begun, and not known how it ended: {', '.join(begun)}"


def decision_line(decided: ApprovalDecided) -> str:
    """What was decided about a call, by whom and why."""
    verb = "Approved" if decided.approved else "Denied, for its time was up" if decided.expired else "Denied"
    who = f" by {decided.by}" if decided.by else ""
    return f"{verb}: call {decided.call}{who}{f': {decided.reason}' if decided.reason else ''}"


def as_code(call: ToolCall) -> str:
    """A call as a line of Python."""
    return f"{call.name}({call.args!r})" if call.unusable is None else f"{call.name}(unreadable: {call.unusable})"


def trip_line(trip: Trip, answer: Answer | None) -> str:
    """Which guard tripped and why, and what became of it."""
    return f"{ANSWERED[answer]}: {trip.because} [{trip.guard}]"


def _noteworthy(call: ToolCall, result: ToolResult) -> Iterator[str]:
    for repair in result.repairs:
        yield f"Repaired: {call.name}: {repair}"
    if result.repeated:
        yield f"Repeated: {as_code(call)} was answered from the ledger"
    elif result.status in VERBS:
        yield f"{VERBS[result.status]}: {as_code(call)}: {result.response.get('error', result.response.get('result'))}"


class Narrator:
    """Watches a run and says its lines. On a terminal the answer also shows while it is being written."""

    def __init__(self, say: Callable[[str], None], earlier: Iterable[Step] = ()) -> None:
        self._say = say
        self._narration = Narration(earlier)
        self._draft = Draft() if results().isatty() and sys.stderr.isatty() else None

    def __call__(self, item: Step | Piece) -> None:
        if isinstance(item, Piece):
            if self._draft is not None:
                self._draft.write(item.text)
            return
        self.clear()
        for line in self._narration.lines(item):
            self._say(line)

    def clear(self) -> None:
        """Take away what is only a draft."""
        if self._draft is not None:
            self._draft.clear()


class Draft:
    """Text that a model is still writing. It goes away again: a guard, a re-ask or a lost stream may yet refuse it,
    and only what the journal holds is an answer."""

    def __init__(self) -> None:
        self._text = ""
        self._live: Live | None = None

    def write(self, piece: str) -> None:
        """Show another piece."""
        from rich.text import Text

        self._text += printable(piece)
        self._shown().update(Text(self._text, style="dim"), refresh=True)

    def clear(self) -> None:
        """Take it away."""
        if self._live is not None:
            self._live.stop()
        self._text, self._live = "", None

    def _shown(self) -> Live:
        from rich.console import Console
        from rich.live import Live

        if self._live is None:
            screen = Console(stderr=True)
            self._live = Live(console=screen, transient=True, auto_refresh=False, redirect_stdout=False)
            self._live.start()
        return self._live
