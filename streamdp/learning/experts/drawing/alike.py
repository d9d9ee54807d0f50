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

STEP, LEAST_MOVES, MOST_MOVES = 0.1, 20, 200
"""Distance of neighbouring moves in scales, as of broad shapes, and bounds of their number to
either side: coarser shapes would draw a group onto the nearest."""

STRETCH, STRETCHES = 0.5, 23
"""Deviation of the logarithm of a stretch, and how many there are."""

WIDTH = 0.02
"""Of a bump, in scales."""

SCALE = 0.4
"""Of most laws, in units of what lies between their outer quantiles."""


def with_others(prior: JointPrior, others: Others) -> JointPrior:
    """The prior of a group of which nothing is known, with shapes like those of the others.

    A prior without shapes stays as it is: its draws say so much that points of a lattice would only
    be in their way.
    """
    if prior.shapes is None:
        return prior
    like, broad = _like(others), prior.shapes
    return replace(
        prior,
        shapes=Shapes(
            np.concatenate((broad.log_weights + math.log(1.0 - WEIGHT), like.log_weights)),
            np.concatenate((broad.centres, like.centres)),
            np.concatenate((broad.widths, like.widths)),
        ),
    )


def _like(others: Others) -> Shapes:
    """The others' profile, moved as far as groups are apart, and stretched."""
    values, spread = others.values, others.apart + others.noise
    far = max(math.sqrt(max(float(spread.mean()), 0.0)), 1e-9)
    scale = SCALE * float(values[-1] - values[0])
    scale = scale if scale > 0.0 else far
    aside = round(min(max(FARTHEST * far / (STEP * scale), LEAST_MOVES), MOST_MOVES))
    counts = 2 * aside + 1, STRETCHES
    grids = (np.linspace(-FARTHEST, FARTHEST, count) for count in counts)
    move, stretch = (each.ravel() for each in np.meshgrid(*grids))
    middle = float(values[len(values) // 2])
    profiles = np.exp(STRETCH * stretch)[:, None] * (values - middle)
    centres = middle + far * move[:, None] + profiles
    log_weights = -0.5 * (move**2 + stretch**2)
    log_weights += math.log(WEIGHT) - math.log(np.exp(log_weights).sum())
    return Shapes(log_weights, centres, np.full(centres.shape, WIDTH * scale))
