"""A wall clock that jumps takes no conversation from a living worker; one that hangs keeps nobody waiting for ever."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from haru_fsm import leases
from haru_fsm.arrivals import received
from haru_fsm.clock import FakeClock
from haru_fsm.errors import ConversationBusy
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.stores.sqlite import SQLiteStore
from tests.engine.shopless import engine

LEASE_S = 15.0
LIVING = f"{leases.this_host()}|{os.getppid()}|{leases._started(os.getppid())}|token"
OWN = f"{leases._this_process(os.getpid())}|abandoned"
DEAD = f"{leases.this_host()}|{os.getppid()}|1|token"


class Watched(FakeClock):
    """A clock by which a worker of another process renews its lease, or does not."""

    def __init__(self, passes: Callable[[float], None]) -> None:
        super().__init__()
        self._passes = passes

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        self._passes(self.now())


async def begun(store: SQLiteStore, owner: str, clock: FakeClock) -> None:
    """A run that a worker of another process has begun, just now."""
    async with engine(ScriptedModel([]), store=store, clock=clock) as haru:
        conversation = haru.app.workflow.advance(haru.app.workflow.begin("c1", "C1"), received("안녕하세요"))
        await store.append(conversation, expected_seq=0, owner=owner, over=None, lease_s=LEASE_S, at=clock.now())


@pytest.mark.parametrize(
    ("owner", "renews", "taken_over"),
    [(LIVING, True, False), (LIVING, False, True), (DEAD, False, True), (OWN, False, True)],
    ids=["living", "hung", "dead", "our own, abandoned"],
)
async def test_who_lives_has_a_moment_to_renew_a_lease_that_ran_out(
    tmp_path: Path, owner: str, renews: bool, taken_over: bool
) -> None:
    def passes(now: float) -> None:
        if renews:
            with closing(sqlite3.connect(tmp_path / "haru.db", isolation_level=None)) as by_hand:
                by_hand.execute("UPDATE conversations SET lease_until = ? WHERE owner = ?", (now + LEASE_S, owner))

    clock = Watched(passes)
    await begun(SQLiteStore(tmp_path / "haru.db"), owner, clock)
    clock.advance(3600)  # the clock was put right, or the machine has slept
    async with engine(ScriptedModel(["네."]), store=SQLiteStore(tmp_path / "haru.db"), clock=clock) as haru:
        if taken_over:
            assert (await haru.resume("c1")).answer == "네."
            assert bool(clock.slept) is (owner == LIVING), "who is gone keeps nobody waiting"
        else:
            with pytest.raises(ConversationBusy):
                await haru.resume("c1")
            assert await haru.resume_all() == []
