"""Tables of the flights by day, or of other records by batch, that rules are scored from."""

from __future__ import annotations

from importlib.resources import files

import duckdb
import numpy as np

from streamdp.kinds.rules.rules import Halfspaces, RuleGrid
from streamdp.types import TableCounts

PATH = str(files("streamdp") / "demo" / "flights.parquet")


def tables(
    rules: RuleGrid | Halfspaces, label: str, records: str = f"'{PATH}'"
) -> list[TableCounts]:
    """Records of each day by label and cell of the rules; one scan for all days.

    Args:
        rules: Grid of thresholds.
        label: SQL condition; records where it is null do not count.
        records: What SQL reads, with a column `date`.
    """
    sqls = [axis.sql for axis in rules.query().dimensions]
    found = duckdb.execute(
        f"SELECT date, CAST(({label}) AS INTEGER) AS label, "
        + ", ".join(f"CAST({sql} AS DOUBLE) AS x{number}" for number, sql in enumerate(sqls))
        + f" FROM {records} WHERE ({label}) IS NOT NULL"
    ).fetchnumpy()
    days, day = np.unique(found["date"], return_inverse=True)
    places = [day, found["label"]]
    for number, axis in enumerate(rules.query().dimensions):
        values = np.ma.filled(found[f"x{number}"].astype(float), np.nan)
        cell = np.searchsorted(np.array(axis.cuts), values, side="right")
        places.append(np.where(np.isnan(values), axis.size - 1, cell))
    shape = (len(days), 2, *(axis.size for axis in rules.query().dimensions))
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, tuple(places), 1)
    return [TableCounts((each,)) for each in counts]
