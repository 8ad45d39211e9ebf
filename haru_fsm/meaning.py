"""What a JSON value means to whoever asks with it: two spellings of one question are one value here.

Key order, 3 against 3.0, blanks around and inside strings and Unicode's normal forms make no difference; `true` and 1
do. The result can be hashed and compared, and is nothing to be stored or shown.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable
from typing import Any


def meaning(value: Any) -> Hashable:
    """A JSON value as something that is equal, with an equal hash, for every way of writing the same."""
    kind = type(value)
    if kind is str:
        return " ".join((value if value.isascii() else unicodedata.normalize("NFC", value)).split())
    if kind is dict:
        return frozenset([(key, meaning(item)) for key, item in value.items()])
    if kind is list:
        return tuple([meaning(item) for item in value])
    return (bool, value) if kind is bool else value  # Python holds True and 1 to be equal, a tool does not
