"""A gradient at the batch's own quantiles, made private: cut to norm one, then noise on integers.

Noise of each batch is independent. Sums over T batches, which learners step along, could be kept
private by a binary tree of nodes instead (DP-FTRL): a batch is then part of L ≈ log2 T nodes and
has epsilon/L for each. With sensitivity two, a node's noise has variance 8·L²/epsilon², a sum has
L/2 nodes on average, so 4·L³/epsilon² in place of 8·T/epsilon². That is less only beyond
T = L³/2, about a year of days; it needs a horizon, and noises that outlive a crash unseen and are
never drawn twice. A learner that forgets has no use for old sums either.

References:
    Kairouz et al. 2021 (DP-FTRL); Canonne, Kamath & Steinke 2020 (the noise).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from streamdp.mechanisms.noise import AdditiveNoise
from streamdp.mechanisms.quantile_tree.grains import exact_quantiles
from streamdp.privacy.events import pure
from streamdp.types import CellCounts, Entropy, FloatArray, Grid, Json

UNITS = 2**24
"""Integers are gradients times this; norm one is so many units."""

SENSITIVITY = 2 * UNITS
"""Farthest that two vectors of so many units can be apart, in sum of sizes."""

Slope = Callable[[FloatArray], FloatArray]
"""Values of m quantiles to the gradient of a loss there; public, and total on finite values."""


@dataclass(frozen=True, slots=True)
class NoisyGradient:
    """A noisy gradient, bought for a learner with a share of a release's epsilon.

    Args:
        epsilon: Pure loss of all gradients of a release together, whatever a unit changes.
        quantiles: Targets, shape (m,).
        grid: Public cells.
        slope: Gradient, in numbers of about one; fixed before data is touched.
        turned: The most gradients of a release that one unit can change, this one among them.
    """

    epsilon: Fraction
    quantiles: tuple[Fraction, ...]
    grid: Grid
    slope: Slope
    turned: int = 1

    @property
    def noise(self) -> AdditiveNoise:
        """Noise of each unit of the gradient."""
        return AdditiveNoise(self.epsilon, SENSITIVITY * self.turned)

    def event(self) -> Json:
        """The event for the ledger, once for all gradients of a release."""
        return pure(self.epsilon) | {"mechanism": "noisy-gradient", "turned": self.turned}

    def draw(self, statistic: CellCounts, entropy: Entropy) -> tuple[float, ...]:
        """The gradient at the batch's own quantiles, cut and noisy; of no records, noise alone.

        Args:
            statistic: The batch. Private.
            entropy: Source of chance.

        Privacy: any two batches, however many records differ: pure epsilon/turned. `clipped`
        makes integers of at most `UNITS` in sum of sizes whatever it is given, so two batches are
        at most `SENSITIVITY` apart, and noise of scale SENSITIVITY·turned/epsilon hides that
        exactly. No error and no amount of entropy depends on the batch.
        """
        with np.errstate(all="ignore"):
            units = clipped(self._gradient(statistic))
        return tuple(unit / UNITS for unit in self.noise.draw(units, entropy))

    def _gradient(self, statistic: CellCounts) -> FloatArray:
        cells = exact_quantiles(statistic, self.quantiles).tolist()
        values = np.array([self.grid.value(cell) for cell in cells])
        return self.slope(values) * min(1, len(statistic.cells))


def clipped(gradient: FloatArray) -> list[int]:
    """Integers near UNITS·g/max(1, |g|), |g| the sum of sizes, of at most UNITS in sum of sizes.

    The sum holds by construction: each coordinate gets no more than those before it have left.
    What is no finite number counts as zero.
    """
    finite = np.where(np.isfinite(gradient), gradient, 0.0)
    wanted = finite * (UNITS / max(1.0, float(np.abs(finite).sum())))
    units, left = [], UNITS
    for each in wanted.tolist():
        units.append(max(-left, min(left, int(each))))
        left -= abs(units[-1])
    return units
