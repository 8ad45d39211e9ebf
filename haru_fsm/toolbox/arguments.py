"""A model's arguments, on their way to a tool: valid, repaired, or refused with reasons. Never an exception."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from typing import Any

from haru_fsm.json_safe import json_safe
from haru_fsm.toolbox.declaration import Declared
from haru_fsm.toolbox.explaining import explain
from haru_fsm.toolbox.marks import Marks
from haru_fsm.toolbox.repair import Drops, encode_or_none, mend
from haru_fsm.toolbox.shapes import encode
from haru_fsm.toolbox.wording import describe

_NOISE = frozenset(
    (
        "tool_code",
        "tool_name",
        "tool_call",
        "function_name",
        "thought",
        "thoughts",
        "reasoning",
        "rationale",
        "thinking",
    )
)
"""Arguments that models add of themselves and that ask for nothing (google/adk-python#1014, #1656)."""
_WRAPPINGS = frozenset(("args", "arguments", "parameters", "params", "kwargs", "input", "tool_input"))
"""Keys under which models put all of their arguments, as they stand in other providers' calls."""
_NOT_TEXT = "Characters that are no text, numbers that are no numbers or nesting without end were replaced."


@dataclass(frozen=True, slots=True)
class Prepared:
    """Arguments that a tool can be called with."""

    arguments: dict[str, Any]
    """Python values, by parameter."""
    repairs: tuple[str, ...] = ()
    """What was changed to get here, a sentence each."""
    canonical: str = "{}"
    """The repaired arguments as JSON: sorted keys, no blanks, 3.0 as 3. Equal calls have equal texts."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Arguments that the tool is not called with. `error` is what the model reads."""

    error: str


def prepare(declared: Declared, marks: Marks, args: Any, unusable: str | None = None) -> Prepared | Refused:
    """Validate, and where that fails repair, what a model sent. `unusable`: why it could not even be read."""
    if unusable is not None:
        return _unreadable(declared, unusable)
    try:
        text = encode(args)
        arguments = declared.validate(text, strict=True)
    except Exception:  # not valid, no JSON, or a validator of the application's that failed
        return _repaired(declared, marks, args)
    return Prepared(arguments, (), _canonical(text))


def _canonical(text: str) -> str:
    # Only a number with .0 or e+ can be a whole one in disguise; most arguments have neither, and are done.
    if ".0" not in text and "e+" not in text:
        return text
    return encode_or_none(json.loads(text)) or text


def _repaired(declared: Declared, marks: Marks, args: Any) -> Prepared | Refused:
    given, repairs = _as_object(args)
    if given is None:
        return _unreadable(declared, f"they came as {_json_type(args)}")
    given, unwrapped = _unwrapped(declared, given)
    given, renamed = _named(declared, given)
    repairs, drops = (*repairs, *unwrapped, *renamed), _drops(marks)
    mended = mend(declared.shape, given, "", drops)
    if mended is None:
        why = explain(declared.shape, given, drops) or "The arguments do not go together."
        return Refused(f"{declared.declaration.name} was not run. {why}")
    text = encode(mended.value)
    return Prepared(declared.validate(text, strict=True), (*repairs, *mended.repairs), _canonical(text))


def _as_object(args: Any) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """The arguments as a JSON object, and what had to be done for it; None where they are none."""
    safe = json_safe(args)
    repairs = () if args is None or safe == args else (_NOT_TEXT,)
    if isinstance(safe, str):
        safe, repairs = _parsed(safe), (*repairs, "The arguments were read from a string of JSON.")
    if safe is None or safe == []:
        return {}, repairs
    return (safe, repairs) if isinstance(safe, dict) else (None, repairs)


def _unwrapped(declared: Declared, given: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The arguments out of a wrapping that the tool does not have, and what to say of it.

    Only where nothing else is beside it and what is in it is valid as it stands: then there is one way to read it.
    """
    if len(given) != 1:
        return given, ()
    [(key, inner)] = given.items()
    if key not in _WRAPPINGS or key in declared.shape.fields:
        return given, ()
    inner = _parsed(inner) if isinstance(inner, str) else inner
    if not inner or not isinstance(inner, dict) or not declared.shape.accepts(inner):
        return given, ()
    return inner, (f"The arguments were taken out of {key}, which is not a parameter.",)


def _named(declared: Declared, given: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The arguments under the parameters' own names, and what to say of it.

    Only a name that nobody can tell from it by looking is taken for one: Hangul in single letters, wide letters, blanks
    around it. Whoever was told that there is no such parameter could not say it differently.
    """
    known = {_seen(name): name for name in declared.shape.fields}
    named = {key: known.get(_seen(key), key) for key in given if key not in declared.shape.fields}
    meant = {key: name for key, name in named.items() if name != key and name not in given}
    if not meant or len(set(meant.values())) < len(meant):
        return given, ()
    said = tuple(f"{name} was written in other characters that look the same." for name in meant.values())
    return {meant.get(key, key): value for key, value in given.items()}, said


def _seen(name: str) -> str:
    return unicodedata.normalize("NFKC", name).strip()


def _parsed(text: str) -> Any:
    try:
        return json_safe(json.loads(text))
    except (ValueError, RecursionError):
        return text


def _drops(marks: Marks) -> Drops:
    """Whether an unknown argument may be left out. One that was meant to limit an effect must not be lost."""
    if marks.extra_args == "refuse":
        return lambda _: False
    if marks.extra_args == "drop" or not marks.declares_effect:
        return lambda _: True
    return _NOISE.__contains__


def _unreadable(declared: Declared, why: str) -> Refused:
    name, fields = declared.declaration.name, declared.shape.fields
    wanted = "; ".join(f"{key} ({describe(field.shape)})" for key, field in fields.items())
    say = f"Send one JSON object with: {wanted}." if wanted else "It takes none: send an empty JSON object."
    return Refused(f"{name} was not run: its arguments could not be read, {why}. {say}")


def _json_type(value: Any) -> str:
    match value:
        case list() | tuple():
            return "a list"
        case str():
            return "a string"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
    return "no JSON object"
