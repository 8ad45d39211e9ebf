"""How many tokens a text has, where no provider says so; and how many a reply has at most."""

from __future__ import annotations

import json

from haru_fsm.conversation import Usage

BYTES_PER_TOKEN = 4
"""Of UTF-8. English has about four letters to a token, Hangul about one syllable (three bytes): counting bytes is
right within a third for both, counting characters is wrong by a factor of three for one of them."""

MOST_OUTPUT_TOKENS = 65_536
"""What Gemini 2.5 and later give at most in one reply; earlier models take the number and give less."""


def estimate_tokens(value: object) -> int:
    """Tokens of a text, or of a JSON value as it goes over the wire; at least 1."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return max(1, len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def estimated_usage(sent: object, written: object) -> Usage:
    """The tokens of a reply that counts none, from the sizes of what was sent and of what came back."""
    return Usage(
        prompt=estimate_tokens(sent) if sent else 0,
        answer=estimate_tokens(written) if written else 0,
        estimated=True,
    )
