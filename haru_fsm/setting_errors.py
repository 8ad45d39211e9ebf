"""What is wrong with a setting, in words: which one, as it is written where it stands, and what it may be.

A name that does not exist is told with the one that is nearest to it, else with all that there are.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from haru_fsm.limits import Limits

PREFIX, NESTED = "HARU_", "__"
LIMITS = "limits"
LIMIT = f"{PREFIX}{LIMITS.upper()}{NESTED}"
ELSEWHERE = ("HARU_DEBUG",)
"""Variables of ours that are no settings."""
_NEAR = 0.6
"""Similarity from which a name is taken for another one, misspelt (difflib's own default)."""
_SECRET = re.compile(r"key$", re.IGNORECASE)

MUST_BE: Mapping[str, str] = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "string_type": "a text",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "greater_than_equal": "{ge} or more",
    "greater_than": "more than {gt}",
    "less_than_equal": "{le} or less",
    "less_than": "less than {lt}",
    "literal_error": "{expected}",
    "finite_number": "a finite number",
    "path_type": "a path",
    "tuple_type": "a list of texts, or a text with commas",
    "model_type": "a table, [limits], with one line for each limit",
}
"""pydantic's kinds of errors -> what a value must be."""


def told(error: ValidationError) -> str:
    """The first thing that is wrong with these settings."""
    first = error.errors()[0]
    where = [str(part) for part in first["loc"]]
    # What is wrong inside a list has no variable of its own.
    whole = [str(part) for part in itertools.takewhile(lambda part: isinstance(part, str), first["loc"])]
    variable = _variable(whole)
    if first["type"] == "extra_forbidden":
        return f"There is no setting {variable}. {instead(where[-1], Limits.model_fields, LIMIT)}"
    bounds = {name: f"{bound:g}" if isinstance(bound, float) else bound for name, bound in first.get("ctx", {}).items()}
    must = f"It must be {MUST_BE[first['type']].format(**bounds)}" if first["type"] in MUST_BE else first["msg"]
    value = "not usable" if _SECRET.search(where[0]) else repr(first.get("input"))
    return f"The setting {variable}{_in_file(where)} is {value}. {must}."


def named_in_file(fields: Mapping[str, FieldInfo]) -> list[str]:
    """The settings that `haru.toml` may hold: those that are called HARU_ something in the environment."""
    return [name for name, field in fields.items() if field.validation_alias is None]


def unknown_in_file(found: Mapping[str, Any], known: Sequence[str]) -> str | None:
    """What a `haru.toml` says that is no setting, in words; None where it says nothing of that kind."""
    unknown = [name for name in found if name not in known]
    if unknown:
        return f"there is no setting {unknown[0]} here. {_advice(unknown[0], known)}"
    limits = found.get(LIMITS)
    unknown = [name for name in limits if name not in Limits.model_fields] if isinstance(limits, dict) else []
    return f"there is no limit {unknown[0]}. {instead(unknown[0], Limits.model_fields)}" if unknown else None


def _advice(name: str, known: Sequence[str]) -> str:
    """What to write instead of a name at the top of a file."""
    plain = name.removeprefix(PREFIX).lower().removeprefix(f"{LIMITS}{NESTED}")
    if plain in Limits.model_fields:
        return f"Write {plain} in the table [limits]."
    if name.isupper() and not name.startswith(PREFIX):
        return "Set it in the environment or in .env."
    return instead(plain, known)


def misspelt(environment: Iterable[str], known: Iterable[str], file: str = "") -> Iterator[str]:
    """Variables that begin like ours and are none, each with a word about it; nobody else would tell of them. `file`
    is where they stand, if not in the environment."""
    ours = [_variable([name]) for name in known if name != LIMITS]
    limits = [LIMIT + name.upper() for name in Limits.model_fields]
    where = f" in {file}" if file else ""
    for name in sorted({each.upper() for each in environment}):
        if file and name in ELSEWHERE:
            yield f"{name} counts in the environment only; in {file} it is ignored."
        if name.startswith(PREFIX) and not name.startswith(LIMIT) and name not in (*ours, *ELSEWHERE, LIMIT[:-2]):
            plain = {each.removeprefix(PREFIX): each for each in (*ours, *limits)}
            near = difflib.get_close_matches(name.removeprefix(PREFIX), plain, n=1, cutoff=_NEAR)
            meant = f" Did you mean {plain[near[0]]}?" if near else ""
            yield f"there is no setting {name}{where}; it is ignored.{meant}"


def instead(name: str, known: Iterable[str], prefix: str = "") -> str:
    """What may have been meant. `prefix` is that of variables, which are in capitals."""
    names = list(known)
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=_NEAR)
    if near:
        return f"Did you mean {prefix}{near[0].upper() if prefix else near[0]}?"
    return f"There are{f', in capitals after {prefix}' if prefix else ''}: {', '.join(names)}."


def _variable(where: Sequence[str]) -> str:
    """The variable of a setting. One with a name of its own, such as a key, is called by that already."""
    path = NESTED.join(where).upper()
    return path if where[0].isupper() else f"{PREFIX}{path}"


def _in_file(where: Sequence[str]) -> str:
    path = re.sub(r"\.(\d+)", r"[\1]", ".".join(where))
    return "" if where[0].isupper() else f" ({path} in haru.toml)"
