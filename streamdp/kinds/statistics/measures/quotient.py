"""Totals over numbers of records, both noisy."""

from __future__ import annotations

import numpy as np

from streamdp.kinds.statistics.measures.series_filter import Estimates
from streamdp.types import FloatArray

SURELY = 3.0
"""Deviations of noise beyond a value above which a belief of it is out of date."""

UNSURE = 0.4
"""Deviation of a number of records, over it, from which next to nothing is known of it."""


def divisor(numbers: Estimates) -> FloatArray:
    """Numbers of records to divide by: at least one, and at least their own deviation."""
    return np.maximum(np.maximum(numbers.point, deviation(numbers)), 1.0)


def deviation(numbers: Estimates) -> FloatArray:
    """Deviation of numbers of records."""
    return np.asarray(np.sqrt(numbers.variance))


def ends(
    quotient: FloatArray, below: FloatArray, above: FloatArray, numbers: Estimates
) -> tuple[FloatArray, FloatArray]:
    """How far a quotient may lie below and above what it is, if its number is not sure.

    The error of the total and that of the number are independent. That of the number turns a
    quotient into n/n' times itself, and makes that of the total larger: on the average, or as
    much as it may where next to nothing is known of the number.

    Args:
        quotient: Of a total and `divisor(numbers)`.
        below: How far it may lie below, by the error of the total alone.
        above: The same above.
        numbers: Of records.
    """
    n = divisor(numbers)
    few, many = np.clip(numbers.lower, 1.0, n), np.maximum(numbers.upper, n)
    by_few, by_many = quotient * (n / few - 1.0), quotient * (n / many - 1.0)
    less, more = -np.minimum(by_few, by_many), np.maximum(by_few, by_many)
    unsure = deviation(numbers) / n
    wide, known = np.sqrt(1.0 + 3.0 * unsure**2), unsure < UNSURE
    return (
        np.where(known, np.hypot(below * wide, less), below * n / few + np.maximum(less, 0.0)),
        np.where(known, np.hypot(above * wide, more), above * n / few + np.maximum(more, 0.0)),
    )


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
