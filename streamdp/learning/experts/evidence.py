"""Evidence of a release about its batch: noisy shares of the records at or below some cells.

Counts between cuts show them by their running sums; drawn quantiles show them too, for at a value
that was drawn for rank q about a share q of the records lies. Releases alone are looked at: free.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamdp.learning.experts.records import LEAST_VARIANCE, Number, Records
from streamdp.mechanisms.histograms import Histogram
from streamdp.mechanisms.quantile_tree.planning.rank_law import SAMPLES, rank_samples
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.types import FloatArray

NOTHING = 1e6
"""Variance of shares of a batch that may have hardly any records: they say nothing."""


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
        number: Posterior of the number of records; None where nothing was counted.
    """

    cells: FloatArray
    shares: FloatArray
    noise: FloatArray
    records: float
    unit: float
    number: Number | None = None

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
        number = Number.of(records, totals, spread)
        whole = number.mean
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
        if number.hardly_any:
            noise += NOTHING * np.eye(len(noise))
        start = 0
        for block in blocks:
            end = start + len(block)
            noise[start:end, start:end] += block
            start = end
        unit = 1.0 / sum(1.0 / max(each, LEAST_VARIANCE) for each in variances) / whole**2
        return cls(np.concatenate(cells), np.concatenate(shares), noise, whole, unit, number)


@functools.lru_cache(maxsize=64)
def _noise_of(tree: QuantileTree, rows: int) -> FloatArray:
    """Covariance of the ranks of drawn quantiles, whatever the batch."""
    samples = rank_samples(tree, rows, SAMPLES)
    off = samples - np.array([float(quantile) for quantile in tree.quantiles])
    found = off.T @ off / len(off)
    found.flags.writeable = False
    return np.asarray(found)
