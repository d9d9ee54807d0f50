"""Twins whose batches are columns: Parquet, Arrow, Delta, and tables of DuckDB and PostgreSQL.

python -m tests.crash.forms [--json] [--quick]

Numbers are 64-bit integers there, and texts are bytes: a product overflows, and a text may be no
UTF-8. Neither may leave a trace, in no kind of release and in none that computes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.benchmarks.report import Row, main
from tests.contract.servers import postgres
from tests.crash import every_kind, twins
from tests.crash.tracer import live

Record = tuple[int | None, bytes | None]
"""A number and a text."""

DAYS = (datetime(2023, 11, 15, 12, tzinfo=UTC), datetime(2023, 11, 16, 12, tzinfo=UTC))
OTHERS: tuple[Record, ...] = ((40, b"a"), (60, b"b"))

NEIGHBOURS: tuple[tuple[Sequence[Record], Record], ...] = (
    (((10, b"a"), (90, b"b")), (4_000_000_000, b"a")),
    (((10, b"a"), (90, b"b")), (-(2**63), b"\xff\xfe")),
    (((7, b"a"),) * 5, (2**63 - 1, None)),
    ((), (None, b"a text that no list has")),
    (((3, b"a"),) * 20, (0, b"\0")),
    (((1, b"a"),) * 9 + ((2, b"b"),) * 9, (50, b"x" * 2**20)),
)
"""Records of the first day, and the one that its neighbour has more."""

COMPUTED = {
    "quotient": """kind: statistics, where: "x * x IS NULL OR x * x > 3",
     measures: {rows: count, mean: {mean: {sql: 100 / (x * x)}, resolution: 1, bounds: [0, 100]},
     same: {sum: {sql: x * x}, resolution: 1, bounds: [0, 100]}}""",
    "logarithm": """kind: statistics, by: note, groups: [a, b],
     measures: {logarithm: {mean: {sql: ln(x * x)}, resolution: 1, bounds: [0, 50]}}""",
}
"""What is asked besides all kinds."""

ALL = every_kind.RELEASES | COMPUTED
FEW = {name: ALL[name] for name in ("counts", "quotient", "logarithm")}

CONFIG = """
store: {path: store.db, anchor: vault/anchor}
privacy:
  {unit: person, neighbours: add-remove,
   caps: {batch: {rho: 900}, lifetime: {rho: 9000}, delta: {lifetime: 1e-3}}}
sources:
  stream: {%s,
    batches: {column: at, every: 1d, start: 2023-11-15, end: 2023-11-17}}
releases:
%s
sinks:
%s  file: {kind: jsonl, path: out.jsonl}
log: {path: streamdp.log, level: debug}
"""


@dataclass(frozen=True)
class Form:
    """What batches of twins are kept in.

    Args:
        name: Of it.
        source: Keys of the source in YAML.
        write: Writes a table of Arrow into a folder.
        steady: Whether it makes the same calls to the kernel each time: threads of Delta's reader
            wake each other by writes.
    """

    name: str
    source: str
    write: Callable[[Any, Path], None]
    steady: bool = True

    def config(self, asked: Mapping[str, str]) -> str:
        """A configuration that releases these of it."""
        tables = "".join(f"  {name}: {{kind: table, table: t_{name}}}\n" for name in asked)
        releases = every_kind.releases("stream", "file", asked, "epsilon: 5")
        return CONFIG % (self.source, releases, tables)

    def records(self, home: Path, first: Sequence[Record]) -> None:
        """Write the records of two days: these, and the same others in each twin."""
        import pyarrow as pa

        (home / "data").mkdir()
        rows = [(DAYS[0], *each) for each in first] + [(DAYS[1], *each) for each in OTHERS]
        at, x, note = ([row[column] for row in rows] for column in range(3))
        texts = pa.array(note, pa.binary()).view(pa.string())
        moments = pa.array(at, pa.timestamp("us", "UTC"))
        table = pa.table({"at": moments, "x": pa.array(x, pa.int64()), "note": texts})
        self.write(table, home / "data")

    def difference(
        self, records: Sequence[Record], one_more: Record, asked: Mapping[str, str]
    ) -> list[str]:
        """Names of what differs between the traces of a batch and its neighbour.

        Where both release the same, as they do within `every_kind.public_outcomes`, nothing may.
        """
        found = twins.difference(records, one_more, self.config(asked), self.records)
        return [each for each in found if self.steady or ": calls of " not in each]


def _parquet(table: Any, folder: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, folder / "stream.parquet")


def _arrow(table: Any, folder: Path) -> None:
    import pyarrow as pa

    with pa.ipc.new_file(folder / "stream.arrow", table.schema) as writer:
        writer.write_table(table)


def _delta(table: Any, folder: Path) -> None:
    """A child writes it: once a process has, none that it forks can read such a table."""

    def write() -> None:
        import deltalake

        deltalake.write_deltalake(folder / "stream", _sound(table))

    life = live(write)
    assert life.status == 0, life.trouble
    (log,) = (folder / "stream" / "_delta_log").glob("*.json")
    (part,) = (folder / "stream").glob("*.parquet")
    part.rename(part.with_name("part.parquet"))
    said = re.sub(r'("metaData":\{"id":")[^"]*', rf"\g<1>{UUID(int=27)}", log.read_text())
    log.write_text(said.replace(part.name, "part.parquet"))  # names by chance are public


def _duckdb(table: Any, folder: Path) -> None:
    import duckdb

    with duckdb.connect(str(folder / "stream.duckdb")) as connection:
        connection.register("arrow", _sound(table))
        connection.execute("CREATE TABLE stream AS FROM arrow")


def _sound(table: Any) -> Any:
    """With texts that are UTF-8, for writers that take no others."""
    import pyarrow as pa

    raw = [each.as_buffer().to_pybytes() if each.is_valid else None for each in table["note"]]
    texts = [None if each is None else each.decode(errors="replace") for each in raw]
    return table.set_column(2, "note", pa.array(texts, pa.string()))


SERVER = "TWINS_POSTGRES"
"""Variable of the environment that says where the server is."""


def _postgres(table: Any, folder: Path) -> None:
    """The table stays, since its number is public and is written down; its records change."""
    import psycopg

    rows = [tuple(row.values()) for row in _sound(table).to_pylist()]
    with psycopg.connect(os.environ[SERVER], autocommit=True) as server:
        kinds = "at TIMESTAMPTZ, x BIGINT, note TEXT"
        server.execute(f"CREATE TABLE IF NOT EXISTS stream ({kinds})")
        server.execute("DELETE FROM stream")
        with server.cursor() as cursor:
            # a text of PostgreSQL has no NUL
            plain = [(at, x, note and note.replace("\0", "?")) for at, x, note in rows]
            cursor.executemany("INSERT INTO stream VALUES (%s, %s, %s)", plain)


FORMS = (
    Form("Parquet", "path: data/stream.parquet", _parquet),
    Form("Arrow", "path: data/stream.arrow", _arrow),
    Form("Delta", "path: data/stream, format: delta", _delta, steady=False),
    Form("DuckDB", "path: data/stream.duckdb, table: stream", _duckdb),
)
_THERE = f"engine: {{kind: postgres, connection: '${{{SERVER}}}'}}, table: stream"
POSTGRES = Form("PostgreSQL", _THERE, _postgres)


@contextmanager
def forms() -> Iterator[Sequence[Form]]:
    """All forms; PostgreSQL is one where it can be started."""
    with postgres() as address:
        if address is None:
            yield FORMS
            return
        os.environ[SERVER] = address
        try:
            yield (*FORMS, POSTGRES)
        finally:
            del os.environ[SERVER]


def rows(quick: bool) -> Iterator[Row]:
    """One row a form: pairs of runs, and what tells them apart."""
    pairs, asked = (NEIGHBOURS[:1], FEW) if quick else (NEIGHBOURS, ALL)
    with forms() as found, every_kind.public_outcomes():
        for form in found:
            told = [each for pair in pairs for each in form.difference(*pair, asked)]
            yield {"form": form.name, "pairs": len(pairs), "apart": "; ".join(told)}


if __name__ == "__main__":
    main("Twins whose batches are columns", rows, failed=lambda row: bool(row["apart"]))
