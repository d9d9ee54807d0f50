"""Expressions: what looks at one record passes, what could look further is refused."""

from __future__ import annotations

from typing import get_args

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdp.sections.dialects import Dialect
from streamdp.sections.expressions import ALLOWED, expression

REFUSED = [
    "row_number() OVER (ORDER BY x) > 1",
    "sum(x) OVER ()",
    "x > avg(x)",
    "count(*)",
    "count(*) FILTER (WHERE x > 1)",
    "any_value(x)",
    "first(x)",
    "lag(x)",
    "x IN (SELECT y FROM other)",
    "x = (SELECT max(y) FROM other)",
    "EXISTS (SELECT 1 FROM other)",
    "x = ANY (SELECT 1)",
    "other.x > 1",
    "random() < 0.5",
    "uuid()",
    "now()",
    "current_date",
    "current_timestamp",
    "read_csv('other.csv')",
    "getenv('HOME')",
    "getvariable('x')",
    "nextval('counter')",
    "pg_sleep(1)",
    "unnest([1, 2])",
    "rowid < 5",
    "ctid",
    "file_row_number",
    "*",
    "COLUMNS('.*')",
    "$1",
    "?",
    "x; DROP TABLE y",
    "x FROM other",
    "DROP TABLE x",
    "SELECT 1",
    "x ~ '(a+)+$'",
    "x[1]",
    "CAST(x AS STRUCT(y INT))",
    "",
    "x AND",
    "(" * 3000,
    "(" * 900 + "x" + ")" * 900,
]


@pytest.mark.parametrize("column", ["comment", "set", "show", "begin", "load", "copy", "delete"])
def test_a_column_may_be_called_like_a_statement(column: str) -> None:
    assert expression(f"{column} IS NULL -- why") == f'"{column}" IS NULL'
    assert expression(f"{column} > 3 OR x") == f'"{column}" > 3 OR "x"'


@pytest.mark.parametrize("dialect", get_args(Dialect))
def test_a_pattern_or_a_length_of_a_record_ends_no_question(dialect: Dialect) -> None:
    """A pattern that ends in a backslash fails, and so does a negative length in PostgreSQL.

    A long pattern takes minutes over a long text: 500,000 letters over a million in DuckDB.
    """
    with pytest.raises(ValueError, match="LIKE takes a literal text: a pattern of a record"):
        expression("name LIKE pattern", dialect)
    if dialect == "duckdb":
        assert expression("name LIKE 'a\\'", dialect)
    else:
        with pytest.raises(ValueError, match="LIKE takes a literal text without a backslash"):
            expression("name LIKE 'a\\'", dialect)
    if dialect == "postgres":
        assert "< 0 THEN 0" in expression("substring(name, 1, n)", dialect)


@pytest.mark.parametrize("pattern", ["%a%b", "a%b%c", "%%a", "%_%a%"])
def test_a_pattern_that_takes_spark_longer_than_a_text_is_long_is_refused(pattern: str) -> None:
    """A text of 100 letters took it ten seconds to find six of them; others look once."""
    with pytest.raises(ValueError, match="several %"):
        expression(f"x LIKE '{pattern}'", "spark")
    for dialect in get_args(Dialect):
        if dialect != "spark":
            expression(f"x LIKE '{pattern}'", dialect)


@pytest.mark.parametrize("pattern", ["a", "%a", "a%%", "%a_%", "a%b", "a%b%", "%"])
def test_a_pattern_that_spark_looks_for_once_is_admitted(pattern: str) -> None:
    """What stands behind the last letter cannot fail, so nothing is tried again for it."""
    assert pattern in expression(f"x LIKE '{pattern}'", "spark")


@pytest.mark.parametrize("text", ["comment) IS NULL OR (set", "x; comment", "case > 3", "set x"])
def test_brackets_around_an_expression_let_nothing_else_in(text: str) -> None:
    with pytest.raises(ValueError, match=r"no SQL expression.*double quotes|not one|not among"):
        expression(text)
    assert expression('"case" > 3') == '"case" > 3'


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:30])
@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark"])
def test_what_could_read_another_record_is_refused(text: str, dialect: Dialect) -> None:
    """Windows, aggregates, subqueries, other tables, chance, clocks, files, positions."""
    with pytest.raises(ValueError, match=r"^[\w(]"):
        expression(text, dialect)


ONE_RECORD = [
    ("a - b", [1.0, 3.0, None]),
    ("a / b", [1.5, None, None]),
    ("a / b / (a - 3)", [None, None, None]),
    ("a % b", [1.0, None, None]),
    ("ln(b)", [0.6931471805599453, None, None]),
    ("ln(ln(b + 1))", [0.0940478276166991, None, None]),
    ("sqrt(a - 4)", [None, None, None]),
    ("CAST(t AS INTEGER) + 1", [None, 8, None]),
    ("CASE WHEN t = 'x' THEN a ELSE -a END", [3.0, -3.0, -1.0]),
    ("a IN (1, 2) OR t IS NULL", [False, False, True]),
    ("upper(substring(t, 1, 1)) = 'X'", [True, False, None]),
    ("coalesce(b, 9) BETWEEN 0 AND 5", [True, True, False]),
    ("year(d) = 2013 AND d >= DATE '2013-01-02'", [False, True, None]),
]


@pytest.mark.parametrize(("text", "wanted"), ONE_RECORD, ids=[text for text, _ in ONE_RECORD])
def test_what_is_made_of_it_means_the_same_and_never_fails(text: str, wanted: list[object]) -> None:
    """DuckDB answers for three records; where the text would fail for one there is a null."""
    rows = (
        "(3.0, 2.0, 'x', DATE '2013-01-01'), (3.0, 0.0, '7', '2013-01-03'), (1, NULL, NULL, NULL)"
    )
    found = duckdb.execute(
        f"SELECT {expression(text)} FROM (VALUES {rows}) r(a, b, t, d)"
    ).fetchall()
    values = [value for (value,) in found]
    assert values == [pytest.approx(each) if isinstance(each, float) else each for each in wanted]


def test_a_comment_and_a_quote_hide_nothing() -> None:
    """The engine gets SQL made of the tree: names quoted, comments gone."""
    assert expression('"a""b" > 1 -- ) OR true') == '"a""b" > 1'
    assert expression("x = 'a'' OR 1 = 1'") == "\"x\" = 'a'' OR 1 = 1'"


def test_postgresql_gets_no_casts_of_columns() -> None:
    """It would end the query at a value that is no number, and so tell that there is one."""
    assert expression("d >= DATE '2013-01-01'", "postgres")
    with pytest.raises(ValueError, match="cast in a view"):
        expression("CAST(t AS INTEGER)", "postgres")


def test_every_name_on_the_list_is_a_class_of_the_parser() -> None:
    """A misspelt name would allow nothing, and one that the parser renames must be seen."""
    from sqlglot import exp

    assert [name for name in ALLOWED if not hasattr(exp, name)] == []


@given(st.text(max_size=60))
def test_whatever_is_written_is_refused_in_words_or_becomes_sql(text: str) -> None:
    """No input ends in another error than the one a person can read."""
    try:
        made = expression(text)
    except ValueError:
        return
    assert expression(made)
