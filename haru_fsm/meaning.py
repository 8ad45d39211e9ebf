"""What a JSON value means to whoever asks with it: two spellings of one question are one value here.

Key order, 3 against 3.0, blanks around and inside strings and Unicode's normal forms make no difference; `true` and 1
do. The result can be hashed and compared, and is nothing to be stored or shown.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Hashable, Set
from typing import Any

_JSON = json.JSONEncoder(sort_keys=True, ensure_ascii=False)
_NUMBER = re.compile(r"(?<![\w.-])[0-9]{1,6}(?:\.[0-9]+)?(?![\w-])")
"""A number that stands alone: what is part of a word may be the name of something."""
_WORD = re.compile(r"[^\s\"{}\[\],:]+")


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


def wording(value: Any) -> frozenset[str]:
    """The words of a JSON value, keys among them; one number is as good as another."""
    return frozenset(_WORD.findall(_NUMBER.sub("0", _JSON.encode(value))))


def alike(one: Set[str], other: Set[str]) -> float:
    """The share of words that two sets have in common (Jaccard), between 0 and 1; two empty ones are alike."""
    return len(one & other) / len(one | other) if one or other else 1.0
