"""Running the calls of one reply: read-only ones side by side, effects one after another, the ledger in between.

The order asked for is kept where it matters: an effect waits for the reads before it, and what comes after waits for
the effect. One call that raises, hangs or is cancelled never loses the results of its siblings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from haru_fsm import toolbox
from haru_fsm.approvals import DENIED_NOTE, Approvals, Asked
from haru_fsm.clock import Clock
from haru_fsm.conversation import JSON, Awaited, ResultStatus, ToolCall, ToolResult
from haru_fsm.effects import Decision, decide, digest_of, same_effect
from haru_fsm.ledger import Ledger
from haru_fsm.stores import LedgerEntry, Outcome, Started

IN_DOUBT_NOTE = "Do not call it again and do not claim that it worked or failed: a person will look into it."
LEAST_S = 0.001
"""Seconds in which nothing can be done any more."""
REPEATED_NOTE = (
    "Not run again: the same call was already made while answering this message, and this is what came of it. "
    "Use it, or answer."
)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call with everything that has been found out about it before it runs."""

    asked: ToolCall
    key: str
    tool: toolbox.Tool | None
    prepared: toolbox.Prepared | toolbox.Refused

    @property
    def has_effect(self) -> bool:
        return self.tool is not None and self.tool.has_effect and isinstance(self.prepared, toolbox.Prepared)


@dataclass(frozen=True, slots=True)
class Executor:
    """Runs calls for one run of one conversation. `left_s` tells what is left of the run's deadline in seconds, at
    least LEAST_S."""

    tools: toolbox.Toolbox
    ledger: Ledger
    run: int
    clock: Clock
    left_s: Callable[[], float | None]
    approvals: Approvals
    rehearsed: Sequence[LedgerEntry] | None = None
    """In a rehearsal: what the parent's ledger knows. None: effects take place."""

    async def execute(self, seq: int, calls: Sequence[ToolCall]) -> tuple[ToolResult | Awaited, ...]:
        """One result per call, in the order of the calls, or what a person is to be asked before it may run.

        `seq` is the number of the step that requested them. What one reply asks for at once does not depend on one
        another, so a call that waits for a person holds up none of the others.
        """
        results: dict[int, ToolResult | Awaited] = {result.position: result for result in self.approvals.results}
        prepared = [self._prepare(seq, call) for call in calls if call.position not in results]
        for has_effect, group in groupby(prepared, lambda call: call.has_effect):
            if has_effect:
                for call in group:
                    results[call.asked.position] = await self._effect(call)
            else:
                results |= {result.position: result for result in await self._side_by_side(list(group))}
        return tuple(results[call.position] for call in calls)

    def _prepare(self, seq: int, call: ToolCall) -> _Call:
        key = f"{seq}.{call.position}"
        tool = self.tools.find(call.name)
        if tool is None:
            return _Call(call, key, None, toolbox.Refused(self.tools.unknown(call.name)))
        return _Call(call, key, tool, tool.prepare(call.args, call.unusable))

    # -- reads

    async def _side_by_side(self, calls: list[_Call]) -> list[ToolResult]:
        if len(calls) == 1:
            return [await self._read(calls[0])]
        tasks = [asyncio.create_task(self._read(call)) for call in calls]
        waiting = dict(zip(tasks, calls, strict=True))
        keeping: list[asyncio.Task[ToolResult]] = []
        last: list[ToolResult] = []
        try:
            while waiting:
                done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                finished = [(waiting.pop(task), task.result()) for task in tasks if task in done]
                if waiting:
                    # While others still run, what is known is written down: after a crash only they run again.
                    # Nobody waits for it here, so what has come together is committed together.
                    keeping += [asyncio.create_task(self._keep(call, result)) for call, result in finished]
                else:
                    last = [result for _, result in finished]
            return [*await asyncio.gather(*keeping), *last]
        finally:
            for task in (*waiting, *keeping):
                task.cancel()

    async def _keep(self, call: _Call, result: ToolResult) -> ToolResult:
        return await self.keep(call.key, result)

    async def keep(self, call: str, result: ToolResult) -> ToolResult:
        """Write down what a call without an effect brought, where more is to come of its reply."""
        if result.status is not ResultStatus.DONE or result.noted or result.effect:
            return result
        outcome = Outcome(status=result.status, response=result.response, took_ms=result.took_ms, at=self.clock.now())
        await self.ledger.settle(call, outcome)
        return _changed(result, noted=True)

    async def _read(self, call: _Call) -> ToolResult:
        entry = self.ledger.entries.get(call.key)
        if entry is not None and entry.outcome is not None:
            return self._from_ledger(call, entry.outcome)
        if call.tool is None or isinstance(call.prepared, toolbox.Refused):
            return _refused(call)
        if (over := self._time_is_over(call)) is not None:
            return over
        outcome = await self._run(call.tool, call.prepared, call.key, None)
        status = ResultStatus.DONE if outcome.kind == "returned" else ResultStatus.FAILED
        return self._result(call, status, outcome.response, outcome.took_ms)

    # -- effects

    async def _effect(self, call: _Call) -> ToolResult | Awaited:
        assert call.tool is not None
        assert isinstance(call.prepared, toolbox.Prepared)
        digest = digest_of(call.prepared.canonical)
        if self.rehearsed is not None:
            return self._rehearse(call, digest, self.rehearsed)
        if call.key not in self.ledger.entries:
            # Not begun before a crash: then, and only then, another call or a person may stand in its way.
            stopped = (
                self._repeated(call, digest)
                or self._held_up(call, call.tool, call.prepared)
                or self._time_is_over(call)
            )
            if stopped is not None:
                return stopped
        decision = decide(self.ledger.entries.get(call.key), accepts_key=call.tool.accepts_key)
        if decision is Decision.RUN:
            decision = await self._claim(call, digest)
        match decision:
            case Decision.USE:
                outcome = self.ledger.entries[call.key].outcome
                assert outcome is not None
                return self._from_ledger(call, outcome)
            case Decision.IN_DOUBT:
                return self._in_doubt(call, "The process that ran it stopped before it was known how it ended.")
        return await self._act(call)

    def _held_up(self, call: _Call, tool: toolbox.Tool, prepared: toolbox.Prepared) -> ToolResult | Awaited | None:
        """What a person has to be asked, or their refusal; None where they agreed, or need not, and it may be begun."""
        if not (tool.needs_approval or self.approvals.concern(call.key)):
            return None
        asked = Asked(call.asked.position, call.key, tool.name, prepared.canonical, tool.definition)
        ruling = self.approvals.judge(asked, self.clock.now())
        return self._denied(call, ruling) if isinstance(ruling, str) else ruling

    def _denied(self, call: _Call, why: str) -> ToolResult:
        response = {"error": f"{call.asked.name} was not run. {why}", "note": DENIED_NOTE}
        return _changed(self._result(call, ResultStatus.NOT_DONE, response, 0), ran=False)

    def _rehearse(self, call: _Call, digest: str, known: Sequence[LedgerEntry]) -> ToolResult:
        """Nothing takes place: what the parent did is what this call gives, and anything else is refused."""
        assert call.tool is not None
        for entry in known:
            started, outcome = entry.started, entry.outcome
            if started and outcome and (started.name, started.digest) == (call.tool.name, digest):
                return _changed(self._result(call, outcome.status, outcome.response, 0), ran=False)
        text = f"{call.asked.name} acts on the world, and this is a rehearsal: it was not run."
        return _changed(self._result(call, ResultStatus.NOT_DONE, {"error": text}, 0), ran=False)

    def _repeated(self, call: _Call, digest: str) -> ToolResult | None:
        if call.tool is None or not call.tool.declares_effect or call.tool.marks.repeatable:
            return None
        entry = same_effect(self.ledger.entries.values(), run=self.run, name=call.tool.name, digest=digest)
        if entry is None:
            return None
        if entry.outcome is None:
            doubtful = self._in_doubt(call, "The same call was made before, and it is not known how that ended.")
            return _changed(doubtful, ran=False)
        response = {**entry.outcome.response, "note": REPEATED_NOTE}
        return _changed(self._result(call, entry.outcome.status, response, 0), repeated=True, ran=False)

    def _time_is_over(self, call: _Call) -> ToolResult | None:
        """Not begun, where the run's time is over: an effect that is given up at once would be in doubt for certain."""
        left = self.left_s()
        if left is None or left > LEAST_S:
            return None
        response = {"error": f"{call.asked.name} was not run: the time for this message is over."}
        status = ResultStatus.NOT_DONE if call.has_effect else ResultStatus.FAILED
        return _changed(self._result(call, status, response, 0), ran=False)

    async def _claim(self, call: _Call, digest: str) -> Decision:
        assert call.tool is not None
        started = Started(
            run=self.run,
            name=call.tool.name,
            digest=digest,
            declared=call.tool.declares_effect and not call.tool.marks.repeatable,
            keyed=call.tool.accepts_key,
            at=self.clock.now(),
        )
        if await self.ledger.claim(call.key, started):
            return Decision.RUN
        # Somebody else has begun it in this very moment: it is theirs.
        await self.ledger.refresh()
        entry = self.ledger.entries.get(call.key)
        return Decision.USE if entry is not None and entry.outcome is not None else Decision.IN_DOUBT

    async def _act(self, call: _Call) -> ToolResult:
        assert call.tool is not None
        assert isinstance(call.prepared, toolbox.Prepared)

        def late(outcome: toolbox.Outcome) -> None:
            written = self._written(outcome)
            if written is not None:
                self.ledger.settle_late(call.key, written)

        outcome = await self._run(call.tool, call.prepared, call.key, late)
        written = self._written(outcome)
        if written is None:
            why = str(outcome.response.get("error", "It did not come back."))
            return self._in_doubt(call, why, outcome.took_ms)
        entry = await self.ledger.settle(call.key, written)
        assert entry.outcome is not None
        return self._from_ledger(call, entry.outcome)

    def _written(self, outcome: toolbox.Outcome) -> Outcome | None:
        """The outcome for the ledger, or None where nobody can know."""
        known = {"returned": ResultStatus.DONE, "not_done": ResultStatus.NOT_DONE}
        status = known.get(outcome.kind)
        if status is None:
            return None
        return Outcome(status=status, response=outcome.response, took_ms=outcome.took_ms, at=self.clock.now())

    # -- both

    async def _run(
        self,
        tool: toolbox.Tool,
        prepared: toolbox.Prepared,
        call: str,
        late: Callable[[toolbox.Outcome], None] | None,
    ) -> toolbox.Outcome:
        return await tool.run(
            prepared,
            timeout_s=self.left_s(),
            key=f"{self.ledger.conversation_id}/{call}",
            clock=self.clock,
            on_late=late,
        )

    def _result(self, call: _Call, status: ResultStatus, response: JSON, took_ms: int) -> ToolResult:
        repairs = call.prepared.repairs if isinstance(call.prepared, toolbox.Prepared) else ()
        facts: dict[str, object] = {"position": call.asked.position, "status": status, "response": response}
        facts |= {"took_ms": took_ms} if took_ms else {}
        facts |= {"repairs": repairs} if repairs else {}
        facts |= {"effect": True} if call.has_effect else {}
        facts |= {"polling": True} if call.tool is not None and call.tool.marks.polling else {}
        return ToolResult.model_validate(facts)

    def _from_ledger(self, call: _Call, outcome: Outcome) -> ToolResult:
        return _changed(self._result(call, outcome.status, outcome.response, outcome.took_ms), noted=True)

    def _in_doubt(self, call: _Call, why: str, took_ms: int = 0) -> ToolResult:
        response = {"error": f"It is not known whether {call.asked.name} took place. {why}", "note": IN_DOUBT_NOTE}
        return self._result(call, ResultStatus.IN_DOUBT, response, took_ms)


def _refused(call: _Call) -> ToolResult:
    assert isinstance(call.prepared, toolbox.Refused)
    response = {"error": call.prepared.error}
    return ToolResult(position=call.asked.position, status=ResultStatus.FAILED, response=response, ran=False)


def _changed(result: ToolResult, **facts: object) -> ToolResult:
    return result.model_copy(update=facts)
