"""Tables of PostgreSQL, MariaDB and Spark: each type in each role, with each hostile value of it.

A server is started for the first pair that asks for it and ends with the process; where none can be
started there are no pairs. A type that a role refuses is refused with and without the record.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from tests.contract import test_mariadb_total, test_postgres_total
from tests.contract.servers import asked, binaries, java, mariadb, mariadb_binaries, postgres
from tests.privacy.reading import columns
from tests.privacy.reading.pairs import Pair
from tests.privacy.reading.writers import WRITERS, Writer

ROWS = 20
NOON = "2024-01-01 12:00"
DAY = "{column: %s, every: 1d, start: 2024-01-01, end: 2024-01-02}"
COUNT = "measures: {records: count}"
HISTOGRAM = "measures: {m: {histogram: v, cuts: [0, 50]}}"

Row = tuple[int, Any]
"""A value and what is hostile."""


def into_postgres(address: str, kind: str, rows: Sequence[Row]) -> None:
    import psycopg

    with psycopg.connect(address, autocommit=True) as server:
        server.execute("SET TimeZone = 'UTC'")
        server.execute("DROP TABLE IF EXISTS read")
        server.execute(f"CREATE TABLE read (v INT, h {kind}, t TIMESTAMP)")
        with server.cursor() as cursor:
            insert = f"INSERT INTO read VALUES (%s, %s::{kind}, '{NOON}')"
            cursor.executemany(insert, rows)


def into_mariadb(address: str, kind: str, rows: Sequence[Row]) -> None:
    with asked(address) as server, server.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")  # else it would take no zero for a date
        cursor.execute("DROP TABLE IF EXISTS `read`")
        cursor.execute(f"CREATE TABLE `read` (v INT, h {kind}, t DATETIME)")
        cursor.executemany(f"INSERT INTO `read` VALUES (%s, %s, '{NOON}')", rows)


@dataclass(frozen=True, eq=False)
class Server:
    """An engine that is asked where the records are.

    Args:
        name: As PRIVACY.md has it.
        start: Starts it.
        fill: Makes its table.
        kinds: Of each type an ordinary value and hostile ones.
        apart: Of each type units that are not one, though something takes them for equal.
    """

    name: str
    start: Callable[[], AbstractContextManager[str | None]]
    fill: Callable[[str, str, Sequence[Row]], None]
    kinds: Mapping[str, tuple[Any, list[Any]]]
    apart: Mapping[str, list[Any]]

    @property
    def variable(self) -> str:
        """Variable of the environment that holds its address."""
        return f"READING_{self.name.upper()}"


EUCKR = "VARCHAR(9) CHARACTER SET euckr"
POSTGRES = Server(
    "PostgreSQL",
    postgres,
    into_postgres,
    test_postgres_total.HOSTILE,
    {"text": ["a", "A", "a ", "á", "a\x01"], "char(9)": ["a", "A"], "numeric": ["1e-1000", "0"]},
)
MARIADB = Server(
    "MariaDB",
    mariadb,
    into_mariadb,
    test_mariadb_total.HOSTILE,
    {
        "VARCHAR(9)": ["a", "A", "a ", "á", "a\0", "a\0\0", "", " "],
        EUCKR: [b"\x81\x41", b"\xc9\xa1", b"\xc9\xa2", b"\xfe\xa1", b"?"],
        "VARBINARY(9)": [b"a", b"a\0", b"a\0\0"],
    },
)

_RUNNING = ExitStack()
atexit.register(_RUNNING.close)


@cache
def _address(server: Server) -> str:
    """Where a server is, which runs from now on."""
    address = _RUNNING.enter_context(server.start())
    assert address is not None
    os.environ[server.variable] = address
    return address


def _expression(ordinary: Any) -> str:
    """A condition that computes with an ordinary value's type, and could fail on others."""
    if ordinary == "7":
        return "h * h * h / (h - 8) > 1 OR -h + h * h - 1 > 5 OR ln(h) > 1 OR abs(h) % 3 = 1"
    if str(ordinary).startswith("2024-01"):
        return "h - INTERVAL 9000 MONTH > '0900-01-01' OR extract(epoch FROM h) * 1000 > 1"
    return "length(substring(h, 1, 3)) > 0 AND upper(h) LIKE 'A%'"


def _roles(ordinary: Any) -> Mapping[str, tuple[str, str, str]]:
    """Release, unit and time column of each role that h may play."""
    known = f'{COUNT}, where: "h >= h AND h IS NOT NULL"'
    computed = f'{COUNT}, where: "{_expression(ordinary)}"'
    return {
        "value": ("measures: {m: {histogram: h, cuts: [0, 50], nulls: cell}}", "record", "t"),
        "unit": (HISTOGRAM, "{name: person, column: h}", "t"),
        "group": (f"{COUNT}, by: [h], groups: [A, '7']", "record", "t"),
        "time": (COUNT, "record", "h"),
        "condition": (known, "record", "t"),
        "expression": (computed, "record", "t"),
    }


def _pair(
    server: Server, kind: str, role: str, hostile: Any, beside: Sequence[Any] = (), v: int = 7
) -> Pair:
    """A table with one hostile value more.

    Args:
        server: Where it is.
        kind: Type of h.
        role: That h plays.
        hostile: Value.
        beside: Values of other records than the ordinary ones.
        v: Value of all others, beside 50; that of the hostile record lies beyond it.
    """
    ordinary, _ = server.kinds.get(kind, ("A", []))
    release, unit, time = _roles(ordinary)[role]

    def write(folder: Path, extra: bool) -> None:
        rows = [(v, ordinary)] * ROWS + [(v, each) for each in beside]
        server.fill(_address(server), kind, [*rows, *([(67 - v, hostile)] if extra else [])])

    engine = f"{{kind: {server.name.lower()}, connection: '${{{server.variable}}}'}}"
    if server is POSTGRES:
        engine = engine.replace("postgresql", "postgres")
    return Pair(
        format=server.name,
        writer=kind,
        role=role,
        record=ascii(hostile)[:40],
        write=write,
        source=f"engine: {engine}, table: read, batches: {DAY % time}",
        release=release,
        unit=unit,
        base=(server.name, kind, role, repr(beside), v),
        served=None,
    )


def _pairs(server: Server) -> Iterator[Pair]:
    """Each hostile value and null in each role."""
    for kind, (ordinary, hostile) in server.kinds.items():
        for role in _roles(ordinary):
            for value in (*hostile, None):
                yield _pair(server, kind, role, value)


def apart(server: Server) -> Iterator[Pair]:
    """Units beside others that something takes for the same."""
    for kind, units in server.apart.items():
        for unit in units:
            others = [each for each in units if each != unit]
            yield from (_pair(server, kind, "unit", unit, others, v) for v in (7, 60))


SPARK = Writer(
    "Spark",
    "PyArrow, Parquet",
    WRITERS[0].write,
    "path: data.parquet, engine: {kind: spark, master: 'local[2]'}",
)

QUICK = {
    ("PostgreSQL", "bigint", "expression", str(2**63 - 1)),
    ("PostgreSQL", "numeric", "expression", "1e1000"),
    ("PostgreSQL", "timestamp", "value", "294276-12-31"),
    ("PostgreSQL", "bytea", "unit", "\\x00ff"),
    ("MariaDB", "BIGINT", "expression", str(2**63 - 1)),
    ("MariaDB", "DOUBLE", "expression", "1.7976931348623157e308"),
    ("MariaDB", "DATETIME(6)", "time", "0000-00-00 00:00:00"),
}
"""Server, type, role and value of the short profile: what told data sets apart."""


def pairs(quick: bool) -> Iterator[Pair]:
    """Of all servers that can be started here; the short profile leaves Spark out: it is slow."""
    found = [POSTGRES] if binaries() is not None else []
    found += [MARIADB] if mariadb_binaries() is not None else []
    for server in found:
        if quick:
            chosen = (each[1:] for each in QUICK if each[0] == server.name)
            yield from (replace(_pair(server, *each), served=True) for each in sorted(chosen))
        else:
            yield from _pairs(server)
            yield from apart(server)
    if java() and not quick:
        for pair in columns.pairs_of(SPARK):
            yield replace(pair, served=None)
