"""Expressions over hostile records of MariaDB: none fails, and none has another value."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from streamdp.backends.limits import NO_LIMITS
from streamdp.backends.mariadb import MariaDBBackend, MariaDBExpression, ServerAddress, settings
from streamdp.backends.sql.relation import Relation
from streamdp.errors import SourceError
from streamdp.sections.expressions import expression
from streamdp.types import CellQuery, Made
from tests.contract.servers import asked as connected
from tests.contract.test_mariadb_total import HOSTILE
from tests.contract.test_total import FILE, GRID

pymysql = pytest.importorskip("pymysql")

KINDS = {
    "i": "BIGINT",
    "u": "BIGINT UNSIGNED",
    "k": "TINYINT",
    "c": "YEAR",
    "n": "DECIMAL(65)",
    "m": "DECIMAL(65,38)",
    "p": "DECIMAL(9,2)",
    "d": "DOUBLE",
    "r": "FLOAT",
    "t": "DATETIME(6)",
    "z": "TIMESTAMP(6) NULL",
    "y": "DATE",
    "s": "VARCHAR(512)",
    "f": "BOOLEAN",
}
VALUES = HOSTILE | {"DECIMAL(9,2)": ("7", ["9999999.99", "-9999999.99", "0.01"])}
NUMBERS, TIMES = ("i", "u", "k", "c", "n", "m", "p", "d", "r"), ("t", "z", "y")
MOST = {"i": str(2**63 - 1), "u": str(2**64 - 1), "k": "127", "n": "9" * 65, "d": "1.7e308"}


def number(chance: random.Random, depth: int) -> str:
    if depth == 0:
        return chance.choice((*NUMBERS, *NUMBERS, "0", "7", "1.5", "-3", "1e5"))
    one, other = number(chance, depth - 1), number(chance, depth - 1)
    moment = chance.choice(TIMES)
    part = chance.choice(("year", "epoch", "dow", "isodow", "doy", "week", "hour"))
    return chance.choice(
        (
            *(f"({one} {operator} {other})" for operator in "+-*/%+-*"),
            *(f"{function}({one})" for function in ("abs", "floor", "ceil", "ln", "sqrt", "-")),
            f"round({one}, 2)",
            f"coalesce({one}, {other})",
            f"nullif({one}, {other})",
            f"CASE WHEN {condition(chance, depth - 1)} THEN {one} ELSE {other} END",
            f"extract({part} FROM {moment}) * {one}",
            f"length(substring(s, 1, k)) + {one}",
            f"length(substring(s, 2, i)) * {one}",
        )
    )


def condition(chance: random.Random, depth: int) -> str:
    one, other = number(chance, depth), number(chance, depth)
    moment, unit = chance.choice(TIMES), chance.choice(("month", "year", "day", "hour"))
    return chance.choice(
        (
            *(f"{one} {compared} {other}" for compared in ("<", "=", ">=", "<>")),
            f"{one} BETWEEN {other} AND 7",
            f"{one} IN (1, {other})",
            f"{one} IS DISTINCT FROM {other}",
            f"date_trunc('{unit}', {moment}) < '2024-02-01'",
            f"{moment} - INTERVAL 9000 {unit} > '2024-01-01'",
            f"lower(s) LIKE 'a%' AND NOT f OR {one} IS NULL",
        )
    )


def hostile_values(name: str) -> list[Any]:
    ordinary, hostile = VALUES[KINDS[name]]
    return [ordinary, "-0" if name in ("d", "r") else ordinary, *hostile]


@pytest.fixture(scope="module")
def table(mariadb_server: str) -> Iterator[Any]:
    """Ordinary records, and hostile ones: each value beside ordinary and beside extreme ones."""
    chance = random.Random(5)
    with connected(mariadb_server) as server, server.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")  # else it would take no zero for a date
        named = ", ".join(f"{name} {kind}" for name, kind in KINDS.items())
        cursor.execute(f"CREATE TABLE expressed (x INT, {named})")
        plain = [VALUES[kind][0] for kind in KINDS.values()]
        rows: list[list[Any]] = [[None] * len(KINDS), plain]
        rows += [[chance.choice(hostile_values(name)) for name in KINDS] for _ in range(300)]
        rows += [
            [
                value if each == name else (most and MOST.get(each)) or VALUES[KINDS[each]][0]
                for each in KINDS
            ]
            for name, most in product(KINDS, (False, True))
            for value in hostile_values(name)
        ]
        one = ", ".join(["%s"] * len(KINDS))
        cursor.executemany(f"INSERT INTO expressed VALUES (7, {one})", rows)
        sets = ", ".join(f"SESSION {each} = {to}" for each, to in settings(NO_LIMITS).items())
        cursor.execute(f"SET {sets}")  # as the backend's sessions are
        yield cursor
        cursor.execute("SET SESSION tx_read_only = 0")
        cursor.execute("DROP TABLE expressed")


@pytest.mark.parametrize("amount", [60, pytest.param(3000, marks=pytest.mark.long)])
def test_no_record_fails_an_expression_after_its_check(
    mariadb_server: str, table: Any, amount: int
) -> None:
    """As a value and a condition; a third of them failed before."""
    chance, failed, asked, raw = random.Random(amount), list[str](), 0, 0
    backend = MariaDBBackend(ServerAddress.of(mariadb_server), Relation("expressed"))
    for _ in range(amount):
        one, depth = chance.random() < 0.5, chance.choice((1, 1, 2, 3))
        text = number(chance, depth) if one else condition(chance, depth)
        said = expression(text, "mariadb")
        query = CellQuery("z_", GRID, expression=said) if one else CellQuery("x", GRID, where=said)
        try:
            backend.check(query, FILE)
        except SourceError:
            continue
        asked += 1
        try:
            backend.answer(query, FILE)
        except SourceError:
            failed.append(text)
        try:
            table.execute(f"SELECT count(*) FROM expressed WHERE ({said}) IS NULL")
            table.fetchall()
        except pymysql.Error:
            raw += 1
    backend.close()
    assert failed == []
    assert asked > amount / 2
    assert raw > amount / 10


def test_an_expression_of_ordinary_records_has_the_value_that_it_had(table: Any) -> None:
    """What is made total is the same where it did not fail."""
    chance, compared = random.Random(11), 0
    kinds = {"i": "bigint", "u": "bigint", "k": "tinyint", "c": "year", "d": "double"}
    kinds |= {"n": "decimal(65,0)", "m": "decimal(65,38)", "p": "decimal(9,2)"}
    kinds |= {"r": "float", "t": "datetime", "z": "timestamp", "y": "date", "s": "varchar(2048)"}
    kinds |= {"f": "tinyint"}
    for _ in range(300):
        said = expression(number(chance, 2), "mariadb")
        try:
            made = MariaDBExpression.rewrite(said, kinds)
            table.execute(f"SELECT {said}, {made} FROM expressed LIMIT 1 OFFSET 1")
        except (SourceError, pymysql.Error):
            continue
        ((one, other),) = table.fetchall()
        compared += 1
        assert (one is None) == (other is None), said
        assert one is None or math.isclose(one, other, rel_tol=1e-12), said
    assert compared > 200


def test_a_column_of_a_query_is_made_total(mariadb_server: str, table: Any) -> None:
    """Its expression stands over the table, where the same name may have another type."""
    product_ = expression("i * u", "mariadb").replace("`i`", "record.`I`")
    made = (Made("i", product_.replace("`u`", "record.`u`")), Made("x", "record.`x`", source="x"))
    relation = Relation("expressed", columns=made, where="record.`i` * record.`i` > 1")
    backend = MariaDBBackend(ServerAddress.of(mariadb_server), relation)
    for query in (CellQuery("i", GRID), CellQuery("x", GRID, where="`I` * `i` > 5")):
        backend.check(query, FILE)
        assert sum(backend.answer(query, FILE).counts) > 0
    backend.close()


@pytest.mark.parametrize(
    "text", [" * ".join("d" * 11), "i * nowhere", "i * ï", "t - t > 5", "date_trunc('day', s) > t"]
)
def test_what_cannot_be_made_total_is_refused(mariadb_server: str, table: Any, text: str) -> None:
    """By types alone, before a charge; MariaDB itself finds columns whatever their case."""
    said = expression(text, "mariadb")
    backend = MariaDBBackend(ServerAddress.of(mariadb_server), Relation("expressed"))
    with pytest.raises(SourceError):
        backend.check(CellQuery("x", GRID, where=said if ">" in text else f"{said} > 1"), FILE)
    backend.close()
