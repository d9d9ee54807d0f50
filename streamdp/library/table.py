"""Tables for notebooks: typed columns, as plain rows, Arrow, pandas or polars."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from streamdp.errors import ConfigurationError
from streamdp.sinks.columns import Kind, TypedColumn, columns
from streamdp.text import printable
from streamdp.types import Json, Release

if TYPE_CHECKING:
    import pyarrow as pa

MOST_SHOWN = 60
"""Rows of a table on a page."""


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """A table in memory.

    Args:
        columns: Name, kind (text, number, integer, time, boolean) and values of each; all of one
            length. Times are `datetime` in UTC.

    >>> table = table_of([{"city": "Oslo", "x": 1.5}], {"city": "text", "x": "number"})
    >>> table
    Table(1 row: city, x)
    >>> table.rows
    ({'city': 'Oslo', 'x': 1.5},)
    """

    columns: tuple[TypedColumn, ...]

    @property
    def rows(self) -> tuple[dict[str, Json], ...]:
        """One mapping a row, from names of columns to values; None where there is no value."""
        names = [each.name for each in self.columns]
        values = zip(*(each.values for each in self.columns), strict=True)
        return tuple(dict(zip(names, row, strict=True)) for row in values)

    def __len__(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    def __iter__(self) -> Iterator[dict[str, Json]]:
        return iter(self.rows)

    def to_arrow(self) -> pa.Table:
        """An Arrow table."""
        import pyarrow as pa

        types = {
            "text": pa.string(),
            "number": pa.float64(),
            "integer": pa.int64(),
            "time": pa.timestamp("us", "UTC"),
            "boolean": pa.bool_(),
        }
        arrays = [pa.array(each.values, types[each.kind]) for each in self.columns]
        return pa.Table.from_arrays(arrays, names=[each.name for each in self.columns])

    def to_pandas(self) -> Any:
        """A pandas DataFrame; whole numbers stay whole where some are missing.

        Raises:
            ConfigurationError: pandas is not installed.
        """
        _require("pandas")
        import pandas as pd
        import pyarrow as pa

        whole = {pa.int64(): pd.Int64Dtype()}
        return self.to_arrow().to_pandas(types_mapper=whole.get)

    def to_polars(self) -> Any:
        """A polars DataFrame.

        Raises:
            ConfigurationError: polars is not installed.
        """
        _require("polars")
        import polars as pl

        return pl.from_arrow(self.to_arrow())

    def __repr__(self) -> str:
        rows = "row" if len(self) == 1 else "rows"
        names = ", ".join(printable(each.name, lines=False) for each in self.columns)
        return f"Table({len(self)} {rows}: {names})"

    def _repr_html_(self) -> str:
        """The first rows, for a notebook."""
        head = "".join(f"<th>{_shown(each.name)}</th>" for each in self.columns)
        body = "".join(
            f"<tr>{''.join(f'<td>{_shown(value)}</td>' for value in row)}</tr>"
            for row in zip(*(each.values[:MOST_SHOWN] for each in self.columns), strict=True)
        )
        more = f"<p>{len(self)} rows</p>" if len(self) > MOST_SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def table_of(rows: Iterable[Mapping[str, Json]], kinds: Mapping[str, Kind]) -> Table:
    """A table of rows, with the columns that `kinds` names."""
    rows = tuple(rows)
    return Table(
        tuple(
            TypedColumn(name, kind, tuple(row.get(name) for row in rows))
            for name, kind in kinds.items()
        )
    )


def table_of_releases(releases: Sequence[Release]) -> Table:
    """A table with a line for each row of each release, the facts of the release in front."""
    parts = [columns(each) for each in releases]
    kinds: dict[str, Kind] = {}
    for part in parts:
        for each in part:
            kinds[each.name] = _common(kinds.get(each.name, each.kind), each.kind)
    lines = []
    for part in parts:
        values = zip(*(each.values for each in part), strict=True)
        lines += [dict(zip((each.name for each in part), row, strict=True)) for row in values]
    for name, kind in kinds.items():
        if kind == "text":
            for line in lines:
                line[name] = None if line.get(name) is None else str(line[name])
    return table_of(lines, kinds)


def _common(one: Kind, other: Kind) -> Kind:
    """The kind of a column that is of two kinds in releases of one job."""
    if one == other:
        return one
    return "number" if {one, other} == {"number", "integer"} else "text"


def _shown(value: Json) -> str:
    return "" if value is None else html.escape(printable(str(value), lines=False))


def _require(package: str) -> None:
    if find_spec(package) is None:
        raise ConfigurationError(
            f"this needs the package {package}",
            hint=f"pip install {package}; `rows` and `to_arrow()` need nothing more",
        )
