"""Tables as rows under the names of their columns: on stand-ins that can do what is asked of a table, and on pandas,
polars and pyarrow themselves where they are installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from haru_fsm.toolbox import results


class RangeIndex(list[int]):
    """Labels that only count."""

    name = None


class Labels(list[Any]):
    """Labels that say something."""

    def __init__(self, labels: list[Any], name: str | None = None) -> None:
        super().__init__(labels)
        self.name = name


class Column:
    """As a Series of pandas."""

    def __init__(self, values: list[Any], index: Any = None) -> None:
        self.values = values
        self.index = RangeIndex(range(len(values))) if index is None else index

    @property
    def iloc(self) -> Column:
        return self

    def __getitem__(self, part: slice) -> Column:
        self.index[:] = self.index[part]
        return type(self)(self.values[part], self.index)

    def astype(self, kind: type) -> Column:
        assert kind is object
        return self

    def tolist(self) -> list[Any]:
        return self.values


class Frame(Column):
    """As a DataFrame of pandas: its values are rows. What it prints leaves out most of them."""

    columns = ("order_id", "amount")

    def itertuples(self, index: bool, name: str | None) -> Iterator[Any]:
        assert (index, name) == (False, None)
        yield from map(tuple, self.values)

    def __str__(self) -> str:
        return "HR1 ... HR9"


class Twice(Frame):
    """A join has given one name to two columns."""

    columns = ("amount", "amount")


class Polar:
    """As a DataFrame of polars."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows

    def slice(self, start: int, length: int) -> Polar:
        return Polar(self.rows[start : start + length])

    def to_dicts(self) -> list[Any]:
        return self.rows


ROWS = [["HR1", 12900], ["HR2", 100]]
NAMED = [{"order_id": "HR1", "amount": 12900}, {"order_id": "HR2", "amount": 100}]


@pytest.mark.parametrize(
    ("table", "read"),
    [
        (Frame(ROWS), NAMED),
        (Frame(ROWS, Labels(["a", "b"])), [{"index": "a", **NAMED[0]}, {"index": "b", **NAMED[1]}]),
        (Frame(ROWS, Labels(["a", "b"], "shop")), [{"shop": "a", **NAMED[0]}, {"shop": "b", **NAMED[1]}]),
        (Frame([]), []),
        (Twice([[1, 2]]), {"columns": ["amount", "amount"], "rows": [[1, 2]]}),
        (Column([1, 2]), [1, 2]),
        (Column(["HR1", 3], Labels(["order_id", "n"])), {"order_id": "HR1", "n": 3}),
        (Column([1, 2], Labels(["a", "a"])), [["a", 1], ["a", 2]]),
        (Polar(NAMED), NAMED),
        ({"orders": Frame(ROWS)}, {"orders": NAMED}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_rows_have_the_names_of_their_columns(table: Any, read: Any) -> None:
    assert results.response(table) == {"result": read}


@pytest.mark.parametrize(
    "make", [lambda n: Frame([["HR", 1]] * n), lambda n: Column([1] * n), lambda n: Polar([{}] * n)]
)
def test_a_table_is_cut_and_that_is_said(make: Any) -> None:
    whole = results.response(make(results.MOST_ITEMS))
    assert (len(whole["result"]), whole.get("note")) == (results.MOST_ITEMS, None)
    cut = results.response(make(results.MOST_ITEMS + 1))
    assert len(cut["result"]) == results.MOST_ITEMS
    assert "first 10,000" in cut["note"]


def test_the_kind_of_a_table_is_no_table() -> None:
    assert results.response(Frame)["result"] == "<Frame>"


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["order_id", "amount"])
    assert results.response(frame) == {"result": NAMED}
    assert results.response(frame.iloc[0]) == {"result": NAMED[0]}
    assert results.response(frame.groupby("order_id")["amount"].sum()) == {"result": {"HR1": 12900, "HR2": 100}}
    assert results.response(frame.set_index("order_id")) == {"result": NAMED}
    assert results.response(frame["amount"]) == {"result": [12900, 100]}
    twice = pandas.DataFrame([[1, 2]], columns=["a", "a"])
    assert results.response(twice) == {"result": {"columns": ["a", "a"], "rows": [[1, 2]]}}


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"order_id": ["HR1", "HR2"], "amount": [12900, 100]})
    assert results.response(frame) == {"result": NAMED}
    assert results.response(frame["amount"]) == {"result": [12900, 100]}


def test_pyarrow() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    assert results.response(pyarrow.table({"a": [1, 2]})) == {"result": [{"a": 1}, {"a": 2}]}
