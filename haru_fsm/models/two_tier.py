"""Two models: the cheap one takes the steps, the strong one writes what the customer reads.

Most requests of a run choose tools and read their results; only the last one is read by a person. So the cheap model
works until it has an answer, and that answer is a draft, which the strong model rewrites with tools off. It cannot
turn the draft into calls, and its failure costs nothing but what it has spent: then the draft is the answer.
"""

from __future__ import annotations

from haru_fsm.clock import Clock, SystemClock
from haru_fsm.conversation import JSON, ModelAnswered
from haru_fsm.models import Model, ModelOutcome, ModelRequest
from haru_fsm.models.relay import Relay, close_all, spent
from haru_fsm.visible import is_blank

REWRITE = (
    "[시스템 안내] 위의 글은 답변의 초안입니다. 고객에게 보낼 최종 답변으로 다시 작성해 주세요. 대화와 도구 결과에 "
    "있는 사실만 쓰고, 번호와 금액과 날짜는 그대로 옮기고, 초안이나 이 안내는 언급하지 마세요. (The text above is "
    "a draft. Rewrite it as the final answer to the customer. Use facts from the conversation and the tool results "
    "only; keep numbers, amounts and dates as they are, and mention neither the draft nor this note.)"
)
"""What the strong model is told after the draft."""


class TwoTierModel:
    """`cheap` takes the steps, `strong` rewrites the answer; `clock` measures what one leaves of the time to the other.

    The rewriting is a request like any other: it is counted, and left out where the run has none left, or no time.
    """

    def __init__(self, cheap: Model, strong: Model, *, clock: Clock | None = None) -> None:
        self._cheap = cheap
        self._strong = strong
        self._clock = clock or SystemClock()

    @property
    def name(self) -> str:
        """The names of both."""
        return f"{self._cheap.name} + {self._strong.name}"

    async def respond(self, request: ModelRequest) -> ModelOutcome:
        """The cheap model's outcome; where it is an answer, the strong model's words for it."""
        relay = Relay(request, self._clock)
        draft = await relay.ask(self._cheap, aloud=False)
        if not isinstance(draft, ModelAnswered):
            return draft
        if relay.left_requests < 1 or (relay.left_s is not None and relay.left_s <= 0):
            relay.tell(draft.text)
            return draft
        final = await relay.ask(self._strong, _draft(draft), _instruction(), tools_allowed=False)
        if isinstance(final, ModelAnswered) and not is_blank(final.text):
            return spent(final, before=[draft])
        relay.tell(draft.text)
        return spent(draft, after=[final])

    async def aclose(self) -> None:
        """Close both models."""
        await close_all((self._cheap, self._strong))


def _draft(draft: ModelAnswered) -> JSON:
    """The draft as the strong model reads it: as the customer would. What the cheap model signed stays with it."""
    return {"role": "model", "parts": [{"text": draft.text}]}


def _instruction() -> JSON:
    return {"role": "user", "parts": [{"text": REWRITE}]}
