"""Priors of one release that learn while it is drawn: each level from the levels above it.

A draw of the tree tells about all quantiles, since they move together. Once a level is drawn the
belief is updated by it, and the next level draws from priors that know: if the median fell high,
so will the rest. Only released values enter, so the levels compose as ever.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from streamdp.learning.experts.belief.belief import Belief, Release, observe
from streamdp.learning.experts.belief.noise import NoisyDraw
from streamdp.learning.experts.drawing.prior_scale import prior_of
from streamdp.learning.experts.facts import Facts
from streamdp.priors.joint import JointPrior, digest_of
from streamdp.types import FloatArray, Json, Prior

Priors = dict[int, Prior]

FIRST_ROBUST = 0.5
"""Robust weight before the first release; falls as 1/(releases + 1)."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How one release is drawn and read, public.

    Args:
        facts: About the stream.
        draws: Of the tree, parents first; targets are indices of all quantiles.
        density: Share of the batch per unit of value at each quantile, shape (m,).
        first: The belief before anything is drawn.
        releases: How many came before.
        past: Exact values released of each quantile, shape (m, ...).
        seen: Beliefs and priors after some levels, by their values: every level asks for all above.
    """

    facts: Facts
    draws: tuple[NoisyDraw, ...]
    density: FloatArray
    first: Belief
    releases: int
    past: tuple[tuple[float, ...], ...]
    seen: dict[tuple[float, ...], tuple[Belief, Priors]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def given(self, released: Mapping[int, float]) -> Priors:
        """The priors after the draws of some whole levels, the top ones; {target: value}."""
        return self._read(released)[1]

    def after(self, released: Mapping[int, float]) -> Belief:
        """The belief after all draws."""
        return self._read(released)[0]

    def _read(self, released: Mapping[int, float]) -> tuple[Belief, Priors]:
        values = np.array([released.get(j, np.nan) for j in range(len(self.density))])
        release = Release(values, self.density, self.facts.limits, self.facts.resolution)
        told: tuple[float, ...] = ()
        if told not in self.seen:
            self.seen[told] = self.first, self._priors(self.first)
        for _, group in itertools.groupby(self.draws, lambda draw: draw.level):
            level = tuple(group)
            if not all(draw.target in released for draw in level):
                break
            belief, priors = self.seen[told]
            told += tuple(released[draw.target] for draw in level)
            if told not in self.seen:
                for draw in level:
                    belief = observe(belief, draw, priors[draw.target], release)
                ended = len(told) == len(self.draws)
                self.seen[told] = belief, {} if ended else self._priors(belief)
        return self.seen[told]

    def _priors(self, belief: Belief) -> Priors:
        """The prior of each draw, by its target."""
        robust = max(self.facts.robust_weight, FIRST_ROBUST / (self.releases + 1))
        point, deviations = belief.medians().tolist(), belief.deviations().tolist()
        priors = {}
        for draw in self.draws:
            j = draw.target
            about = point[j], deviations[j], draw.unit(float(self.density[j])), self.past[j]
            priors[j] = prior_of(self.facts, robust, *about)
        return priors


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SequentialPrior(JointPrior):
    """The priors a belief makes, and those it will make of what is drawn.

    Args:
        reading: How the release is drawn.
        targets: Which of all quantiles the tree draws.
    """

    reading: Reading
    targets: tuple[int, ...]

    def given(self, released: dict[int, float], width: float) -> JointPrior:
        """The priors once some levels are drawn; depends on releases alone."""
        if not released:
            return self
        priors = self.reading.given({self.targets[j]: value for j, value in released.items()})
        return JointPrior(tuple(priors[j] for j in self.targets))

    def describe(self) -> Json:
        """The first priors, and a digest of the belief the others follow from."""
        belief = self.reading.first
        return {
            "family": "sequential",
            "robust": [prior.describe() for prior in self.robust],
            "sha256": digest_of(belief.log_weights, belief.means, belief.covariances),
        }


def sequential_prior(reading: Reading, targets: tuple[int, ...]) -> SequentialPrior:
    """The prior of a tree over some of the quantiles."""
    first = reading.given({})
    return SequentialPrior(
        robust=tuple(first[j] for j in targets), reading=reading, targets=targets
    )
