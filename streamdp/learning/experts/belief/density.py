"""How dense a batch is at its quantiles: what turns ranks into values, and how quantiles move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from streamdp.types import FloatArray

GUESS_SPREAD = 0.55
"""A guessed scale is read as a standard deviation: a logistic law has 0.55 of it as its scale."""


def log_gaps(values: FloatArray, resolution: float) -> FloatArray:
    """ln of the m - 1 gaps between sorted values and, last, of their span; averaged over releases.

    The mean of logarithms hardly minds a release that went astray, but makes gaps small against
    the noise too small; the span is not, so it sets their sum.
    """
    ordered = np.sort(values)
    lengths = np.append(np.diff(ordered), ordered[-1] - ordered[0])
    return np.asarray(np.log(np.maximum(lengths, resolution)))


def gaps(logs: FloatArray) -> FloatArray:
    """Gaps whose sum is the span, shape (m - 1,)."""
    lengths = np.exp(logs[:-1])
    return np.asarray(lengths * (np.exp(logs[-1]) / lengths.sum())) if len(lengths) else lengths


def densities(targets: FloatArray, logs: FloatArray) -> FloatArray:
    """Share of a batch per unit of value at each quantile, shape (m,)."""
    if len(targets) == 1:
        return np.exp(-logs)
    lengths = gaps(logs)
    inner = (targets[2:] - targets[:-2]) / (lengths[1:] + lengths[:-1])
    outer = np.diff(targets) / lengths
    return np.concatenate((outer[:1], inner, outer[-1:]))


def extended(at: FloatArray, x: FloatArray, y: FloatArray, ends: int = 1) -> FloatArray:
    """Values at some places of the lines through points, beyond them of the steepest of some ends.

    Args:
        at: Places.
        x: Of the points, increasing.
        y: Of the points, same shape.
        ends: How many of the first and the last lines to look at.
    """
    slopes = np.diff(y) / np.diff(x)
    below = np.minimum(at - x[0], 0.0) * slopes[:ends].max()
    above = np.maximum(at - x[-1], 0.0) * slopes[-ends:].max()
    return np.asarray(np.interp(at, x, y) + below + above)


def profile(logs: FloatArray) -> FloatArray:
    """The usual quantiles, the first of them at 0; shape (m,)."""
    return np.concatenate(([0.0], np.cumsum(gaps(logs))))


def placed(logs: FloatArray, index: int, value: float) -> FloatArray:
    """The usual quantiles, shifted so that one of them has a value; shape (m,)."""
    places = profile(logs)
    return np.asarray(places - places[index] + value)


def directions(density: FloatArray, logs: FloatArray) -> FloatArray:
    """Shift, stretch and skew of the usual profile, in ranks, orthonormal; shape (m, 3 or fewer).

    A profile z that moves by a + b·z + c·|z| moves its ranks by f, f·z and f·|z|.
    """
    places = placed(logs, len(density) // 2, 0.0)
    z = places / max(float(np.abs(places).max()), 1e-300)
    moves = np.array([density, density * z, density * np.abs(z)]).T / density.max()
    left, sizes, _ = np.linalg.svd(moves, full_matrices=False)
    return np.asarray(left[:, sizes > 1e-6 * sizes[0]])


@dataclass(frozen=True, slots=True)
class Usual:
    """How a batch usually looks, which turns ranks into values.

    Args:
        density: Share of a batch per unit of value at each quantile, shape (m,).
        common: Projection on the common directions, in ranks, shape (m, m).
        resolution: Width of a cell.
    """

    density: FloatArray
    common: FloatArray
    resolution: float

    @classmethod
    def of(cls, targets: FloatArray, logs: FloatArray, resolution: float) -> Self:
        """How a batch of usual gaps looks."""
        each = densities(targets, logs)
        basis = directions(each, logs)
        return cls(each, basis @ basis.T, resolution)

    def in_values(self, ranks: FloatArray) -> FloatArray:
        """A covariance of ranks as one of values."""
        return np.asarray(ranks / self.density[:, None] / self.density)

    def in_ranks(self, values: FloatArray) -> FloatArray:
        """The inverse."""
        return np.asarray(self.density[:, None] * values * self.density)
