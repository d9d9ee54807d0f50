"""Rank errors of one release, without learning: ours against peers, knowing the bounds alone.

Error: mean over repeats of max_q dist(q·n, [#{x < o}, #{x <= o}])/n; without ties that is
|#{x < o} - q·n|/n. Every repeat draws its own data. `deviation` is that of the mean; a form and
`auto`, where it chooses that form, differ by no more than chance. With `--set-aside` the
data are of laws on which nothing is tuned: they are run once, at the end of a change.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from streamdp.mechanisms.quantile_tree.planning.choice import CANDIDATES, choose_tree
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import Cauchy, HalfCauchy, shapes_from_bounds, with_shapes
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.types import CellCounts, FloatArray, Grid, Prior
from tests.benchmarks.peers import Bounds, Release, diffprivlib, gillenwater, kaplan, opendp
from tests.benchmarks.report import Row, main

EPSILONS = (0.1, 1.0)


@dataclass(frozen=True)
class Data:
    """What is released from.

    Args:
        name: In the rows.
        draw: One batch.
        bounds: Public.
        resolution: Width of our cells.
        rows: Expected number, public.
        prior: What we believe of every quantile, from the bounds or a guess.
        jitter: Half-width of the public noise that frees the data of ties, for peers whose
            guarantee or formula needs distinct values.
    """

    name: str
    draw: Callable[[np.random.Generator], FloatArray]
    bounds: Bounds
    resolution: Fraction
    rows: int
    prior: Prior
    jitter: float = 0.0

    def grid(self) -> Grid:
        """Our public cells."""
        lower, upper = (round(Fraction(bound) / self.resolution) for bound in self.bounds)
        return Grid(self.resolution, lower, upper)

    def counts(self, values: FloatArray) -> CellCounts:
        """What we read of a batch."""
        grid = self.grid()
        cells = np.floor(values / float(self.resolution) + 0.5).astype(np.int64)
        return CellCounts(*np.unique(np.clip(cells, grid.lower, grid.upper), return_counts=True))


def _ages(generator: np.random.Generator) -> FloatArray:
    """Integers 17-90, more young than old."""
    ages = 17.0 + 73.0 * generator.beta(1.6, 2.9, size=32_000)
    return np.asarray(np.rint(ages))


DATA = (
    Data(
        "normal",
        lambda generator: generator.normal(size=1_000),
        (-10.0, 10.0),
        Fraction(1, 1000),
        1_000,
        Cauchy(0.0, 1.0),
    ),
    Data(
        "lognormal",
        lambda generator: np.minimum(generator.lognormal(3.0, 2.0, size=10_000), 1e6),
        (0.0, 1e6),
        Fraction(1, 100),
        10_000,
        HalfCauchy(0.0, 50.0),
    ),
    Data("ages", _ages, (0.0, 120.0), Fraction(1), 32_000, Cauchy(60.0, 30.0), jitter=0.5),
)


def _claims(generator: np.random.Generator) -> FloatArray:
    """Amounts in cents, two fifths of them nothing."""
    amounts = generator.gamma(2.0, 500.0, size=2_000) * (generator.random(2_000) >= 0.4)
    return np.asarray(np.minimum(np.rint(100.0 * amounts) / 100.0, 1e5))


SET_ASIDE = (
    Data(
        "weibull",
        lambda generator: np.minimum(60.0 * generator.weibull(0.7, size=3_000), 1e4),
        (0.0, 1e4),
        Fraction(1, 10),
        3_000,
        HalfCauchy(0.0, 100.0),
    ),
    Data(
        "claims",
        _claims,
        (0.0, 1e5),
        Fraction(1, 100),
        2_000,
        HalfCauchy(0.0, 1000.0),
        jitter=0.005,
    ),
    Data(
        "student",
        lambda generator: np.clip(5.0 + 2.0 * generator.standard_t(3, size=5_000), -1e3, 1e3),
        (-1e3, 1e3),
        Fraction(1, 100),
        5_000,
        Cauchy(0.0, 10.0),
    ),
)


def rank_error(values: FloatArray, released: Sequence[float], quantiles: Sequence[float]) -> float:
    """Largest distance of a target rank to the ranks a released value has, over n."""
    targets = np.asarray(quantiles) * len(values)
    left = np.searchsorted(values, released, side="left")
    right = np.searchsorted(values, released, side="right")
    return float(np.maximum(left - targets, targets - right).clip(0.0).max() / len(values))


def ours(data: Data, count: int, epsilon: float, quick: bool) -> dict[str, Release]:
    """What production offers: every form of the tree, and the one that `auto` picks."""
    price = Fraction(str(epsilon))
    choices = {"auto": choose_tree(count, price, data.rows), **CANDIDATES}
    if quick or count == 1:
        choices = {name: choices[name] for name in ("auto", "binary")}
    targets, robust = _even(count), (data.prior,) * count
    shapes = shapes_from_bounds(targets, *data.bounds, float(data.resolution))
    return {
        f"streamdp {name}": functools.partial(
            _draw,
            data,
            choice.tree(targets, price, data.grid()),
            with_shapes(robust, shapes) if choice.shapes else JointPrior(robust),
        )
        for name, choice in choices.items()
    }


def _draw(
    data: Data,
    tree: QuantileTree,
    prior: JointPrior,
    values: FloatArray,
    quantiles: Sequence[float],
    epsilon: float,
    bounds: Bounds,
    generator: np.random.Generator,
) -> list[float]:
    del quantiles, epsilon, bounds, generator  # in `tree`; chance comes from the system
    cells = tree.draw(data.counts(values), prior, OperatingSystemEntropy())
    return [tree.grid.value(cell) for cell in cells]


def theory(values: FloatArray, data: Data, epsilon: float) -> float:
    """Expected error of the median under P ∝ μ·exp(-ε·|rank - n/2|), the law itself."""
    edges = np.concatenate(([data.bounds[0]], values, [data.bounds[1]]))
    cost = np.abs(np.arange(len(values) + 1) - len(values) / 2)
    log_weights = data.prior.log_mass(edges[:-1], edges[1:]) - epsilon * cost
    weights = np.exp(log_weights - log_weights.max())
    return float((weights * cost).sum() / weights.sum() / len(values))


def peers() -> dict[str, Release]:
    """Papers, and the libraries that are installed."""
    return {
        "kaplan": kaplan.release,
        "gillenwater": gillenwater.release,
        **opendp.releases(),
        **diffprivlib.releases(),
    }


def rows(quick: bool, set_aside: bool = False) -> Iterator[Row]:
    """One row for data, number of quantiles, epsilon and who."""
    others = peers()
    for data in SET_ASIDE if set_aside else DATA:
        for count in (9, 1) if quick else (9, 29, 1):
            for epsilon in EPSILONS:
                repeats = 6 if quick else 50
                for who, release in ours(data, count, epsilon, quick).items():
                    errors = _errors(data, count, epsilon, release, repeats, 0.0)
                    yield _row(data, count, epsilon, who, errors)
                for who, release in others.items():
                    if who == "opendp log" and data.bounds[0] < 0.0:
                        continue
                    errors = _errors(data, count, epsilon, release, repeats, data.jitter)
                    yield _row(data, count, epsilon, who, errors)
                if count == 1 and not data.jitter:
                    yield _row(data, count, epsilon, "theory", _theory(data, epsilon, 50))
    for name in ("opendp", "diffprivlib"):
        if not any(who.startswith(name) for who in others):
            absent = _row(DATA[0], 9, 0.0, f"{name} (absent)", [0.0])
            yield {**absent, "error": None, "deviation": None}


def _row(data: Data, count: int, epsilon: float, who: str, errors: Sequence[float]) -> Row:
    return {
        "data": data.name,
        "quantiles": count,
        "epsilon": epsilon,
        "who": who,
        "error": round(float(np.mean(errors)), 6),
        "deviation": round(float(np.std(errors)) / len(errors) ** 0.5, 6),
    }


def _even(count: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(index, count + 1) for index in range(1, count + 1))


def _errors(
    data: Data, count: int, epsilon: float, release: Release, repeats: int, jitter: float
) -> list[float]:
    quantiles = [float(each) for each in _even(count)]
    errors = []
    for repeat in range(repeats):
        generator = np.random.default_rng([repeat, count])
        values = np.sort(data.draw(generator))
        shown = values + generator.uniform(-jitter, jitter, len(values))
        shown = np.sort(np.clip(shown, *data.bounds))
        released = list(release(shown, quantiles, epsilon, data.bounds, generator))
        if released != sorted(released):
            raise AssertionError("released quantiles cross")
        if jitter:
            unit = float(data.resolution)
            released = [float(np.rint(each / unit) * unit) for each in released]
        errors.append(rank_error(values, released, quantiles))
    return errors


def _theory(data: Data, epsilon: float, repeats: int) -> list[float]:
    batches = (np.sort(data.draw(np.random.default_rng([each, 1]))) for each in range(repeats))
    return [theory(values, data, epsilon) for values in batches]


if __name__ == "__main__":
    asked = argparse.ArgumentParser(add_help=False)
    asked.add_argument("--set-aside", action="store_true", help="laws on which nothing is tuned")
    known, _ = asked.parse_known_args()
    title = "Largest rank error of one release"
    main(title, functools.partial(rows, set_aside=known.set_aside), parser=asked)
