"""How many tokens a model takes in one request, by its name. Another number is a setting: `max_input_tokens`.

Sources: the pages of the models at ai.google.dev/gemini-api/docs/models and developers.openai.com/api/docs/models, and
for the others the `context_window` of genai-prices 0.2.3. Where a window is shared with the reply, room for the longest
reply is taken off.
"""

from __future__ import annotations

import re
from functools import lru_cache

_SEVERAL = re.compile(r" [>+] ")

WINDOWS: tuple[tuple[str, int], ...] = (
    ("gemini-1.0", 30_720),
    ("gemini-1.5-pro", 2_097_152),
    ("gemini", 1_048_576),
    ("gemma-3", 131_072),
    ("gpt-3.5", 12_289),
    ("gpt-4.1", 1_014_808),
    ("gpt-4o", 111_616),
    ("gpt-4-turbo", 123_904),
    ("gpt-4", 4_096),
    ("gpt-5.3", 111_616),
    ("gpt-5.4-mini", 272_000),
    ("gpt-5.4-nano", 272_000),
    ("gpt-5.4", 922_000),
    ("gpt-5.5", 872_000),
    ("gpt-5.6", 922_000),
    ("gpt-5", 272_000),
    ("gpt-6", 922_000),
    ("gpt-oss", 98_304),
    ("o1", 100_000),
    ("o3", 100_000),
    ("o4-mini", 100_000),
)
"""Families by the beginning of their names; the first that fits counts."""


@lru_cache(maxsize=64)
def window_of(name: str) -> int | None:
    """Tokens that one request to this model may have, or None where this is not known.

    What a gateway puts before the name is left out: `models/`, `google/`, `openai/`. Of several models (`a > b` where
    one stands in for the other, `a + b` where one rewrites) it is the smallest window: all of them read the history.
    """
    known = filter(None, map(_of_one, _SEVERAL.split(name)))
    return min(known, default=None)


def _of_one(name: str) -> int | None:
    last = name.rpartition("/")[2].lower()
    return next((tokens for family, tokens in WINDOWS if last.startswith(family)), None)
