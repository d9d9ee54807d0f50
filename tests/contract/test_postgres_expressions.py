"""Expressions over hostile records of PostgreSQL: none fails, and none has another value."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from streamdp.backends.postgres import PostgresBackend, PostgresExpression
from streamdp.backends.sql.relation import Relation
from streamdp.errors import SourceError
from streamdp.sections.expressions import expression
from streamdp.types import CellQuery, Made
from tests.contract.test_postgres_total import HOSTILE
from tests.contract.test_total import FILE, GRID

psycopg = pytest.importorskip("psycopg")

KINDS = {
    "i": "integer",
    "b": "bigint",
    "k": "smallint",
    "n": "numeric",
    "m": "numeric(9,2)",
    "d": "double precision",
    "r": "real",
    "t": "timestamp",
    "z": "timestamptz",
    "y": "date",
    "v": "interval",
    "s": "text",
    "f": "boolean",
}
NUMBERS, TIMES = ("i", "b", "k", "n", "m", "d", "r"), ("t", "z", "y")
MOST = {"i": "2147483647", "b": str(2**63 - 1), "k": "32767", "d": "1.7e308", "r": "3.4e38"}


def number(chance: random.Random, depth: int) -> str:
    if depth == 0:
        return chance.choice((*NUMBERS, *NUMBERS, "0", "7", "1.5", "-3"))
    one, other = number(chance, depth - 1), number(chance, depth - 1)
    moment = chance.choice(TIMES)
    return chance.choice(
        (
            *(f"({one} {operator} {other})" for operator in "+-*/%"),
            *(f"{function}({one})" for function in ("abs", "floor", "ceil", "ln", "sqrt", "-")),
            f"round({one}, 2)",
            f"coalesce({one}, {other})",
            f"greatest({one}, {other})",
            f"nullif({one}, {other})",
            f"CASE WHEN {condition(chance, depth - 1)} THEN {one} ELSE {other} END",
            f"extract({chance.choice(('year', 'epoch', 'dow', 'hour'))} FROM {moment})",
            f"extract(epoch FROM {moment} - {moment})",
            f"extract(epoch FROM v) * {one}",
            f"length(substring(s, 1, k)) + {one}",
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
            f"date_trunc('{unit}', {moment}) < '2024-02-01'",
            f"{moment} - INTERVAL 3 {unit} > '2024-01-01'",
            f"lower(s) LIKE 'a%' AND NOT f OR {one} IS NULL",
        )
    )


def hostile_values(name: str) -> list[str]:
    kind = KINDS[name]
    ordinary, hostile = HOSTILE[kind]
    return [ordinary, "-0" if name in NUMBERS else ordinary, *hostile]


@pytest.fixture(scope="module")
def table(postgres_server: str) -> Iterator[Any]:
    """Ordinary records, and hostile ones: each value beside ordinary and beside extreme ones."""
    chance = random.Random(5)
    with psycopg.connect(postgres_server, autocommit=True) as server:
        server.execute("SET TimeZone = 'UTC'")
        named = ", ".join(f"{name} {kind}" for name, kind in KINDS.items())
        server.execute(f"CREATE TABLE expressed (x int, {named})")
        rows: list[list[str | None]] = [[None] * len(KINDS)]
        rows += [[chance.choice(hostile_values(name)) for name in KINDS] for _ in range(300)]
        rows += [
            [
                value if each == name else (most and MOST.get(each)) or HOSTILE[KINDS[each]][0]
                for each in KINDS
            ]
            for name, most in product(KINDS, (False, True))
            for value in hostile_values(name)
        ]
        one = ", ".join(f"%s::{kind}" for kind in KINDS.values())
        with server.cursor() as cursor:
            cursor.executemany(f"INSERT INTO expressed VALUES (7, {one})", rows)
        yield server
        server.execute("DROP TABLE expressed")


@pytest.mark.parametrize("amount", [60, pytest.param(3000, marks=pytest.mark.long)])
def test_no_record_fails_an_expression_after_its_check(
    postgres_server: str, table: Any, amount: int
) -> None:
    """As a value, a condition and a column of a query; many of them failed before."""
    chance, failed, asked, raw = random.Random(amount), list[str](), 0, 0
    backend = PostgresBackend(postgres_server, Relation("expressed"))
    for _ in range(amount):
        one, depth = chance.random() < 0.5, chance.choice((1, 1, 2, 3))
        text = number(chance, depth) if one else condition(chance, depth)
        said = expression(text, "postgres")
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
        except psycopg.Error:
            raw += 1
    backend.close()
    assert failed == []
    assert asked > amount / 3
    assert raw > amount / 10


def test_an_expression_of_ordinary_records_has_the_value_that_it_had(table: Any) -> None:
    """What is made total is the same where it did not fail."""
    chance, compared = random.Random(11), 0
    plain = "(SELECT * FROM expressed WHERE i = 7 AND b = 7 AND k = 7 AND n = 7 AND m = 7 AND d = 7"
    plain += " AND r = 7 AND t = '2024-01-01 12:00' AND z = t AND y = '2024-01-01' LIMIT 1) AS one"
    kinds = KINDS | {
        "t": "timestamp without time zone",
        "z": "timestamp with time zone",
    }
    for _ in range(80):
        said = expression(number(chance, 2), "postgres")
        try:
            made = PostgresExpression.rewrite(said, kinds)
            ((one,),) = table.execute(f"SELECT {said} FROM {plain}").fetchall()
            ((other,),) = table.execute(f"SELECT {made} FROM {plain}").fetchall()
        except (SourceError, psycopg.Error):
            continue
        compared += 1
        same = one is None if other is None else math.isclose(one, other, rel_tol=1e-12)
        assert same, said
    assert compared > 30


def test_a_column_of_a_query_is_made_total(postgres_server: str, table: Any) -> None:
    """Its expression stands over the table, where the same name may have another type."""
    product_ = expression("i * b", "postgres").replace('"i"', 'record."i"')
    made = (Made("i", product_.replace('"b"', 'record."b"')), Made("x", 'record."x"', source="x"))
    relation = Relation("expressed", columns=made, where='record."b" * record."b" > 1')
    backend = PostgresBackend(postgres_server, relation)
    for query in (CellQuery("i", GRID), CellQuery("x", GRID, where='"i" * "i" > 5')):
        backend.check(query, FILE)
        assert sum(backend.answer(query, FILE).counts) > 0
    backend.close()


@pytest.mark.parametrize(
    "text",
    [
        *("d * d * d * d * d * d * d * d * d * d * d", "v + v > v", "y + k > '2024-01-01'"),
        *("s / 3", "coalesce(s, '1') / 3 > 1"),
    ],
)
def test_what_cannot_be_made_total_is_refused(postgres_server: str, table: Any, text: str) -> None:
    """By types alone, before a charge, with what to do."""
    said = expression(text, "postgres")
    backend = PostgresBackend(postgres_server, Relation("expressed"))
    query = CellQuery("x", GRID, where=said if ">" in text else f"{said} > 1")
    with pytest.raises(SourceError, match="one record could make PostgreSQL fail"):
        backend.check(query, FILE)
    backend.close()


def test_letters_of_a_long_text_are_not_looked_at(postgres_server: str) -> None:
    """PostgreSQL takes eight bytes for each to trim a text, and has no more than a gigabyte."""
    with psycopg.connect(postgres_server, autocommit=True) as server:
        server.execute("CREATE TABLE long AS SELECT 7 AS x, repeat('a', 134217728) AS s")
        server.execute("INSERT INTO long VALUES (7, ' a ')")
        backend = PostgresBackend(postgres_server, Relation("long"))
        for text in ("trim(s) = 'a'", "length(upper(trim(coalesce(lower(s), s)))) = 1"):
            query = CellQuery("x", GRID, where=expression(text, "postgres"))
            backend.check(query, FILE)
            assert backend.answer(query, FILE).counts.tolist() == [1]
        backend.close()
        server.execute("DROP TABLE long")
