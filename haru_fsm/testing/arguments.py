"""Arguments for a tool, out of its declaration: such that fit, and such that do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from haru_fsm.conversation import JSON
from haru_fsm.models import Declaration

WORDS = ("A", "B", "HR20260725002", "지금 어디쯤인가요", "010-0000-0003", "서울특별시 중구 세종대로 1", "3", "")
words = st.sampled_from(WORDS)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=3,
)


def arguments_for(tool: Declaration, texts: Sequence[str] = WORDS) -> st.SearchStrategy[JSON]:
    """Objects that fit the tool's declaration; free texts are among `texts`."""
    schema = tool.parameters or {}
    return _object(schema, schema.get("$defs", {}), texts)


def broken_arguments(tool: Declaration) -> st.SearchStrategy[JSON]:
    """Objects that do not: something missing, something of another type, something nobody asked for."""
    names = list((tool.parameters or {}).get("properties", {})) or ["x"]
    wrong = st.dictionaries(st.sampled_from(names), json_values, max_size=len(names))
    more = st.dictionaries(st.sampled_from(("tool_code", "customer_id", "thought")), json_values, max_size=1)
    return st.builds(lambda some, other: {**some, **other}, wrong, more)


def _object(schema: Mapping[str, Any], kept: Mapping[str, Any], texts: Sequence[str]) -> st.SearchStrategy[JSON]:
    fields = {name: _value(each, kept, texts) for name, each in schema.get("properties", {}).items()}
    required = set(schema.get("required", ()))
    return st.fixed_dictionaries(
        {name: values for name, values in fields.items() if name in required},
        optional={name: values for name, values in fields.items() if name not in required},
    )


def _value(schema: Mapping[str, Any], kept: Mapping[str, Any], texts: Sequence[str]) -> st.SearchStrategy[Any]:
    if "$ref" in schema:
        return _value(kept.get(schema["$ref"].rpartition("/")[2], {}), kept, texts)
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if some := schema.get("anyOf") or schema.get("oneOf"):
        return st.one_of(*(_value(each, kept, texts) for each in some))
    match schema.get("type"):
        case "string":
            return _text(schema, texts)
        case "integer":
            return st.integers(*_ends(schema, 0, 10_000))
        case "number":
            return st.integers(*_ends(schema, 0, 10_000)).map(float)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case "array":
            least = schema.get("minItems", 0)
            most = min(schema.get("maxItems", least + 2), least + 2)
            return st.lists(_value(schema.get("items", {}), kept, texts), min_size=least, max_size=most)
        case "object":
            return _object(schema, kept, texts)
    return json_values


def _text(schema: Mapping[str, Any], texts: Sequence[str]) -> st.SearchStrategy[str]:
    if "pattern" in schema:
        return st.from_regex(schema["pattern"], fullmatch=True).map(lambda text: text[:80])
    match schema.get("format"):
        case "date":
            return st.dates().map(lambda day: day.isoformat())
        case "date-time":
            return st.datetimes().map(lambda moment: moment.isoformat())
    return st.sampled_from(texts)


def _ends(schema: Mapping[str, Any], least: int, most: int) -> tuple[int, int]:
    low = schema.get("minimum", schema.get("exclusiveMinimum", least - 1) + 1)
    high = schema.get("maximum", schema.get("exclusiveMaximum", max(most, low) + 1) - 1)
    return int(low), max(int(low), int(high))
