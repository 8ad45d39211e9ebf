"""Repair of arguments: only what validation has rejected, only where there is one way to read it.

    certain                                          not certain, and left to the model
    "3", "３", 3.0 for a whole number                "3.5", 2.5, true, "about 3"
    "12,900원" for an amount declared as won         "12,900" for any other number, "1만원"
    "true", "FALSE" for a flag                       "yes", 1
    null where there is a default                    null for what is required
    "null" or "" for what may be null or left out    the same for a text, which they are, or for an effect
    nothing where null is allowed
    a list or object written as a JSON string        a list written in another way
    one item where a list of them is wanted          "a, b", an item inside of a list of lists
    an allowed word in other case, spacing, Unicode  another word
    blanks around, or full-width letters in, an id   anything else about a text
    an argument that the tool does not have

The laws: what is valid comes back untouched; repairing twice is repairing once; nothing is invented. A repair that
does not make the value valid is no repair. Every repair is one sentence, which the model reads.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from haru_fsm.toolbox.marks import MISSING
from haru_fsm.toolbox.shapes import Field, Kind, Shape, encode
from haru_fsm.toolbox.wording import fold, show

_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d*)(?:\.\d+)?", re.ASCII)
_SCIENTIFIC = re.compile(r"[+-]?(?:0|[1-9]\d*)(?:\.\d+)?[eE][+-]?\d+", re.ASCII)
_WON = re.compile(r"(₩\s?)?(\d{1,3}(?:,\d{3})+|\d+)(\s?원)?", re.ASCII)
_LONGEST_NUMBER = 300
_EXACT = 2**53
"""Beyond it a float no longer says which whole number was meant."""
_SEVERAL = re.compile(r"[,;\n、，；|]")
_EMPTY_WORDS = frozenset(("", "null", "none", "nil", "undefined", "n/a", "[]", "{}"))

_NOTHING = frozenset(("", "null", "none", "undefined"))

Drops = Callable[[str], bool]
"""Whether an argument of this name may be left out that the tool does not have, or that says nothing in words."""


@dataclass(frozen=True, slots=True)
class Mended:
    """A valid value, and what was done to get it."""

    value: Any
    repairs: tuple[str, ...] = ()


def mend(shape: Shape, value: Any, where: str, drops: Drops, *, in_list: bool = False) -> Mended | None:
    """The value made valid, or None where that is not certain. `where` is how sentences call its place."""
    if shape.accepts(value):
        return Mended(value)
    found = {encode_or_none(way.value): way for way in reversed(list(_ways(shape, value, where, drops, in_list)))}
    found.pop(None, None)
    return next(iter(found.values())) if len(found) == 1 else None


def encode_or_none(value: Any) -> str | None:
    """Canonical JSON with 3.0 written as 3, for comparing; None for what is no JSON."""
    try:
        return encode(normal(value))
    except (ValueError, RecursionError):
        return None


def normal(value: Any) -> Any:
    """The same JSON value with whole floats as integers: 3.0 and 3 are one number."""
    match value:
        case float() if value.is_integer() and abs(value) <= _EXACT:
            return int(value)
        case dict():
            return {key: normal(item) for key, item in value.items()}
        case list():
            return [normal(item) for item in value]
    return value


def _ways(shape: Shape, value: Any, where: str, drops: Drops, in_list: bool) -> Iterator[Mended]:
    """Every way to read a rejected value that ends in a valid one."""
    match shape.kind:
        case Kind.UNION:
            for branch in shape.branches:
                if (way := mend(branch, value, where, drops, in_list=in_list)) and shape.accepts(way.value):
                    yield way
        case Kind.LIST | Kind.TUPLE | Kind.OBJECT | Kind.MAPPING:
            way = _container(shape, value, where, drops, in_list)
            if way is not None and shape.accepts(way.value):
                yield way
        case _:
            for candidate in _SCALARS.get(shape.kind, _trimmed)(shape, value):
                if shape.accepts(candidate):
                    yield Mended(candidate, (f"{where}: {show(value)} was read as {show(candidate)}.",))


# --------------------------------------------------------------------------- scalars


def _whole(shape: Shape, value: Any) -> Iterator[Any]:
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        yield int(value)
    elif isinstance(value, str):
        text = _plain(value)
        if _NUMBER.fullmatch(text) and not text.partition(".")[2].strip("0"):
            yield int(text.partition(".")[0])
        elif shape.is_won and (amount := _WON.fullmatch(text)) and not (amount[1] and amount[3]):
            yield int(amount[2].replace(",", ""))


def _number(shape: Shape, value: Any) -> Iterator[Any]:
    if isinstance(value, str):
        text = _plain(value)
        if _NUMBER.fullmatch(text) or _SCIENTIFIC.fullmatch(text):
            yield normal(float(text))
        else:  # an amount of money, where that is wanted
            yield from _whole(shape, value)


def _decimal(shape: Shape, value: Any) -> Iterator[Any]:
    if isinstance(value, str):
        text = _plain(value)
        yield text  # as text, because a float would not keep its digits
        if shape.is_won:
            yield from _whole(shape, value)


def _flag(_: Shape, value: Any) -> Iterator[Any]:
    if isinstance(value, str) and (word := _plain(value).casefold()) in ("true", "false"):
        yield word == "true"


def _choice(shape: Shape, value: Any) -> Iterator[Any]:
    if not isinstance(value, str):
        return
    folded = fold(value)
    for allowed in shape.choices:
        if isinstance(allowed, str):
            if fold(allowed) == folded:
                yield allowed
        elif isinstance(allowed, bool):
            if allowed in _flag(shape, value):
                yield allowed
        elif allowed in _number(shape, value):
            yield allowed


def _trimmed(shape: Shape, value: Any) -> Iterator[Any]:
    """Blanks around it, and the other Unicode form; compatible letters only where a form is prescribed."""
    if not isinstance(value, str):
        return
    stripped = value.strip()
    for candidate in (stripped, unicodedata.normalize("NFC", stripped)):
        if shape.accepts(candidate):
            yield candidate
            return
    complaint = shape.complaint(stripped)
    if shape.kind is Kind.OTHER or (complaint and complaint[0] == "string_pattern_mismatch"):
        yield unicodedata.normalize("NFKC", value).strip()


_SCALARS: dict[Kind, Callable[[Shape, Any], Iterator[Any]]] = {
    Kind.WHOLE: _whole,
    Kind.NUMBER: _number,
    Kind.DECIMAL: _decimal,
    Kind.FLAG: _flag,
    Kind.CHOICE: _choice,
}


def _plain(text: str) -> str:
    """Full-width digits as plain ones, and no blanks around; "" for what is too long to be a number."""
    return unicodedata.normalize("NFKC", text).strip() if len(text) <= _LONGEST_NUMBER else ""


# --------------------------------------------------------------------------- containers


def _container(shape: Shape, value: Any, where: str, drops: Drops, in_list: bool) -> Mended | None:
    wants_object = shape.kind in (Kind.OBJECT, Kind.MAPPING)
    if isinstance(value, str):
        parsed = _parsed(value)
        if isinstance(parsed, dict if wants_object else list):
            inner = mend(shape, parsed, where, drops)
            read = f"{where}: the string was read as the JSON {'object' if wants_object else 'list'} in it."
            return inner and Mended(inner.value, (read, *inner.repairs))
    if isinstance(value, dict) and wants_object:
        return _object(shape, value, where, drops)
    if isinstance(value, list) and not wants_object:
        return _list(shape, value, where, drops)
    return _one_item(shape, value, where, drops) if shape.kind is Kind.LIST and not in_list else None


def _list(shape: Shape, value: list[Any], where: str, drops: Drops) -> Mended | None:
    if shape.kind is Kind.TUPLE and len(shape.positions) != len(value):
        return None
    shapes = shape.positions if shape.kind is Kind.TUPLE else [shape.items] * len(value)
    inner = [
        mend(each, item, f"{where}[{index}]", drops, in_list=True)
        for index, (each, item) in enumerate(zip(shapes, value, strict=True))
    ]
    whole = [item for item in inner if item is not None]
    if len(whole) < len(inner):
        return None
    return Mended([item.value for item in whole], tuple(text for item in whole for text in item.repairs))


def _one_item(shape: Shape, value: Any, where: str, drops: Drops) -> Mended | None:
    if value is None or (isinstance(value, str) and _is_doubtful(value)):
        return None
    inner = mend(shape.items, value, where, drops, in_list=True)
    return inner and Mended([inner.value], (f"{where}: the single value was put into a list.", *inner.repairs))


def _is_doubtful(text: str) -> bool:
    """A text that may stand for several items, for none, or for something written in another way."""
    plain = text.strip()
    return bool(_SEVERAL.search(plain)) or plain.casefold() in _EMPTY_WORDS or plain[0] in "[{(\"'"


def _object(shape: Shape, value: dict[str, Any], where: str, drops: Drops) -> Mended | None:
    result: dict[str, Any] = {}
    repairs: list[str] = []
    fields = shape.fields if shape.kind is Kind.OBJECT else dict.fromkeys(value, Field(shape.items, True))
    for key, item in value.items():
        field, path = fields.get(key), f"{where}.{key}" if where else key
        if field is None:
            if not shape.forbids_extra:
                result[key] = item
            elif drops(key):
                repairs.append(f"{path} is not a parameter and was left out.")
            else:
                return None
        elif (mended := mend(field.shape, item, path, drops) or _nothing(field, item, path, drops(key))) is None:
            return None
        else:
            repairs.extend(mended.repairs)
            if mended.value is not MISSING:
                result[key] = mended.value
    for key, field in fields.items():
        if key not in result and field.required:
            if not field.shape.accepts(None):
                return None
            result[key] = None
            repairs.append(f"{f'{where}.{key}' if where else key} was missing and was taken as null.")
    return Mended(result, tuple(repairs))


def _nothing(field: Field, item: Any, path: str, as_text: bool) -> Mended | None:
    """A value that says nothing: null where that is allowed, else MISSING, and so a default, if there is one.

    Models that fill in every parameter there is write it as a text (can1357/oh-my-pi#2981), which is read only where
    arguments may be left out: "none" of the parcels is not all of them, which a default may mean.
    """
    if item is not None and not (as_text and isinstance(item, str) and item.strip().casefold() in _NOTHING):
        return None
    if field.shape.accepts(None):
        return Mended(None, (f"{path}: {show(item)} was read as null.",))
    return Mended(MISSING, (f"{path}: {show(item)} was left out{_default_words(field)}.",))


def _default_words(field: Field) -> str:
    if field.default is MISSING or not isinstance(field.default, str | int | float | None):
        return ", so that its default applies"
    return f", so that its default {show(field.default)} applies"


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
