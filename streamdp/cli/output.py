"""Tables: drawn on a terminal, tab-separated in a pipe, JSON lines or CSV when asked."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Literal

import click

from streamdp.privacy.amounts import NANO, UNBOUNDED, epsilon_text
from streamdp.text import printable
from streamdp.types import Json

Form = Literal["table", "json", "csv"]

MOST_BLOCKS = 20
"""Rows that are drawn a value a line where a terminal is too narrow for their table."""

_TIME = re.compile(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\dZ)$")


class Amount(str):
    """An amount of budget: exact text in tables; in JSON a number, and NAME_exact beside it."""

    __slots__ = ("number",)
    number: float | None
    """The amount in JSON; None where there is no bound."""

    @classmethod
    def of(cls, nano: int) -> Amount:
        """The amount of nano units.

        >>> Amount.of(100_000_000), Amount.of(100_000_000).number
        ('0.1', 0.1)
        """
        amount = cls(epsilon_text(nano))
        amount.number = None if nano >= UNBOUNDED else nano / NANO
        return amount


def print_rows(rows: Sequence[Mapping[str, Json]], form: Form, title: str = "") -> None:
    """Print rows; their keys are the header, and what a row lacks is left empty in a table.

    Args:
        rows: What to print.
        form: `table` is drawn on a terminal and tab-separated elsewhere.
        title: Above a drawn table.
    """
    if form == "json":
        for row in rows:
            click.echo(json.dumps(_numbers(row)))
        return
    names = dict.fromkeys(name for row in rows for name in row)
    rows = [{name: row.get(name) for name in names} for row in rows]
    if form == "csv":
        writer = csv.DictWriter(sys.stdout, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    elif sys.stdout.isatty():
        _draw(rows, title)
    elif rows:
        click.echo("\t".join(map(_text, rows[0])))
        for row in rows:
            click.echo("\t".join(_text(cell) for cell in row.values()))


def _numbers(row: Mapping[str, Json]) -> dict[str, Json]:
    """A row whose amounts are numbers, each beside its exact text."""
    found: dict[str, Json] = {}
    for name, cell in row.items():
        found[name] = cell.number if isinstance(cell, Amount) else cell
        if isinstance(cell, Amount):
            found[f"{name}_exact"] = str(cell)
    return found


def _draw(rows: Sequence[Mapping[str, Json]], title: str) -> None:
    """Draw a table; few rows whose words it would break are drawn a value a line."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if 0 < len(rows) <= MOST_BLOCKS and _least_width(rows) > console.width:
        for row in rows:
            console.print(Text(f"{_block(row)}\n"), soft_wrap=True)
        return
    table = Table(
        title=Text(_text(title)) if title else None,
        title_justify="left",
        header_style="bold",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for name in rows[0] if rows else []:
        numeric = all(isinstance(row[name], int | float | None) for row in rows)
        justify: Literal["right", "left"] = "right" if numeric else "left"
        table.add_column(Text(_text(name).replace("_", " ")), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_shown(cell)) for cell in row.values()))
    console.print(table if rows else Text(f"{title}: none" if title else "none"))


def _least_width(rows: Sequence[Mapping[str, Json]]) -> int:
    """Columns of a terminal in which a table breaks no word."""
    return sum(
        1 + max(map(len, " ".join([name.replace("_", " "), *cells]).split()), default=0)
        for name in rows[0]
        for cells in [[_shown(row[name]) for row in rows]]
    )


def _block(row: Mapping[str, Json]) -> str:
    """A row with a line for each value that there is."""
    shown = {_text(name).replace("_", " "): _shown(cell) for name, cell in row.items()}
    widest = max(map(len, shown))
    return "\n".join(f"{name:{widest}}  {cell}" for name, cell in shown.items() if cell)


def _shown(cell: Json) -> str:
    """Text of a cell on a terminal, where a time may be broken between day and hour."""
    return _TIME.sub(r"\1 \2", _text(cell))


def _text(cell: Json) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:g}"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return printable(str(cell), lines=False)
