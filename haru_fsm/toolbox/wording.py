"""Words: how values and types are shown to a model, and which allowed value is nearest to a wrong one."""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from haru_fsm.json_safe import json_safe, safe_text
from haru_fsm.toolbox.cutting import cut_text
from haru_fsm.toolbox.shapes import Kind, Shape

_SHOWN = 80
_ALLOWED_SHOWN = 30
_NEAR_ENOUGH = 0.6
_SEPARATOR = re.compile(r"(?<=[^\W\d_])[-_](?=[^\W\d_])")
_BLANK = re.compile(r"(?<!\d)\s+|\s+(?!\d)")

_DESCRIPTIONS = {
    Kind.TEXT: "a string",
    Kind.WHOLE: "a whole number",
    Kind.NUMBER: "a number",
    Kind.DECIMAL: "a decimal number",
    Kind.FLAG: "true or false",
    Kind.NOTHING: "null",
    Kind.MAPPING: "an object",
    Kind.TUPLE: "a list",
    Kind.ANYTHING: "any value",
}
_FORMATS = {
    "date": 'a date like "2026-07-25"',
    "date-time": 'a date and time like "2026-07-25T10:00:00+09:00"',
    "time": 'a time of day like "10:00:00"',
    "duration": 'a duration like "PT30M"',
    "uuid": "a UUID",
    "uri": "a URL",
    "email": "an email address",
}


def show(value: Any) -> str:
    """A value as JSON, short enough for a sentence."""
    text = json.dumps(json_safe(value), ensure_ascii=False)
    shorter = cut_text(text, _SHOWN)
    return text if shorter == text else f"{shorter}…"


def describe(shape: Shape) -> str:
    """What a shape allows, in a few words."""
    match shape.kind:
        case Kind.WHOLE if shape.is_won:
            return "a whole number of won"
        case Kind.CHOICE:
            return _one_of(shape.choices)
        case Kind.LIST:
            return f"a list in which each item is {describe(shape.items)}"
        case Kind.OBJECT:
            return f"an object with the keys {', '.join(shape.fields)}"
        case Kind.UNION:
            return " or ".join(dict.fromkeys(describe(branch) for branch in shape.branches))
        case Kind.OTHER:
            return _other(shape)
    return _DESCRIPTIONS[shape.kind]


def fold(text: str) -> str:
    """The same for spellings of one word that differ in case, in blanks, in Unicode form, or in - for _.

    Blanks and hyphens between digits stay: "1 5" is not "15", and "A-" is not "A".
    """
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).strip()
    return _SEPARATOR.sub("", _BLANK.sub("", plain))


def nearest(value: Any, allowed: Iterable[Any]) -> Any | None:
    """The allowed value that looks most like this one, or None where none looks like it."""
    by_letters = {_letters(str(option)): option for option in allowed}
    close = difflib.get_close_matches(_letters(str(value)[:200]), by_letters, n=1, cutoff=_NEAR_ENOUGH)
    return by_letters[close[0]] if close else None


def names(words: Iterable[str]) -> str:
    """A list of names for a sentence."""
    return ", ".join(safe_text(word) for word in words)


def _letters(text: str) -> str:
    # Hangul is compared by its letters, so that 배송즁 is near to 배송중.
    return unicodedata.normalize("NFKD", text.casefold())


def _one_of(choices: tuple[Any, ...]) -> str:
    if len(choices) == 1:
        return show(choices[0])
    listed = ", ".join(show(choice) for choice in choices[:_ALLOWED_SHOWN])
    more = len(choices) - _ALLOWED_SHOWN
    return f"one of {listed}" + (f" and {more} more" if more > 0 else "")


def _other(shape: Shape) -> str:
    schema = shape.adapter.json_schema()
    found = _FORMATS.get(schema.get("format", ""))
    return found or {"string": "a string", "array": "a list", "object": "an object"}.get(
        schema.get("type", ""), "a value of the declared type"
    )
