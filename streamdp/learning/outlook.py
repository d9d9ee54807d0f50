"""What either way of drawing would be off by, in ranks, so that the better one is chosen.

Learned priors err with their forecasts: by how much a day differs from its level, and by how well
the level can be known from releases that say as little as these. Broad shapes err with the noise of
the nodes they are drawn at, and with what no shape explains of the spacing of the quantiles.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from streamdp.learning import spacing
from streamdp.learning.filters import WIDTHS, Filters
from streamdp.types import FloatArray


def forecast_error(
    filters: Filters, inputs: FloatArray, targets: FloatArray, noise: float
) -> float:
    """Mean deviation of the quantiles from the experts' forecasts, in ranks.

    A level that drifts is known no better than its filter can in the long run; looked at after
    releases of less noise it seems known for longer than it stays so. With drift q and noise r of
    a release, both in units of D, the variance p of a forecast level solves p² - q·p - q·r = 0
    (the Riccati equation of a local level); the last release alone has p = r.

    Args:
        filters: What the experts remember.
        inputs: A 1 and the batch's features, shape (d,).
        targets: Quantiles, shape (m,).
        noise: Deviation of a release, in ranks.
    """
    density = spacing.densities(targets, filters.log_gaps)
    moves = (np.sqrt(np.diagonal(filters.deviations, axis1=1, axis2=2)) * density).mean(axis=1)
    seen = WIDTHS**2 + (noise / moves[:, None]) ** 2
    last = np.isinf(filters.drifts)
    drifts = np.where(last, 0.0, filters.drifts)[:, None]
    settled = (drifts + np.sqrt(drifts**2 + 4.0 * drifts * seen)) / 2.0
    known = np.maximum(filters.known(inputs)[:, None], np.where(last[:, None], seen, settled))
    shares = np.exp(filters.log_weights - filters.log_weights.max())
    return float((shares * np.sqrt(WIDTHS**2 + known) * moves[:, None]).sum() / shares.sum())


def misfit(
    log_gaps: FloatArray, targets: FloatArray, drawn: list[int], profiles: Iterable[FloatArray]
) -> float:
    """What the best of some shapes is off by where it fills in, as a mean over quantiles, in ranks.

    Args:
        log_gaps: Spacing of the quantiles.
        targets: Quantiles, shape (m,).
        drawn: Which of them are drawn at the root; a shape fills in the others.
        profiles: Quantiles of each shape, at any place and spread, shape (m,) each.
    """
    values = np.concatenate(([0.0], np.cumsum(spacing.gaps(log_gaps))))
    density = spacing.densities(targets, log_gaps)
    off = (np.abs(_filled(values, drawn, each) - values) * density for each in profiles)
    return min((float(each.mean()) for each in off), default=0.0)


def _filled(values: FloatArray, drawn: list[int], shape: FloatArray) -> FloatArray:
    """A shape laid through some values: stretched between them, its slope kept beyond."""
    first, last = drawn[0], drawn[-1]
    rise = shape[last] - shape[first]
    slope = (values[last] - values[first]) / rise if last > first else 0.0
    middle = np.interp(shape, shape[drawn], values[drawn])
    beyond = np.minimum(shape - shape[first], 0.0) + np.maximum(shape - shape[last], 0.0)
    return np.asarray(middle + slope * beyond)
