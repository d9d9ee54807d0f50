"""Where a prior puts its middle mass: what the picture draws around the truth."""

from __future__ import annotations

import numpy as np

from streamdp.types import FloatArray, Grid, Prior

SHARES = (0.05, 0.25, 0.75, 0.95)
"""Ends of the middle 90 % and 50 %."""

STEPS = 60
"""Halvings: of the widest grid a ten-thousandth of a cell is left."""


def band(prior: Prior, grid: Grid, shares: tuple[float, ...] = SHARES) -> FloatArray:
    """Values below which a prior, restricted to the grid, has some shares of its mass."""
    half = float(grid.resolution) / 2.0
    ends = grid.value(grid.lower) - half, grid.value(grid.upper) + half
    wanted = np.log(np.array(shares))
    low, high = (np.full(len(shares), end) for end in ends)
    whole = float(prior.log_mass(*(np.array([end]) for end in ends))[0])
    for _ in range(STEPS):
        middle = (low + high) / 2.0
        short = prior.log_mass(np.full(len(shares), ends[0]), middle) - whole < wanted
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return np.asarray((low + high) / 2.0)
