"""What a tool gave, as JSON that every parser reads: once, before journal and wire, and without secrets.

    datetime, date, time    ISO 8601                    pydantic models, dataclasses    objects, secrets redacted
    Decimal                 text, with its digits       sets                            sorted lists
    Enum                    its value                   generators                      lists, up to a number of items
    bytes                   text, or base64             rows of a database              objects, a key for each column
    several errors          each in its own words       tables of pandas and others     lists of such objects
    anything else           its own str, never its insides

A result never becomes an exception: the call has been made, and what is known of it has to be told.
"""

from __future__ import annotations

import base64
import collections.abc
import concurrent.futures
import dataclasses
import datetime
import inspect
import re
import types
from collections.abc import Iterable
from decimal import Decimal
from enum import Enum
from itertools import islice
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from haru_fsm.conversation import JSON
from haru_fsm.foreign import without_numbers
from haru_fsm.json_safe import MAX_DEPTH, TOO_DEEP, json_safe, safe_text
from haru_fsm.toolbox.cutting import cut_for_model, cut_text
from haru_fsm.toolbox.hiding import hide, scrub, secret_fields
from haru_fsm.toolbox.marks import REDACT, REDACTED
from haru_fsm.toolbox.shapes import encode
from haru_fsm.toolbox.tables import rows_of
from haru_fsm.untrusted import marked_result

__all__ = ["cut_for_model", "failure", "response", "with_note"]

MOST_ITEMS = 10_000
"""Items that are taken from a generator."""
_MOST_VALUES = 500_000
_PLAIN = (int, float, bool, types.NoneType)
_OPEN = (dict, list)
_CYCLE = "(refers back to itself)"
_LONGEST_ERROR = 500
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
_TOO_MUCH = "(too much to keep)"


def response(value: Any, *, hints: Any = None, secrets: Iterable[Any] = ()) -> JSON:
    """`{"result": ...}` for what a tool returned. `hints`: its return annotation, where that marks secrets."""
    known = list(secrets)
    reader = _Reader(known)
    try:
        result = reader.read(hide(hints, value, known) if hints is not None else value)
    except Exception as error:
        text = f"What it returned ({type(value).__name__}) cannot be read: {_words(error)}"
        answer: JSON = {"error": text, "note": "The call itself came to its end."}
    else:
        answer = with_note({"result": result}, *reader.notes)
    scrubbed: JSON = scrub(answer, known)
    return marked_result(scrubbed)


def failure(error: BaseException, *, named: bool = True, secrets: Iterable[Any] = ()) -> JSON:
    """`{"error": ...}` for what a tool raised: its kind and its message, in short and without a traceback."""
    scrubbed: JSON = scrub({"error": _words(error, named=named)}, list(secrets))
    return marked_result(scrubbed)


def with_note(answer: JSON, *notes: str) -> JSON:
    """The same response with further notes behind the one it may have."""
    said = [answer["note"]] if answer.get("note") else []
    return {**answer, "note": " ".join([*said, *notes])} if notes else answer


def drained(value: Any) -> Any:
    """The items of a generator, which are only made when asked for; anything else as it is."""
    if not isinstance(value, collections.abc.Iterator):
        return value
    return Drained(islice(value, MOST_ITEMS + 1))


class Drained(list[Any]):
    """Items that came out of a generator; one more than MOST_ITEMS means that there are others."""


def is_later(value: Any) -> bool:
    """Whether this is no value yet, but has to be waited for."""
    return inspect.isawaitable(value) or isinstance(value, collections.abc.AsyncIterable | concurrent.futures.Future)


def _words(error: BaseException, *, named: bool = True) -> str:
    if isinstance(error, BaseExceptionGroup):  # its own words tell how many there are, and not what they are
        return cut_text("; ".join(dict.fromkeys(_words(each) for each in error.exceptions)), _LONGEST_ERROR)
    try:
        text = safe_text(without_numbers(str(error))).strip()
    except Exception:  # even an error's own words may fail
        text = ""
    kind = type(error).__name__
    return cut_text(f"{kind}: {text}" if text and named else text or kind, _LONGEST_ERROR)


class _Reader:
    """Reads one value. Keeps the way down, so that a value inside of itself is seen, and counts what it read."""

    def __init__(self, secrets: list[Any]) -> None:
        self.secrets = secrets
        self.notes: list[str] = []
        self._way: set[int] = set()
        self._read = 0

    def read(self, value: Any) -> Any:
        """The value as JSON."""
        kind = type(value)
        if kind is str:
            return value if value.isascii() else safe_text(value)
        if kind in _OPEN:
            return self._nested(value, value)
        if kind in _PLAIN:
            return json_safe(value)
        match value:
            case Enum():
                return self.read(value.value)
            case str():
                return safe_text(str.__str__(value))
            case int():
                return json_safe(int(value))
            case float():
                return json_safe(float(value))
        inside = self._inside(value)
        return self._leaf(value) if inside is None else self._nested(value, inside)

    def _nested(self, value: Any, inside: Any) -> Any:
        if id(value) in self._way:
            return _CYCLE
        if len(self._way) >= MAX_DEPTH - 2:  # the response and the journal add levels of their own
            return TOO_DEEP
        self._read += len(inside)
        if self._read > _MOST_VALUES:
            self._note("It was too large to be kept whole.")
            return _TOO_MUCH
        self._way.add(id(value))
        try:
            if isinstance(inside, dict):
                return self._object(inside)
            items = [self.read(item) for item in inside]
        finally:
            self._way.discard(id(value))
        if isinstance(value, collections.abc.Set):
            items.sort(key=encode)
        return items

    def _inside(self, value: Any) -> dict[Any, Any] | list[Any] | None:
        """What a container holds; None for what is none."""
        match value:
            case BaseModel():
                return self._model(value)
            case Drained():
                return self._few(value)
            case collections.abc.Mapping():
                return dict(value.items())
            case types.SimpleNamespace():
                return dict(vars(value))
            case collections.abc.Iterator():
                return self._few(drained(value))
            case bytes() | bytearray() | memoryview() | range():
                return list(value) if isinstance(value, range) and len(value) <= MOST_ITEMS else None
            case collections.abc.Sequence():
                return _row(value)
            case collections.abc.Set() | collections.abc.ValuesView():
                return list(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._fields(value, [field.name for field in dataclasses.fields(value)])
        if (table := rows_of(value, MOST_ITEMS)) is not None:
            return self._few(table) if isinstance(table, list) else table
        unpack = getattr(value, "tolist", None)  # arrays and numbers of numpy and pandas
        unpacked = unpack() if callable(unpack) and not isinstance(value, type) else None
        return unpacked if isinstance(unpacked, list) else None

    def _few(self, items: list[Any]) -> list[Any]:
        if len(items) > MOST_ITEMS:
            self._note(f"Only the first {MOST_ITEMS:,} items are kept.")
        return items[:MOST_ITEMS]

    def _model(self, value: BaseModel) -> dict[Any, Any]:
        try:
            dumped = value.model_dump(mode="json", by_alias=True, warnings=False, context={REDACT: self.secrets})
        except Exception:  # cycles, bytes, fields of types that pydantic cannot write
            return self._fields(value, list(type(value).model_fields))
        return dumped if isinstance(dumped, dict) else {"root": dumped}

    def _fields(self, value: Any, names: list[str]) -> dict[str, Any]:
        kind: Any = type(value)
        hidden = secret_fields(kind)
        self.secrets.extend(getattr(value, name, None) for name in hidden)
        return {name: REDACTED if name in hidden else getattr(value, name, None) for name in names}

    def _object(self, inside: dict[Any, Any]) -> JSON:
        result: JSON = {}
        for key, item in inside.items():
            text = key if type(key) is str and key.isascii() else self._key(key)
            while text in result:
                text += "'"  # 1 and "1" are two keys in Python
            result[text] = item if type(item) is str and item.isascii() else self.read(item)
        return result

    def _key(self, key: Any) -> str:
        read = key if isinstance(key, str) and not isinstance(key, Enum) else self.read(key)
        return safe_text(str.__str__(read)) if isinstance(read, str) else encode(read)

    def _leaf(self, value: Any) -> Any:
        match value:
            case datetime.datetime() | datetime.date() | datetime.time():
                return value.isoformat()
            case Decimal():
                return _decimal(value)
            case bytes() | bytearray() | memoryview():
                return _bytes(bytes(value))
            case BaseException():
                return _words(value)
        if inspect.iscoroutine(value):
            value.close()  # nobody waits for it any more, and Python would complain of that
        if isinstance(value, type) or callable(value) or is_later(value):
            return self._unreadable(value)
        try:
            return json_safe(to_jsonable_python(value))  # UUID, Path, URL, IP address, timedelta, SecretStr
        except Exception:
            return self._own_words(value)

    def _own_words(self, value: Any) -> Any:
        unpack = getattr(value, "item", None)  # a single number of numpy
        if callable(unpack) and hasattr(value, "dtype"):
            return self.read(unpack())
        kind = type(value)
        plain: Any = object
        if kind.__str__ is plain.__str__ and kind.__repr__ is plain.__repr__:
            return self._unreadable(value)
        return _ADDRESS.sub("", safe_text(str(value)))

    def _unreadable(self, value: Any) -> str:
        kind = getattr(value, "__name__", None) or type(value).__name__
        self._note(f"{kind} has no JSON form; return a dict, a list, a text or a number instead.")
        return f"<{kind}>"

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _row(value: Any) -> dict[Any, Any] | list[Any]:
    """The items under their names, where they have some: a namedtuple's fields, the columns of a database's row."""
    keys = getattr(value, "keys", None)
    names = list(keys()) if callable(keys) else list(getattr(value, "_fields", ()))
    if not names or not len(set(names)) == len(names) == len(value):  # a join may give one name to two columns
        return list(value)
    return dict(zip(names, value, strict=True))


def _decimal(value: Decimal) -> str:
    exponent = value.as_tuple().exponent
    plain = isinstance(exponent, int) and abs(exponent) < 50
    return format(value, "f") if plain else str(value)


def _bytes(value: bytes) -> Any:
    """Text where they are text, else base64 with their number."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = "\0"
    if all(char.isprintable() or char in "\r\n\t" for char in text):
        return text
    return {"bytes": len(value), "base64": base64.b64encode(value).decode()}
