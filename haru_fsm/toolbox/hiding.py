"""Secrets: found by their mark, and cut out of everything that is told to a model, a journal or a log."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, get_type_hints

from pydantic import BaseModel, SecretStr

from haru_fsm.toolbox.hints import is_marked, mentions
from haru_fsm.toolbox.marks import MISSING, REDACTED, Secret
from haru_fsm.toolbox.shapes import Kind, Shape

_TELLING = 4
"""From this length on a secret is also cut out of the middle of other texts; "1" would be in everything."""


@functools.lru_cache(maxsize=512)
def secret_fields(kind: Any) -> frozenset[str]:
    """The fields of a model or dataclass that are marked Secret."""
    if issubclass(kind, BaseModel):
        hints: dict[str, Any] = {name: info.rebuild_annotation() for name, info in kind.model_fields.items()}
    else:
        try:
            hints = get_type_hints(kind, include_extras=True)
        except Exception:
            # A hint that cannot be resolved may be a secret one: its text decides, on the safe side.
            return frozenset(field.name for field in dataclasses.fields(kind) if "Secret" in str(field.type))
    return frozenset(name for name, hint in hints.items() if mentions(hint, Secret))


def mentions_secret(hint: Any) -> bool:
    """Whether a return annotation marks something as secret that its value alone does not show."""
    return hint is not MISSING and _mentions(hint, 8)


def _mentions(hint: Any, depth: int) -> bool:
    if is_marked(hint, Secret):
        return True
    return depth > 0 and any(_mentions(inner, depth - 1) for inner in _inner_hints(Shape(hint)))


def _inner_hints(shape: Shape) -> list[Any]:
    match shape.kind:
        case Kind.LIST | Kind.MAPPING:
            return [shape.items.hint]
        case Kind.TUPLE:
            return [each.hint for each in shape.positions]
        case Kind.UNION:
            return [branch.hint for branch in shape.branches]
        case Kind.OBJECT:
            return [field.shape.hint for field in shape.fields.values()]
    return []


def hide(hint: Any, value: Any, secrets: list[Any]) -> Any:
    """The value with REDACTED where its annotation says Secret; what was there is added to `secrets`."""
    if is_marked(hint, Secret):
        secrets.append(value)
        return REDACTED
    shape = Shape(hint)
    match shape.kind, value:
        case Kind.OBJECT, dict():
            fields = shape.fields
            return {k: hide(fields[k].shape.hint, v, secrets) if k in fields else v for k, v in value.items()}
        case Kind.MAPPING, dict():
            return {key: hide(shape.items.hint, item, secrets) for key, item in value.items()}
        case Kind.LIST, list() | tuple() | set() | frozenset():
            return [hide(shape.items.hint, item, secrets) for item in value]
        case Kind.TUPLE, tuple() | list():
            return [hide(each.hint, item, secrets) for each, item in zip(shape.positions, value, strict=False)]
        case Kind.UNION, _:
            for branch in shape.branches:
                value = hide(branch.hint, value, secrets)
    return value


def scrub(value: Any, secrets: list[Any]) -> Any:
    """JSON without the secrets, wherever they turn up in it."""
    words = set(_words(secrets)) - {""}
    return _scrubbed(value, sorted(words, key=len, reverse=True)) if words else value


def _words(secret: Any) -> Iterator[str]:
    """The texts that must not be seen, of a secret that may be a collection of them."""
    match secret:
        case None | True | False:
            return
        case dict():
            yield from _words(list(secret.values()))
        case list() | tuple() | set() | frozenset():
            for item in secret:
                yield from _words(item)
        case SecretStr():
            yield secret.get_secret_value()
        case _:
            yield str(secret)


def _scrubbed(value: Any, words: list[str]) -> Any:
    match value:
        case str():
            return _scrubbed_text(value, words)
        case dict():
            return {_scrubbed_text(key, words): _scrubbed(item, words) for key, item in value.items()}
        case list():
            return [_scrubbed(item, words) for item in value]
        case int() | float() if not isinstance(value, bool) and str(value) in words:
            return REDACTED
    return value


def _scrubbed_text(text: str, words: list[str]) -> str:
    for word in words:
        if text == word:
            return REDACTED
        if len(word) >= _TELLING:
            text = text.replace(word, REDACTED)
    return text
