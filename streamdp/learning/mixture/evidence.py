"""Evidence of a release: noisy observations of the batch's cdf at some cells.

Counts between cuts show them by their running sums; drawn quantiles show them too, for at a value
that was drawn for rank q about a share q of the records lies; where several were drawn in one cell,
about such shares lie below it and up to it. Releases alone are looked at: free.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamdp.learning.mixture.curves import FLOOR, VARIANCES, bridge
from streamdp.learning.mixture.distribution import Distribution
from streamdp.learning.mixture.draw import Draw
from streamdp.learning.mixture.records import LEAST_VARIANCE, Number, RecordsPrior
from streamdp.mechanisms.histograms import Histogram
from streamdp.mechanisms.quantile_tree.planning.rank_law import SAMPLES, rank_samples
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.types import FloatArray

LEAST_COST = 3.0
"""Nats that a single draw beyond all records costs, at least, where its own law is learned from.
One that costs less hardly shows on which side of it the batch lies, and on a grid without bounds
what it teaches of a heavy tail is a random walk outwards: from 1 to 1.5 nats .99 quantiles come to
10 to 10^5 times the truth in 200 days, at 2.3 to 1.7 times, and from 3 on they stay."""

NOTHING = 1e6
"""Variance of shares of a batch that may have hardly any records: they say nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Noisy observations of the cdf at some cells, with their covariance.

    Args:
        cells: Shape (k,).
        y: Observed cdf at each, shape (k,).
        noise: Cov y, shape (k, k); half a record in any case, so that it has an inverse.
        records: Believed number of records of the batch.
        unit: Variance of the noise of the share of records between two cells.
        number: Posterior of the number of records; None where nothing was counted.
        draw: The draw behind it, if it is a single one: its law is known, so `noise` is not used.
    """

    cells: FloatArray
    y: FloatArray
    noise: FloatArray
    records: float
    unit: float
    number: Number | None = None
    draw: Draw | None = None

    @property
    def extra_sampling_variance(self) -> float:
        """Sampling variance E[1/N] beyond that of a usual batch, at least 0."""
        return 0.0 if self.number is None else self.number.extra_sampling_variance

    def deviations(self, marginal: FloatArray) -> FloatArray:
        """Return the covariances of a batch's deviation from a curve, for each size; (k, c, c).

        Args:
            marginal: Mean cdf at the cells, on which the bridge runs.
        """
        variances = VARIANCES + self.extra_sampling_variance
        return np.asarray(variances * bridge(marginal, marginal))

    def inverses(self, deviations: FloatArray) -> FloatArray:
        """Return the inverse covariances of what is observed about a curve; shape (k, c, c)."""
        noise = self.noise + FLOOR * np.eye(len(self.cells))
        return np.asarray(np.linalg.inv(deviations + noise))

    @classmethod
    def drawn(
        cls, tree: QuantileTree, cells: FloatArray, rows: float, prior: JointPrior
    ) -> Evidence:
        """Return the evidence of drawn quantiles.

        Quantiles drawn in one cell indicate an atom: the first of them bounds the cdf below the
        cell, the last bounds it at the cell, and those between are ignored.
        """
        targets = np.array([float(quantile) for quantile in tree.quantiles])
        noise = _noise_of(tree, round(rows)) + np.eye(len(targets)) / (4.0 * rows**2)
        unit = float(np.trace(noise)) / len(noise)
        at, shares, open_ = _of_ties(cells, targets)
        draw = None
        if len(targets) == 1:
            quantile = float(targets[0])
            sharpness = float(tree.levels()[0].sharpness(tree.quantiles)) * rows
            if sharpness * min(quantile, 1.0 - quantile) >= LEAST_COST:
                draw = Draw(float(at[0]), quantile, sharpness, prior.robust[0], tree.grid)
        return cls(at, shares, noise + np.diag(open_), rows, unit, draw=draw)

    @classmethod
    def counted(
        cls,
        stages: Sequence[Histogram],
        variances: Sequence[float],
        records: RecordsPrior,
        believed: Distribution,
    ) -> Evidence:
        """Return the evidence y and Cov y of noisy counts, given the number N of records.

        N is known better than the noisy total of a stage. Given N, the noises of its b bins add up
        to total - N: each has the conditional mean (total - N)/b, and partial sums of what is left
        have the covariance of a bridge over the bins. An error of one record in N moves the share S
        at cut j by (S - j/b)/N. The errors of cuts also have the variance of half a record each,
        which keeps their covariance invertible where noise is small.

        Args:
            stages: What was counted, with at least one cut in all.
            variances: Of the noise of each count, by stage.
            records: Belief about the number of records.
            believed: Distribution of the batch before it was counted.
        """
        totals = [float(sum(stage.counts)) for stage in stages]
        variances_of_totals = [
            variance * len(stage.counts) for stage, variance in zip(stages, variances, strict=True)
        ]
        number = Number.of(records, totals, variances_of_totals)
        n_hat = number.mean
        cells, shares, slopes, blocks = [], [], [], []
        for stage, total, of_total in zip(stages, totals, variances_of_totals, strict=True):
            part = np.arange(1, len(stage.counts)) / len(stage.counts)
            cuts, sums = np.array(stage.cuts, float), np.cumsum(stage.counts, dtype=float)[:-1]
            y = (sums - part * (total - n_hat)) / n_hat
            cells.append(cuts)
            shares.append(y)
            slopes.append((believed.cdf(cuts) + y.clip(0.0, 1.0)) / 2.0 - part)
            blocks.append(bridge(part, part) * (of_total / n_hat**2))
        a = np.concatenate(slopes)
        noise = np.eye(len(a)) / (4.0 * n_hat**2)
        noise += np.outer(a, a) * (number.variance / n_hat**2)
        if number.hardly_any:
            noise += NOTHING * np.eye(len(noise))
        start = 0
        for block in blocks:
            end = start + len(block)
            noise[start:end, start:end] += block
            start = end
        unit = 1.0 / sum(1.0 / max(each, LEAST_VARIANCE) for each in variances) / n_hat**2
        return cls(np.concatenate(cells), np.concatenate(shares), noise, n_hat, unit, number)


def _of_ties(cells: FloatArray, targets: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return cells, cdf values and extra variances for draws of which some fell in one cell.

    A share that lies anywhere in a gap g between two targets is its middle, with variance g²/12.
    """
    gaps = np.diff(targets, prepend=0.0, append=1.0)
    same = np.diff(cells) == 0.0
    left, right = np.append(False, same), np.append(same, False)
    first, last = right & ~left, left & ~right
    at = np.where(first, cells - 1.0, np.where(last, cells, cells - 0.5))
    shares = targets + np.where(last, gaps[1:], 0.0) / 2.0 - np.where(first, gaps[:-1], 0.0) / 2.0
    between = np.where(first, gaps[:-1], np.where(last, gaps[1:], 0.0)) ** 2 / 12.0
    return at, shares, np.where(left & right, NOTHING, between)


@functools.lru_cache(maxsize=64)
def _noise_of(tree: QuantileTree, rows: int) -> FloatArray:
    """Covariance of the ranks of drawn quantiles, whatever the batch."""
    samples = rank_samples(tree, rows, SAMPLES)
    off = samples - np.array([float(quantile) for quantile in tree.quantiles])
    found = off.T @ off / len(off)
    found.flags.writeable = False
    return np.asarray(found)
