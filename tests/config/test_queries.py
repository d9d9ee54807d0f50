"""A query as a source: one row of one record passes, everything else is refused at its line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdp.backends.duckdb.dialect import DuckDBDialect
from streamdp.backends.sql.relation import Relation
from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.sources.query import SplitQuery, table_query
from tests.sources.test_databases import DATABASE, DAYS, SERVER, written

ACROSS = [
    ("SELECT DISTINCT a FROM t", "DISTINCT"),
    ("SELECT DISTINCT ON (a) a, b FROM t", "DISTINCT"),
    ("SELECT a FROM t GROUP BY a", "GROUP BY"),
    ("SELECT a FROM t GROUP BY ALL", "GROUP BY"),
    ("SELECT max(a) AS a FROM t", "aggregate"),
    ("SELECT count(*) AS a FROM t", "aggregate"),
    ("SELECT max(a) AS a FROM t HAVING max(a) > 1", "HAVING"),
    ("SELECT sum(a) OVER () AS a FROM t", "window"),
    ("SELECT row_number() OVER (ORDER BY a) AS a FROM t", "window"),
    ("SELECT sum(a) OVER w AS a FROM t WINDOW w AS (ORDER BY a)", "window"),
    ("SELECT a FROM t QUALIFY row_number() OVER (ORDER BY a) < 3", "QUALIFY"),
    ("SELECT a FROM t ORDER BY a LIMIT 2", "LIMIT"),
    ("SELECT a FROM t LIMIT 2", "LIMIT"),
    ("SELECT a FROM t LIMIT 50%", "LIMIT"),
    ("SELECT a FROM t OFFSET 1", "OFFSET"),
    ("SELECT a FROM t WHERE a > (SELECT avg(a) FROM t)", "subquery"),
    ("SELECT a FROM t WHERE a IN (SELECT b FROM t)", "subquery"),
    ("SELECT (SELECT max(a) FROM t) AS a FROM t", "subquery"),
    ("SELECT a FROM (SELECT a FROM t LIMIT 2)", "by its name"),
    ("WITH s AS (SELECT a FROM t LIMIT 2) SELECT a FROM s", "WITH"),
    ("SELECT a FROM t UNION SELECT b FROM t", "two tables"),
    ("SELECT a FROM t EXCEPT SELECT b FROM t", "two tables"),
    ("SELECT r.a FROM t r, t s", "join"),
    ("SELECT r.a FROM t r JOIN t s ON r.a < s.a", "join"),
    ("SELECT r.a FROM t r SEMI JOIN t s ON r.a < s.a", "join"),
    ("SELECT a, one FROM t POSITIONAL JOIN (SELECT 1 AS one)", "join"),
    ("FROM t PIVOT (count(*) FOR b IN (2, 3))", "PIVOT"),
    ("SELECT rowid AS a FROM t", "among the others"),
]
"""Queries whose rows hang on other records, and what is said of them."""

REFUSED = [
    ("SELECT unnest([a, b]) AS a FROM t", "explode"),
    ("SELECT a FROM t, LATERAL (SELECT b) s", "join"),
    ("FROM t UNPIVOT (a FOR b IN (c, d))", "PIVOT"),
    ("SELECT a FROM t UNION ALL SELECT a FROM t", "two tables"),
    ("SELECT a FROM t TABLESAMPLE 10%", "sample"),
    ("SELECT a FROM t USING SAMPLE 10", "sample"),
    ("SELECT random() AS a FROM t", "next time"),
    ("SELECT a FROM t WHERE b < now()", "not among"),
    ("SELECT a FROM t AT (VERSION => 1)", "as it is now"),
    ("SELECT a INTO u FROM t", "writes"),
    ("SELECT a FROM t FOR UPDATE", "locks"),
    ("SELECT a FROM read_csv('x.csv')", "by its name"),
    ("SELECT a FROM 'x.csv'", "by its name"),
    ('SELECT a FROM "u.v"', "by its name"),
    ("SELECT a FROM range(10)", "by its name"),
    ("SELECT a FROM (VALUES (1)) u(a)", "by its name"),
    ("SELECT a FROM ?", "by its name"),
    ("SELECT 1 AS a", "by its name"),
    ("SELECT a FROM one.two.three.four", "by its name"),
    ("SELECT a FROM t AS u", "second name"),
    ("SELECT t.a FROM t", "without a table"),
    ("SELECT t.* FROM t", "without a table"),
    ("SELECT * EXCLUDE (b) FROM t", "except"),
    ("SELECT * REPLACE (b AS a) FROM t", "replace"),
    ("SELECT *, b AS a FROM t", "star stands alone"),
    ("SELECT COLUMNS('a') FROM t", "not among"),
    ("SELECT #1 FROM t", "not among"),
    ("SELECT a + b FROM t", "with AS"),
    ("SELECT a, b AS A FROM t", "two columns"),
    ('SELECT a AS "" FROM t', "no name"),
    ("SELECT ctid FROM t", "among the others"),
    ("SELECT a FROM t; SELECT a FROM t", "not one"),
    ("SELECT a FROM", "no SQL"),
    ("DELETE FROM t", "no SELECT"),
    ("PIVOT t ON a USING sum(b)", "no SELECT"),
    ("(SELECT a FROM t)", "no SELECT"),
    ("a > 1", "no SELECT"),
    ("", "not one"),
    (f"SELECT {'a + ' * 5000} a AS x FROM t", "longer"),
]
"""What else is no row of a record of one table."""


@pytest.mark.parametrize(("text", "words"), ACROSS + REFUSED, ids=[t for t, _ in ACROSS + REFUSED])
def test_what_is_not_one_row_of_one_record_is_refused(text: str, words: str) -> None:
    """In words that say what it does."""
    for dialect in ("duckdb", "postgres", "spark"):
        with pytest.raises(ValueError, match=r"^[\w(]") as caught:
            table_query(text, dialect)
        assert words in str(caught.value)


ADMITTED = [
    "FROM t",
    "SELECT * FROM t WHERE a > b",
    "SELECT a AS b, b AS c FROM t WHERE b >= 2",
    "SELECT a AS b, b + 1 AS c, a / b AS d FROM main.t",
    "SELECT lower(n) AS n, CAST(n AS INTEGER) AS m FROM t WHERE CAST(n AS INTEGER) > 0 OR a = 1",
    "SELECT CASE WHEN a IS NULL THEN 0 ELSE ln(a) END AS a FROM t WHERE NOT a BETWEEN 3 AND 4",
    "SELECT 1 AS one, NULL AS nothing FROM t",
]
RECORDS = [(1, 2, "x"), (1, 2, "x"), (2, 0, "7"), (4, 3, None), (None, 3, ""), (9, 9, "-1")]


def is_row_by_row(sql: str) -> bool:
    """Whether all records together give what each gives alone, and none gives more than one row."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (a INTEGER, b INTEGER, n VARCHAR)")

        def rows_of(records: Sequence[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
            connection.execute("TRUNCATE t")
            connection.executemany("INSERT INTO t VALUES (?, ?, ?)", records)
            return Counter(connection.execute(sql).fetchall())

        alone = [rows_of([record]) for record in RECORDS]
        together = sum(alone, Counter())
        return max(each.total() for each in alone) <= 1 and rows_of(RECORDS) == together


def made_of(found: SplitQuery) -> Relation:
    return Relation(found.table, columns=found.columns, where=found.where, named=found.named)


@pytest.mark.parametrize("text", ADMITTED)
def test_what_is_admitted_makes_of_a_record_what_it_makes_of_it_alone(text: str) -> None:
    """The SQL that the engine gets, over records of which some make an expression fail."""
    assert is_row_by_row(f"SELECT * FROM {made_of(table_query(text)).sql(DuckDBDialect())}")


@pytest.mark.parametrize("text", [text for text, _ in ACROSS])
def test_what_is_refused_would_tie_records_together(text: str) -> None:
    """Power: run as they stand, the refused queries fail the test that the admitted pass."""
    assert not is_row_by_row(text)


def test_names_mean_columns_of_the_table() -> None:
    """Where an engine would take the other column's new name, the table's column is said."""
    found = table_query("SELECT a AS b, b AS c FROM t WHERE b > 2")
    assert [column.sql for column in found.columns] == ['"record"."a"', '"record"."b"']
    assert found.where == '"record"."b" > 2'
    assert found.named == ("a", "b")


def test_a_column_of_a_query_is_known_by_what_it_is_made_of() -> None:
    """By its name in the table, or by an expression that no column's name can be mistaken for."""
    found = table_query('SELECT at, "a + b" AS x, a + b AS y FROM t')
    assert [found.origin(name) for name in ("at", "x")] == ["at", "a + b"]
    assert found.origin("y") == {"sql": '"record"."a" + "record"."b"'}
    assert table_query("SELECT * FROM t WHERE a = 1").origin("at") == "at"
    with pytest.raises(ValueError, match="no column 'z'"):
        found.origin("z")


FAULTY = [
    (DATABASE, "SELECT at, rider, seconds, city FROM rides LIMIT 9", "rides.query"),
    (DATABASE, "SELECT at, seconds, city FROM rides", "rides.query"),
    (DATABASE, "SELECT rider, seconds, city FROM rides", "rides.batches.column"),
    (DATABASE, "SELECT * FROM rides JOIN people USING (rider)", "rides.query"),
    (SERVER, "SELECT at, rider, CAST(s AS INT) AS seconds, city FROM rides", "rides.query"),
    (DATABASE.replace("path: wh.duckdb, ", ""), "SELECT * FROM rides", "rides"),
    (DATABASE.replace(DAYS, "batches: files"), "FROM rides", "rides.batches"),
]


@pytest.mark.parametrize(("source", "query", "key"), FAULTY)
def test_a_query_is_refused_at_its_line_with_what_to_do(
    tmp_path: Path, source: str, query: str, key: str
) -> None:
    """It must also have the unit and the time, and fit the engine."""
    named = "public.rides" if "public" in source else "rides"
    path = written(
        tmp_path, source.replace(f"table: {named}", f"query: '{query}'"), "{kind: stdout}"
    )
    with pytest.raises(ConfigurationError, match=rf"config\.yaml:\d+:\d+ sources\.{key}"):
        load(path, {"PG": "host=h"})


def test_a_table_beside_a_query_is_refused(tmp_path: Path) -> None:
    """Whose budget would it be?"""
    both = DATABASE.replace("table: rides", "table: rides, query: FROM trips")
    with pytest.raises(ConfigurationError, match=r"rides\.table: the query says"):
        load(written(tmp_path, both, "{kind: stdout}"), {})


@given(st.text(max_size=60) | st.text(max_size=30).map(lambda text: f"SELECT {text} FROM t"))
def test_whatever_is_written_is_refused_in_words_or_read_from_one_table(text: str) -> None:
    """No input ends in another error than the one a person can read."""
    try:
        found = table_query(text)
    except ValueError:
        return
    assert found.table
