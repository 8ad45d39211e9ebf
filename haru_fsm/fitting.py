"""Whether the next request fits into the model's window, and how much room there is where it does not. Pure.

Estimated from what providers have counted: the prompt of an earlier request of this conversation, over the bytes that
it had, gives the tokens of a byte in this language, with this model. Before the first count it is a quarter: English
has four letters to a token, Hangul a syllable of three bytes.

The threshold is a share of the window; what has been cut goes down to half of it, so that the next steps fit as well
and the provider's cache is not lost at every step.
"""

from __future__ import annotations

from haru_fsm.compaction import Room, plan
from haru_fsm.contents import History
from haru_fsm.conversation import Compaction
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


def planned(history: History, overhead: int, limits: Limits, model: str) -> Compaction | None:
    """How the contents are made shorter before they are sent for the first time; None where they fit as they are.

    What would be as large as what a provider has refused before is cut at once as it would be after a refusal.
    """
    room = room_for(history, overhead, limits, model)
    if room is None:
        return None
    found, refused = _plan(history, room), history.marks.refused
    if refused is None or (found.after if found is not None else history.size) < refused:
        return found
    return _plan(history, room_after_refusal(refused)) or found


def planned_harder(history: History, sent: int) -> Compaction | None:
    """How they are made shorter after they were refused with the size `sent`; None where they would be no shorter."""
    found = _plan(history, room_after_refusal(sent))
    return found if found is not None and found.after < sent else None


def _plan(history: History, room: Room) -> Compaction | None:
    return plan(history.contents, history.stays, room, recorded=history.marks.recorded)


def room_after_refusal(size: int) -> Room:
    """The room for contents of this size that were refused as too large."""
    return Room(aim=int(size * HARDER_AIM), keep_recent=1, recent_chars=RESULT_CHARS_AFTER_REFUSAL)
