"""Shapes like those of other groups, moved and stretched: for a group that has just begun."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from streamdp.learning.experts.memory.others import Others
from streamdp.priors.joint import JointPrior, Shapes

WEIGHT = 0.2
"""Of these shapes. The others keep the rest, so a group unlike any loses ln(1/.8) of a nat."""

FARTHEST = 2.5
"""Deviations that shapes are moved and stretched by at most."""

MOVES, STRETCHES = 41, 11
"""How many there are of each."""

STRETCH = 0.5
"""Deviation of the logarithm of a stretch."""

WIDTH = 0.02
"""Of a bump, in units of four tenths of the span: a scale of most laws."""


def with_others(prior: JointPrior, others: Others) -> JointPrior:
    """The prior of a group of which nothing is known, with shapes like those of the others."""
    values, spread = others.values, others.apart + others.noise
    middle, span = float(values[len(values) // 2]), float(values[-1] - values[0])
    far = max(math.sqrt(max(float(spread.mean()), 0.0)), 1e-9)
    grids = (np.linspace(-FARTHEST, FARTHEST, count) for count in (MOVES, STRETCHES))
    move, stretch = (each.ravel() for each in np.meshgrid(*grids))
    profiles = np.exp(STRETCH * stretch)[:, None] * (values - middle)
    centres = middle + far * move[:, None] + profiles
    log_weights = -0.5 * (move**2 + stretch**2)
    log_weights += math.log(WEIGHT) - math.log(np.exp(log_weights).sum())
    widths = np.full(centres.shape, WIDTH * max(0.4 * span, far))
    like = Shapes(log_weights, centres, widths)
    if prior.shapes is None:
        return replace(prior, shapes=like)
    broad = prior.shapes
    return replace(
        prior,
        shapes=Shapes(
            np.concatenate((broad.log_weights + math.log(1.0 - WEIGHT), like.log_weights)),
            np.concatenate((broad.centres, like.centres)),
            np.concatenate((broad.widths, like.widths)),
        ),
    )
