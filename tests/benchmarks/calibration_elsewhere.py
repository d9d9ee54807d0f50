"""How often intervals hold on streams that they were not made on.

`python -m tests.benchmarks.calibration_elsewhere [--json] [--quick]`. Rows are those of
`calibration`: of the default learner, on heavy tails, zeros, sorted prices, bounds, integers, tiny
batches, shifts, and rows other than expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from streamdp.types import FloatArray
from tests.benchmarks.calibration import Data, cell
from tests.benchmarks.report import Row, main

RELEASES = 30

Law = Callable[[np.random.Generator, int], FloatArray]


def _made(name: str, law: Law, rows: int, guess: tuple[float, float], resolution: str) -> Data:
    """Batches of a law that may know their number."""

    def batch(number: int) -> FloatArray:
        chance = np.random.default_rng([number, 77, len(name), ord(name[0])])
        return np.rint(law(chance, number) / float(resolution))

    return Data(name, batch, resolution, guess, rows)


def _zeros(chance: np.random.Generator, number: int) -> FloatArray:
    values: FloatArray = np.exp(chance.normal(3.0, 1.0, 800))
    return np.where(chance.random(800) < 0.6, 0.0, values)


def _jumps(chance: np.random.Generator, number: int) -> FloatArray:
    place = np.random.default_rng(number // 10).normal(0.0, 3.0)
    return chance.normal(place, 1.0, 600)


def _outliers(chance: np.random.Generator, number: int) -> FloatArray:
    return np.where(chance.random(700) < 0.03, 1000.0, 1.0) * chance.normal(size=700)


def _slices(chance: np.random.Generator, number: int) -> FloatArray:
    """Prices sorted by price: a batch is a hundredth as wide as all, and far from the last."""
    share = (37 * number % 100) / 100.0
    return np.asarray(500.0 * np.exp(4.0 * (share + 0.01 * chance.random(600))))


def streams() -> tuple[Data, ...]:
    """Shapes beside those of `calibration`."""
    beta = _made("beta", lambda g, _: 100.0 * g.beta(5.0, 1.0, 400), 400, (70.0, 20.0), "0.1")
    counts = _made(
        "integers", lambda g, _: g.geometric(0.3, 300).astype(float), 300, (4.0, 4.0), "1"
    )
    return (
        _made("pareto", lambda g, _: np.asarray(g.pareto(1.1, 500) + 1.0), 500, (3.0, 5.0), "0.01"),
        _made("cauchy", lambda g, _: g.standard_cauchy(900), 900, (0.5, 2.0), "0.001"),
        _made("zeros", _zeros, 800, (10.0, 20.0), "0.01"),
        _made("outliers", _outliers, 700, (0.3, 2.0), "0.01"),
        _made("slices", _slices, 600, (3000.0, 3000.0), "1"),
        replace(beta, bounds=("0", "100")),
        replace(counts, bounds=("0", "50")),
        _made("tiny", lambda g, _: g.normal(size=25), 25, (0.4, 1.5), "0.001"),
        _made("jumps", _jumps, 600, (0.3, 1.5), "0.001"),
        _made("rows", lambda g, _: g.normal(size=g.integers(300, 1400)), 700, (1.0, 1.5), "0.001"),
    )


def rows(quick: bool) -> Iterator[Row]:
    """Every stream with a few sets of quantiles, at little and at much information."""
    releases = 6 if quick else RELEASES
    for each in streams():
        for information in (300,) if quick else (30, 300):
            for quantiles in ("deciles", "0.9 0.95 0.99", "0.1 0.5 0.9"):
                yield from cell(each, quantiles, information, "mixture", releases)


if __name__ == "__main__":
    main("Intervals on other streams: how often they hold, and how wide they are", rows)
