"""The default learner: experts that filter past releases, mixed by what each release shows.

Before a release the experts' forecasts make a belief over all quantiles together; each draw's
prior is as wide as pays (`sharpening`); after it, every draw is weighed by the law of its own
noise (`noise`), so that an uninformative release teaches nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from streamdp.learning import spacing
from streamdp.learning.belief import Belief, Release, observe
from streamdp.learning.filters import Filters
from streamdp.learning.noise import NoisyDraw, noisy_draws
from streamdp.learning.sharpening import Sharpening
from streamdp.learning.update import learned, posterior
from streamdp.mechanisms.tree import QuantileTree
from streamdp.types import FloatArray, Json, Prior

Features = tuple[float, ...]

VERSION = 1
"""Of the form of the state."""


@dataclass(frozen=True, slots=True)
class ExpertMixture:
    """Priors of quantiles from past releases.

    Args:
        tree: How releases are drawn.
        robust: Prior that holds when the past misleads.
        robust_weight: λ in (0, 1]: never more than (1/c)·ln(1/λ) worse than `robust`.
        guess: Location and spread of the column, before any release.
        expected_rows: Public guess of the number of rows of a batch; sets the noise law.
    """

    tree: QuantileTree
    robust: Prior
    robust_weight: float
    guess: tuple[float, float]
    expected_rows: int
    draws: tuple[NoisyDraw, ...] = field(init=False, repr=False)
    targets: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "draws", noisy_draws(self.tree, self.expected_rows))
        object.__setattr__(self, "targets", np.array([float(q) for q in self.tree.quantiles]))

    def describe(self) -> Json:
        """Public parameters a state depends on."""
        return {"learner": "expert-mixture", "version": VERSION, "guess": list(self.guess)}

    def init(self) -> Json:
        """Nothing released yet."""
        return {}

    def priors(self, state: Json, count: int, features: Features = ()) -> tuple[Prior, ...]:
        """One prior for each of `count` quantiles, from the releases and public features."""
        filters = self._filters(state, len(features))
        belief = filters.forecast(np.array([1.0, *features]))
        density = spacing.densities(self.targets, filters.log_gaps)
        sharpening = Sharpening(self.robust, self.robust_weight, self.guess, self._resolution())
        by_target = sorted(self.draws, key=lambda draw: draw.target)
        return tuple(
            sharpening.prior(belief, draw, float(density[draw.target]), filters.releases)
            for draw in by_target[:count]
        )

    def learn(self, state: Json, values: tuple[float, ...], features: Features = ()) -> Json:
        """The state after one more release; starts anew if it ceased to be finite."""
        filters = self._filters(state, len(features))
        with_one = np.array([1.0, *features])
        after = posterior(self._observed(filters, values, features))
        root = self.draws[0].target
        anchor = root, values[root]
        new = learned(filters, after, with_one, self.targets, anchor, self._resolution())
        width = np.sqrt(np.einsum("k,kii->i", after.shares(), after.covariances))
        smoothed = {"point": after.point().tolist(), "deviation": width.tolist()}
        if not all(np.isfinite(part).all() for part in (new.coefficients, new.deviations, width)):
            return self.init()
        return new.to_json() | smoothed

    def _observed(self, filters: Filters, values: tuple[float, ...], features: Features) -> Belief:
        grid = self.tree.grid
        half = grid.resolution / 2
        release = Release(
            np.array(values),
            self.priors(filters.to_json(), len(values), features),
            spacing.densities(self.targets, filters.log_gaps),
            (
                float(grid.lower * grid.resolution - half),
                float(grid.upper * grid.resolution + half),
            ),
            self._resolution(),
        )
        belief = filters.forecast(np.array([1.0, *features]))
        for draw in self.draws:
            belief = observe(belief, draw, release)
        return belief

    def _filters(self, state: Json, features: int) -> Filters:
        if state:
            return Filters.from_json(state).with_features(features)
        return Filters.start(self.targets, self.guess, features, self._resolution())

    def _resolution(self) -> float:
        return float(self.tree.grid.resolution)
