"""Tables of pandas, polars and pyarrow as lists and objects: every row under the names of its columns.

Their own words are made for people who look at a screen: pandas leaves out the middle of what is long or wide, polars
all but a few rows, and a model that reads them takes these for all there are (langflow-ai/langflow#13504). A column
with labels (one row of a table, what a `groupby` gives) is an object, since without them its values say nothing. None
of these libraries is imported; they are known by what they can do.
"""

from __future__ import annotations

from typing import Any

_AS_ROWS = ("to_dicts", "to_pylist")
"""polars, pyarrow."""


def rows_of(value: Any, most: int) -> dict[Any, Any] | list[Any] | None:
    """What a table or a column holds, up to one row more than `most`; None for what is neither."""
    if isinstance(value, type):
        return None
    if hasattr(value, "iloc"):
        value = value.iloc[: most + 1].astype(object)  # plain numbers, and not numpy's
        return _frame(value) if hasattr(value, "columns") else _series(value)
    for name in _AS_ROWS:
        if callable(getattr(value, name, None)):
            some = value.slice(0, most + 1) if hasattr(value, "slice") else value
            return list(getattr(some, name)())
    return None


def _frame(frame: Any) -> dict[Any, Any] | list[Any]:
    """The rows of a table of pandas. Labels of rows that were not just counted are a column, too."""
    names = list(frame.columns)
    rows = [list(row) for row in frame.itertuples(index=False, name=None)]
    if not _is_counted(frame.index):
        names = [frame.index.name or "index", *names]
        rows = [[label, *row] for label, row in zip(frame.index, rows, strict=True)]
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
