"""Would gradients of the data pay? Against learning from releases, which is free.

    python -m tests.benchmarks.private_gradients [--json] [--quick]

`bought` is the option `prior.private_gradient` as it is, beside the same learner on gradients at
its releases (`free`), the default learner, none, and what comes of the bought gradient's own first
priors if the gradient is paid for and thrown away.

DP-FTRL is what one could hope for. A share of each day's epsilon buys the gradient of the surrogate
at the day's own intervals, cut to norm 1, its running sum kept private by tree-aggregated normal
noise; the rest buys the release. One record can turn the gradient round, however many records there
are, so a day's gradient hides behind noise of 2·sqrt(levels)/(share·epsilon) at each node of the
tree. All doubts are decided in its favour: the noise is what zero-concentrated privacy asks (a cap
on epsilon asks for more), real numbers are drawn as they are, and the step is the best of a grid in
hindsight.

References:
    Kairouz et al. 2021 (DP-FTRL); Khodak et al. 2023 (the surrogate).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.kinds.quantiles.study import QuantilesStudy
from streamdp.kinds.study import Stream
from streamdp.learning.learner import Fixed
from streamdp.learning.online_gradient.descent import laplace
from streamdp.learning.online_gradient.point_gradient import PrivateGradient
from streamdp.mechanisms.quantile_tree.grains import exact_quantiles
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy, rank_errors
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.shapes import Cauchy, Laplace, Mixture
from streamdp.simulation.comparison import errors_of, replay
from streamdp.types import FloatArray
from tests.benchmarks.report import Row, main
from tests.benchmarks.streams.contenders import OURS, Contenders
from tests.benchmarks.streams.settings import DECILES, Setting, settings

EPSILONS = (Fraction(1, 10), Fraction(1))
BOUGHT = (Fraction(1, 10), Fraction(3, 10))
SHARES = (0.1, 0.3, 0.5)
STEPS = (0.001, 0.01, 0.1, 0.3)
ROBUST, HALF = 0.1, 0.5
SEED = 1
FREE = {"static": "static", "mixture": "mixture", "online-gradient, free": "paper-cocob"}


def rows(quick: bool) -> Iterable[Row]:
    """One row a share, and those who pay nothing to learn; of DP-FTRL with the best step."""
    for epsilon in EPSILONS:
        setting = replace(settings()[0], epsilon=epsilon)
        stream = setting.make(SEED, 40 if quick else None)
        free = Contenders(setting)
        kinds = {
            (who, Fraction(0)): free.kind(f"{name}/{OURS}", epsilon, stream)
            for who, name in FREE.items()
        }
        for part in BOUGHT:
            made = bought(setting, part)
            first = Fixed(made.first_plan()[1].robust)
            kinds["its first priors, at what is left", part] = replace(
                made, learner=first, epsilon=epsilon * (1 - part)
            )
            kinds["online-gradient, bought", part] = made
        for (who, part), kind in kinds.items():
            errors = errors_of(replay(QuantilesStudy(), kind, stream, PublicEntropy("gradients")))
            yield _row(setting, who, float(part), None, errors)
        for share in SHARES[-1:] if quick else SHARES:
            tried = {step: _errors(setting, stream, share, step) for step in STEPS}
            best = min(tried, key=lambda step: tried[step][len(tried[step]) // 4 :].mean())
            yield _row(setting, "DP-FTRL", share, best, tried[best])


def bought(setting: Setting, share: Fraction) -> Quantiles:
    """As the product makes it, but with the robust weight of its free rival."""
    guess, half = setting.guess, float(setting.grid.resolution) / 2.0
    learner = PrivateGradient(
        Cauchy(*guess), ROBUST, guess, half, 0.01 * guess[1], gradient_share=share
    )
    return Quantiles("value", DECILES, setting.epsilon, setting.grid, learner)


def _row(setting: Setting, who: str, share: float, step: float | None, errors: FloatArray) -> Row:
    late = errors[len(errors) // 4 :]
    return {
        "stream": setting.name,
        "epsilon": float(setting.epsilon),
        "who": who,
        "share_of_epsilon": share,
        "best_step": step,
        "average_error": round(float(late.mean()), 4),
        "largest_error": round(float(late.max(axis=1).mean()), 4),
    }


def _errors(setting: Setting, stream: Stream, share: float, step: float) -> FloatArray:
    """Rank errors of every release, shape (batches, m)."""
    left = setting.epsilon * (1 - Fraction(share).limit_denominator(100))
    tree, (location, scale) = QuantileTree(DECILES, left, setting.grid), setting.guess
    robust, entropy = Cauchy(location, scale), PublicEntropy("gradients")
    noise = _Tree(len(stream.batches), share * float(setting.epsilon))
    start = np.array([np.zeros(len(DECILES)), np.ones(len(DECILES))])
    total, errors = np.zeros_like(start), []
    for counts in stream.counts:
        theta, phi = start - step * (total + noise.of_next())
        phi = np.clip(phi, 1e-3, scale / HALF)
        priors = tuple(
            Mixture((1 - ROBUST, ROBUST), (Laplace(location + scale * t / p, scale / p), robust))
            for t, p in zip(theta.tolist(), phi.tolist(), strict=True)
        )
        cells = np.array(tree.draw(counts, priors, entropy))
        errors.append(rank_errors(counts, DECILES, cells))
        truth = np.asarray((exact_quantiles(counts, DECILES) - location) / scale, dtype=np.float64)
        total = total + _gradient(theta, phi, truth)
    return np.array(errors)


def _gradient(theta: FloatArray, phi: FloatArray, truth: FloatArray) -> FloatArray:
    """Of the surrogate at intervals a cell wide around the truth, cut to norm 1."""
    gradient = laplace(theta, phi, truth - 0.01, truth + 0.01).gradient().T
    return np.asarray(gradient / max(1.0, float(np.linalg.norm(gradient))))


class _Tree:
    """Noise of running sums: that of the nodes which make up the days so far."""

    def __init__(self, days: int, epsilon: float) -> None:
        levels = days.bit_length()
        self._deviation = 2.0 * math.sqrt(levels) / epsilon
        self._chance = np.random.default_rng(SEED)
        self._nodes = np.zeros((levels + 1, 2, len(DECILES)))
        self._days = 0

    def of_next(self) -> FloatArray:
        """Noise of the sum of all days before the next."""
        sums = [self._nodes[level] for level in range(len(self._nodes)) if self._days >> level & 1]
        self._days += 1
        fresh = (self._days & -self._days).bit_length() - 1
        shape = self._nodes[fresh].shape
        self._nodes[fresh] = self._chance.normal(0.0, self._deviation, shape)
        return np.sum(sums, axis=0) if sums else np.zeros(shape)


if __name__ == "__main__":
    main("Private gradients against learning from releases", rows)
