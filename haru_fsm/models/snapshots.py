"""Streams that say again what they have said. Pure.

A chunk adds to what was written before it. Some gateways send all that was written so far, each time
(diegosouzapw/OmniRoute#7163, tashfeenahmed/freellmapi#1007), or all of it once more at the end (maximhq/bifrost#2251).
Put together like pieces, that is an answer that stammers.

Only what is certain is left out. A short piece may well begin as the one before it: "1" and "1월" are November.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

LEAST = 12
"""Characters that are said again before it is no coincidence."""


def said_again(texts: Sequence[str]) -> frozenset[int]:
    """Which of the texts, one for each chunk of a stream, are to be left out since another one says all of theirs."""
    spoken = [index for index, text in enumerate(texts) if text]
    if len(spoken) < 2:
        return frozenset()
    *earlier, last = spoken
    if len(texts[earlier[-1]]) >= LEAST and all(texts[b].startswith(texts[a]) for a, b in pairwise(spoken)):
        return frozenset(earlier)
    whole = len(texts[last]) >= LEAST and texts[last] == "".join(texts[index] for index in earlier)
    return frozenset({last}) if whole else frozenset()
