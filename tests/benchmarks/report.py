"""How every benchmark speaks: one JSON object a line with ``--json``, a table without.

A benchmark is a generator of rows and one line at the end of its file::

    if __name__ == "__main__":
        main("Rank errors of the release", rows)

where ``rows(quick: bool)`` yields mappings of one set of keys.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping

PIPED_WIDTH = 180
"""Columns of a table that is not on a terminal."""

Row = Mapping[str, str | int | float | bool | None]


def main(
    title: str,
    rows: Callable[[bool], Iterable[Row]],
    *,
    failed: Callable[[Row], bool] | None = None,
    parser: argparse.ArgumentParser | None = None,
) -> None:
    """Parse ``--json`` and ``--quick``, run, print.

    Args:
        title: One line above the table, and the help text.
        rows: Called with `quick`; rows are printed as they come under ``--json``.
        failed: A row for which this holds makes the exit status 1.
        parser: Knows further arguments, and what to do with them.
    """
    parents = [parser] if parser else []
    parser = argparse.ArgumentParser(description=title, parents=parents)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--quick", action="store_true", help="under a minute")
    options = parser.parse_args()
    shown: list[Row] = []
    for row in rows(options.quick):
        shown.append(row)
        if options.json:
            print(json.dumps(dict(row)), flush=True)
    if not options.json:
        _print_table(title, shown)
    if failed is not None and any(failed(row) for row in shown):
        raise SystemExit(1)


def _print_table(title: str, rows: list[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        numeric = all(isinstance(row.get(name), int | float | None) for row in rows)
        table.add_column(name, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(_text(row.get(name)) for name in names))
    console = Console()
    if not console.is_terminal:
        console = Console(width=PIPED_WIDTH)
    console.print(table)


def _text(value: str | int | float | bool | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
