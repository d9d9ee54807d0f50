"""Whether an outer quantile of heavy tails stays near the truth over many releases.

`python -m tests.benchmarks.outer_quantiles [--json] [--quick]`. A row is a law of a thousand
records a day for 200 days, what is asked of it, and epsilon times the records. `first` and `last`
are medians of the .99 quantile over the true one, in the first and the last fifth of the days: a
belief that drifts by itself has a `last` far from one, and from `first`. `coverage` is the share of
its intervals that hold, `reach` the median upper end over the truth.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamdp.types import FloatArray
from tests.benchmarks.calibration import ROWS, Data, kind_of, released
from tests.benchmarks.calibration_family import Law
from tests.benchmarks.report import Row, main

DAYS, FEW_DAYS = 200, 40

LAWS: dict[str, Law] = {
    "student 1.5": lambda g, n: g.standard_t(1.5, n),
    "cauchy": lambda g, n: g.standard_cauchy(n),
    "lognormal 2": lambda g, n: g.lognormal(0.0, 2.0, n),
}

ASKED = "0.9 0.95 0.99", "0.99"

INFORMATIONS = 30, 100, 200, 600, 1000
"""Epsilon times the records; alone, the quantile is hardly told from the end of a batch by 30, and
from 600 on it is learned from by the law of its draw (`evidence.LEAST_COST`)."""


def _data(name: str) -> Data:
    def batch(number: int) -> FloatArray:
        return np.rint(LAWS[name](np.random.default_rng([number, len(name)]), ROWS) / 0.001)

    return Data(name, batch, "0.001", (0.3, 1.5))


def cell(name: str, quantiles: str, information: float, days: int) -> Row:
    """One law, asked one question, at one price."""
    kind = kind_of(_data(name), quantiles, information, "mixture")
    seen = list(released(kind, _data(name), days, 0))
    first, last = (np.array([getattr(each, end)[-1] for each in seen]) for end in ("first", "last"))
    value, lower, upper = (
        np.array([each.rows[-1][column] for each in seen]) for column in ("value", "lower", "upper")
    )
    fifth, truth = days // 5, (first + last) / 2.0
    return {
        "data": name,
        "quantiles": quantiles,
        "information": information,
        "days": days,
        "first": round(float(np.median((value / truth)[:fifth])), 2),
        "last": round(float(np.median((value / truth)[-fifth:])), 2),
        "coverage": round(float(((lower <= last) & (upper >= first)).mean()), 3),
        "reach": round(float(np.median(upper / truth)), 1),
    }


def rows(quick: bool) -> Iterator[Row]:
    """Every law, question and price."""
    for name in LAWS:
        for quantiles in ASKED:
            for information in INFORMATIONS[-1:] if quick else INFORMATIONS:
                yield cell(name, quantiles, information, FEW_DAYS if quick else DAYS)


if __name__ == "__main__":
    main("The .99 quantile of heavy tails over many days, over the truth", rows)
