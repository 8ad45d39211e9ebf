"""From a function to its declaration, and to the check of its arguments: built once per function and process.

`make_tools(session)` makes new functions for every conversation, over the same code and with the same signature. What
a model reads of them is the same, so it is kept beside the code and goes with it.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, SchemaError, to_jsonable_python

from haru_fsm.conversation import JSON
from haru_fsm.errors import ToolError
from haru_fsm.models import Declaration
from haru_fsm.toolbox.hiding import mentions_secret
from haru_fsm.toolbox.marks import IdempotencyKey, Secret, marks_of
from haru_fsm.toolbox.reading import Layers, Parameter, Reading, layers, read
from haru_fsm.toolbox.schema import Writable, for_models
from haru_fsm.toolbox.shapes import ArgumentsShape, Shape

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""What Gemini (letter or underscore first, then also dots, colons, dashes; 64) and OpenAI (no dots, no colons) take."""
_KEPT_PER_CODE = 16
_UNDECLARABLE = (PydanticUserError, SchemaError, RecursionError, TypeError, ValueError)
"""What pydantic raises for a hint that it cannot check or write as JSON Schema."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A function as models see it, and the shape of what they may send."""

    declaration: Declaration
    reading: Reading
    shape: ArgumentsShape
    hiding: Any
    """The return annotation where that marks secrets, else None."""
    validate: Callable[..., dict[str, Any]]
    """`validate(json_text, strict=True)` gives the arguments as Python values, or raises ValidationError."""


_kept: weakref.WeakKeyDictionary[Any, list[tuple[tuple[Any, ...], Declared]]] = weakref.WeakKeyDictionary()


def declare(name: str, function: Callable[..., Any]) -> tuple[Declared, Layers]:
    """The declaration of a callable under a name. Raises ToolError for what cannot be declared."""
    layered = layers(function)
    code = getattr(layered.function, "__code__", None)
    marks = marks_of(function)
    read_only = False if marks.declares_effect else marks.read_only
    if code is None:
        return _declared(name, layered, read_only), layered
    fingerprint = (name, read_only, *layered.fingerprint)
    kept = _kept.get(code, [])
    for known, declared in kept:
        if _same(known, fingerprint):
            return declared, layered
    declared = _declared(name, layered, read_only)
    _kept[code] = [*kept[-_KEPT_PER_CODE + 1 :], (fingerprint, declared)]
    return declared, layered


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    try:
        return bool(one == other)
    except Exception:  # a default may compare in ways of its own
        return False


def _declared(name: str, layered: Layers, read_only: bool | None) -> Declared:
    if not _NAME.fullmatch(name):
        raise ToolError(
            f"tool {name!r}: models take names of letters, digits, _ and -, at most 64, that begin with a letter or _; "
            "rename the function, or give make_tools' dictionary another name for it"
        )
    reading = read(name, layered)
    shape = _shape(name, reading.parameters)
    schema = _schema(name, shape, reading.parameters)
    return Declared(
        declaration=Declaration(name, reading.description, schema, read_only),
        reading=reading,
        shape=shape,
        hiding=reading.returns if mentions_secret(reading.returns) else None,
        validate=shape.adapter.validator.validate_json,
    )


def _shape(name: str, parameters: tuple[Parameter, ...]) -> ArgumentsShape:
    try:
        return ArgumentsShape(parameters)
    except TypeError as error:  # Final, ClassVar, Generic: hints that stand for no value
        raise _undeclarable(name, parameters) or ToolError(f"tool {name}: {_first_line(error)}") from error


def _schema(name: str, shape: ArgumentsShape, parameters: tuple[Parameter, ...]) -> JSON | None:
    try:
        schema = for_models(shape.adapter.json_schema(schema_generator=Writable))
    except _UNDECLARABLE as error:
        raise _undeclarable(name, parameters) or ToolError(f"tool {name}: {_first_line(error)}") from error
    if not parameters:
        return None
    for param in parameters:
        _describe(schema["properties"][param.name], param, shape.fields[param.name].shape)
    return schema


def _describe(schema: JSON, param: Parameter, shape: Shape) -> None:
    """Add what JSON Schema did not know: the docstring's words, and the default of the signature."""
    if "$ref" in schema:
        return  # nothing may stand beside a reference
    if param.description and "description" not in schema:
        schema["description"] = param.description
    if not param.required:
        try:
            default = to_jsonable_python(param.default)
        except (PydanticSerializationError, ValueError):
            return
        if shape.accepts(default):  # in `x: str = None` the default is no value of its type: nothing to tell
            schema["default"] = default


def _undeclarable(name: str, parameters: tuple[Parameter, ...]) -> ToolError | None:
    """The error of the parameter that pydantic cannot declare."""
    for param in parameters:
        try:
            TypeAdapter(param.hint).json_schema(schema_generator=Writable)
        except _UNDECLARABLE as error:
            return ToolError(f"tool {name}: parameter {param.name} has a {_no_type(param.hint, error)}")
    return None


def _no_type(hint: Any, error: Exception) -> str:
    for marker in (IdempotencyKey, Secret):
        if marker in (hint, *get_args(hint)):
            return f"marker for its type; write Annotated[str, {marker.__name__}]"
    return (
        f"type that cannot be declared to a model: {_first_line(error)} "
        "Use types that JSON can carry, or bind it with functools.partial"
    )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".") + "."
