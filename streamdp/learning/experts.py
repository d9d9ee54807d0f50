"""The default learner: experts that filter past releases, mixed by what each release shows.

Before a release the experts' forecasts make a belief over all quantiles together; each draw's
prior is as wide as pays (`sharpening`); after it, every draw is weighed by the law of its own
noise (`noise`), so that an uninformative release teaches nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from streamdp.learning import spacing
from streamdp.learning.averaging import Averaging, averaged
from streamdp.learning.belief import Belief
from streamdp.learning.believed import BelievedPrior, Walk
from streamdp.learning.filters import PUBLIC_UNCERTAINTY, Filters
from streamdp.learning.learner import Features, Smoothed
from streamdp.learning.noise import NoisyDraw, noisy_draws
from streamdp.learning.public import PublicFit
from streamdp.learning.sharpening import Sharpening
from streamdp.learning.update import learned
from streamdp.mechanisms.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.types import FloatArray, Json, Prior

VERSION = 2
"""Of the form of the state."""


NINETY = 1.645
"""Deviations to either side that hold nine tenths of a normal law."""


@dataclass(frozen=True, slots=True)
class ExpertMixture:
    """Priors of quantiles from past releases.

    Args:
        tree: How releases are drawn.
        robust: Prior that holds when the past misleads.
        robust_weight: λ in (0, 1]: never more than (1/c)·ln(1/λ) worse than `robust`.
        guess: Location and spread of the column, before any release.
        expected_rows: Public guess of the number of rows of a batch; sets the noise law.
        public: What public rows of the same kind say, before any release.
    """

    tree: QuantileTree
    robust: Prior
    robust_weight: float
    guess: tuple[float, float]
    expected_rows: int
    public: PublicFit | None = None
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

    def priors(self, state: Json, count: int, features: Features = ()) -> BelievedPrior:
        """Priors of all quantiles, from the releases and public features."""
        known = self.known(state, len(features))
        walk = self._walk(known, known.forecast(np.array([1.0, *features])))
        return BelievedPrior(robust=walk.given({}), walk=walk)

    def learn(
        self,
        state: Json,
        values: tuple[float, ...],
        features: Features = (),
        drawn: JointPrior | None = None,
    ) -> Json:
        """The state after one more release; starts anew if it ceased to be finite.

        Args:
            state: What was learned before.
            values: Released.
            features: Of the batch.
            drawn: What `priors` made of the state, if at hand: much of it was read while drawing.
        """
        known, inputs = self.known(state, len(features)), np.array([1.0, *features])
        if isinstance(drawn, BelievedPrior):
            walk = drawn.walk
        else:
            walk = self._walk(known, known.forecast(inputs))
        belief = walk.after(values)
        return self.remembered(known, walk.first, belief, inputs, values)

    def remembered(
        self,
        known: Averaging,
        forecast: Belief,
        belief: Belief,
        inputs: FloatArray,
        values: tuple[float, ...],
    ) -> Json:
        """The state once the forecast has become a belief by a release of `values`."""
        root = self.draws[0].target
        anchor, resolution = (root, values[root]), self._resolution()
        each, trust = known.posteriors(forecast, belief), known.trusted(belief)
        after = averaged(each, trust)
        point = after.point()
        told = zip(known.parts, each, known.inputs(inputs), strict=True)
        parts = tuple(
            learned(part, own, point, seen, self.targets, anchor, resolution)
            for part, own, seen in told
        )
        if not parts[0].finite():
            return self.init()
        smoothed = {"point": point.tolist(), "deviation": after.deviation().tolist()}
        return Averaging(parts, trust).recovered(self._span()).to_json() | smoothed

    def smoothed(self, state: Json) -> tuple[Smoothed, ...]:
        """What is believed about each quantile of the last batch, after its release.

        Returns:
            Points and the intervals that hold the quantile with about 90 %, non-decreasing over
            the quantiles; nothing before the first release. From releases alone, so free.
        """
        if not state:
            return ()
        point, reach = np.array(state["point"]), NINETY * np.array(state["deviation"])
        ends = np.maximum.accumulate(point - reach), np.maximum.accumulate(point + reach)
        return tuple(Smoothed(*each) for each in np.column_stack((point, *ends)).tolist())

    def _walk(self, known: Averaging, forecast: Belief) -> Walk:
        grid, lead = self.tree.grid, known.parts[known.lead()]
        half = grid.resolution / 2
        return Walk(
            self.draws,
            Sharpening(self.robust, self.robust_weight, self.guess, self._resolution()),
            spacing.densities(self.targets, lead.log_gaps),
            (
                float(grid.lower * grid.resolution - half),
                float(grid.upper * grid.resolution + half),
            ),
            self._resolution(),
            lead.releases,
            forecast,
        )

    def known(self, state: Json, features: int) -> Averaging:
        """What the experts remember, for a number of public features."""
        if state:
            return Averaging.from_json(state).with_features(features)
        return Averaging.even(*(self._first(count) for count in sorted({0, features})))

    def _first(self, features: int) -> Filters:
        resolution, spread = self._resolution(), self.guess[1]
        if self.public:
            values = np.array(self.public.locations)
            trust = PUBLIC_UNCERTAINTY
            return Filters.start(self.targets, values, spread, features, resolution, trust)
        values = spacing.guessed_quantiles(self.targets, *self.guess)
        return Filters.start(self.targets, values, spread, features, resolution)

    def _span(self) -> float:
        grid = self.tree.grid
        return float((grid.upper - grid.lower) * grid.resolution)

    def _resolution(self) -> float:
        return float(self.tree.grid.resolution)
