"""Errors of released statistics of a year of flights: as drawn, smoothed, and those of peers.

Mean absolute errors on each day's truth from the second month on, add/remove of one record, so much
epsilon or rho a day, learning from earlier releases alone. `cover` is how often the interval of
95 % holds the truth, `worst_cover` that of the series which has the least (of each series the mean
over seeds) and `short` the share of series below .93. Peers: OpenDP (Laplace on counts, Gaussian in
rho; noisy sum over noisy count, half of epsilon each), diffprivlib's mean (it takes the number of
records for public, a weaker claim), PeGaSus; and what anyone can make of the values of streamdp
itself: their running mean, moving averages, 0. `smoothing` has more streams of these. The
constants of the filter were chosen on carriers, destinations, total, tail numbers, air time,
arrival delays and made-up streams, where sums of departure delays were seen, too; origins were set
aside.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from streamdp.kinds.spec import BuildContext
from streamdp.kinds.statistics.build import build
from streamdp.kinds.statistics.kind import Statistics
from streamdp.kinds.statistics.section import StatisticsSection
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.privacy.price import Price
from streamdp.types import (
    Batch,
    CompoundAnswer,
    CompoundQuery,
    FloatArray,
    SumQuery,
    Sums,
    TableCounts,
    TableQuery,
)
from tests.benchmarks.flights import PATH
from tests.benchmarks.peers.averages import simple
from tests.benchmarks.peers.pegasus import pegasus
from tests.benchmarks.report import Row, main

COUNTS = {
    "total": "'all'",
    "carriers": "carrier",
    "destinations": "dest",
    "routes": "carrier || ' ' || dest",
    "origins": "origin",
}
MEANS: dict[str, tuple[str, tuple[int, int], tuple[int, int]]] = {
    "air time": ("air_time", (0, 1000), (150, 90)),
    "arrival delay": ("arrival_delay", (-200, 2000), (0, 40)),
    "departure delay": ("departure_delay", (-200, 2000), (0, 40)),
}
VARIANCE_OF = "air time"
PRICES = (
    Price(Fraction(1)),
    Price(Fraction(1, 10)),
    Price(Fraction(1, 100)),
    Price(Fraction(7, 400), "rho"),
    Price(Fraction(1, 200), "rho"),
)
QUICK = (Price(Fraction(1, 10)), Price(Fraction(1, 200), "rho"))
"""The rho is that of the epsilon, whose noise has ε²/2."""

LATE, DAY = 31, 86_400
ENOUGH = 0.93
START = 1_356_998_400  # 2013-01-01
SEEDS = 3
FEW = 3
"""A table of so few series is released five times as often: its mean is less sure."""

Values = list[FloatArray]
"""Of each day, without nulls."""


def rows(quick: bool) -> Iterator[Row]:
    """All tables, prices and contenders; quick: one seed of two prices."""
    prices, seeds = (QUICK, 1) if quick else (PRICES, SEEDS)
    for what, sql in COUNTS.items():
        truth, names = counts_by_day(sql)
        runs = seeds * (5 if len(names) <= FEW else 1)
        for price in prices:
            yield from _of_counts(what, truth, names, price, runs)
    for what, (column, bounds, guess) in MEANS.items():
        values = _values(column)
        for price in prices:
            yield from _of_means(what, values, bounds, guess, price, seeds)
            if what == VARIANCE_OF:
                yield from _of_variances(what, values, bounds, guess, price, seeds)


def _of_counts(
    what: str, truth: FloatArray, names: list[str], price: Price, seeds: int
) -> Iterator[Row]:
    kind = kind_of({"n": {"histogram": "x", "values": names}}, price)
    found = [a_year(kind, lambda day: [truth[day]], len(truth)) for _ in range(seeds)]
    yield from _ours(what, price, found, truth)
    yield from _averages(what, price, found, truth, counts=True)
    if price.measure == "epsilon":
        epsilon = float(price.amount)
        smoothed = [
            np.column_stack(
                [pegasus(series, epsilon, np.random.default_rng(seed)) for series in truth.T]
            )
            for seed in range(seeds)
        ]
        error = float(np.mean([_error(each, truth) for each in smoothed]))
        yield _row("PeGaSus", what, price, error)
    draw = _opendp_counts(price)
    if draw is None:
        yield _row("OpenDP: not installed", what, price, None)
        return
    noisy = np.array([draw(day.astype(int).tolist()) for day in truth])
    yield _row("OpenDP", what, price, _error(noisy, truth))


def _of_means(
    what: str,
    values: Values,
    bounds: tuple[int, int],
    guess: tuple[int, int],
    price: Price,
    seeds: int,
) -> Iterator[Row]:
    truth = np.array([[day.mean()] for day in values])
    found = _of_moment("mean", values, bounds, guess, price, seeds)
    yield from _ours(what, price, found, truth)
    yield from _averages(what, price, found, truth)
    if price.measure == "rho":
        return
    epsilon = float(price.amount)
    for who, draw in (
        ("OpenDP", _opendp_mean(epsilon, bounds)),
        ("diffprivlib", _diffprivlib_mean(epsilon, bounds)),
    ):
        if draw is None:
            yield _row(f"{who}: not installed", what, price, None)
            continue
        means = np.array([[draw(day)] for day in values])
        yield _row(who, what, price, _error(means, truth))


def _of_variances(
    what: str,
    values: Values,
    bounds: tuple[int, int],
    guess: tuple[int, int],
    price: Price,
    seeds: int,
) -> Iterator[Row]:
    """No peer releases a variance of bounded values at a price of one record."""
    truth = np.array([[day.var()] for day in values])
    found = _of_moment("variance", values, bounds, guess, price, seeds)
    yield from _ours(f"{what}, variance", price, found, truth)
    yield from _averages(f"{what}, variance", price, found, truth)


def _of_moment(
    moment: str,
    values: Values,
    bounds: tuple[int, int],
    guess: tuple[int, int],
    price: Price,
    seeds: int,
) -> list[FloatArray]:
    measure = {moment: "x", "resolution": 1, "bounds": list(bounds)}
    start = {"guess": {"location": guess[0], "scale": guess[1]}}
    kind = kind_of({"n": measure | start}, price)
    return [a_year(kind, lambda day: [values[day]], len(values)) for _ in range(seeds)]


def _averages(
    what: str, price: Price, found: list[FloatArray], truth: FloatArray, *, counts: bool = False
) -> Iterator[Row]:
    """What anyone can make of the released values."""
    made = [simple(each[0], counts=counts) for each in found]
    for name in made[0]:
        if name != "by values":
            error = float(np.mean([_error(each[name], truth) for each in made]))
            yield _row(f"values of streamdp, {name}", what, price, error)


def _ours(what: str, price: Price, found: list[FloatArray], truth: FloatArray) -> Iterator[Row]:
    """Arrays of shape (columns, days, cells): value and smoothed, each with its interval."""
    for who, first in (("streamdp, as drawn", 0), ("streamdp, smoothed", 3)):
        errors = [_error(each[first], truth) for each in found]
        within = [(each[first + 1] <= truth) & (truth <= each[first + 2]) for each in found]
        yield _row(who, what, price, float(np.mean(errors)), np.array(within))


def _row(
    who: str,
    what: str,
    price: Price,
    error: float | None,
    within: npt.NDArray[np.bool_] | None = None,
) -> Row:
    """Within, of shape (seeds, days, series), says whether an interval holds the truth."""
    series = None if within is None else within[:, LATE:].mean(axis=(0, 1))
    return {
        "who": who,
        "what": what,
        "epsilon": float(price.amount) if price.measure == "epsilon" else None,
        "rho": float(price.amount) if price.measure == "rho" else None,
        "error": error,
        "cover": None if series is None else float(series.mean()),
        "worst_cover": None if series is None else float(series.min()),
        "short": None if series is None else float((series < ENOUGH).mean()),
        "peer": not who.startswith("streamdp"),
    }


def _error(released: FloatArray, truth: FloatArray) -> float:
    return float(np.abs(released - truth)[LATE:].mean())


def kind_of(measures: dict[str, Any], price: Price) -> Statistics:
    section = StatisticsSection.model_validate(
        {"kind": "statistics", "source": "s", price.measure: price.amount, "measures": measures}
    )
    return build(section, BuildContext("add-remove", 1, 1, "duckdb", None))  # type: ignore[arg-type]


def a_year(kind: Statistics, values: Callable[[int], list[FloatArray]], days: int) -> FloatArray:
    """Releases of all days, the production kind with the chance of production."""
    names = ("value", "lower", "upper", "smoothed", "smoothed_lower", "smoothed_upper")
    state, entropy, found = kind.init(), OperatingSystemEntropy(), []
    for day in range(days):
        batch = Batch("flights", str(day), START + day * DAY, START + (day + 1) * DAY)
        plan = kind.plan(state, batch)
        assert isinstance(plan.query, CompoundQuery)
        drawn = kind.draw(plan, _answer(plan.query, values(day)[0]), entropy)
        state = json.loads(json.dumps(kind.learn(state, plan, drawn)))
        published = kind.publish(state, drawn).rows
        found.append([[float(row[name] or 0) for row in published] for name in names])
    return np.array(found).transpose(1, 0, 2)


def _answer(query: CompoundQuery, values: FloatArray) -> CompoundAnswer:
    """What a backend would answer: of counts by text, or of the values of one column."""
    parts: list[TableCounts | Sums] = []
    for part in query.parts:
        if isinstance(part, TableQuery):
            (axis,) = part.dimensions
            counts = values.astype(np.int64)
            if axis.cuts is not None:
                cells = np.searchsorted(np.array(axis.cuts), values, side="right")
                counts = np.bincount(cells, minlength=axis.size)
            parts.append(TableCounts((counts,)))
            continue
        assert isinstance(part, SumQuery)
        (term,) = part.terms
        cells = np.clip(np.floor(values + 0.5), term.grid.lower, term.grid.upper) - term.centre
        parts.append(Sums((int((cells**2 if term.square else cells).sum()),)))
    return CompoundAnswer(tuple(parts))


def counts_by_day(sql: str) -> tuple[FloatArray, list[str]]:
    """Counts of each day and text, shape (days, texts)."""
    asked = f"SELECT date::DATE AS day, ({sql}) AS x, count(*) AS n FROM '{PATH}' GROUP BY ALL"
    found = duckdb.execute(asked).fetchnumpy()
    days, day = np.unique(found["day"], return_inverse=True)
    names, name = np.unique(found["x"].astype(str), return_inverse=True)
    counts = np.zeros((len(days), len(names)))
    counts[day, name] = found["n"]
    return counts, names.tolist()


def _values(column: str) -> Values:
    asked = f"SELECT date::DATE, list({column}::DOUBLE) FROM '{PATH}' WHERE {column} IS NOT NULL"
    found = duckdb.execute(f"{asked} GROUP BY 1 ORDER BY 1").fetchall()
    return [np.array(values) for _, values in found]


def _prelude() -> Any:
    try:
        prelude: Any = importlib.import_module("opendp.prelude")
    except ImportError:
        return None
    prelude.enable_features("contrib")
    return prelude


def _opendp_counts(price: Price) -> Callable[[list[int]], list[int]] | None:
    dp = _prelude()
    if dp is None:
        return None
    domain, amount = dp.vector_domain(dp.atom_domain(T=int)), float(price.amount)
    noise: Callable[[list[int]], list[int]]
    if price.measure == "rho":
        noise = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=(2.0 * amount) ** -0.5)
    else:
        noise = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=1.0 / amount)
    return noise


def _opendp_mean(epsilon: float, bounds: tuple[int, int]) -> Callable[[FloatArray], float] | None:
    dp = _prelude()
    if dp is None:
        return None
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    counted = dp.m.make_laplace(*space, scale=2.0 / epsilon)
    summed = dp.m.make_laplace(*space, scale=2.0 * max(map(abs, bounds)) / epsilon)

    def draw(values: FloatArray) -> float:
        return float(summed(int(np.clip(values, *bounds).sum())) / max(counted(len(values)), 1))

    return draw


def _diffprivlib_mean(
    epsilon: float, bounds: tuple[int, int]
) -> Callable[[FloatArray], float] | None:
    try:
        tools: Any = importlib.import_module("diffprivlib.tools")
    except ImportError:
        return None
    return lambda values: float(tools.mean(values, epsilon=epsilon, bounds=bounds))


if __name__ == "__main__":
    main("Errors of released statistics of a year of flights", rows)
