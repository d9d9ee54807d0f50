"""Sinks that keep what they are given, and how to read it back: the rows of the contract."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from streamdp.sinks.files import FilesSink, Form
from streamdp.sinks.jsonl import JsonLinesSink
from streamdp.sinks.table import TableSink
from streamdp.sinks.warehouse import DuckDBTableSink
from streamdp.store.database import connect, one_writer
from streamdp.types import Release, Sink

Kept = list[tuple[str, float]]
"""Release id and value of each line that is there."""


@dataclass(frozen=True)
class Target:
    """A kind of sink in a folder, and what it holds."""

    sink: Callable[[Path], Sink]
    kept: Callable[[Path], Kept]


def release(number: int, rows: int = 2) -> Release:
    """A release of which every line can be told from every other."""
    lines = tuple({"quantile": at / rows, "value": 100.0 * number + at} for at in range(rows))
    return Release(f"id{number}", "job", "s", f"b{number}", 0, 86_400, "quantiles", 10**8, 5, lines)


def wanted(*releases: Release) -> Kept:
    """What should be there."""
    return sorted((each.id, float(row["value"] or 0)) for each in releases for row in each.rows)


def _lines(folder: Path) -> Kept:
    path = folder / "out.jsonl"
    whole = path.read_text().split("\n")[:-1] if path.exists() else []
    found = map(json.loads, whole)
    return sorted((each["release_id"], row["value"]) for each in found for row in each["rows"])


def _table(folder: Path) -> Kept:
    database = connect(folder / "s.db")
    if not database.table("deciles").exists():
        return []
    return sorted(database.execute("SELECT release_id, value FROM deciles").fetchall())


def _csv(folder: Path) -> Kept:
    found: Kept = []
    for path in folder.glob("job/*.csv"):
        with path.open(newline="") as file:
            found += [(row["release_id"], float(row["value"])) for row in csv.DictReader(file)]
    return sorted(found)


def _parquet(folder: Path) -> Kept:
    import duckdb

    if not list(folder.glob("job/*.parquet")):
        return []
    path = str(folder / "job/*.parquet")
    return sorted(
        duckdb.execute("SELECT release_id, value FROM read_parquet(?)", [path]).fetchall()
    )


def _database(folder: Path) -> Kept:
    import duckdb

    if not (folder / "w.duckdb").exists():
        return []
    with duckdb.connect(str(folder / "w.duckdb")) as connection:
        made = connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'd'").fetchone()
        found = connection.execute("SELECT release_id, value FROM d").fetchall() if made else []
    return sorted(found)


def _files(form: Form) -> Callable[[Path], Sink]:
    return lambda folder: FilesSink("f", folder, form)


TARGETS = {
    "table": Target(
        lambda folder: TableSink("t", connect(folder / "s.db"), "deciles", one_writer), _table
    ),
    "jsonl": Target(lambda folder: JsonLinesSink("f", folder / "out.jsonl"), _lines),
    "csv": Target(_files("csv"), _csv),
    "parquet": Target(_files("parquet"), _parquet),
    "duckdb": Target(lambda folder: DuckDBTableSink("d", folder / "w.duckdb", "d"), _database),
}
