"""Evidence of a release about its batch: noisy shares of the records at or below some cells.

Counts between cuts show them by their running sums; drawn quantiles show them too, for at a value
that was drawn for rank q about a share q of the records lies. Releases alone are looked at: free.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from streamdp.mechanisms.histograms import Histogram
from streamdp.mechanisms.quantile_tree.planning.rank_law import SAMPLES, rank_samples
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.types import FloatArray, Json

LEAST_RECORDS = 0.2
"""Of the expected number of records, the part that a batch is taken to have at least."""

FIRST_SPREAD, LEAST_SPREAD = 0.5, 0.02
"""Deviation of the number of records about its mean, as a part of it: at first, and at least."""

LEAST_VARIANCE = 1e-3
"""Of a noisy total; less is no news of a whole number."""

FORGET = 0.05
"""Least weight of a new release in the number of records."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Noisy shares.

    Args:
        cells: Shape (k,).
        shares: Of the records at or below each, as far as noise lets one see; shape (k,).
        noise: Covariance of their errors, shape (k, k); half a record in any case, so that it has
            an inverse.
        records: Believed number of records of the batch.
        unit: Variance of the noise of the share of records between two cells.
    """

    cells: FloatArray
    shares: FloatArray
    noise: FloatArray
    records: float
    unit: float

    @classmethod
    def drawn(cls, tree: QuantileTree, cells: FloatArray, rows: float) -> Evidence:
        """Evidence of drawn quantiles."""
        targets = np.array([float(quantile) for quantile in tree.quantiles])
        noise = _noise_of(tree, round(rows)) + np.eye(len(targets)) / (4.0 * rows**2)
        return cls(cells - 0.5, targets, noise, rows, float(np.trace(noise)) / len(noise))

    @classmethod
    def counted(
        cls, stages: Sequence[Histogram], variances: Sequence[float], records: Records
    ) -> Evidence:
        """Evidence of noisy counts.

        Args:
            stages: What was counted, with at least one cut in all.
            variances: Of the noise of each count, by stage.
            records: Belief about the number of records.
        """
        totals = [float(sum(stage.counts)) for stage in stages]
        spread = [
            variance * len(stage.counts) for stage, variance in zip(stages, variances, strict=True)
        ]
        whole = records.after(totals, spread)
        cells, shares, blocks = [], [], []
        for stage, total, variance in zip(stages, totals, variances, strict=True):
            sums = np.cumsum(stage.counts, dtype=float)[:-1]
            each = (
                np.clip(sums / whole, 0.0, 1.0) if total <= 0 else np.clip(sums / total, 0.0, 1.0)
            )
            below = np.tri(len(sums), len(sums) + 1) - each[:, None]
            cells.append(np.array(stage.cuts, dtype=float))
            shares.append((sums + (whole - total) * each) / whole)
            blocks.append(below @ below.T * (variance / whole**2))
        noise = np.eye(sum(map(len, cells))) / (4.0 * whole**2)
        start = 0
        for block in blocks:
            end = start + len(block)
            noise[start:end, start:end] += block
            start = end
        unit = 1.0 / sum(1.0 / max(each, LEAST_VARIANCE) for each in variances) / whole**2
        return cls(np.concatenate(cells), np.concatenate(shares), noise, whole, unit)


@dataclass(frozen=True, slots=True)
class Records:
    """Belief about the number of records of a batch.

    Args:
        mean: Of past batches, or as it is expected.
        variance: Of a batch about it.
        least: Batches are taken to have at least so many.
    """

    mean: float
    variance: float
    least: float

    @classmethod
    def expected(cls, rows: int) -> Self:
        """Before any release."""
        return cls(float(rows), (FIRST_SPREAD * rows) ** 2, LEAST_RECORDS * rows)

    def after(self, totals: Sequence[float], variances: Sequence[float]) -> float:
        """Number of records of a batch, once noisy totals are seen."""
        precision, weighted = 1.0 / self.variance, self.mean / self.variance
        for total, variance in zip(totals, variances, strict=True):
            known = 1.0 / max(variance, LEAST_VARIANCE)
            precision += known
            weighted += total * known
        return max(weighted / precision, self.least)

    def learned(self, total: float, releases: int) -> Records:
        """The belief after one more release; so many there are now."""
        step = max(1.0 / (releases + 1), FORGET)
        off = total - self.mean
        variance = (1.0 - step) * (self.variance + step * off**2)
        mean = max(self.mean + step * off, self.least)
        return Records(mean, max(variance, (LEAST_SPREAD * mean) ** 2), self.least)

    def to_json(self) -> Json:
        """Exact."""
        return [self.mean, self.variance, self.least]

    @classmethod
    def from_json(cls, state: Json) -> Self:
        """The inverse of `to_json`."""
        return cls(*map(float, state))


@functools.lru_cache(maxsize=64)
def _noise_of(tree: QuantileTree, rows: int) -> FloatArray:
    """Covariance of the ranks of drawn quantiles, whatever the batch."""
    samples = rank_samples(tree, rows, SAMPLES)
    off = samples - np.array([float(quantile) for quantile in tree.quantiles])
    found = off.T @ off / len(off)
    found.flags.writeable = False
    return np.asarray(found)
