"""Processes that do the same thing to one database at the same instant."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from haru_fsm import tool
from haru_fsm.errors import ConversationBusy, ConversationMoved
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.stores.sqlite import SQLiteStore
from tests.engine.shopless import engine

ENDINGS_S = 120


def paying(folder: Path) -> Callable[[Any], list[Callable[..., Any]]]:
    """A tool with an effect, which leaves a line in a file each time its code is run."""

    @tool(read_only=False)
    def pay(what: str) -> str:
        """Pay."""
        descriptor = os.open(folder / "paid", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, f"{what}\n".encode())
        os.close(descriptor)
        return "paid"

    return lambda _session: [pay]


async def once(folder: Path, do: str, number: int) -> str:
    """Ask, or resume, and say what came of it: the run as JSON, or the name of the refusal."""
    model = ScriptedModel(
        lambda request: "냈습니다." if "functionResponse" in str(request.contents) else [("pay", {"what": f"{number}"})]
    )
    made = engine(model, store=SQLiteStore(folder / "haru.db"))
    haru = type(made)(made.app.with_tools(paying(folder)), model=model, store=made.store)
    async with haru:
        try:
            if do == "ask":
                run = await haru.ask("내 주세요", customer_id="C1", message_id=f"m{number}")
            else:
                run = await haru.resume(f"c-{number}")
        except (ConversationBusy, ConversationMoved) as refusal:
            return type(refusal).__name__
        return run.model_dump_json()


def _racer(folder: Path, do: str, rounds: int, barrier: Any, told: Any) -> None:
    for number in range(rounds):
        barrier.wait(ENDINGS_S)
        told.put((number, asyncio.run(once(folder, do, number))))


def race(folder: Path, do: str, *, rounds: int, processes: int = 2) -> list[list[str]]:
    """What each process came to, by round. They start each round together."""
    fresh = multiprocessing.get_context("spawn")
    barrier, told = fresh.Barrier(processes), fresh.Queue()
    racers = [fresh.Process(target=_racer, args=(folder, do, rounds, barrier, told)) for _ in range(processes)]
    for racer in racers:
        racer.start()
    ends: list[list[str]] = [[] for _ in range(rounds)]
    for _ in range(rounds * processes):
        number, end = told.get(timeout=ENDINGS_S)
        ends[number].append(end)
    for racer in racers:
        racer.join()
    return ends
