"""A stored conversation once more, from its journal, under the app as it is now. Nothing is asked, run or written.

What came from outside or acted on the world is taken from the journal: messages, what the model said, what tools gave.
All that is decided is decided anew: which row fires, which guard trips, what is refused and with which words, what a
ticket says; whether the tools that were called are still there and still take these arguments; and whether what the
model would read is a history that the API accepts. The first thing that comes out otherwise is the difference. After it
the journal says nothing any more: a model that reads something else, or is asked once more, says something else.

So after a change of the table, of a limit or of a guard it shows which conversations of last week would have taken
another way, and where, at no cost. Limits that only the world feels (time-outs, retries) show nothing, for their
outcomes are the journal's; how long things took is the journal's too, so that a deadline trips where it would have.
What exactly the model was sent is not in the journal: a cassette holds that (`--save` makes one).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace

from haru_fsm.app import App
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import (
    OUTSIDE,
    Conversation,
    Event,
    Frozen,
    HistoryAdopted,
    MessageHeld,
    ModelAnswered,
    ModelEvent,
    ModelFailed,
    ResultsEvent,
    ResultStatus,
    Resumed,
    Step,
    Ticket,
    TicketClosed,
    TicketOpened,
    ToolCall,
    ToolResult,
    ToolsRequested,
    last_request,
)
from haru_fsm.definition import carried
from haru_fsm.differences import Difference, Otherwise, compare, way
from haru_fsm.equipping import tools_for
from haru_fsm.errors import NoTransition
from haru_fsm.exchanged import exchanged
from haru_fsm.ledger import Ledger
from haru_fsm.machine import CHANGED
from haru_fsm.models import ModelOutcome, ModelRequest
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.resuming import taken_up
from haru_fsm.services import Services
from haru_fsm.stores import Record
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.testing.strict import check_contents
from haru_fsm.tickets import StoreDesk
from haru_fsm.toolbox import Refused

Listener = Callable[[ModelRequest, ModelOutcome], None]


class Replay(Frozen):
    """What came of it: how many of the steps are the same, and the first that is not."""

    conversation_id: str
    identical: bool
    steps: int
    same: int
    difference: Difference | None = None
    definition_changed: bool = False
    """Rows, kinds of guards or tools are not those under which the last run was worked on."""


def replay(app: App, record: Record, listen: Listener | None = None) -> Replay:
    """Run a stored conversation again. `listen` is told each request as it would be made now, and its outcome; where
    one event has several requests behind it (`exchanged.py`), each of them.

    Raises UnknownCustomer where the app no longer knows the customer, ToolError where its tools cannot be declared.
    """
    again = _Again(app, record, listen)
    same = 0
    difference: Difference | None = None
    for step in again.journal.steps:
        if (difference := again.step(step)) is not None:
            break
        same += 1
    return Replay(
        conversation_id=record.summary.conversation_id,
        identical=difference is None,
        steps=len(record.steps),
        same=same,
        difference=difference,
        definition_changed=again.definition_changed,
    )


class _Desk(StoreDesk):
    """Gives the ticket the number that the journal says; where it was open already, that ticket."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.journaled: TicketOpened | None = None

    def open(self, ticket: Ticket) -> Ticket:
        if self.journaled is None:
            return ticket
        filed = self.journaled.ticket
        if self.journaled.added:
            return filed
        return ticket.model_copy(update={"ticket_id": filed.ticket_id, "created_at": filed.created_at})


class _Again:
    """The conversation so far, as it goes now. Up to here it is the journal's."""

    def __init__(self, app: App, record: Record, listen: Listener | None) -> None:
        self._app = app
        self._listen = listen
        self._store = MemoryStore()
        self._desk = _Desk(self._store)
        self._clock = FakeClock()
        self._services: Services | None = None
        self._run = 0
        summary = record.summary
        self._conversation = app.workflow.begin(
            summary.conversation_id, summary.customer_id, parent=summary.parent, rehearsal=summary.rehearsal
        )
        self.journal = app.workflow.replay(self._conversation, record.steps)

    @property
    def definition_changed(self) -> bool:
        """The last run was worked on under rows, guards or tools that are not these."""
        return carried(self.journal) not in ("", self._app.definition(self._served().tools))

    def step(self, was: Step) -> Difference | None:
        """Go one step further; the difference, if there is one."""
        self._clock.advance(was.event.at - self._clock.now())
        try:
            event = self._event(was)
            stamped = event.model_copy(update={"at": was.event.at, "took_ms": was.event.took_ms})
            self._conversation = self._advanced(stamped, was)
            compare(was, self._conversation.steps[-1])
        except Otherwise as found:
            return Difference(seq=was.seq, kind=was.event.kind, what=found.what, was=found.was, now=found.now)
        return None

    def _advanced(self, event: Event, was: Step) -> Conversation:
        workflow, conversation = self._app.workflow, self._conversation
        try:
            if isinstance(event, HistoryAdopted):
                return workflow.adopt(conversation, event)
            said = isinstance(event, TicketClosed) and not workflow.accepts(conversation.state, TicketClosed)
            if said or isinstance(event, MessageHeld):
                return workflow.hold(conversation, event)
            if was.trip is not None and was.trip.guard == CHANGED:
                # That an app was changed while the run was open is a fact like a crash: it came from outside.
                return workflow.strand(conversation, event, CHANGED, was.trip.because)
            if isinstance(event, Resumed):
                return taken_up(workflow, conversation, event, max_resumes=self._app.limits.max_resumes)
            return workflow.advance(conversation, event)
        except NoTransition as error:
            raise Otherwise("way", way(was), str(error)) from error

    # -- what happens

    def _event(self, was: Step) -> Event:
        """What happens next: from the journal where it came from outside or acted on the world, else made anew."""
        workflow, state, event = self._app.workflow, self._conversation.state, was.event
        if type(event) in OUTSIDE or isinstance(event, Resumed):
            return event
        if type(event) not in workflow.gives.get(state, ()):
            raise Otherwise("way", event.kind, f"the work of the state {state} does not give this event")
        made = self._made(was)
        if made is not None:
            return made
        if isinstance(event, ModelAnswered | ToolsRequested | ModelFailed):
            self._asked(event)
        if isinstance(event, ResultsEvent):
            self._ran(event)
        return event

    def _made(self, was: Step) -> Event | None:
        """The event that the state's work gives at once; None where it acts on the world, which it is kept from."""
        self._desk.journaled = was.event if isinstance(was.event, TicketOpened) else None
        conversation, services = self._as_it_was(was)
        try:
            made = self._app.workflow.work[conversation.state](conversation, services)
        except Exception as error:
            raise Otherwise("event", was.event.kind, f"the work raises {error!r}") from error
        if inspect.iscoroutine(made):
            made.close()
        return made if isinstance(made, Event) else None

    def _as_it_was(self, was: Step) -> tuple[Conversation, Services]:
        """The first steps of a fork are its parent's: a ticket that was opened there has the parent's name on it."""
        conversation, services = self._conversation, self._served()
        ticket = was.event.ticket if isinstance(was.event, TicketOpened) else None
        if ticket is not None and ticket.conversation_id != conversation.conversation_id:
            conversation = replace(conversation, conversation_id=ticket.conversation_id, rehearsal=ticket.rehearsal)
            services = replace(services, rehearsal=ticket.rehearsal)
        return conversation, services

    def _asked(self, event: ModelAnswered | ToolsRequested | ModelFailed) -> None:
        request = self._request(event)
        violations = list(check_contents(list(request.contents)))
        if violations:
            raise Otherwise("contents", "a history that was sent", "; ".join(violations))
        if self._listen is not None:
            for request, outcome in exchanged(self._conversation, self._served(), event):
                self._listen(request, outcome)

    def _request(self, event: ModelEvent) -> ModelRequest:
        return self._served().request(self._conversation, settled=event.settled, compaction=event.compaction)

    def _ran(self, event: ResultsEvent) -> None:
        _, request = last_request(self._conversation)
        for result in event.results:
            call = request.calls[result.position]
            was, now = _dealt_with(result), self._would_deal_with(call)
            if was != now:
                raise Otherwise("tool", f"{call.name} {was}", f"{call.name} {now}")

    def _would_deal_with(self, call: ToolCall) -> str:
        tool = self._served().tools.find(call.name)
        if tool is None or isinstance(tool.prepare(call.args, call.unusable), Refused):
            return "was refused"
        return "may act on the world" if tool.has_effect else "only reads"

    def _served(self) -> Services:
        conversation = self._conversation
        if self._services is None or conversation.run != self._run:
            self._run = conversation.run
            self._services = Services(
                model=ScriptedModel([]),
                tools=tools_for(self._app, conversation, conversation.run, desk=self._desk, clock=self._clock),
                ledger=Ledger(self._store, conversation.conversation_id, {}),
                desk=self._desk,
                clock=self._clock,
                limits=self._app.limits,
                system_prompt=self._app.system_prompt,
                notices=self._app.notices,
                rehearsal=conversation.rehearsal,
            )
        return self._services


def _dealt_with(result: ToolResult) -> str:
    if result.status is ResultStatus.FAILED and not result.ran:
        return "was refused"
    return "may act on the world" if result.effect else "only reads"
