"""Tables, drawn on a terminal, tab-separated in a pipe, JSON or CSV when asked; and progress."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import click

from streamdp.privacy.amounts import ATTO, NANO, UNBOUNDED, number_text
from streamdp.text import Figure, printable
from streamdp.types import Json

if TYPE_CHECKING:
    from rich.measure import Measurement
    from rich.progress import Progress, ProgressColumn
    from rich.table import Table

Form = Literal["table", "json", "csv"]

SAY_EVERY = 5.0
"""Seconds between lines that say how far long work is, where no bar can be drawn."""

_TIME = re.compile(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\dZ)$")


class Amount(Figure):
    """An amount of budget: exact text in tables; in JSON a number, and NAME_exact beside it."""

    __slots__ = ("number",)
    number: float | None
    """The amount in JSON; None where there is no bound."""

    @classmethod
    def of(cls, units: int, measure: str = "epsilon") -> Amount:
        """The amount of so many units of the ledger.

        >>> Amount.of(100_000_000), Amount.of(100_000_000).number, Amount.of(10**9, "delta")
        ('0.1', 0.1, '1e-9')
        """
        amount = cls(number_text(units, measure))
        unit = ATTO if measure == "delta" else NANO
        amount.number = None if units >= UNBOUNDED else units / unit
        return amount


def print_rows(
    rows: Sequence[Mapping[str, Json]],
    form: Form,
    title: str = "",
    once: Collection[str] = (),
) -> None:
    """Print rows; their keys are the header, and what a row lacks is left empty in a table.

    Args:
        rows: What to print.
        form: `table` is drawn on a terminal and tab-separated elsewhere.
        title: Above a drawn table.
        once: Columns that a drawn table says once, above, where all of several rows agree.
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
        said, rest = apart(rows, once)
        _draw(rest, "  ".join(filter(None, [title, *said])))
    elif rows:
        click.echo("\t".join(map(_text, rows[0])))
        for row in rows:
            click.echo("\t".join(_text(cell) for cell in row.values()))


def _numbers(row: Mapping[str, Json]) -> dict[str, Json]:
    """A row whose amounts are numbers, each beside its exact text; rows within it too."""
    found: dict[str, Json] = {}
    for name, cell in row.items():
        found[name] = cell.number if isinstance(cell, Amount) else cell
        if isinstance(cell, Amount):
            found[f"{name}_exact"] = str(cell)
        elif isinstance(cell, Mapping):
            found[name] = _numbers(cell)
        elif isinstance(cell, list) and cell and isinstance(cell[0], Mapping):
            found[name] = [_numbers(each) for each in cell]
    return found


def fits(rows: Sequence[Mapping[str, Json]]) -> bool:
    """Whether the terminal is wide enough for a table of these rows in which no cell is broken."""
    from rich.console import Console

    return _widths(rows).maximum <= Console().width


def _draw(rows: Sequence[Mapping[str, Json]], title: str) -> None:
    """Draw a table, or a value a line where the terminal is too narrow for the words of a table."""
    from rich.console import Console
    from rich.text import Text

    console = Console()
    if not rows:
        console.print(Text(f"{title}: none" if title else "none"))
    elif (spare := console.width - _widths(rows).minimum) >= 0:
        if title:  # not the table's own, which is broken at the width of the table
            console.print(Text(_text(title), style="italic"))
        console.print(_table(rows, _shares(rows, spare)))
    else:
        for text in filter(None, [_text(title), *map(_block, rows)]):
            console.print(Text(f"{text}\n"), soft_wrap=True)


def apart(
    rows: Sequence[Mapping[str, Json]], once: Collection[str]
) -> tuple[list[str], list[dict[str, Json]]]:
    """What some columns say of all rows, in words, and the rows without these columns."""
    alike = {
        name
        for name in once
        if len(rows) > 1 and name in rows[0] and len({str(row[name]) for row in rows}) == 1
    }
    said = [f"{name.replace('_', ' ')}: {_shown(rows[0][name])}" for name in once if name in alike]
    rest = [{name: cell for name, cell in row.items() if name not in alike} for row in rows]
    return [text for text in said if not text.endswith(": ")], rest


def _widths(rows: Sequence[Mapping[str, Json]]) -> Measurement:
    """Widths of a terminal in which a table breaks no word, and no cell."""
    from rich.console import Console

    console = Console()
    return console.measure(_table(rows), options=console.options.update_width(sys.maxsize))


def _shares(rows: Sequence[Mapping[str, Json]], spare: int) -> list[int]:
    """Widths of columns in which no word is broken: what is left goes to those that need least.

    Args:
        rows: Whose words fit.
        spare: What is left of the terminal where no word is broken.
    """
    from rich.cells import cell_len

    cells = [[_heading(name), *(_shown(row[name]) for row in rows)] for name in rows[0]]
    least = [max(cell_len(word) for cell in each for word in [*cell.split(), ""]) for each in cells]
    whole = [max(map(cell_len, each)) for each in cells]
    found = list(least)
    for column in sorted(range(len(cells)), key=lambda column: whole[column] - least[column]):
        more = min(whole[column] - least[column], spare)
        found[column] += more
        spare -= more
    return found


def _heading(name: str) -> str:
    return _text(name).replace("_", " ")


def _table(rows: Sequence[Mapping[str, Json]], widths: Sequence[int] | None = None) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        header_style="bold",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for place, name in enumerate(rows[0]):
        width = None if widths is None else widths[place]
        numeric = all(isinstance(row[name], int | float | Figure | None) for row in rows)
        justify: Literal["right", "left"] = "right" if numeric else "left"
        table.add_column(Text(_heading(name)), justify=justify, overflow="fold", width=width)
    for row in rows:
        table.add_row(*(Text(_shown(cell)) for cell in row.values()))
    return table


def _block(row: Mapping[str, Json]) -> str:
    """A row with a line for each value that there is."""
    shown = {_heading(name): _shown(cell) for name, cell in row.items()}
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


BLOCKS = "▁▂▃▄▅▆▇█"
"""Heights of a sparkline."""


def progress_bar(time: ProgressColumn) -> Progress:
    """A bar on standard error: what is done, of how many, and a time."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), time
    return Progress(*columns, console=Console(stderr=True))


def sparkline(values: Sequence[float | None], width: int = 30) -> str:
    """The last values of a series, lowest to highest; a gap is a space.

    >>> sparkline([1, 2, None, 8, 4])
    '▁▂ █▄'
    """
    shown = values[-width:]
    found = [value for value in shown if value is not None]
    if not found:
        return ""
    low, span = min(found), (max(found) - min(found)) or 1.0
    heights = (None if value is None else (value - low) / span for value in shown)
    last = len(BLOCKS) - 1
    return "".join(" " if share is None else BLOCKS[round(share * last)] for share in heights)
