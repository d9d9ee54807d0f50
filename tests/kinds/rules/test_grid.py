"""Cumulated counts of a grid of rules are the sums that each rule would find by itself."""

import itertools
import operator
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdp.backends.duckdb.dialect import DuckDBDialect
from streamdp.backends.sql.question import ScanQuestion
from streamdp.kinds.rules.rules import RuleComparison, RuleGrid
from streamdp.kinds.rules.section import conditions, grid_of, names_of
from streamdp.types import TableCounts

MEETS = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}
VALUES = (Fraction(-1), Fraction(0), Fraction(1, 2), Fraction(2))


def cell(threshold: RuleComparison, value: float | None) -> int:
    """Where an engine puts a value on the axis of a threshold."""
    cuts = threshold.dimension().cuts or ()
    if value is None:
        return len(cuts) + 1
    return int(np.searchsorted(cuts, value, side="right"))


@given(
    st.lists(
        st.tuples(st.sampled_from([None, -2, -1, 0, 0.5, 1, 2, 3]), st.sampled_from([None, 0, 5])),
        max_size=12,
    ),
    st.sampled_from(sorted(MEETS)),
    st.sampled_from(sorted(MEETS)),
)
def test_sums_are_those_of_each_rule(
    records: list[tuple[float | None, float | None]], first: str, second: str
) -> None:
    """Every operator, values on the cuts, and nulls, which meet no rule."""
    grid = RuleGrid(
        (
            RuleComparison("x", first, "t", VALUES),  # type: ignore[arg-type]
            RuleComparison("y", second, "a", (Fraction(0), Fraction(5))),  # type: ignore[arg-type]
        )
    )
    counts = np.zeros(tuple(axis.size for axis in grid.query().dimensions), dtype=np.int64)
    for record in records:
        place = tuple(cell(*each) for each in zip(grid.thresholds, record, strict=True))
        counts[place] += 1
    expected = [
        sum(
            x is not None and y is not None and MEETS[first](x, t) and MEETS[second](y, a)
            for x, y in records
        )
        for t, a in itertools.product(map(float, VALUES), (0.0, 5.0))
    ]
    assert grid.over_matching(counts).tolist() == expected
    assert [dict(each)["t"] for each in grid.candidates()[::2]] == [float(v) for v in VALUES]


def test_unsigned_columns_meet_rules() -> None:
    """DuckDB finds no negative of them: an axis that negated its column would count no record."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES (0), (3), (200)) AS v(x)")
    for operator_, kind in itertools.product(("<=", ">"), ("UTINYINT", "UINTEGER", "DOUBLE")):
        threshold = RuleComparison("x", operator_, "t", (Fraction(0), Fraction(3)))  # type: ignore[arg-type]
        query, dialect = RuleGrid((threshold,)).query(), DuckDBDialect()
        table = f"(SELECT CAST(x AS {kind}) AS x FROM t) AS typed"
        asked = ScanQuestion(dialect, query, {"d0": kind}, table, "true")
        rows = np.array(connection.execute(asked.sql()).fetchall(), dtype=np.int64)
        (answer,) = asked.answers(rows)
        assert isinstance(answer, TableCounts)
        matching = RuleGrid((threshold,)).over_matching(answer.marginals[0]).tolist()
        assert matching == ([1, 2] if operator_ == "<=" else [2, 1])


RANGES = {"t": VALUES, "a": (Fraction(1), Fraction(2))}


def test_a_conjunction_of_thresholds_is_a_grid() -> None:
    """Either side may hold the parameter; conditions without one make values null."""
    grid = grid_of("delay >= {t} AND ({a} > hour AND carrier = 'AA')", RANGES, "duckdb")
    assert grid is not None
    assert [(each.parameter, each.operator) for each in grid.thresholds] == [
        ("t", ">="),
        ("a", "<"),
    ]
    assert grid.thresholds[0].sql == 'CASE WHEN ("carrier" = \'AA\') THEN "delay" END'
    assert grid.shape == (4, 2)


@pytest.mark.parametrize(
    "text",
    [
        "delay >= {t} OR hour > {a}",
        "delay >= {t} AND hour > {t}",
        "delay >= 2 * {t}",
        "delay = {t}",
    ],
)
def test_other_rules_are_lists_of_conditions(text: str) -> None:
    """What cumulated counts cannot tell is asked as one condition a candidate."""
    assert grid_of(text, RANGES, "duckdb") is None
    listed = list(conditions(text, RANGES, "duckdb"))
    assert len(listed) == len(VALUES) * (2 if "{a}" in text else 1)
    assert names_of(text)[0] == "t"
    assert all("{" not in sql for _, sql in listed)


@pytest.mark.parametrize("text", ["delay >= {t} AND (SELECT 1) > {a}", "rank() OVER () > {t}"])
def test_what_reads_other_records_is_refused(text: str) -> None:
    """A rule is an expression over one record, like any other."""
    with pytest.raises(ValueError, match=r"reads other records|among what"):
        grid_of(text, RANGES, "duckdb") or list(conditions(text, RANGES, "duckdb"))
