"""Whether anybody can see a text: one without a visible character is as good as none, whoever wrote it.

`str.strip` knows blanks. Models, keyboards and messengers have more to send that shows nothing: the zero width space
and its relatives, control characters, and fillers that Unicode counts among the letters (the Hangul filler is what
people type in Korea to send an empty name). What Python's tables do not know yet is seen: emoji are younger than they.
"""

from __future__ import annotations

import re
import unicodedata

_UNSEEN = frozenset(("Zs", "Zl", "Zp", "Cc", "Cf", "Cs"))
"""Categories of blanks, of what controls or formats, and of halves of characters."""
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Unicode's Default_Ignorable_Code_Point, which fonts draw as nothing (UAX #44), and the blank pattern of Braille."""


def is_blank(text: str) -> bool:
    """Whether a text shows nothing at all."""
    return all(unicodedata.category(char) in _UNSEEN or _IGNORABLE.match(char) for char in text)
