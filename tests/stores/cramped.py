"""A process on a disk, or under a limit, that is too small: `python -m tests.stores.cramped DIR full|limit`.

It prints what its run came to while there was no room, and what it came to when there was.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path

from haru_fsm import Run
from haru_fsm.errors import StoreError
from haru_fsm.models.scripted import Line, ScriptedModel
from haru_fsm.stores.sqlite import SQLiteStore
from tests.engine.shopless import Tools, engine

LARGE = "가" * 400_000
SCRIPT: list[Line] = [[("pay", {"what": "A"})], [("look", {"what": "B"})], "끝났습니다."]
BALLAST = 1_800_000
FILE_BYTES = 700_000


async def main(folder: Path, how: str) -> None:
    ballast = folder / "ballast"
    if how == "full":
        ballast.write_bytes(bytes(BALLAST))
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, resource.RLIM_INFINITY))
    tools = Tools(look=lambda _what: LARGE)
    async with engine(ScriptedModel(SCRIPT), tools=tools, store=SQLiteStore(folder / "haru.db")) as haru:
        try:
            await haru.ask("내 주세요", customer_id="C1", conversation_id="c-1")
            error = ""
        except StoreError as raised:
            error = str(raised)
        record = await haru.store.load("c-1")
        assert record is not None
        before = [step.event.kind for step in record.steps]
        # Room is made, and the next process goes on.
        ballast.unlink(missing_ok=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    after = engine(ScriptedModel(SCRIPT[2:]), tools=tools, store=SQLiteStore(folder / "haru.db"))
    async with after:
        (run,) = await after.resume_all()
        assert isinstance(run, Run)
        record = await after.store.load("c-1")
        assert record is not None
    told = {"error": error, "before": before, "answer": run.answer, "paid": tools.runs["pay(A)"]}
    print(json.dumps({**told, "seqs": [step.seq for step in record.steps]}))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
