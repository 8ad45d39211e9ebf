"""Tables of pandas, polars and pyarrow as lists and objects: every row under the names of its columns.

Their own words are made for people who look at a screen: pandas leaves out the middle of what is long or wide, polars
all but a few rows, and a model that reads them takes these for all there are (langflow-ai/langflow#13504). A column
with labels (one row of a table, what a `groupby` gives) is an object, since without them its values say nothing. None
of these libraries is imported; they are known by what they can do, and that by their classes: an object that makes up
its attributes when it is asked for them (a proxy, a mock, a row with a column of that name) has any.
"""

from __future__ import annotations

from typing import Any

_AS_ROWS = ("to_dicts", "to_pylist", "to_list")
"""Tables of polars, tables and arrays of pyarrow, columns of polars."""


def rows_of(value: Any, most: int) -> dict[Any, Any] | list[Any] | None:
    """What a table or a column holds, up to one row more than `most`; None for what only looks like one."""
    if isinstance(value, type):
        return None
    try:
        return _rows(value, most)
    except Exception:  # its own words are left
        return None


def _rows(value: Any, most: int) -> dict[Any, Any] | list[Any] | None:
    kind = type(value)
    if hasattr(kind, "iloc"):
        value = value.iloc[: most + 1].astype(object)  # plain numbers, and not numpy's
        return _frame(value) if hasattr(kind, "columns") else _series(value)
    for name in _AS_ROWS:
        if callable(getattr(kind, name, None)):
            some = value.slice(0, most + 1) if hasattr(kind, "slice") else value
            return list(getattr(some, name)())
    return None


def _frame(frame: Any) -> dict[Any, Any] | list[Any]:
    """The rows of a table of pandas. Labels of rows that were not just counted are columns, too."""
    names = list(frame.columns)
    rows = [list(row) for row in frame.itertuples(index=False, name=None)]
    if not _is_counted(frame.index):
        levels = ["index" if name is None else name for name in frame.index.names]
        names = [*levels, *names]
        labels = frame.index if len(levels) > 1 else ([label] for label in frame.index)
        rows = [[*label, *row] for label, row in zip(labels, rows, strict=True)]
    if len(set(names)) < len(names):
        return {"columns": names, "rows": rows}
    return [dict(zip(names, row, strict=True)) for row in rows]


def _series(series: Any) -> dict[Any, Any] | list[Any]:
    values = series.tolist()
    if _is_counted(series.index):
        return list(values)
    labels = list(series.index)
    if len(set(labels)) < len(labels):
        return [[label, value] for label, value in zip(labels, values, strict=True)]
    return dict(zip(labels, values, strict=True))


def _is_counted(index: Any) -> bool:
    """Whether the labels are nothing but the rows' numbers."""
    return type(index).__name__ == "RangeIndex"
