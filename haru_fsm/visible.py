"""Whether anybody can see a text: one without a visible character is as good as none, whoever wrote it.

`str.strip` knows blanks. Models, keyboards and messengers have more to send that shows nothing: the zero width space
and its relatives, control characters, and fillers that Unicode counts among the letters (the Hangul filler is what
people type in Korea to send an empty name).
"""

from __future__ import annotations

import unicodedata

_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f\u17b4\u17b5\ufe0e\ufe0f")
"""Letters, marks and a sign that are drawn as nothing."""
_UNSEEN = frozenset("ZC")
"""First letters of the categories of blanks, and of what controls or formats, or is no character."""


def is_blank(text: str) -> bool:
    """Whether a text shows nothing at all."""
    return all(unicodedata.category(char)[0] in _UNSEEN or char in _FILLERS for char in text)
