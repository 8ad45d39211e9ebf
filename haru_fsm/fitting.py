"""Whether the next request fits into the model's window, and how much room there is where it does not. Pure.

Estimated from what providers have counted: the prompt of an earlier request of this conversation, over the bytes that
it had, gives the tokens of a byte in this language, with this model. Before the first count it is a quarter: English
has four letters to a token, Hangul a syllable of three bytes.

The threshold is a share of the window; what has been cut goes down to half of it, so that the next steps fit as well
and the provider's cache is not lost at every step.
"""

from __future__ import annotations

from haru_fsm.compaction import Room
from haru_fsm.contents import History
from haru_fsm.limits import Limits
from haru_fsm.models.tokens import BYTES_PER_TOKEN
from haru_fsm.models.windows import window_of

AIM = 0.5
"""Share of the threshold to come down to."""
HARDER_AIM = 0.25
"""Share of a refused request's contents to come down to: how much too large it was, nobody has said."""
RESULT_CHARS_AFTER_REFUSAL = 2_000
LEAST_RATIO, MOST_RATIO = 1 / 16, 1.0
"""Tokens of a byte that are believed; beyond them a gateway has counted something else."""


def threshold(limits: Limits, model: str) -> float | None:
    """Tokens of a request at which its history is compacted; None where nobody knows the model's window."""
    if limits.compact_at_tokens is not None:
        return limits.compact_at_tokens
    window = limits.max_input_tokens or window_of(model)
    return None if window is None else limits.compact_at * window


def tokens_per_byte(history: History, overhead: int) -> float:
    """Tokens of one byte of this conversation. `overhead`: the bytes that go with every request beside the contents,
    those of the system prompt and the declarations."""
    if history.counted is None:
        return 1 / BYTES_PER_TOKEN
    tokens, size = history.counted
    return min(max(tokens / (overhead + size), LEAST_RATIO), MOST_RATIO)


def room_for(history: History, overhead: int, limits: Limits, model: str) -> Room | None:
    """The room that there is for the contents, or None where they fit as they are."""
    most = threshold(limits, model)
    size = float("inf") if most is None else most / tokens_per_byte(history, overhead) - overhead
    if history.marks.refused is not None:
        # A provider has said it: so much is too large, whatever was estimated.
        size = min(size, limits.compact_at * history.marks.refused)
    if history.size <= size:
        return None
    return Room(aim=max(0, int(size * AIM)), keep_recent=limits.keep_recent_contents)


def room_after_refusal(size: int) -> Room:
    """The room for contents of this size that were refused as too large."""
    return Room(aim=int(size * HARDER_AIM), keep_recent=1, recent_chars=RESULT_CHARS_AFTER_REFUSAL)
