"""Experts on the groups of a batch that are drawn already, and shapes like theirs.

Groups of one batch have its day in common, and often levels and shapes too. The groups drawn
before, as their releases show them, make a reference; experts of a group believe that it keeps its
distance from there. How far it is away is known at first by how far those groups are from their
own mean. A group that has just begun is drawn under shapes like theirs, moved and stretched. All of
it follows from releases and from public numbers of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from streamdp.learning.experts.belief.belief import Belief
from streamdp.learning.experts.belief.density import Usual
from streamdp.learning.experts.memory.levels import BESIDE_DRIFTS, Levels
from streamdp.priors.joint import JointPrior, Shapes
from streamdp.priors.shapes import STEP, WIDTH
from streamdp.types import FloatArray

ALIKE, ALONE = 0.15, 0.05
"""Deviations of a group from others before any is known, in ranks: of all its quantiles together,
and of each alone. They count as much as one group."""

TRUST = 2.0
"""ln of the first weight of an expert on the distance from others, that of the rest being one."""

WEIGHT = 0.2
"""Of shapes like those of other groups. Broad ones keep the rest, so a group unlike any loses
ln(1/.8) of a nat."""

FARTHEST = 2.5
"""Deviations that these shapes are moved and stretched by at most."""

LEAST_MOVES, MOST_MOVES = 20, 200
"""Of neighbouring shapes to either side, as far apart as broad ones: coarser shapes would draw a
group onto the nearest."""

STRETCH, STRETCHES = 0.5, 23
"""Deviation of the logarithm of a stretch, and how many there are."""

SCALE = 0.4
"""Of most laws, in units of what lies between their outer quantiles."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Quantiles of a group after its draw, as its releases show them.

    Args:
        rows: Expected number of its records.
        values: Shape (m,).
        covariance: Of what they may be off by, shape (m, m).
        density: Share of the group per unit of value at each, shape (m,).
    """

    rows: int
    values: FloatArray
    covariance: FloatArray
    density: FloatArray

    @classmethod
    def of(cls, rows: int, belief: Belief, point: FloatArray, density: FloatArray) -> Self:
        """The profile of a belief; as sure as most of it is, its far parts left out."""
        whole = np.einsum("e,eab->ab", belief.weights(), belief.covariances)
        scale = belief.deviations() / np.sqrt(np.maximum(np.diag(whole), 1e-300))
        return cls(rows, point, whole * scale[:, None] * scale, density)

    def finite(self) -> bool:
        """Whether no number overflowed."""
        numbers = self.values, self.covariance, np.log(self.density)
        return all(np.isfinite(part).all() for part in numbers)


@dataclass(frozen=True, slots=True, eq=False)
class Others:
    """The reference of one group on one batch.

    Args:
        values: Mean of the others' quantiles, shape (m,).
        noise: Covariance of what the mean is off by, shape (m, m).
        apart: Covariance of a group of which nothing is known about it, shape (m, m).
    """

    values: FloatArray
    noise: FloatArray
    apart: FloatArray

    @classmethod
    def of(cls, profiles: Sequence[Profile]) -> Self:
        """The mean of one group or more; a group counts by the root of its rows."""
        roots = np.sqrt([float(each.rows) for each in profiles])
        weights = roots / roots.sum()
        values = np.array([each.values for each in profiles])
        centre = weights @ values
        noise = np.einsum("g,gab->ab", weights**2, [each.covariance for each in profiles])
        away, count = values - centre, 1.0 / float((weights**2).sum())
        density = np.exp(weights @ np.log([each.density for each in profiles]))
        first = ALIKE**2 + ALONE**2 * np.eye(len(centre))
        apart = np.einsum("g,ga,gb->ab", weights, away, away)
        apart = apart + first / density[:, None] / density / count
        return cls(centre, noise, apart * (1.0 + 1.0 / count))

    def experts(self, usual: Usual) -> Levels:
        """Experts on the distance of a group from here, before any release of it."""
        nothing = np.zeros(len(self.values))
        start = Levels.start(nothing, 1, usual, self.apart, BESIDE_DRIFTS)
        return replace(start, log_weights=start.log_weights + TRUST)


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
