"""Quantiles of a prior: its central interval, which the picture draws around the truth."""

from __future__ import annotations

import numpy as np

from streamdp.types import FloatArray, Grid, Prior

SHARES = (0.05, 0.25, 0.75, 0.95)
"""Ends of the middle 90 % and 50 %."""

PARTS, STEPS = 64, 10
"""Parts that a stretch is cut into at once, and cuts: of the widest grid a ten-thousandth of a cell
is left. Masses of many stretches take a prior hardly longer than the mass of one."""


def band(prior: Prior, grid: Grid, shares: tuple[float, ...] = SHARES) -> FloatArray:
    """Return the quantiles of a prior that is restricted to the grid."""
    half = float(grid.resolution) / 2.0
    ends = grid.value(grid.lower) - half, grid.value(grid.upper) + half
    wanted = np.log(np.array(shares))
    low, width = np.full(len(shares), ends[0]), ends[1] - ends[0]
    whole = float(prior.log_mass(*(np.array([end]) for end in ends))[0])
    for _ in range(STEPS):
        width /= PARTS
        tried = low[:, None] + width * np.arange(1, PARTS)
        masses = prior.log_mass(np.full(tried.size, ends[0]), tried.ravel()).reshape(tried.shape)
        low = low + width * (masses - whole < wanted[:, None]).sum(axis=1)
    return np.asarray(low + width / 2.0)
