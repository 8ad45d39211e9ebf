"""Repair: its laws for every type and value, and the table of what is certain and what is not."""

from __future__ import annotations

import json
import math
import re
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from haru_fsm.toolbox import Prepared, Refused, Won, tool
from haru_fsm.toolbox.repair import normal
from haru_fsm.toolbox.tools import Tool
from haru_fsm.toolbox.wording import fold
from tests.toolbox.strategies import DAMAGES, Address, Signature, json_values, model_values, signatures, tool_of

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


# --------------------------------------------------------------------------- laws


@quick
@given(st.data(), signatures)
def test_what_is_valid_comes_back_untouched(data: st.DataObject, signature: Signature) -> None:
    args = data.draw(signature.valid)
    prepared = signature.tool.prepare(args)
    assert isinstance(prepared, Prepared), prepared
    assert prepared.repairs == ()
    assert json.loads(prepared.canonical) == normal(args)
    assert prepared.arguments.keys() == args.keys()


@quick
@given(st.data(), signatures)
def test_whatever_comes_is_valid_repaired_or_refused_and_repairing_twice_is_repairing_once(
    data: st.DataObject, signature: Signature
) -> None:
    args = data.draw(st.dictionaries(st.sampled_from((*signature.parameters, "tool_code")), model_values) | json_values)
    tool = signature.tool
    prepared = tool.prepare(args)
    if isinstance(prepared, Refused):
        assert prepared.error.startswith("give_back was not run")
        return
    again = tool.prepare(json.loads(prepared.canonical))
    assert isinstance(again, Prepared)
    assert again.repairs == ()
    assert (again.arguments, again.canonical) == (prepared.arguments, prepared.canonical)


@quick
@given(st.data(), signatures)
def test_one_wrong_argument_changes_no_other(data: st.DataObject, signature: Signature) -> None:
    args = data.draw(signature.valid)
    wrong = data.draw(st.sampled_from(list(signature.parameters)))
    prepared = signature.tool.prepare({**args, wrong: data.draw(model_values)})
    if isinstance(prepared, Prepared):
        got = json.loads(prepared.canonical)
        assert {name: got[name] for name in args if name != wrong} == normal(
            {name: value for name, value in args.items() if name != wrong}
        )


@quick
@given(st.data(), signatures)
def test_nothing_is_invented(data: st.DataObject, signature: Signature) -> None:
    args = data.draw(st.dictionaries(st.sampled_from(list(signature.parameters)), model_values, min_size=1))
    prepared = signature.tool.prepare(args)
    if isinstance(prepared, Prepared):
        said = set(_atoms(args))
        assert [leaf for leaf in _leaves(json.loads(prepared.canonical)) if said.isdisjoint(_atoms(leaf))] == []


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: str(damage[0]))
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_certain_damage_is_undone_and_told(damage: Any, data: st.DataObject) -> None:
    hint, values, harm = damage
    value = data.draw(values)
    prepared = tool_of({"p": hint}).prepare({"p": harm(value)})
    assert isinstance(prepared, Prepared), prepared
    assert json.loads(prepared.canonical) == {"p": normal(value)}
    assert prepared.repairs or harm(value) == value
    assert all(sentence.startswith("p") and sentence.endswith(".") for sentence in prepared.repairs)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict | list):
        return [leaf for item in (value.values() if isinstance(value, dict) else value) for leaf in _leaves(item)]
    return [] if value is None else [value]


def _atoms(value: Any) -> list[str]:
    """What a value says, free of how it is written: words folded, numbers as numbers, JSON in strings opened."""
    if isinstance(value, dict):
        return [atom for item in value.values() for atom in _atoms(item)]
    if isinstance(value, list):
        return [atom for item in value for atom in _atoms(item)]
    if not isinstance(value, str):
        return [] if value is None else [_number(value)]
    try:
        inner = json.loads(value)
    except ValueError:
        inner = None
    plain = fold(value)
    amount = re.sub(r"[₩원,\s]", "", plain)
    found = [plain, value.strip(), _number(plain), _number(amount)]
    return found + (_atoms(inner) if isinstance(inner, list | dict) else [])


def _number(value: Any) -> str:
    if isinstance(value, bool) or value in ("true", "false"):
        return str(value).lower()
    try:
        return str(normal(float(value)))
    except (ValueError, OverflowError):
        return str(value)


# --------------------------------------------------------------------------- the table


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    page: int


class Reason(StrEnum):
    DEFECT = "DEFECT"
    CHANGE_OF_MIND = "CHANGE_OF_MIND"


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    zip: str
    note: str | None


Grade = Literal["A", "A+", "B"]
OrderId = Annotated[str, Field(pattern=r"^HR\d{11}$")]

CERTAIN = [
    (int, 3.0, 3),
    (int, "3", 3),
    (int, "+3", 3),
    (int, "-0", 0),
    (int, "３７", 37),
    (float, "2.50", 2.5),
    (float, "1e3", 1000),
    (Won, "12,900원", 12900),
    (Annotated[int, Won], "12,900원", 12900),
    (Won, "₩ 12,900", 12900),
    (Won, "１２，９００원", 12900),
    (list[Won], ["1,000원"], [1000]),
    (bool, " True", True),
    (Reason, "change of mind", "CHANGE_OF_MIND"),
    (Reason, "change-of-mind", "CHANGE_OF_MIND"),
    (Literal["상품준비중", "배송중"], "상품 준비중", "상품준비중"),
    (Literal["배송중"], "배송중", "배송중"),
    (Grade, "a+", "A+"),
    (OrderId, " HR20260725002 ", "HR20260725002"),
    (OrderId, "ＨＲ20260725002", "HR20260725002"),
    (date, " 2026-07-25", "2026-07-25"),
    (date | None, "２０２６-０７-２５", "2026-07-25"),
    (Decimal, "１２．５０", "12.50"),
    (list[str], '["HR20260725002","HR20260726011"]', ["HR20260725002", "HR20260726011"]),
    (list[str], "HR1", ["HR1"]),
    (set[int], 3, [3]),
    (list[str] | None, "HR1", ["HR1"]),
    (tuple[int, str], ["1", "a"], [1, "a"]),
    (Address, '{"zip": " 12345"}', {"zip": "12345"}),
    (Strict, {"zip": "1"}, {"zip": "1", "note": None}),
    (Strict, {"zip": "1", "note": None, "tool_code": "x"}, {"zip": "1", "note": None}),
    (int | bool, "true", True),
    (int | float, "3", 3),
    (int, 2.0**53, 2**53),
    (int, -(2.0**53), -(2**53)),
    (Annotated[float, Won], "12,900원", 12900),
    (Annotated[Decimal, Won], "12,900원", 12900),
    (Decimal, "１２．０", "12.0"),
    (Literal[True], " True", True),
    (Literal[1, 2], "2", 2),
    (OrderId, "\u3000ＨＲ20260725002\u3000", "HR20260725002"),
    (dict[str, int], {"a": "1"}, {"a": 1}),
    (list[tuple[int, int]], [["1", 2]], [[1, 2]]),
]

NOT_CERTAIN = [
    (int, 2.5),
    (int, "2.5"),
    (int, True),
    (int, "007"),
    (int, "1_000"),
    (int, "12,900"),
    (int, "about 3"),
    (int, 2.0**60),
    (int, "9" * 400),
    (float, "NaN"),
    (float, True),
    (bool, 1),
    (bool, 2.0),
    (bool, "yes"),
    (str, 5),
    (str, None),
    (Won, "1만원"),
    (Won, "12,90원"),
    (Won, "1.5원"),
    (Won, "₩1,000원"),
    (Won, "$12"),
    (Reason, "BROKEN"),
    (Grade, "A-"),
    (Literal["15"], "1 5"),
    (Literal["31"], "3-1"),
    (Literal["a", "A "], "a "),
    (Literal[1, 2], True),
    (Literal[1, 2], 1.5),
    (OrderId, "HR2026"),
    (date, "2026/07/25"),
    (date, 1_785_000_000),
    (list[str], "a, b"),
    (list[str], "['a']"),
    (list[str], ""),
    (list[str], "null"),
    (list[str], None),
    (list[list[str]], "a"),
    (list[list[str]], ["a", "b"]),
    (list[int], ["a"]),
    (tuple[int, str], "1"),
    (dict[str, int], "{'a': 1}"),
    (Address, {"line": "x"}),
    (Address, {"zip": None}),
    (int | date, "x"),
    (int, -(2.0**60)),
    (float, "12,900원"),
    (Decimal, "12,900원"),
    (Literal[True], "false"),
    (Literal[True], "yes"),
    (list[float], "[NaN]"),
    (list[Any], "[1, [NaN]]"),
    (dict[str, Any], '{"a": 1e999}'),
    (list[int], "[" * 100_000),
    (list[int], {"a": 1}),
    (dict[str, int], ["a"]),
    (tuple[int, str], [1]),
    (tuple[int, str], 1),
    (set[int], None),
    (Strict, {"note": None, "tool_code": "x"}),
    (int, math.nan),
    (list[int], [math.inf]),
    (list[list[int]], math.nan),
    (dict[str, int], {"a": -math.inf}),
]


@pytest.mark.parametrize(("hint", "sent", "read"), CERTAIN, ids=str)
def test_certain(hint: Any, sent: Any, read: Any) -> None:
    prepared = tool_of({"p": hint}).prepare({"p": sent})
    assert isinstance(prepared, Prepared), prepared
    assert json.loads(prepared.canonical) == {"p": read}
    assert prepared.repairs or sent == read


@pytest.mark.parametrize(("hint", "sent"), NOT_CERTAIN, ids=str)
def test_not_certain(hint: Any, sent: Any) -> None:
    prepared = tool_of({"p": hint}).prepare({"p": sent})
    assert isinstance(prepared, Refused), prepared
    assert "p" in prepared.error


@pytest.mark.parametrize("nothing", [None, "", " ", "null", "None", "undefined"])
@pytest.mark.parametrize("hint", [int, Grade, Reason, OrderId, date, list[str], bool, Address])
def test_what_says_nothing_is_left_out_or_null(hint: Any, nothing: str | None) -> None:
    optional = tool_of({"p": hint, "q": int}, optional=frozenset("p")).prepare({"p": nothing, "q": 3})
    assert isinstance(optional, Prepared), optional
    assert optional.arguments == {"q": 3}
    assert len(optional.repairs) == 1
    nullable = tool_of({"p": hint | None}).prepare({"p": nothing})
    assert isinstance(nullable, Prepared), nullable
    assert nullable.arguments == {"p": None}
    assert isinstance(tool_of({"p": hint}).prepare({"p": nothing}), Refused)


@pytest.mark.parametrize(
    ("hint", "default", "words"),
    [
        (int, 20, "its default 20"),
        (bool, True, "its default true"),
        (float, 0.5, "its default 0.5"),
        (Reason, None, "its default null"),
        (Grade, "A", 'its default "A"'),
        (list[int], [1], "its default"),
    ],
)
def test_which_default_applies_is_told(hint: Any, default: Any, words: str) -> None:
    def look(*, p: Any = default) -> None:
        """Look."""

    look.__annotations__["p"] = hint
    prepared = Tool("look", tool(read_only=True)(look)).prepare({"p": None})
    assert isinstance(prepared, Prepared), prepared
    assert prepared.repairs == (f"p: null was left out, so that {words} applies.",)


def test_a_word_for_nothing_is_null_where_null_may_be_said_and_is_not_the_default() -> None:
    @tool(read_only=True)
    def look(*, p: int | None = 5) -> None:
        """Look."""

    prepared = Tool("look", look).prepare({"p": "none"})
    assert isinstance(prepared, Prepared), prepared
    assert (prepared.arguments, prepared.repairs) == ({"p": None}, ('p: "none" was read as null.',))


def test_what_a_model_of_one_s_own_lets_in_beside_its_fields_stays() -> None:
    prepared = tool_of({"p": Open}).prepare({"p": {"page": "2", "sort": ["new"]}})
    assert isinstance(prepared, Prepared), prepared
    assert json.loads(prepared.canonical) == {"p": {"page": 2, "sort": ["new"]}}


@pytest.mark.parametrize("word", ["", "null", "none"])
def test_a_text_that_may_be_says_what_it_says(word: str) -> None:
    for hint in (str, str | None, Literal["", "null", "none"], Literal["", "null", "none"] | None):
        prepared = tool_of({"p": hint}, optional=frozenset("p")).prepare({"p": word})
        assert isinstance(prepared, Prepared)
        assert prepared.arguments == {"p": word}
        assert prepared.repairs == ()
    assert isinstance(tool_of({"p": int}, optional=frozenset("p")).prepare({"p": "전체"}), Refused)


@pytest.mark.parametrize("word", ["", "none", "null"])
def test_a_word_for_nothing_makes_no_effect_wider(word: str) -> None:
    """`parcels=None` may mean all of them."""
    for hint in (list[str] | None, int, Grade | None):
        cancel = tool_of({"p": hint}, optional=frozenset("p"), read_only=False)
        refused = cancel.prepare({"p": word})
        assert isinstance(refused, Refused)
        assert "p" in refused.error
        for nothing in ({"p": None}, {}):
            assert isinstance(cancel.prepare(nothing), Prepared)


def test_any_string_is_valid_where_a_string_is_wanted() -> None:
    for text in ("", " 3 ", "null", '{"a": 1}', "true", "각", "a\x00b", "👍🏽"):
        prepared = tool_of({"p": str}).prepare({"p": text})
        assert isinstance(prepared, Prepared)
        assert prepared.arguments == {"p": text}
        assert prepared.repairs == ()


def test_both_ways_to_read_a_value_are_no_certainty() -> None:
    ambiguous = tool_of({"p": list[bool] | bool})
    prepared = ambiguous.prepare({"p": "true"})
    assert isinstance(prepared, Refused)
