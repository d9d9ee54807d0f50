"""Records of the space shuttle's sensors (NASA; shipped with `river`): a stream set aside.

How it is cut was written before it was looked at, and it was run once: five hundred records in
their order are a batch; rules are thresholds on the first column, or on the first two, at even
steps of whole numbers between the 1 % and the 99 % quantile of the column; the label is the file's.
"""

from __future__ import annotations

from fractions import Fraction
from importlib.util import find_spec

import duckdb

from streamdp.kinds.rules.rules import RuleComparison, RuleGrid

ROWS = 500
LABEL = "anomaly = 1"


def relation() -> str | None:
    """SQL of the records, with a batch in `date`; None without `river`."""
    found = find_spec("river")
    if found is None or not found.submodule_search_locations:
        return None
    path = f"{found.submodule_search_locations[0]}/datasets/shuttle.csv.gz"
    numbered = f"SELECT *, row_number() OVER () - 1 AS place FROM read_csv('{path}')"
    return f"(SELECT *, place // {ROWS} AS date FROM ({numbered}))"


def grid(records: str, *steps: int) -> RuleGrid:
    """Thresholds on the first columns, with so many steps each."""
    found = zip(("f1", "f2"), ("t", "a"), steps, strict=False)
    return RuleGrid(tuple(_threshold(records, *each) for each in found))


def _threshold(records: str, column: str, parameter: str, steps: int) -> RuleComparison:
    sql = f"SELECT unnest(quantile_cont({column}, [0.01, 0.99])) FROM {records}"
    (low,), (high,) = duckdb.execute(sql).fetchall()
    values = sorted({round(low + (high - low) * n / (steps - 1)) for n in range(steps)})
    return RuleComparison(column, ">=", parameter, tuple(map(Fraction, values)))
