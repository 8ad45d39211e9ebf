"""What GeminiModel costs over a bare google-genai call to the same local server, in turns; the store is left out.

The bare side has its contents as the SDK's own objects already: making them is no cost of the SDK's.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from statistics import median

from google.genai import Client, types

from bench import haru, workload
from bench.figures import Figure, Target
from bench.measuring import Plan, tell
from bench.processor import conversation
from haru_fsm.contents import History
from haru_fsm.conversation import JSON, ModelAnswered
from haru_fsm.models import ModelRequest
from haru_fsm.models.gemini import GeminiModel

LENGTHS = (0, 160)
"""Steps that lie behind the request."""
TIMES_BARE = 1.05
FIRST_TEXT_MS = 5
REQUESTS = 40
NAME = "gemini-flash-latest"


def figures(plan: Plan) -> Iterator[Figure]:
    """All figures of this module, in the order of the table."""
    with _server() as url:
        yield from asyncio.run(_measured(plan, url))


@contextmanager
def _server() -> Iterator[str]:
    with subprocess.Popen([sys.executable, "-m", "bench.wire_server"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()


async def _measured(plan: Plan, url: str) -> list[Figure]:
    group, rows = "a request over HTTP (raw: google-genai alone)", []
    model = GeminiModel(NAME, api_key="none", base_url=url)
    client = Client(api_key="none", http_options=types.HttpOptions(base_url=url))
    for n in LENGTHS:
        tell(f"a request over HTTP, {n} steps behind it")
        contents = _contents(n)
        ours, bare = await _in_turns(plan, _ours(model, contents), _bare(client, contents))
        target = Target(TIMES_BARE * bare) if n == 0 else None
        rows.append(Figure(group, f"{n} steps behind it", ours, "ms", bare, target))
    tell("the first text of a stream")
    first, bare_first = await _in_turns(plan, _first_of_ours(model), _first_of_bare(client))
    rows.append(Figure(group, "first text of a stream", first, "ms", bare_first))
    rows.append(Figure(group, "first text, over raw", first - bare_first, "ms", target=Target(FIRST_TEXT_MS)))
    await model.aclose()
    await client.aio.aclose()
    return rows


def _contents(n: int) -> tuple[JSON, ...]:
    history = History()
    for step in conversation(haru.app().workflow, n).steps:
        history = history.fold(step)
    return history.request()


async def _in_turns(
    plan: Plan, ours: Callable[[], Awaitable[float]], bare: Callable[[], Awaitable[float]]
) -> tuple[float, float]:
    """Milliseconds on both sides, by the clock: the medians of many, after one of each that counts for nothing."""
    await ours()
    await bare()
    taken = [(await ours(), await bare()) for _ in range(plan.repetitions * REQUESTS)]
    mine, theirs = zip(*taken, strict=True)
    return median(mine) * 1000, median(theirs) * 1000


# --------------------------------------------------------------------------- ours


def _ours(model: GeminiModel, contents: tuple[JSON, ...]) -> Callable[[], Awaitable[float]]:
    request = ModelRequest(system=workload.QUESTION, contents=contents)

    async def once() -> float:
        began = time.perf_counter()
        event = await model.respond(request)
        taken = time.perf_counter() - began
        assert isinstance(event, ModelAnswered)
        return taken

    return once


def _first_of_ours(model: GeminiModel) -> Callable[[], Awaitable[float]]:
    async def once() -> float:
        seen: list[float] = []
        request = ModelRequest(system="", contents=_contents(0), on_text=lambda _text: seen.append(time.perf_counter()))
        began = time.perf_counter()
        await model.respond(request)
        return seen[0] - began

    return once


# --------------------------------------------------------------------------- the SDK alone


def _bare(client: Client, contents: tuple[JSON, ...]) -> Callable[[], Awaitable[float]]:
    ready = [types.Content.model_validate(content) for content in contents]

    async def once() -> float:
        began = time.perf_counter()
        reply = await client.aio.models.generate_content(model=NAME, contents=ready, config=_config())
        taken = time.perf_counter() - began
        assert reply.text
        return taken

    return once


def _first_of_bare(client: Client) -> Callable[[], Awaitable[float]]:
    ready = [types.Content.model_validate(content) for content in _contents(0)]

    async def once() -> float:
        began, taken = time.perf_counter(), 0.0
        stream = await client.aio.models.generate_content_stream(model=NAME, contents=ready, config=_config())
        async for chunk in stream:
            if chunk.text and not taken:
                taken = time.perf_counter() - began
        return taken

    return once


def _config() -> types.GenerateContentConfig:
    return types.GenerateContentConfig(
        system_instruction=workload.QUESTION,
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
