"""JSON from outside, made safe once: for the journal, for the wire, and for whoever reads either.

Python's `json` takes in and gives out things that are no JSON: NaN and Infinity, lone surrogates, integers of any
length. Databases, proxies and the Gemini API refuse them, mostly long after the harm was done. So whatever comes
from a customer, a model or a tool passes here at the edge, and nothing behind the edge has to think of it again.
"""

from __future__ import annotations

import math
import re
from typing import Any

MAX_DEPTH = 64
"""Levels of nesting that are kept. Protocol buffers refuse about a hundred, Python's own encoder a few hundred."""

TOO_DEEP = "(nested too deeply)"

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_INTEGER_BITS = 4096


def safe_text(text: str) -> str:
    """The same text with U+FFFD in the place of each lone surrogate; NUL and everything else stays."""
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def json_safe(value: object) -> Any:
    """A copy of `value` that every JSON parser reads: what was proper JSON comes back equal.

    NaN and the infinities become strings, spelled as protocol buffers spell them in JSON; integers that other
    languages could not even print become hexadecimal strings; keys become strings. A value that is no JSON type is
    replaced by its `str`: turning such types into something better is the toolbox's job, and comes before this.
    """
    return _safe(value, MAX_DEPTH)


def _safe(value: object, depth: int) -> Any:
    if type(value) is str:
        return safe_text(value)
    if isinstance(value, dict):
        return {_key(key): _safe(item, depth - 1) for key, item in value.items()} if depth else TOO_DEEP
    if isinstance(value, list | tuple):
        return [_safe(item, depth - 1) for item in value] if depth else TOO_DEEP
    return _safe_scalar(value)


def _safe_scalar(value: object) -> Any:
    match value:
        case None | True | False:
            return value
        case str():
            return safe_text(value)
        case int() if value.bit_length() > _LONGEST_INTEGER_BITS:
            return hex(value)
        case float() if not math.isfinite(value):
            return _name_of(value)
        case int() | float():
            return value
    return safe_text(str(value))


def _key(key: object) -> str:
    """A key as `json.dumps` would write it: true, null and 1 rather than True, None and 1.0's relatives."""
    if isinstance(key, str):
        return safe_text(key)
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    return str(_safe_scalar(key))


def _name_of(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"
