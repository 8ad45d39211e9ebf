"""JSON Schema as pydantic writes it, turned into what the APIs take as a function's parameters.

Gemini's `parametersJsonSchema` knows a subset of JSON Schema, gateways that translate to the older `parameters` field
know less, and both refuse the whole request for one keyword too many: references beside other keywords, `const`,
`oneOf`, exclusive bounds, `uniqueItems`. So references are written out (only types that hold themselves keep them),
and what has an equivalent is put in the other words. What has none is dropped here and still checked by the toolbox: an
empty text among the words that may be chosen, a pattern that looks around.

Sources: FunctionDeclaration and GenerationConfig.responseJsonSchema in the Gemini API reference; reports of status
400 such as su-kaka/gcli2api#374 (reference with siblings), pizza-bot-app/pizza-bot#62 (exclusiveMinimum),
BerriAI/litellm#14155 (an empty text in an enum), alpacahq/alpaca-mcp-server#12 (no type), and of 500
pydantic/pydantic-ai#5508 (look-around).
"""

from __future__ import annotations

import inspect
import re
from enum import Enum
from typing import Any

from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticSerializationError, from_json, to_json
from pydantic_core.core_schema import EnumSchema, LiteralSchema

from haru_fsm.conversation import JSON

_DROPPED = frozenset(
    (
        "$defs",
        "contentMediaType",
        "contentSchema",
        "discriminator",
        "propertyNames",
        "readOnly",
        "title",
        "uniqueItems",
        "writeOnly",
    )
)
_REFERENCE = "#/$defs/"
_LOOK_AROUND = re.compile(r"\(\?<?[=!]")
_LOST = "cannot be written in JSON and read again"
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


class Writable(GenerateJsonSchema):
    """pydantic's JSON Schema, without choices that nobody can make: values that JSON writes as something else, which
    is none of them when it comes back."""

    def enum_schema(self, schema: EnumSchema) -> JsonSchemaValue:
        kind, members = schema["cls"], schema["members"]
        # Its own `_missing_` may know what was written.
        reads_more = inspect.getattr_static(kind, "_missing_") is not inspect.getattr_static(Enum, "_missing_")
        lost = [member for member in members if not (reads_more or _comes_back(member.value))]
        if lost or not members:
            raise _no_choice(kind.__name__, f"{lost[0]} {_LOST}" if lost else "it has no members")
        return super().enum_schema(schema)

    def literal_schema(self, schema: LiteralSchema) -> JsonSchemaValue:
        lost = [value for value in schema["expected"] if not _comes_back(value)]  # a member of an enum is no text
        if lost:
            raise _no_choice("a Literal", f"{lost[0]} {_LOST}")
        return super().literal_schema(schema)


def _no_choice(kind: str, why: str) -> PydanticUserError:
    return PydanticUserError(
        f"{kind} leaves a model nothing to choose: {why}; give it texts or numbers as values", code=None
    )


def _comes_back(value: Any) -> bool:
    """Whether the value is the same from JSON. That knows no endless number: the API refuses every request with one."""
    try:
        return bool(from_json(to_json(value, inf_nan_mode="null")) == value)
    except (PydanticSerializationError, ValueError):
        return False


def for_models(schema: JSON) -> JSON:
    """The schema of a function's parameters in words that Gemini and OpenAI accept."""
    definitions: JSON = schema.get("$defs", {})
    recursive = {name for name in definitions if _reaches(name, name, definitions, set())}
    translate = _Translation(definitions, recursive)
    result: JSON = translate(schema)
    if translate.used:
        result["$defs"] = {name: translate(definitions[name]) for name in sorted(recursive)}
    return result


class _Translation:
    """Knows the definitions; called with a schema, gives it back in the words of the APIs."""

    def __init__(self, definitions: JSON, recursive: set[str]) -> None:
        self._definitions = definitions
        self._recursive = recursive
        self.used = False

    def __call__(self, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            return self._resolved(schema)
        return {key: self._value(key, value) for key, value in _reworded(schema).items() if key not in _DROPPED}

    def _resolved(self, schema: JSON) -> JSON:
        name = schema["$ref"].removeprefix(_REFERENCE)
        if name in self._recursive:
            self.used = True
            return {"$ref": schema["$ref"]}  # a reference must stand alone
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        translated: JSON = self({**self._definitions[name], **beside})
        return translated

    def _value(self, key: str, value: Any) -> Any:
        match key:
            case "properties" | "patternProperties":
                return {name: self(inner) for name, inner in value.items()}
            case "anyOf" | "allOf" | "prefixItems":
                return [self(inner) for inner in value]
            case "items" | "additionalProperties":
                return self(value)
        return value


def _reworded(schema: JSON) -> JSON:
    words = dict(schema)
    if "const" in words:
        words["enum"] = [words.pop("const")]
    if "enum" in words:
        words |= _choices(words.pop("enum"))
    if _LOOK_AROUND.search(words.get("pattern", "")):
        del words["pattern"]
    if "oneOf" in words:
        words["anyOf"] = words.pop("oneOf")
    if words.get("type") == "integer":
        for exclusive, inclusive, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
            if exclusive in words:
                words[inclusive] = int(words.pop(exclusive)) + step
    if isinstance(words.get("additionalProperties"), bool):
        del words["additionalProperties"]
    return words


def _choices(values: list[Any]) -> JSON:
    """What may be chosen, each kind of value under its own type."""
    by_type: dict[str, list[Any]] = {}
    for value in values:
        by_type.setdefault(_TYPES.get(type(value), ""), []).append(value)
    if "" in by_type:  # no kind of value that pydantic writes
        return {"enum": values}
    branches = [_choice(name, found) for name, found in by_type.items()]
    return branches[0] if len(branches) == 1 else {"anyOf": branches}


def _choice(name: str, values: list[Any]) -> JSON:
    named = [value for value in values if value not in ("", None)]
    return {"type": name, "enum": named} if named else {"type": name}


def _reaches(name: str, target: str, definitions: JSON, seen: set[str]) -> bool:
    """Whether a definition leads back to `target`."""
    for reference in _references(definitions.get(name)):
        if reference == target:
            return True
        if reference not in seen:
            seen.add(reference)
            if _reaches(reference, target, definitions, seen):
                return True
    return False


def _references(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return set().union(*map(_references, schema)) if schema else set()
    if not isinstance(schema, dict):
        return set()
    own = {schema["$ref"].removeprefix(_REFERENCE)} if isinstance(schema.get("$ref"), str) else set()
    return own.union(*(_references(value) for value in schema.values()))
