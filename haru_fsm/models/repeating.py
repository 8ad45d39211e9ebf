"""A reply that says the same thing over and over, until its tokens are spent. Pure.

Gemini models fall into it, with one sentence or with a few in turns ("I'll do it. I'll execute. I'll do it."), often
behind a proper beginning (google-gemini/gemini-cli#13322, redhat-data-and-ai/template-agent#359). More room for it is
only more of it. A list may have equal lines; that they are most of a text, ten times each, is no list. A reply that has
come to its end is an answer, however often it says a thing: whoever wanted it so got it so.
"""

from __future__ import annotations

import re
from collections import Counter

TIMES = 10
"""So often a sentence or a line is said before it counts as repeated."""
_END = re.compile(r"[.!?;,\n。…]+")


def is_repeating(text: str) -> bool:
    """Whether more than half of a text is made of sentences, or pieces of them, that it says again and again."""
    said = Counter(piece for each in _END.split(text) if (piece := each.strip()))
    repeated = sum(len(piece) * times for piece, times in said.items() if times >= TIMES)
    return 2 * repeated > sum(len(piece) * times for piece, times in said.items())
