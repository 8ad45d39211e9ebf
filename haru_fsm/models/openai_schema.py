"""Declarations as OpenAI takes them. Pure.

OpenAI's checks are stricter than JSON Schema, and one keyword too many or too few has the whole request refused: the
parameters of a function must be an object without alternatives at the top, an array must say what it holds (a tuple's
`prefixItems` are not enough), a description has at most 1,024 characters (reported for chat completions, among others
in getsentry/sentry-mcp#106). What cannot be said is left out here; the toolbox checks every call by the full schema.
"""

from __future__ import annotations

from typing import Any

from haru_fsm.conversation import JSON
from haru_fsm.models import Declaration

DESCRIPTION_CHARS = 1024
NO_PARAMETERS: JSON = {"type": "object", "properties": {}}

_NOT_AT_THE_TOP = ("anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref")


def declared(declaration: Declaration) -> JSON:
    """One tool of a request."""
    return {
        "type": "function",
        "function": {
            "name": declaration.name,
            "description": _short(declaration.description),
            "parameters": _object(declaration.parameters or NO_PARAMETERS),
        },
    }


def _short(description: str) -> str:
    return description if len(description) <= DESCRIPTION_CHARS else description[: DESCRIPTION_CHARS - 1] + "…"


def _object(schema: JSON) -> JSON:
    """The schema of all parameters: an object that says which properties it has."""
    named = {key: value for key, value in schema.items() if key not in _NOT_AT_THE_TOP}
    return {"properties": {}, **_translated(named), "type": "object"}


def _translated(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    words = {key: _value(key, value) for key, value in schema.items()}
    if _is_array(words.get("type")) and not isinstance(words.get("items"), dict):
        words["items"] = {"anyOf": words["prefixItems"]} if words.get("prefixItems") else {}
    words.pop("prefixItems", None)
    return words


def _value(key: str, value: Any) -> Any:
    match key:
        case "properties" | "$defs" | "patternProperties" if isinstance(value, dict):
            return {name: _translated(inner) for name, inner in value.items()}
        case "anyOf" | "oneOf" | "allOf" | "prefixItems" if isinstance(value, list):
            return [_translated(inner) for inner in value]
        case "items" | "additionalProperties" | "not":
            return _translated(value)
    return value


def _is_array(kind: object) -> bool:
    return kind == "array" or (isinstance(kind, list) and "array" in kind)
