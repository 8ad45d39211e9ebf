"""Tables as rows under the names of their columns: on stand-ins that can do what is asked of a table, and on pandas,
polars and pyarrow themselves where they are installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from haru_fsm.toolbox import results


class RangeIndex(list[Any]):
    """Labels that only count."""


class Labels(list[Any]):
    """Labels that say something."""

    def __init__(self, labels: list[Any], *names: str | None) -> None:
        super().__init__(labels)
        self.names = names or (None,)


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

    def __getattr__(self, name: str) -> Any:
        """The value under this label, as in pandas."""
        if name not in vars(self).get("index", ()):
            raise AttributeError(name)
        return self.values[self.index.index(name)]


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


class Listed(Polar):
    """As a column of polars."""

    to_dicts = None  # type: ignore[assignment]

    def slice(self, start: int, length: int) -> Listed:
        return Listed(self.rows[start : start + length])

    def to_list(self) -> list[Any]:
        return self.rows


class Proxy:
    """Has whatever it is asked for, as a mock or the client of a web service."""

    def __getattr__(self, name: str) -> Any:
        return None if name == "iloc" else Proxy()

    def __str__(self) -> str:
        return "HR1 배송중"


class Lazy(Frame):
    """A table that cannot be cut, as of dask."""

    @property
    def iloc(self) -> Column:
        raise NotImplementedError

    def tolist(self) -> Any:
        return None


class Elsewhere:
    """An object of the application's, whose `to_dicts` is something else."""

    def to_dicts(self, orient: str) -> list[Any]:
        return [orient]

    def __str__(self) -> str:
        return "HR1 ... HR9"


ROWS = [["HR1", 12900], ["HR2", 100]]
NAMED = [{"order_id": "HR1", "amount": 12900}, {"order_id": "HR2", "amount": 100}]


@pytest.mark.parametrize(
    ("table", "read"),
    [
        (Frame(ROWS), NAMED),
        (Frame(ROWS, Labels(["a", "b"])), [{"index": "a", **NAMED[0]}, {"index": "b", **NAMED[1]}]),
        (Frame(ROWS, Labels(["a", "b"], "shop")), [{"shop": "a", **NAMED[0]}, {"shop": "b", **NAMED[1]}]),
        (
            Frame(ROWS, Labels([("서울", 1), ("부산", 2)], "city", None)),
            [{"city": "서울", "index": 1, **NAMED[0]}, {"city": "부산", "index": 2, **NAMED[1]}],
        ),
        (Frame([]), []),
        (Twice([[1, 2]]), {"columns": ["amount", "amount"], "rows": [[1, 2]]}),
        (Column([1, 2]), [1, 2]),
        (Column(["HR1", 3], Labels(["order_id", "n"])), {"order_id": "HR1", "n": 3}),
        (Column(["HR1", 3], Labels(["order_id", "columns"])), {"order_id": "HR1", "columns": 3}),
        (Column([1, 2], Labels(["a", "a"])), [["a", 1], ["a", 2]]),
        (Polar(NAMED), NAMED),
        (Listed([1, 2]), [1, 2]),
        ({"orders": Frame(ROWS)}, {"orders": NAMED}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_rows_have_the_names_of_their_columns(table: Any, read: Any) -> None:
    assert results.response(table) == {"result": read}


@pytest.mark.parametrize(
    "make",
    [lambda n: Frame([["HR", 1]] * n), lambda n: Column([1] * n), lambda n: Polar([{}] * n), lambda n: Listed([1] * n)],
)
def test_a_table_is_cut_and_that_is_said(make: Any) -> None:
    whole = results.response(make(results.MOST_ITEMS))
    assert (len(whole["result"]), whole.get("note")) == (results.MOST_ITEMS, None)
    cut = results.response(make(results.MOST_ITEMS + 1))
    assert len(cut["result"]) == results.MOST_ITEMS
    assert "first 10,000" in cut["note"]


@pytest.mark.parametrize("value", [Proxy(), Lazy(ROWS), Elsewhere()])
def test_what_only_looks_like_a_table_is_told_in_its_own_words(value: Any) -> None:
    assert results.response(value) == {"result": str(value)}


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
    several = pandas.DataFrame([["서울", 1, 2]], columns=["city", "grade", "n"]).groupby(["city", "grade"]).sum()
    assert results.response(several) == {"result": [{"city": "서울", "grade": 1, "n": 2}]}
    row = pandas.DataFrame([[1, 2]], columns=["columns", "index"]).iloc[0]
    assert results.response(row) == {"result": {"columns": 1, "index": 2}}
    twice = pandas.DataFrame([[1, 2]], columns=["a", "a"])
    assert results.response(twice) == {"result": {"columns": ["a", "a"], "rows": [[1, 2]]}}


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"order_id": ["HR1", "HR2"], "amount": [12900, 100]})
    assert results.response(frame) == {"result": NAMED}
    assert results.response(frame["amount"]) == {"result": [12900, 100]}
    many = results.response(polars.Series("n", range(600_000)))
    assert many["result"] == list(range(results.MOST_ITEMS))


def test_pyarrow() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    assert results.response(pyarrow.table({"a": [1, 2]})) == {"result": [{"a": 1}, {"a": 2}]}
