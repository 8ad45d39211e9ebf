"""Cutting what is too long for the model, without breaking what it reads.

The journal keeps a result whole; the model reads as much of it as fits, with its keys and the order of its items,
and a note that says how to ask for less. Text is cut between what people see as characters: an emoji with its skin
tone, a flag, a syllable written in single Hangul letters stay whole or go as a whole.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from pydantic_core import to_json

from haru_fsm.conversation import JSON

_LONGEST_CHARACTER = 64
"""Code points that are looked at to find where a character begins; longer runs of marks are no writing."""
_CUT = "…"
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""One for all: `json.dumps` makes an encoder for each of a hundred thousand values."""


def cut_for_model(response: JSON, chars: int) -> JSON:
    """The response itself where its JSON has at most `chars` characters, else a shorter one with a note.

    Keys keep their order, lists keep their first items. The note says how long the whole was; it takes about 200
    characters, also where `chars` is less. Pure: the same response and limit always give the same cut, so that a
    history does not change from one request to the next.
    """
    return cut_and_measured(response, chars)[0]


def cut_and_measured(response: JSON, chars: int) -> tuple[JSON, int]:
    """The same, and the bytes that it has as JSON: they were counted anyway."""
    # Its bytes are never fewer than its characters, and counting those is cheaper.
    size = size_of(response)
    if size <= chars or (whole := _chars(response)) <= chars:
        return response, size
    cut = _cut_response(response, whole, chars)
    return cut, size_of(cut)


def size_of(value: Any) -> int:
    """Bytes of a JSON value as it goes over the wire, in UTF-8 and unescaped."""
    return len(to_json(value))


def _cut_response(response: JSON, size: int, chars: int) -> JSON:
    said = response.get("note")
    note = f"Cut: {size:,} characters, of which about {chars:,} are shown. {_HOW_TO_ASK_FOR_LESS}"
    note = f"{said} {note}" if isinstance(said, str) and _chars(said) <= chars // 4 else note
    rest = {key: value for key, value in response.items() if key != "note"}
    return {**_fitted_object(rest, chars - _chars(note) - len(',"note":')), "note": note}


_HOW_TO_ASK_FOR_LESS = (
    "If what you need is not in it, ask for less: a narrower search, fewer items, one page, or a single id."
)


def cut_text(text: str, length: int) -> str:
    """The first characters of a text, at most `length` code points, ending where a character ends."""
    if len(text) <= length:
        return text
    end = max(length, 0)
    for _ in range(_LONGEST_CHARACTER):
        if end <= 0 or not _joined(text, end):
            break
        end -= 1
    return text[:end]


def _chars(value: Any) -> int:
    return len(_encode(value))


def _fitted(value: Any, room: int) -> Any:
    if _chars(value) <= room:
        return value
    match value:
        case str():
            return _fitted_text(value, room)
        case list():
            return _fitted_list(value, room)
        case dict():
            return _fitted_object(value, room)
    return _CUT


def _fitted_text(text: str, room: int) -> str:
    """As much of a text as fits, with its quotes and escapes counted."""
    length = min(len(text), max(room - 3, 0))
    shorter = cut_text(text, length)
    while shorter and (excess := _chars(shorter) + 1 - room) > 0:
        shorter = cut_text(shorter, len(shorter) - max(excess // 6, 1))
    return shorter + _CUT


def _fitted_list(items: list[Any], room: int) -> list[Any]:
    kept: list[Any] = []
    left = room - 2 - len(_more(len(items))) - 3
    for item in items:
        size = _chars(item) + 1
        if size > left:
            break
        kept.append(item)
        left -= size
    if not kept and left > 0:
        kept.append(_fitted(items[0], left))
    return [*kept, _more(len(items) - len(kept))] if len(kept) < len(items) else kept


def _more(count: int) -> str:
    return f"({count:,} more)"


def _fitted_object(value: JSON, room: int) -> JSON:
    """Small values whole, the large ones sharing what is left; where there are too many keys, the first ones."""
    sizes = {key: _chars(item) for key, item in value.items()}
    share = _fair_share(list(sizes.values()), room - 2 - sum(_chars(key) + 2 for key in value))
    if share <= 0:
        return _first_keys(value, sizes, room)
    return {key: item if sizes[key] <= share else _fitted(item, share) for key, item in value.items()}


def _first_keys(value: JSON, sizes: dict[str, int], room: int) -> JSON:
    kept: JSON = {}
    left = room - 2 - len(_more(len(value))) - 8
    for key, item in value.items():
        left -= sizes[key] + _chars(key) + 2
        if left < 0:
            break
        kept[key] = item
    return {**kept, _CUT: _more(len(value) - len(kept))}


def _fair_share(sizes: list[int], room: int) -> int:
    """The largest size such that, with every larger one cut down to it, all fit into the room."""
    for index, size in enumerate(ordered := sorted(sizes)):
        share = room // (len(ordered) - index)
        if size > share:
            return share
        room -= size
    return room


def _joined(text: str, end: int) -> bool:
    """Whether the character before `end` goes on after it."""
    before, after = text[end - 1], text[end]
    if before == _JOINER or _extends(after):
        return True
    if _is_flag_letter(before) and _is_flag_letter(after):
        return _flag_letters_before(text, end) % 2 == 1
    return before == "\r" and after == "\n"


_JOINER = "\u200d"


def _extends(char: str) -> bool:
    code = ord(char)
    return (
        char == _JOINER
        or unicodedata.category(char) in ("Mn", "Me", "Mc")
        or 0x1F3FB <= code <= 0x1F3FF  # skin tones
        or 0xE0020 <= code <= 0xE007F  # tags in the flags of regions
        or 0x1160 <= code <= 0x11FF  # Hangul vowels and finals that follow an initial
    )


def _is_flag_letter(char: str) -> bool:
    return 0x1F1E6 <= ord(char) <= 0x1F1FF


def _flag_letters_before(text: str, end: int) -> int:
    start = end
    while start > 0 and end - start < _LONGEST_CHARACTER and _is_flag_letter(text[start - 1]):
        start -= 1
    return end - start
