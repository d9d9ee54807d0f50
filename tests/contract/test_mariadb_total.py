"""Reading is total in MariaDB: hostile values of each type, in each part of a question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from streamdp.backends.mariadb import MariaDBBackend, ServerAddress
from streamdp.backends.sql.relation import Relation
from streamdp.errors import SourceError
from streamdp.sections.expressions import expression
from streamdp.types import CellQuery, UnitBound
from tests.contract.servers import asked as connected
from tests.contract.test_postgres_total import ROLES, tried
from tests.contract.test_total import FILE, GRID

TIMES = ["0000-00-00 00:00:00", "2024-00-00 00:00:00", "9999-12-31 23:59:59", "0001-01-01 00:00:00"]
HOSTILE: dict[str, tuple[Any, list[Any]]] = {
    "TINYINT": ("7", ["127", "-128"]),
    "TINYINT UNSIGNED": ("7", ["255", "0"]),
    "BIGINT": ("7", [str(2**63 - 1), str(-(2**63)), str(2**53 + 1)]),
    "BIGINT UNSIGNED": ("7", [str(2**64 - 1), "0"]),
    "BOOLEAN": ("1", ["0", "2", "-128"]),
    "YEAR": ("2024", ["0000", "2155"]),
    "FLOAT": ("7", ["3.4e38", "1e-45", "-0"]),
    "DOUBLE": ("7", ["1.7976931348623157e308", "-1.7976931348623157e308", "5e-324", "-0"]),
    "DECIMAL(65)": ("7", ["9" * 65, "-" + "9" * 65]),
    "DECIMAL(65,38)": ("7", [f"{'9' * 27}.{'9' * 38}", f"0.{'0' * 37}1"]),
    "DATE": ("2024-01-01", [each[:10] for each in TIMES]),
    "DATETIME(6)": ("2024-01-01 12:00", [*TIMES, "9999-12-31 23:59:59.999999"]),
    "TIMESTAMP(6) NULL": ("2024-01-01 12:00", [TIMES[0], "2038-01-19 03:14:07.999999"]),
    "TIME(6)": ("12:30", ["838:59:59.999999", "-838:59:59.999999", "-00:00:00.000001"]),
    "VARCHAR(512)": ("A", ["", "é", "\U0010ffff", "x" * 512, "\0", "A\0", "A ", "a", "\\'\"%s"]),
    "VARCHAR(512) CHARACTER SET latin1": ("A", ["", "é", "x" * 512, "\0", "A ", "a"]),
    "VARCHAR(513)": ("A", ["x" * 513]),
    "CHAR(9)": ("A", ["", "é", "a", "Á"]),
    "TEXT": ("A", ["", "é", "x" * 60_000, "A ", "a"]),
    "JSON": ("7", ["null", '{"a": [1]}', '"A"']),
    "ENUM('A', 'a ', '')": ("A", ["a ", "", "no such"]),
    "SET('A', 'b')": ("A", ["A,b", ""]),
    "UUID": ("00000000-0000-0000-0000-000000000000", ["ffffffff-ffff-ffff-ffff-ffffffffffff"]),
    "INET6": ("::1", ["::"]),
    "VARBINARY(2048)": ("A", [b"\0\xff", b"", b"A\0", b"\xff" * 2048]),
    "BINARY(4)": ("A", [b"\0\xff", b"A\0\0\0"]),
    "BLOB": ("A", [b"\0\xff", b""]),
    "BIT(64)": (b"A", [b"\xff" * 8]),
}
"""Of each type an ordinary value and hostile ones, beside which null stands always."""


def make(server: Any, kind: str) -> None:
    with server.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS hostile")
        cursor.execute("SET sql_mode = ''")  # else it would take no zero for a date
        cursor.execute(f"CREATE TABLE hostile (x INT, h {kind}, t DATETIME)")


def fill(server: Any, values: Sequence[Any]) -> None:
    with server.cursor() as cursor:
        cursor.execute("DELETE FROM hostile")
        given = [(value,) for value in values]
        cursor.executemany("INSERT INTO hostile VALUES (7, %s, '2024-01-01 12:00')", given)


@pytest.fixture
def backend(mariadb_server: str) -> Iterator[MariaDBBackend]:
    found = MariaDBBackend(ServerAddress.of(mariadb_server), Relation("hostile"))
    yield found
    found.close()


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", HOSTILE)
def test_no_value_fails_a_question_of_mariadb_after_its_check(
    mariadb_server: str, backend: MariaDBBackend, kind: str
) -> None:
    """Each hostile value moves a count by its own record alone, or the question is refused."""
    ordinary, hostile = HOSTILE[kind]
    answered, failed = 0, list[str]()
    with connected(mariadb_server) as server:
        make(server, kind)
        for role in ROLES:
            backend.time_column = "h" if role == "time" else None
            found = tried(
                backend, role, (*hostile, None), lambda value: fill(server, [ordinary] * 3 + value)
            )
            answered, failed = answered + found[0], failed + found[1]
    assert failed == []
    assert answered >= len(hostile) + 2


@pytest.mark.parametrize("kind", ["DATE", "DATETIME(6)", "TIMESTAMP(6) NULL"])
def test_units_that_are_no_day_are_bounded_like_others(
    mariadb_server: str, backend: MariaDBBackend, kind: str
) -> None:
    """A day of zeros has no distance to another, by which its records could be chosen."""
    zeros = [each for each in HOSTILE[kind][1] if each.startswith(("0000", "2024-00"))]
    with connected(mariadb_server) as server:
        make(server, kind)
        fill(server, zeros * 5)
    for rows in (1, 2, 5):
        query = CellQuery("x", GRID, bound=UnitBound("h", rows))
        backend.check(query, FILE)
        assert backend.answer(query, FILE).counts.tolist() == [rows * len(zeros)]


def test_units_that_a_collation_calls_equal_are_two(
    mariadb_server: str, backend: MariaDBBackend
) -> None:
    """Case, accents, blanks and bytes of zero at the end, and what differs at the very end."""
    long = "x" * 511
    units = ["A", "a", "á", "a ", "a\0", "a\0\0", "", " ", "\0", f"{long}1", f"{long}2"]
    with connected(mariadb_server) as server:
        make(server, "VARCHAR(512)")
        fill(server, units * 5)
    bounds = [(CellQuery("x", GRID, bound=UnitBound("h", rows)), rows) for rows in (1, 2, 5)]
    for query, rows in bounds:
        backend.check(query, FILE)
        assert backend.answer(query, FILE).counts.tolist() == [rows * len(units)]
    query = CellQuery("x", GRID, by=("h",), groups=tuple((unit,) for unit in units))
    assert [each.counts.tolist() for each in backend.answer(query, FILE)] == [[5]] * len(units)
    assert backend.answer(CellQuery("x", GRID, where="h = 'a'"), FILE).counts.tolist() == [5]


def test_units_are_told_apart_in_every_character_set(
    mariadb_server: str, backend: MariaDBBackend
) -> None:
    """Bytes that Unicode has no letter for would be one `?`: one unit would push out another."""
    told: dict[str, tuple[list[int], int, int]] = {}
    with connected(mariadb_server) as server, server.cursor() as cursor:
        cursor.execute("SELECT character_set_name FROM information_schema.character_sets")
        for (charset,) in cursor.fetchall():
            make(server, f"VARCHAR(9) CHARACTER SET {charset}")
            for size, found in ((1, "seq_0_to_255"), (2, "seq_33024_to_65279_step_37")):
                stored = f"UNHEX(LPAD(HEX(seq), {2 * size}, '0'))"
                cursor.execute(
                    f"INSERT INTO hostile SELECT 7, unit, NULL FROM (SELECT {stored} AS bytes,"
                    f" CONVERT({stored} USING {charset}) AS unit FROM {found}) AS made"
                    " WHERE CAST(unit AS BINARY) = bytes"
                )
            cursor.execute("INSERT INTO hostile SELECT * FROM hostile")
            cursor.execute(
                "SELECT count(DISTINCT CAST(h AS BINARY)),"
                " count(DISTINCT CONVERT(h USING utf8mb4) COLLATE utf8mb4_nopad_bin) FROM hostile"
            )
            ((units, converted),) = cursor.fetchall()
            query = CellQuery("x", GRID, bound=UnitBound("h", 1))
            backend.check(query, FILE)
            told[charset] = (backend.answer(query, FILE).counts.tolist(), units, converted)
    assert [each for each, (counts, units, _) in told.items() if sum(counts) != units] == []
    lossy = {each for each, (_, units, converted) in told.items() if converted < units}
    assert lossy > {"euckr", "gbk", "sjis", "gb2312", "ascii", "hebrew", "tis620", "cp1250"}


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        ("DATETIME", "h - t > 5"),
        ("DATETIME", "h > 20240101"),
        ("VARCHAR(9)", "h = 0"),
        ("VARCHAR(9)", "h + 1 = 1"),
        ("VARCHAR(9)", "h > t"),
        ("TIME", "h < t"),
        ("DATETIME", "x IN (1, h)"),
        ("DATE", "-h < 0"),
    ],
)
def test_what_mariadb_would_convert_in_silence_is_refused(
    mariadb_server: str, backend: MariaDBBackend, kind: str, where: str
) -> None:
    """In a condition, a derived column, and a query in place of the table."""
    with connected(mariadb_server) as server:
        make(server, kind)
    derived = f"CASE WHEN {where} THEN 1 ELSE 0 END"
    for query in (CellQuery("x", GRID, where=where), CellQuery("z", GRID, expression=derived)):
        with pytest.raises(SourceError, match="where MariaDB has"):
            backend.check(query, FILE)
    backend.relation = replace(backend.relation, where=where.replace("h", "record.h"))
    with pytest.raises(SourceError, match="where MariaDB has"):
        backend.check(CellQuery("x", GRID), FILE)


def test_a_column_that_is_computed_as_it_is_read_is_refused(
    mariadb_server: str, backend: MariaDBBackend
) -> None:
    """It overflows on one record; stored, that record cannot be written."""
    with connected(mariadb_server) as server, server.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS hostile")
        cursor.execute("CREATE TABLE hostile (x BIGINT, h BIGINT AS (x * x) VIRTUAL)")
    queries = [CellQuery("x", GRID, where=f"`{name}` > 1") for name in ("h", "H")]
    for query in (CellQuery("h", GRID), *queries):
        with pytest.raises(SourceError, match="computed as it is read"):
            backend.check(query, FILE)
    with pytest.raises(SourceError, match="has no column 'H'"):
        backend.check(CellQuery("H", GRID), FILE)
    backend.check(CellQuery("x", GRID), FILE)


def test_a_table_without_snapshots_is_refused(mariadb_server: str, backend: MariaDBBackend) -> None:
    """A question may read it more than once, between which others write."""
    with connected(mariadb_server) as server, server.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS hostile")
        cursor.execute("CREATE TABLE hostile (x INT) ENGINE=MyISAM")
    with pytest.raises(SourceError, match="stored by MyISAM"):
        backend.check(CellQuery("x", GRID), FILE)


MODES = "ANSI,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE,TRADITIONAL,PAD_CHAR_TO_FULL_LENGTH"
DEFAULTS = {
    "sql_mode": f"'{MODES}'",
    "time_zone": "'+05:30'",
    "character_set_server": "latin1",
    "collation_connection": "latin1_swedish_ci",
    "sql_select_limit": "1",
    "div_precision_increment": "0",
    "default_week_format": "0",
    "tx_isolation": "'READ-UNCOMMITTED'",
    "sql_auto_is_null": "1",
    "max_sort_length": "8",
}


def test_defaults_of_a_server_change_no_answer(mariadb_server: str, open_user: str) -> None:
    """Also those that it sets for each connection of a user who is not its administrator."""
    backend = MariaDBBackend(
        ServerAddress.of(mariadb_server.replace("root@", open_user)), Relation("w.d")
    )
    texts = ["é", "e", "E", "a\\b", "x" * 300 + "1", "x" * 300 + "2"]
    with connected(mariadb_server) as server, server.cursor() as cursor:
        cursor.execute("CREATE TABLE w.d (x INT, s VARCHAR(512), t DATETIME, c CHAR(9))")
        rows = [(number, each, "2024-01-01 03:00", "c") for number, each in enumerate(texts)]
        cursor.executemany("INSERT INTO w.d VALUES (%s, %s, %s, %s)", rows)
        names = ", ".join(f"@@{name}" for name in DEFAULTS)
        cursor.execute(f"SELECT {names}")
        ((kept),) = cursor.fetchall()

        def answers() -> list[list[int]]:
            said = [
                "NOT x BETWEEN 1 AND 2",
                "s = 'é' OR s = 'E'",
                "c = 'c' AND length(c) = 1",
                "x / 2 > 1.2",
                "extract(week FROM t) = 1 AND extract(hour FROM t) = 3",
                "x * 3000000000 * 3000000000 > 5",
            ]
            queries = [CellQuery("x", GRID, where=expression(each, "mariadb")) for each in said]
            queries.append(CellQuery("x", GRID, bound=UnitBound("s", 1)))
            for query in queries:
                backend.check(query, FILE)
            by = CellQuery("x", GRID, by=("s",), groups=tuple((each,) for each in texts))
            found = [backend.answer(query, FILE).counts.tolist() for query in queries]
            return [*found, *(each.counts.tolist() for each in backend.answer(by, FILE))]

        try:
            before = answers()
            backend.close()
            for name, value in DEFAULTS.items():
                cursor.execute(f"SET GLOBAL {name} = {value}")
            cursor.execute("SET GLOBAL init_connect = 'SET NAMES latin1, autocommit = 0'")
            assert answers() == before
            assert [1] * len(texts) == [sum(each) for each in before[-len(texts) :]]
        finally:
            backend.close()
            for name, value in zip(DEFAULTS, kept, strict=True):
                cursor.execute(f"SET GLOBAL {name} = %s", (value,))
            cursor.execute("SET GLOBAL init_connect = ''")
            cursor.execute("DROP TABLE w.d")


@pytest.fixture
def open_user(mariadb_server: str) -> Iterator[str]:
    """A user who may read and no more."""
    with connected(mariadb_server) as server, server.cursor() as cursor:
        cursor.execute("CREATE USER plain@localhost")
        cursor.execute("GRANT SELECT ON w.* TO plain@localhost")
        yield "plain@"
        cursor.execute("DROP USER plain@localhost")
