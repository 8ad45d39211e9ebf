"""What is wrong with arguments, in sentences that a model can act on.

Each names the parameter, what came, what is allowed and, where something looks like it, the nearest allowed value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from haru_fsm.toolbox.cutting import cut_text
from haru_fsm.toolbox.repair import Drops, mend
from haru_fsm.toolbox.shapes import Field, Kind, Shape
from haru_fsm.toolbox.wording import describe, names, nearest, show

_LONGEST = 4_000
_TYPE_SAYS_IT = ("_type", "literal_error", "enum", "not_json", "_parsing", "_from_float")


def explain(shape: Shape, args: dict[str, Any], drops: Drops) -> str:
    """Why these arguments are refused. Every missing parameter comes first; the whole is bounded in length."""
    missing = [key for key, field in shape.fields.items() if _is_missing(field, args.get(key))]
    sentences = []
    if missing:
        wanted = "; ".join(f"{key} ({describe(shape.fields[key].shape)})" for key in missing)
        sentences.append(f"Missing: {wanted}.")
    sentences.extend(_strangers(shape, args, drops))
    for key, field in shape.fields.items():
        if key in args and key not in missing and not (args[key] is None and not field.required):
            sentences.extend(_wrong(field.shape, args[key], key, drops))
    return cut_text(" ".join(sentences), _LONGEST)


def _is_missing(field: Field, value: Any) -> bool:
    return value is None and field.required and not field.shape.accepts(None)


def _strangers(shape: Shape, args: dict[str, Any], drops: Drops, where: str = "") -> Iterator[str]:
    """What is no parameter: told where it may not be dropped, and where it looks like one that was meant."""
    absent = [key for key in shape.fields if args.get(key) is None]
    for key in args:
        if key in shape.fields or not shape.forbids_extra:
            continue
        meant = nearest(key, absent)
        if meant is not None:
            yield f"{where}{key} is not a parameter; was {where}{meant} meant?"
        elif not drops(key):
            yield f"{where}{key} is not a parameter; known are: {names(shape.fields) or 'none'}."


def _wrong(shape: Shape, value: Any, where: str, drops: Drops) -> Iterator[str]:
    """The deepest places that no repair makes valid."""
    if mend(shape, value, where, drops) is not None:
        return
    inner = list(_inside(shape, value, where, drops))
    if inner:
        yield from inner
    else:
        yield _sentence(shape, value, where)


def _inside(shape: Shape, value: Any, where: str, drops: Drops) -> Iterator[str]:
    match shape.kind, value:
        case Kind.UNION, _:
            # Null is no help for a value that is there, so with it only one branch is worth explaining.
            branches = [branch for branch in shape.branches if branch.kind is not Kind.NOTHING]
            if len(branches) == 1:
                yield from _wrong(branches[0], value, where, drops)
        case Kind.LIST, list():
            for index, item in enumerate(value):
                yield from _wrong(shape.items, item, f"{where}[{index}]", drops)
        case Kind.MAPPING, dict():
            for key, item in value.items():
                yield from _wrong(shape.items, item, f"{where}.{key}", drops)
        case Kind.OBJECT, dict():
            for key, field in shape.fields.items():
                if _is_missing(field, value.get(key)):
                    yield f"{where}.{key} is missing: it must be {describe(field.shape)}."
                elif value.get(key) is not None:
                    yield from _wrong(field.shape, value[key], f"{where}.{key}", drops)
            yield from _strangers(shape, value, drops, f"{where}.")


def _sentence(shape: Shape, value: Any, where: str) -> str:
    text = f"{where}: {show(value)} is not allowed; it must be {describe(shape)}"
    kind, words = shape.complaint(value) or ("", "")
    if words and not kind.endswith(_TYPE_SAYS_IT):
        text += f" ({words})"
    close = nearest(value, shape.choices) if shape.kind is Kind.CHOICE else None
    return f"{text}. Nearest: {show(close)}." if close is not None else f"{text}."
