"""Priors of one release that learn while it is drawn: each level from the levels above it.

A draw of the tree tells about all quantiles, since they move together. Once a level is drawn the
belief is updated by it, and the next level draws from priors that know: if the median fell high,
so will the rest. Only released values enter, so the levels compose as ever.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from streamdp.learning.belief import Belief, Release, observe
from streamdp.learning.noise import NoisyDraw
from streamdp.learning.sharpening import Sharpening
from streamdp.priors.joint import JointPrior, digest_of
from streamdp.types import FloatArray, Json, Prior


@dataclass(frozen=True, slots=True)
class Walk:
    """How one release is drawn and read, public.

    Args:
        draws: Of the tree, parents first.
        sharpening: Makes priors of beliefs.
        densities: Share of the batch per unit of value at each quantile, shape (m,).
        limits: Ends of the grid.
        resolution: Width of a cell.
        releases: How many came before.
        first: The belief before anything is drawn.
        seen: Beliefs and priors after some levels, by their values: every level asks for all above.
    """

    draws: tuple[NoisyDraw, ...]
    sharpening: Sharpening
    densities: FloatArray
    limits: tuple[float, float]
    resolution: float
    releases: int
    first: Belief
    seen: dict[tuple[float, ...], tuple[Belief, tuple[Prior, ...]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def priors(self, belief: Belief) -> tuple[Prior, ...]:
        """One prior a quantile."""
        draws = sorted(self.draws, key=lambda draw: draw.target)
        units = [draw.unit(float(self.densities[draw.target])) for draw in draws]
        return self.sharpening.priors(belief, np.array(units), self.releases)

    def given(self, released: Mapping[int, float]) -> tuple[Prior, ...]:
        """The priors after the draws of some whole levels, the top ones; {target: value}."""
        return self._read(released)[1]

    def after(self, values: Sequence[float]) -> Belief:
        """The belief after all draws; values by target."""
        return self._read(dict(enumerate(values)))[0]

    def _read(self, released: Mapping[int, float]) -> tuple[Belief, tuple[Prior, ...]]:
        values = np.array([released.get(j, np.nan) for j in range(len(self.densities))])
        release = Release(values, self.densities, self.limits, self.resolution)
        told = tuple[float, ...]()
        for _, group in itertools.groupby(self.draws, lambda draw: draw.level):
            level = tuple(group)
            if not all(draw.target in released for draw in level):
                break
            before, told = told, (*told, *(released[draw.target] for draw in level))
            if told not in self.seen:
                belief, priors = self._seen(before)
                for draw in level:
                    belief = observe(belief, draw, priors[draw.target], release)
                ended = len(told) == len(values)
                self.seen[told] = belief, () if ended else self.priors(belief)
        return self._seen(told)

    def _seen(self, told: tuple[float, ...]) -> tuple[Belief, tuple[Prior, ...]]:
        if told not in self.seen:
            self.seen[told] = self.first, self.priors(self.first)
        return self.seen[told]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BelievedPrior(JointPrior):
    """The priors a belief makes, and those it will make of what is drawn.

    Args:
        walk: How the release is drawn.
    """

    walk: Walk

    def given(self, released: dict[int, float], width: float) -> JointPrior:
        """The priors once some levels are drawn; depends on releases alone."""
        if not released:
            return self
        return JointPrior(self.walk.given(released))

    def describe(self) -> Json:
        """The first priors, and a digest of the belief the others follow from."""
        belief = self.walk.first
        return {
            "family": "believed",
            "robust": [prior.describe() for prior in self.robust],
            "sha256": digest_of(belief.log_weights, belief.means, belief.covariances),
        }
