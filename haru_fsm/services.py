"""What the work of a state may use: the model, the tools, the desk, and what is left of the run's limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from haru_fsm.approvals import NOBODY_ASKS, Approvals
from haru_fsm.clock import Clock
from haru_fsm.contents import History, with_outcomes
from haru_fsm.conversation import (
    JSON,
    ApprovalRequested,
    Awaited,
    Compaction,
    Conversation,
    ResultStatus,
    Ticket,
    ToolCall,
    ToolResult,
    ToolsExecuted,
    has_last_word,
)
from haru_fsm.errors import DeskUnavailable
from haru_fsm.execution import LEAST_S, Executor
from haru_fsm.foreign import in_words
from haru_fsm.ledger import Ledger
from haru_fsm.limits import Limits
from haru_fsm.models import Model, ModelRequest
from haru_fsm.notices import KOREAN, Notices
from haru_fsm.progress import Progress
from haru_fsm.stores import LedgerEntry
from haru_fsm.tickets import StoreDesk, ticket_key
from haru_fsm.toolbox import Toolbox
from haru_fsm.toolbox.cutting import size_of

DESK_ATTEMPTS = 3
DESK_PAUSE_S = 0.5


@dataclass(slots=True)
class Services:
    """Handed to the work of each state, for one run of one conversation."""

    model: Model
    tools: Toolbox
    ledger: Ledger
    desk: StoreDesk
    clock: Clock
    limits: Limits
    system_prompt: str = ""
    notices: Notices = KOREAN
    rehearsal: bool = False
    """A fork that must not act: effects are answered from `rehearsed` (its parent's ledger), or refused."""
    rehearsed: tuple[LedgerEntry, ...] = ()
    on_text: Callable[[str], None] | None = None
    gone: str = ""
    """Why there are no tools: what the app says of a customer whom it no longer knows."""
    _history: History = field(init=False)
    _progress: Progress = field(init=False, default_factory=Progress)
    _folded: int = field(init=False, default=0)
    _overhead: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._history = History(output_chars=self.limits.tool_output_chars)

    # -- what has happened

    def history(self, conversation: Conversation) -> History:
        """The contents of the conversation: what has happened, in the model's words."""
        self._catch_up(conversation)
        return self._history

    def progress(self, conversation: Conversation) -> Progress:
        """What the run has spent, and what is in doubt."""
        self._catch_up(conversation)
        return self._progress

    def _catch_up(self, conversation: Conversation) -> None:
        """Fold what is new since the last call, so that a step costs the same at any length."""
        for step in conversation.steps[self._folded :]:
            self._history = self._history.fold(step)
            self._progress = self._progress.fold(step)
        self._folded = len(conversation.steps)

    def request(
        self,
        conversation: Conversation,
        *,
        settled: dict[str, JSON] | None = None,
        compaction: Compaction | None = None,
        tools_allowed: bool = True,
    ) -> ModelRequest:
        """The next request to the model. `settled` are outcomes that have come to be known since the last one;
        `compaction` makes the history shorter for it. Tools are off where the run's last answer to a guard is the last
        word."""
        history = self.history(conversation)
        history = history if compaction is None else history.compacted(compaction)
        return ModelRequest(
            system=self.system_prompt,
            contents=with_outcomes(history, settled or {}).request(),
            declarations=self.tools.declarations,
            tools_allowed=tools_allowed and not has_last_word(conversation),
            requests_left=self.requests_left(conversation),
            timeout_s=self.left_s(conversation),
            on_text=self.on_text,
        )

    @property
    def overhead(self) -> int:
        """Bytes that go with every request beside the contents; measured once."""
        if self._overhead is None:
            declared = [[one.name, one.description, one.parameters] for one in self.tools.declarations]
            self._overhead = size_of([self.system_prompt, declared])
        return self._overhead

    async def late_outcomes(self, conversation: Conversation) -> dict[str, JSON]:
        """What has come to be known of calls whose result in the journal is `in_doubt`, and was not told yet."""
        doubtful = sorted(self.progress(conversation).doubts.calls)
        if not doubtful:
            return {}
        await self.ledger.refresh()
        entries = ((call, self.ledger.entries.get(call)) for call in doubtful)
        return {call: entry.outcome.response for call, entry in entries if entry is not None and entry.outcome}

    # -- what is left

    def requests_left(self, conversation: Conversation) -> int:
        """Model requests that the run may still make; at least one, for the guards have let it come here."""
        return max(1, self.limits.max_steps - self.progress(conversation).requests)

    def left_s(self, conversation: Conversation) -> float | None:
        """Seconds left of the run's deadline, or None."""
        if self.limits.deadline_s is None:
            return None
        return max(LEAST_S, self.limits.deadline_s - self.progress(conversation).took_ms / 1000)

    # -- acting

    async def run_calls(
        self, conversation: Conversation, seq: int, calls: tuple[ToolCall, ...]
    ) -> tuple[ToolResult, ...]:
        """Run the calls that step `seq` requested; one result for each, in their order.

        For tables without rows for approvals: a call that needs one is refused. Others use `deal_with_calls`.
        """
        dealt = await self._executor(conversation).execute(seq, calls)
        return tuple(_not_asked(each) if isinstance(each, Awaited) else each for each in dealt)

    async def deal_with_calls(
        self, conversation: Conversation, seq: int, calls: tuple[ToolCall, ...]
    ) -> ToolsExecuted | ApprovalRequested:
        """Run the calls that step `seq` requested, as far as they need no person who has not decided yet."""
        executor = self._executor(conversation)
        dealt = await executor.execute(seq, calls)
        waiting = tuple(each for each in dealt if isinstance(each, Awaited))
        results = tuple(each for each in dealt if isinstance(each, ToolResult))
        if not waiting:
            return ToolsExecuted(results=results)
        kept = [await executor.keep(f"{seq}.{result.position}", result) for result in results]
        return ApprovalRequested(waiting=waiting, results=tuple(kept))

    def _executor(self, conversation: Conversation) -> Executor:
        began = self.clock.monotonic()
        left = self.left_s(conversation)

        def left_s() -> float | None:
            return None if left is None else max(LEAST_S, left - (self.clock.monotonic() - began))

        return Executor(
            tools=self.tools,
            ledger=self.ledger,
            run=conversation.run,
            clock=self.clock,
            left_s=left_s,
            approvals=Approvals.of(conversation.conversation_id, conversation.steps, ttl_s=self.limits.approval_ttl_s),
            rehearsed=self.rehearsed if self.rehearsal else None,
        )

    def filed(self, conversation: Conversation, event: ToolsExecuted) -> Ticket | None:
        """The ticket that these calls have filed, or added to, where this run has not noted one yet."""
        ticket = self.desk.filed(ticket_key(conversation.conversation_id, conversation.run), event.results)
        if ticket is None:
            return None
        executed = (step.event for step in conversation.run_steps if isinstance(step.event, ToolsExecuted))
        return ticket if all(each.ticket is None for each in executed) else None

    def open_ticket(self, ticket: Ticket) -> Ticket | Awaitable[Ticket]:
        """File the ticket, or find the one that is open already.

        A desk elsewhere is asked again, under the same key, where it fails. Raises DeskUnavailable when it goes on.
        """
        opening = self.desk.open(ticket)
        return opening if isinstance(opening, Ticket) else self._file(ticket, opening)

    async def _file(self, ticket: Ticket, opening: Ticket | Awaitable[Ticket]) -> Ticket:
        attempt = 0
        while True:
            try:
                return opening if isinstance(opening, Ticket) else await opening
            except Exception as error:
                attempt += 1
                if attempt == DESK_ATTEMPTS:
                    raise DeskUnavailable(
                        f"Conversation {ticket.conversation_id}: the ticket desk did not take the ticket "
                        f"({type(error).__name__}: {in_words(error)}). "
                        "The run waits; `haru resume` tries again under the same key."
                    ) from error
                await self.clock.sleep(DESK_PAUSE_S * 2**attempt)
                opening = self.desk.open(ticket)


def _not_asked(call: Awaited) -> ToolResult:
    response = {"error": f"{call.tool} was not run. {NOBODY_ASKS}"}
    return ToolResult(position=call.position, status=ResultStatus.NOT_DONE, response=response, effect=True, ran=False)
