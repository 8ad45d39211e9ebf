"""The two wires, as the tests of both need them: who serves, who asks, and how each says what is the same.

The real client of each provider talks over real HTTP to a server that plays a script.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from haru_fsm.clock import FakeClock
from haru_fsm.conversation import JSON
from haru_fsm.limits import Limits
from haru_fsm.models import Declaration, ModelRequest
from haru_fsm.models.gemini import GeminiModel
from haru_fsm.models.openai import OpenAIModel
from haru_fsm.testing import fake_gemini, fake_openai
from haru_fsm.testing.fake_gemini import FakeGemini
from haru_fsm.testing.fake_openai import FakeOpenAI
from haru_fsm.testing.scripted_http import Item

USER = {"role": "user", "parts": [{"text": "주문 어디쯤 왔나요?"}]}
TOOLS = [
    Declaration("get_order", "주문을 찾습니다.", {"type": "object", "properties": {"order_id": {"type": "string"}}})
]


@dataclass(frozen=True)
class Wire:
    """How one provider is asked, and says things."""

    server: Callable[..., Any]
    model: Callable[..., Any]
    name: str
    """The model that is asked."""
    key: str
    """A key that looks like one of this provider's."""
    reply: Callable[..., JSON]
    call: Callable[..., JSON]
    error: Callable[..., JSON]
    told: str
    """The field of a request that holds what was said."""
    keys: tuple[str, ...]
    """The variables of the environment in which a key is looked for; one of them is named where there is none."""
    sdk: str
    advice: str
    """What is said to somebody whose model is not known."""

    @asynccontextmanager
    async def playing(
        self,
        *script: Item,
        clock: FakeClock | None = None,
        settings: dict[str, Any] | None = None,
        limits: Limits | None = None,
        **server: Any,
    ) -> AsyncIterator[tuple[Any, Any]]:
        """A server that plays the script, and a model that talks to it."""
        async with self.server(script, **server) as serving:
            model = self.model(
                self.name,
                base_url=serving.base_url,
                limits=limits or Limits(),
                clock=clock or FakeClock(),
                rng=random.Random(1),
                **{"api_key": self.key, **(settings or {})},
            )
            try:
                yield serving, model
            finally:
                await model.aclose()


GEMINI = Wire(
    server=FakeGemini,
    model=GeminiModel,
    name="gemini-flash-latest",
    key="AIzaSyTEST0000000000000000000000000000",
    reply=fake_gemini.reply,
    call=fake_gemini.call,
    error=fake_gemini.error,
    told="contents",
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    sdk="google.genai",
    advice="HARU_MODEL",
)
OPENAI = Wire(
    server=FakeOpenAI,
    model=OpenAIModel,
    name="gpt-5-mini",
    key="sk-TEST00000000000000000000000000",
    reply=fake_openai.reply,
    call=fake_openai.call,
    error=fake_openai.error,
    told="messages",
    keys=("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    sdk="openai",
    advice="HARU_MODEL=openai:NAME",
)


def request(*contents: JSON, **more: Any) -> ModelRequest:
    """A request with one tool, of a run that may make eight."""
    given = {"system": "친절하게", "declarations": TOOLS, "requests_left": 8}
    return ModelRequest(contents=contents or (USER,), **{**given, **more})
