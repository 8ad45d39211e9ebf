"""How a case is played that nobody has written a play for: what its script says is enough.

crash            a child process dies at the place, this one carries on; `times`: so many processes die
concurrent       conversations side by side, or workers that ask or resume in the same moment
store_faults     each in a play of its own: the nth append fails, and whoever asks asks again
ticket_faults    the desk fails so many times, before or after it has stored the ticket
clock            wall time stands still, and then goes back
preloaded_*      a history enters by `adopt`; `resume` carries it on
customer_record  the session carries it
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable
from functools import partial
from typing import Any

from haru_fsm import Engine
from haru_fsm.errors import ConversationBusy, ConversationMoved, HaruError, StoreError
from haru_fsm.runs import Run
from haru_fsm.testing.crashes import CrashPoint
from haru_fsm.testing.fake_gemini import FakeGemini
from haru_fsm.tickets import TicketDesk
from tests.field.desks import DeskInAFile, FaultyStore, StumblingDesk
from tests.field.playing import CUSTOMER, Case, Played, Stage, played, talk
from tests.field.plays import Play, five_at_once, frozen, of_an_old_schema, straight, torn, with_a_record

PLACES = {
    "after_model_response_saved_before_tools": ("tools_requested", "after"),
    "after_all_results_saved_before_next_request": ("observation_appended", "after"),
    "after_ticket_created_before_state_saved": ("ticket_opened", "before"),
    "after_delivery_before_delivered_mark": ("model_answered", "after"),
}
"""The event at whose append a process dies, for the places that FORMAT.md names."""
MOST_TRIES = 8


def ways_of(case: Case) -> dict[str, Play]:
    """The ways to play this case, by name; mostly one."""
    script = case.script
    crash, concurrent = script.get("crash", {"at": "none"}), script.get("concurrent", {})
    if crash["at"] == "mid_write":
        return {f"torn-at-{percent}": partial(torn, percent=percent) for percent in crash["percent"]}
    if crash["at"] != "none":
        return {"killed": killed}
    if "conversations" in concurrent:
        return {"side-by-side": five_at_once}
    if "workers" in concurrent:
        return {"workers": workers}
    if faults := script.get("store_faults"):
        return {f"write-{fault['nth']}-fails": partial(store_fails, nth=fault["nth"]) for fault in faults}
    if script.get("ticket_faults"):
        return {"desk-fails": desk_fails}
    if "clock" in script:
        return {"frozen": frozen}
    if "preloaded_checkpoint" in script:
        return {"adopted": of_an_old_schema}
    return {"record": with_a_record} if "customer_record" in script else {"": straight}


def desk_of(stage: Stage) -> TicketDesk | None:
    """The desk elsewhere that the case has, or None."""
    faults = stage.case.script.get("ticket_faults")
    if not faults:
        return None
    return DeskInAFile(stage.folder) if "stored" in faults[0]["error"] else StumblingDesk(faults[0]["times"])


async def killed(stage: Stage, gemini: FakeGemini) -> Played:
    """Processes die at the place; this one carries on, and is asked what the customer has not been answered yet."""
    began = time.monotonic()
    crash = stage.case.script["crash"]
    for number in range(crash.get("times", 1)):
        do = "resume" if number else "ask"
        if number and crash["at"] == "after_model_response_saved_before_tools":
            await stage.child(do, dies=("resumed", "after"))
        elif crash["at"] == "after_tool_side_effect_before_result_saved":
            await stage.child(do, crash=CrashPoint("effect", 1, "after"))
        else:
            await stage.child(do, dies=PLACES[crash["at"]])
    async with stage.engine(desk=desk_of(stage)) as engine:
        ended = [] if "message" in crash["then"] else await engine.resume_all()
        assert not any(isinstance(run, HaruError) for run in ended), ended
        runs = [run for run in ended if isinstance(run, Run)]
        (one,) = await engine.store.conversations()
        if len(stage.case.messages) > 1 or not runs:
            runs += await talk(engine, stage.case, one.conversation_id)
    return await played(stage, gemini, runs, began, delivered=len({run.reply_id for run in runs}))


async def workers(stage: Stage, gemini: FakeGemini) -> Played:
    """Engines with connections of their own ask, or resume what was asked, in the same moment."""
    began = time.monotonic()
    concurrent = stage.case.script["concurrent"]
    engines = [stage.engine() for _ in range(concurrent["workers"])]
    message = stage.case.messages[0]
    try:
        if "resume" in concurrent.get("start", "resume"):
            left = await engines[0].adopt(
                [{"role": "user", "parts": [{"text": message["text"]}]}], customer_id=CUSTOMER
            )
            ends = await _together(engine.resume(left.conversation_id) for engine in engines)
        else:
            ends = await _together(
                engine.ask(
                    message["text"], customer_id=CUSTOMER, conversation_id="c-both", message_id=message["message_id"]
                )
                for engine in engines
            )
    finally:
        for engine in engines:
            await engine.aclose()
    runs = [end for end in ends if isinstance(end, Run)]
    losers = [end for end in ends if not isinstance(end, Run)]
    assert all(isinstance(end, ConversationBusy | ConversationMoved) for end in losers), losers
    return await played(stage, gemini, runs, began, delivered=len({run.reply_id for run in runs}), losers=losers)


async def _together(doing: Iterable[Coroutine[Any, Any, Run]]) -> list[Run | BaseException]:
    return list(await asyncio.gather(*doing, return_exceptions=True))


async def store_fails(stage: Stage, gemini: FakeGemini, nth: int) -> Played:
    """One append fails; whoever asked asks again until there is an ending."""
    began = time.monotonic()
    store = FaultyStore(stage.store(), nth)
    async with stage.engine(store=store) as engine:
        runs = await _until_answered(engine, stage.case, StoreError)
    return await played(stage, gemini, runs, began, appends=store.appends)


async def desk_fails(stage: Stage, gemini: FakeGemini) -> Played:
    """The desk stumbles; the run waits for it, and each message is asked again until it has its ending."""
    began = time.monotonic()
    async with stage.engine(desk=desk_of(stage), clock=stage.hasty) as engine:
        runs = await _until_answered(engine, stage.case, ConversationBusy)
    return await played(stage, gemini, runs, began)


async def _until_answered(engine: Engine, case: Case, expected: type[HaruError]) -> list[Run]:
    """All messages in turn, each as often as it takes; the runs as they were when they had ended."""
    runs: list[Run] = []
    for message in case.messages:
        for _ in range(MOST_TRIES):
            try:
                run = await engine.ask(
                    message["text"],
                    customer_id=CUSTOMER,
                    conversation_id="c-again",
                    message_id=message["message_id"],
                )
            except expected:
                continue
            if run.finished:
                runs.append(run)
                break
    return runs
