"""Totals over numbers of records, both noisy."""

from __future__ import annotations

import numpy as np

from streamdp.kinds.statistics.measures.series_filter import WIDTHS, Estimates
from streamdp.types import FloatArray

SURELY = 3.0
"""Deviations of noise beyond a value above which a belief of it is out of date."""


def divisor(numbers: Estimates) -> FloatArray:
    """Numbers of records to divide by: at least one, and at least their own deviation."""
    return np.maximum(np.maximum(numbers.point, deviation(numbers)), 1.0)


def deviation(numbers: Estimates) -> FloatArray:
    """Deviation of numbers of records, from their intervals."""
    return np.asarray((numbers.upper - numbers.lower) / (2 * WIDTHS[0]))


def quotient(
    total: FloatArray, reach: float, numbers: Estimates, least: float, most: float
) -> tuple[FloatArray, FloatArray]:
    """Ends of a total, known to a reach, over a number of records that is known to an interval.

    Args:
        total: Noisy.
        reach: Of its noise.
        numbers: Of records.
        least: Of the quotient.
        most: Of the quotient.
    """
    few, many = np.maximum(numbers.lower, 1.0), np.maximum(numbers.upper, 1.0)
    low = np.minimum((total - reach) / few, (total - reach) / many)
    high = np.maximum((total + reach) / few, (total + reach) / many)
    return np.clip(low, least, most), np.clip(high, least, most)


def noise_of_quotient(
    value: FloatArray,
    believed: FloatArray,
    doubt: FloatArray,
    own: FloatArray,
    numbers: Estimates,
    most: float,
) -> FloatArray:
    """Variance of the noise of a total over a number of records.

    The error of the number grows with the quotient. It is taken by what was believed of it before:
    by the noisy value itself, small values would pass for sure and large ones for doubtful, and
    their mean would be too small. A belief far above the value and its noise is out of date: by it
    every new value would pass for noise, and the belief would last.

    Args:
        value: The noisy quotient, for series that nothing is believed of yet.
        believed: What was believed of it; NaN of new series.
        doubt: Variance of that.
        own: Variance of the noise of the total, over the square of the number.
        numbers: Of records.
        most: Size of the quotient, at most.
    """
    square = np.where(
        np.isnan(believed), value**2, np.minimum(believed**2 + doubt, value**2 + SURELY**2 * own)
    )
    noise: FloatArray = np.minimum(
        own + square * (deviation(numbers) / divisor(numbers)) ** 2, most**2
    )
    return noise
