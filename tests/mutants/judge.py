"""The kit judges one tree: exit code 0 when every promise holds, 1 and a line that says which one does not.

Run by `run.py` in a copy of the repository with one mutant in it; run by hand it judges the repository itself. First
what is cheap: plays that are known to be telling. Then every conversation to a small depth, then the hunts.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from haru_fsm import App, Engine, Limits, load_app, tool
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import FailureReason, ModelFailed, Resumed, Usage
from haru_fsm.errors import ConversationMoved, JournalDamaged
from haru_fsm.models.scripted import ScriptedModel, answer, calls
from haru_fsm.stores import Outcome, Started
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.stores.sqlite import SQLiteStore
from haru_fsm.testing import (
    Behaviour,
    CrashPoint,
    Does,
    Play,
    assert_effects_once,
    assert_every_run_ends,
    assert_valid_history,
)
from haru_fsm.testing.alphabet import alphabet
from haru_fsm.testing.exhaustive import Explorer
from haru_fsm.testing.hunting import ALL_PROMISES, Ground
from haru_fsm.testing.judging_effects import doubtful
from haru_fsm.testing.telling import tell
from tests.engine.shopless import Tools

ROOT = Path(__file__).parent.parent.parent
LOOK, PAY, BOOK = (("look", {"what": "A"}), ("pay", {"what": "A"}), ("book", {"what": "B"}))
DRIFT = tuple(calls(("look", {"what": str(number)}), usage=Usage(prompt=300, cost_usd=0.02)) for number in range(12))
FRESH = {"look": tuple(Behaviour(does=Does.RETURNS, value=number) for number in range(12))}
WORK = (calls(LOOK, PAY, BOOK, text="확인해 볼게요"), calls(("look", {"what": "B"})), answer("네."))
TWO = ("주문 확인해 주세요", "다시 확인해 주세요")


class Broken(Exception):
    """A promise does not hold."""


def made(**limits: Any) -> App:
    """The tree's own table with three small tools."""
    app = load_app(ROOT, limits=Limits(**limits))
    return App(workflow=app.workflow, make_tools=Tools().make, system_prompt="하루", limits=app.limits)


# --------------------------------------------------------------------------- telling plays


def plays() -> Iterator[tuple[dict[str, Any], Play]]:
    """Limits, and a play to be had under them."""
    yield {}, Play(messages=TWO, replies=WORK)
    yield {}, Play(messages=(*TWO, "\ud800 끝"), replies=(calls(LOOK),))
    yield {}, Play(messages=TWO, replies=(ModelFailed(reason=FailureReason.SERVER),))
    for text in ("티켓 HT-0000000001을 접수했습니다.", "상담 티켓이 접수되었습니다."):
        yield {}, Play(replies=(answer(text),))
    yield {}, Play(replies=(answer("접수 번호는 HT-0000000001입니다."),))
    yield {}, Play(replies=(calls(PAY), answer("티켓 HT-0000000001을 접수했습니다.")))
    for limits in ({"max_steps": 4}, {"max_tool_calls": 3}, {"token_budget": 700}, {"cost_budget_usd": 0.05}):
        yield limits, Play(messages=TWO, replies=DRIFT, behaviours=FRESH)
        yield limits, Play(messages=TWO, replies=DRIFT, behaviours=FRESH, crashes=(CrashPoint("write", 7, "after"),))
    yield {"deadline_s": 2.0}, Play(replies=DRIFT, behaviours=FRESH, pace_ms=700)
    yield {"max_steps": 6}, Play(replies=tuple(reply.model_copy(update={"requests": 3}) for reply in DRIFT))
    for does in (Does.RAISES, Does.HANGS, Does.REFUSES, Does.EXITS, Does.ODD, Does.HUGE):
        yield {}, Play(replies=(calls(PAY), calls(PAY), calls(LOOK), answer("네.")), behaviours=_all(does))
    ids = calls(LOOK, PAY).content
    marked = [{"functionCall": {**part["functionCall"], "id": f"id{n}"}} for n, part in enumerate(ids["parts"])]
    yield {}, Play(replies=(calls().model_copy(update={"content": {**ids, "parts": marked}}), answer("네.")))
    yield {}, Play(messages=TWO, replies=(calls(PAY, ("pay", {"what": "B"}), ("look", {"what": "B"})), answer("네.")))
    for number in range(1, 9):
        for place in ("write", "effect"):
            for when in ("before", "after"):
                crashes = (CrashPoint(place, number, when), CrashPoint("write", 1, "after"))
                yield {}, Play(messages=TWO, replies=WORK, crashes=crashes)


def _all(does: Does) -> dict[str, tuple[Behaviour, ...]]:
    return {name: (Behaviour(does=does, value="뜻밖의 일"),) for name in ("look", "pay", "book")}


def judge_plays(folder: Path) -> None:
    """Each telling play, on memory and on SQLite."""
    for limits, play in plays():
        for store in (MemoryStore, folder):
            with Ground(made(**limits), store) as ground:
                found = ground.judged(play, ALL_PROMISES)
            if found is not None:
                raise Broken(tell(found))


# --------------------------------------------------------------------------- short tests of the kit


def require(holds: object, what: str) -> None:
    if not holds:
        raise Broken(what)


def judge_restarts(folder: Path) -> None:
    """A run whose process keeps dying is given up; a second run has budgets of its own; the nudge is told."""
    with Ground(made(max_resumes=1), folder) as ground:
        seen = ground.perform(Play(replies=WORK, crashes=(CrashPoint("write", 2, "before"),) * 4))
        require(sum(isinstance(step.event, Resumed) for step in seen.steps) == 2, "resumptions are not counted")
        require(seen.runs[-1].stopped_by, "a run that keeps dying is not given up")
    with Ground(made(), folder) as ground:
        seen = ground.perform(Play(messages=TWO, replies=(calls(LOOK),)))
        require([run.steps for run in seen.runs] == [5, 5], "a stubborn loop does not cost five requests")
        require(seen.runs[0].stopped_by and "Nudged" in seen.runs[0].stopped_by.guard, "what stopped it is not told")
        refused = [part for asked in seen.requests for content in asked.contents for part in content["parts"]]
        require(any("was not run" in str(part) for part in refused), "the model is not told that it goes in circles")
        seen = ground.perform(Play(replies=(calls(("look", {})),)))
        require(seen.runs[0].steps == 4, "calls that keep failing are not stopped at the fourth")
        round_ = (calls(("look", {"what": "A"})), calls(("look", {"what": "B"})))
        seen = ground.perform(Play(replies=round_ * 4))
        require(seen.runs[0].steps == 6, "a cycle of two calls does not cost six requests")


def judge_doubts(folder: Path) -> None:
    """A late outcome is written down and settles the doubt; a keyed call is run again after a crash."""
    late = {"pay": (Behaviour(does=Does.LATE, value={"ok": True}),)}
    with Ground(made(), folder) as ground:
        seen = ground.perform(Play(replies=(calls(PAY), calls(LOOK), answer("네.")), behaviours=late))
        require(seen.record, "nothing is stored")
        assert seen.record is not None
        [entry] = seen.record.ledger.values()
        require(entry.outcome, "a late outcome is not written down")
        require(seen.runs[0].state == "DONE", "a doubt that was settled still leads to a ticket")
        seen = ground.perform(Play(replies=(calls(BOOK), answer("네.")), crashes=(CrashPoint("effect", 1, "after"),)))
        require(seen.runs[0].state == "DONE", "a keyed call is not run again")
        blocked = (ModelFailed(reason=FailureReason.PROMPT_BLOCKED), answer("네."))
        seen = ground.perform(Play(messages=TWO, replies=blocked))
        require(TWO[0] not in str(seen.requests[-1].contents), "a blocked message is sent again")


def with_approval(session: Any) -> dict[str, Callable[..., Any]]:
    """The three small tools, and one that waits for a person."""

    @tool(read_only=False, approval=True)
    def refund(what: str) -> str:
        """Give the money back."""
        return what

    return {**{each.__name__: each for each in Tools().make(session)}, "refund": refund}


def judge_approvals(folder: Path) -> None:
    """What waits for a person is asked, runs once when they agree, and never when they do not; crashes or not."""
    replies = (calls(("look", {"what": "A"}), ("refund", {"what": "A"})), answer("네."))
    for agreed in (True, False):
        for number in range(8):
            crashes = (CrashPoint("write", number, "after"), CrashPoint("write", 1, "after")) if number else ()
            with Ground(made().with_tools(with_approval), folder) as ground:
                play = Play(replies=replies, decisions=(agreed,), crashes=crashes)
                found = ground.judged(play, ALL_PROMISES)
                require(found is None, tell(found) if found is not None else "")
                seen = ground.perform(play)
            ran = sum(each.name == "refund" for each in seen.happened)
            asked = sum(step.event.kind == "approval_requested" for step in seen.steps)
            as_told = ran == agreed or (ran < agreed and doubtful(seen.record))
            require(as_told and asked == 1, f"a person said {agreed}: it ran {ran} times, asked {asked} times")


class Rival(MemoryStore):
    """A store in which somebody else has each claim first."""

    async def note(self, conversation_id: str, call: str, what: Started | Outcome) -> bool:
        if isinstance(what, Started):
            await super().note(conversation_id, call, what)
        return await super().note(conversation_id, call, what)


async def judge_races(folder: Path) -> None:
    """A claim that was lost runs nothing; a rehearsal acts on nothing; of two writers one loses."""
    tools = Tools()
    app = made().with_tools(tools.make)
    async with Engine(app, model=ScriptedModel([[PAY], "네."]), store=Rival(), clock=FakeClock()) as engine:
        await engine.ask("결제해 주세요", customer_id="C1")
    require(not tools.runs, "a tool ran under somebody else's claim")
    model = ScriptedModel([[LOOK], [PAY], "네."])
    async with Engine(app, model=model, store=MemoryStore(), clock=FakeClock()) as one:
        first = await one.ask("확인해 주세요", customer_id="C1")
        before = tools.runs.copy()
        model._line = ScriptedModel([[("pay", {"what": "Z"})], "네."])._line
        await one.fork(first.conversation_id, at=4)
        require(tools.runs["pay(Z)"] == before["pay(Z)"], "a rehearsal acted")
    for store in (MemoryStore(), SQLiteStore(folder / "races.db")):
        await _contract(store, app)
        await store.aclose()


async def _contract(store: Any, app: App) -> None:
    from haru_fsm.conversation import MessageReceived, ResultStatus

    begun = app.workflow.begin("c-1", "C1")
    one = app.workflow.advance(begun, MessageReceived(text="하나"))
    await store.append(one, expected_seq=0, owner="me", over=None, lease_s=15)
    with suppress(ConversationMoved):
        await store.append(one, expected_seq=0, owner="me", over=None, lease_s=15)
        raise Broken("a stale append was taken")
    two = app.workflow.advance(one, answer("네."))
    with suppress(ConversationMoved):
        await store.append(two, expected_seq=1, owner="somebody", over=None, lease_s=15)
        raise Broken("somebody overwrote a living worker")
    await store.append(two, expected_seq=1, owner="me", over=None, lease_s=15)
    record = await store.load("c-1")
    require(record.summary.owner is None, "a lease is not given back at rest")
    started = Started(run=1, name="pay", digest="x")
    require(await store.note("c-1", "2.0", started), "a claim was refused")
    require(not await store.note("c-1", "2.0", started), "a claim was given twice")
    done, not_done = (Outcome(status=status, response={}) for status in (ResultStatus.DONE, ResultStatus.NOT_DONE))
    require(await store.note("c-1", "2.0", done), "an outcome was refused")
    require(not await store.note("c-1", "2.0", not_done), "a second outcome was taken")
    record = await store.load("c-1")
    require(record.ledger["2.0"].outcome.status is ResultStatus.DONE, "the first outcome did not stay")


async def judge_damage(folder: Path) -> None:
    """A journal that was tampered with is never read."""
    import sqlite3

    file = folder / "damaged.db"
    async with Engine(made(), model=ScriptedModel([[LOOK], "네."]), store=SQLiteStore(file), clock=FakeClock()) as one:
        run = await one.ask("확인해 주세요", customer_id="C1")
    connection = sqlite3.connect(file)
    connection.execute("UPDATE steps SET event = replace(event, '네.', '예.')")
    connection.commit()
    connection.close()
    store = SQLiteStore(file)
    try:
        with suppress(JournalDamaged):
            await store.load(run.conversation_id)
            raise Broken("a damaged journal was read")
    finally:
        await store.aclose()


def judge_everything(_folder: Path) -> None:
    """Every conversation of a few choices, with a resumption, under tight limits."""
    app = made(max_steps=3, loop_repeats=2, loop_nudges=1)
    explored = Explorer(app, depth=5, events=alphabet(["look", "pay"]), resumes=1).explore()
    require(not explored.broken, explored.broken)


def judge_hunts(folder: Path) -> None:
    """At random, always the same plays."""

    def app(limits: Limits) -> App:
        return made(**limits.model_dump(exclude_unset=True))

    for assertion in (assert_every_run_ends, assert_effects_once, assert_valid_history):
        assertion(app, customers=("C1",), examples=60, save_to=None)
    assert_effects_once(app, customers=("C1",), examples=30, seed=7, store=folder, save_to=None)


PARTS: tuple[Callable[[Path], Any], ...] = (
    judge_restarts,
    judge_doubts,
    judge_approvals,
    judge_races,
    judge_damage,
    judge_plays,
    judge_everything,
    judge_hunts,
)


def main() -> int:
    """Judge this tree."""
    with TemporaryDirectory(prefix="haru-judged-") as folder:
        for part in PARTS:
            try:
                outcome = part(Path(folder))
                if outcome is not None:
                    asyncio.run(outcome)
            except Exception as error:
                said = str(error).strip().splitlines() or [type(error).__name__]
                why = said[1] if len(said) > 1 and "does not hold" in said[0] else said[0]
                print(f"{part.__name__}: {type(error).__name__}: {why.strip()}")
                return 1
    print("every promise holds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
