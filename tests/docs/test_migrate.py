"""docs/migrate.md: the loop works, and so does what becomes of it, with the same words of the same model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from haru_fsm.testing.fake_gemini import FakeGemini, call, reply
from tests.docs.reading import blocks, write_files

NAMES = ["shop.py", "loop.py", "agent_tools.py", "agent.py", "ask.py", "test_agent.py", "adopt.py", "checked.py"]
SCRIPT = [reply(call("my_orders")), reply(call("refund", order_id="A-1002")), reply("Your lamp is refunded.")]
LOOP = """
import json, sys
from google import genai
import loop, shop
with genai.Client(api_key="test", http_options={"base_url": sys.argv[1]}) as client:
    print(json.dumps([loop.answer(client, "Please refund my lamp.", "u-1"), shop.REFUNDS]))
"""
AGENT = """
import asyncio, json, sys
from haru_fsm import Engine
from haru_fsm.models.gemini import GeminiModel
from haru_fsm.stores.memory import MemoryStore
import shop
from agent import app
async def main():
    model = GeminiModel("gemini-flash-latest", api_key="test", base_url=sys.argv[1])
    async with Engine(app, model=model, store=MemoryStore()) as engine:
        run = await engine.ask("Please refund my lamp.", customer_id="u-1")
    print(json.dumps([run.answer, shop.REFUNDS]))
asyncio.run(main())
"""


def test_every_block_is_a_file() -> None:
    found = blocks("docs/migrate.md", "python")
    assert [block.text.splitlines()[0] for block in found] == [f"# {name}" for name in NAMES]


@pytest.mark.parametrize("program", [LOOP, AGENT], ids=["the loop", "the agent"])
def test_both_do_the_same(program: str, tmp_path: Path, environment: dict[str, str]) -> None:
    write_files("docs/migrate.md", tmp_path)
    with FakeGemini(SCRIPT) as gemini:
        ended = subprocess.run(
            [sys.executable, "-c", program, gemini.base_url],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == ["Your lamp is refunded.", ["A-1002"]]
    assert len(gemini.requests) == 3
