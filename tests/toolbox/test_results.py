"""Results of every kind become JSON, equal after a reload, with their order and without secrets."""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict, UserList, defaultdict, deque, namedtuple
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from ipaddress import ip_address
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict
from uuid import UUID

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel, SecretStr, field_serializer

from haru_fsm.json_safe import json_safe
from haru_fsm.toolbox import Secret
from haru_fsm.toolbox.results import MOST_ITEMS, failure, response, with_note
from haru_fsm.untrusted import RESULT_MARK
from tests.toolbox.strategies import json_values


class Status(Enum):
    SHIPPED = "배송중"


class Level(IntEnum):
    HIGH = 2


class Word(StrEnum):
    YES = "yes"


class Order(BaseModel):
    order_id: str
    amount: Decimal = Decimal("12900.50")
    day: date = date(2026, 7, 25)
    renamed: int = Field(default=1, alias="as")
    parent: Any = None


@dataclasses.dataclass
class Line:
    product: str
    price: Decimal
    link: Any = None


class Plain:
    pass


class Worded:
    def __repr__(self) -> str:
        return "<Worded at 0x7f00deadbeef>"


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Raising(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no items")


class Text(str):
    pass


class Count(int):
    pass


class Share(float):
    pass


class Halved:
    def __str__(self) -> str:
        return "half \ud800"


Point = namedtuple("Point", "x y")
KST = timezone(timedelta(hours=9))

odd_values = st.recursive(
    json_values
    | st.sampled_from((Status.SHIPPED, Level.HIGH, Word.YES, Plain(), Worded(), Broken(), Plain, len, ...))
    | st.floats()
    | st.decimals()
    | st.datetimes()
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.binary(max_size=20)
    | st.complex_numbers()
    | st.fractions()
    | st.integers()
    | st.text(max_size=5)
    | st.builds(lambda text: Order(order_id=text), st.text(max_size=3)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.lists(inner, max_size=3).map(deque)
        | st.lists(inner, max_size=3).map(iter)
        | st.dictionaries(st.one_of(st.text(), st.integers(), st.none(), st.dates(), st.booleans()), inner, max_size=4)
        | st.builds(Line, st.text(max_size=3), st.decimals(), inner)
        | st.builds(lambda value: SimpleNamespace(value=value), inner)
    ),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(odd_values)
def test_every_result_is_json_and_equal_after_a_reload(value: Any) -> None:
    answer = response(value)
    text = json.dumps(answer, ensure_ascii=False, allow_nan=False)
    text.encode()
    assert json.loads(text) == answer
    assert answer.keys() <= {"result", "error", "note"}
    assert json_safe(answer) == answer


@settings(max_examples=80, deadline=None)
@given(json_values)
@example({"<|A|>": None})
def test_what_is_json_comes_back_as_it_is(value: Any) -> None:
    """A mark may stand beside it: a text may happen to look like instructions."""
    answer = response(value)
    assert answer.pop("note", RESULT_MARK) == RESULT_MARK
    assert answer == {"result": value}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=3) | st.binary(max_size=3), max_size=6), st.permutations("abcde"))
def test_order_and_siblings_are_kept(items: list[Any], keys: list[str]) -> None:
    result = response({key: [*items, Broken] for key in keys})["result"]
    assert list(result) == list(keys)
    assert all(len(each) == len(items) + 1 for each in result.values())


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (None, None),
        ("", ""),
        (datetime(2026, 7, 25, 10, tzinfo=KST), "2026-07-25T10:00:00+09:00"),
        (date(2026, 7, 25), "2026-07-25"),
        (time(10, 30), "10:30:00"),
        (timedelta(minutes=90), "PT1H30M"),
        (Decimal("12900.50"), "12900.50"),
        (Decimal("1E+3"), "1000"),
        (Decimal("1E+999999"), "1E+999999"),
        (Decimal("1E-999999"), "1E-999999"),
        (Decimal("NaN"), "NaN"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Status.SHIPPED, "배송중"),
        (Level.HIGH, 2),
        ({"a"}, ["a"]),
        ({"b", "a", "c"}, ["a", "b", "c"]),
        ({2, "b", None}, ["b", 2, None]),
        (frozenset({2, 1}), [1, 2]),
        ((1, 2), [1, 2]),
        (Point(1, 2), {"x": 1, "y": 2}),
        (deque([1]), [1]),
        (UserList([Status.SHIPPED]), ["배송중"]),
        (RootModel[list[int]]([1]), {"root": [1]}),
        (Text("text"), "text"),
        (Text("a\ud800"), "a\ufffd"),
        (Count(3), 3),
        (Share(0.5), 0.5),
        (Share("inf"), "Infinity"),
        (range(3), [0, 1, 2]),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (defaultdict(list, a=[1]), {"a": [1]}),
        (b"ok", "ok"),
        (b"a\tb\r\n", "a\tb\r\n"),
        (b"a\x00", {"bytes": 2, "base64": "YQA="}),
        ("한글".encode(), "한글"),
        (b"%PDF-\xff\x00", {"bytes": 7, "base64": "JVBERi3/AA=="}),
        ([b"\x00", b"\xff"], [{"bytes": 1, "base64": "AA=="}, {"bytes": 1, "base64": "/w=="}]),
        (float("nan"), "NaN"),
        ("a\ud800", "a\ufffd"),
        ({"a\ud800": "b\ud800"}, {"a\ufffd": "b\ufffd"}),
        (Halved(), "half \ufffd"),
        ("W\x00s", "W\x00s"),
        ("\\u0000", "\\u0000"),
        ({1: "a", None: "b", False: "c"}, {"1": "a", "null": "b", "false": "c"}),
        ({1: "a", "1": "b"}, {"1": "a", "1'": "b"}),
        ({Status.SHIPPED: 1, date(2026, 1, 1): 2, (1, 2): 3}, {"배송중": 1, "2026-01-01": 2, "[1,2]": 3}),
        (PurePosixPath("/a"), "/a"),
        (ip_address("::1"), "::1"),
        (Fraction(1, 3), "1/3"),
        (SimpleNamespace(a=1), {"a": 1}),
        (Line("컵", Decimal("1.10")), {"product": "컵", "price": "1.10", "link": None}),
        (ValueError("bad"), "ValueError: bad"),
        (SecretStr("x"), "**********"),
        (Worded(), "<Worded>"),
        ({"a": 1}.keys(), ["a"]),
        ({"a": 1}.values(), [1]),
        ((n * n for n in range(3)), [0, 1, 4]),
        (map(str, [1]), ["1"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_kinds(value: Any, result: Any) -> None:
    assert response(value) == {"result": result}


def test_f063_a_whole_order_of_odd_types() -> None:
    answer = response(
        {
            "ordered_at": datetime(2026, 7, 25, 10, tzinfo=KST),
            "amount": Decimal("12900.50"),
            "status": Status.SHIPPED,
            "m": Order(order_id="HR1", **{"as": 3}),
            "t": (1, 2),
        }
    )
    assert answer["result"]["amount"] == "12900.50"
    assert answer["result"]["m"] == {
        "order_id": "HR1",
        "amount": "12900.50",
        "day": "2026-07-25",
        "as": 3,
        "parent": None,
    }


def test_what_has_no_json_form_is_named_and_told() -> None:
    assert response(Plain()) == {
        "result": "<Plain>",
        "note": "Plain has no JSON form; return a dict, a list, a text or a number instead.",
    }
    answer = response([Plain(), Plain(), len, Line, Order])
    assert answer["result"] == ["<Plain>", "<Plain>", "<len>", "<Line>", "<Order>"]
    assert answer["note"].count("Plain has no JSON form") == 1


def test_what_cannot_be_read_is_an_error_that_does_not_deny_the_call() -> None:
    for value in (Broken(), Raising(a=1), [Broken()]):
        answer = response(value)
        assert "cannot be read" in answer["error"]
        assert answer["note"] == "The call itself came to its end."


def test_cycles_depth_and_size_are_bounded() -> None:
    cycle: list[Any] = [1]
    cycle.append({"again": cycle})
    assert response(cycle) == {"result": [1, {"again": "(refers back to itself)"}]}
    shared = [1]
    assert response([shared, shared]) == {"result": [[1], [1]]}, "a value that stands twice is no cycle"

    order = Order(order_id="HR1", **{"as": 1})
    order.parent = order
    assert response(order)["result"]["parent"] == "(refers back to itself)"

    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]
    answer = response(deep)
    assert "(nested too deeply)" in json.dumps(answer)
    assert json_safe([answer]) == [answer], "the journal has room for its own levels"

    wide: Any = [0]
    for _ in range(40):
        wide = [wide, wide]
    answer = response(wide)
    assert "too large" in answer["note"]
    assert "(too much to keep)" in str(answer["result"])


def test_a_generator_gives_a_bounded_number_of_items() -> None:
    def numbers() -> Iterator[int]:
        number = 0
        while True:
            yield number
            number += 1

    answer = response(numbers())
    assert answer["result"] == list(range(MOST_ITEMS))
    assert answer["note"] == "Only the first 10,000 items are kept."


def test_three_megabytes_of_korean_are_kept_whole() -> None:
    text = "상품 설명 👍🏽 " * 300_000
    assert response({"text": text}) == {"result": {"text": text}}


def test_errors_are_short_and_have_no_traceback() -> None:
    assert failure(RuntimeError("courier api 500")) == {"error": "RuntimeError: courier api 500"}
    assert failure(KeyError()) == failure(KeyError(), named=False) == {"error": "KeyError"}
    assert failure(RuntimeError("  \n")) == {"error": "RuntimeError"}
    assert failure(RuntimeError(" sold out\n"), named=False) == {"error": "sold out"}
    assert failure(RuntimeError("a\ud800")) == {"error": "RuntimeError: a\ufffd"}
    assert len(failure(ValueError("x" * 10_000))["error"]) <= 500

    class Wordless(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert failure(Wordless()) == {"error": "Wordless"}


def test_notes_are_added_to_notes() -> None:
    assert with_note({"result": 1}) == {"result": 1}
    assert with_note({"result": 1, "note": "A."}, "B.", "C.") == {"result": 1, "note": "A. B. C."}


# --------------------------------------------------------------------------- secrets


class Account(BaseModel):
    owner: str
    token: Annotated[str, Secret]
    pins: list[Annotated[str, Secret]] = []
    note: str = ""


class Plainly(BaseModel):
    token: Annotated[str, Secret]
    shown: str = ""

    @field_serializer("shown")
    def _tell(self, _: str) -> str:
        return f"uses {self.token}"


@dataclasses.dataclass
class Login:
    user: str
    password: Annotated[str, Secret]
    spare: list[Annotated[str, Secret]]


class Row(TypedDict):
    user: str
    password: Annotated[str, Secret]


def test_secret_fields_are_redacted_wherever_they_stand() -> None:
    value = {
        "account": Account(owner="김도윤", token="t0ken-one", pins=["1234-pin"], note="my t0ken-one is secret"),
        "logins": [Login("a", "pass-word", ["spare-word"])],
        "echo": "pass-word",
        "t0ken-one": 1,
    }
    answer = response(value)
    text = json.dumps(answer, ensure_ascii=False)
    assert not any(secret in text for secret in ("t0ken-one", "1234-pin", "pass-word", "spare-word"))
    assert answer["result"]["account"]["token"] == "[secret]"
    assert answer["result"]["account"]["note"] == "my [secret] is secret"
    assert "김도윤" in text
    assert "t0ken-one" not in json.dumps(response(Plainly(token="t0ken-one")))
    login = {"user": "a", "password": "[secret]", "spare": "[secret]"}
    assert response(Login("a", "7", [])) == {"result": login}, "also where it is too short to be looked for elsewhere"


def test_a_models_own_dump_keeps_its_secret() -> None:
    account = Account(owner="a", token="t0ken")
    assert account.model_dump()["token"] == "t0ken"
    assert account.model_dump(mode="json")["token"] == "t0ken"


def test_secrets_of_a_typed_dict_are_known_from_the_return_annotation() -> None:
    hints = dict[str, list[Row]]
    answer = response({"rows": [{"user": "a", "password": "pass-word"}]}, hints=hints)
    assert answer == {"result": {"rows": [{"user": "a", "password": "[secret]"}]}}
    assert response("pass-word", hints=Annotated[str, Secret] | None) == {"result": "[secret]"}


def test_known_secrets_are_cut_out_of_errors_and_texts() -> None:
    assert failure(RuntimeError("401 for key sk-12345"), secrets=["sk-12345"]) == {
        "error": "RuntimeError: 401 for key [secret]"
    }
    assert response({"url": "https://x/?key=sk-12345", "n": 12345678}, secrets=["sk-12345", 12345678]) == {
        "result": {"url": "https://x/?key=[secret]", "n": "[secret]"}
    }
    assert response("a 1 b", secrets=["1", "", None, True]) == {"result": "a 1 b"}
    assert response("1", secrets=["1"]) == {"result": "[secret]"}


def test_utc_is_written_as_such() -> None:
    assert response(datetime(2026, 7, 25, tzinfo=UTC)) == {"result": "2026-07-25T00:00:00+00:00"}
