"""The default learner: measure few quantiles, know all.

Before a release experts make a belief over all quantiles together; a few are drawn with the whole
of epsilon, in turn, and the others follow from them. After it, every draw is weighed by the law of
its own noise (`noise`), so that an uninformative release teaches nothing. How a batch is drawn
depends on past releases alone, and costs the same epsilon whichever way it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from streamdp.learning.experts.drawing.ways import BroadShapes, Way
from streamdp.learning.experts.facts import Facts
from streamdp.learning.experts.memory.cold_start import first_panel
from streamdp.learning.experts.memory.levels import DRIFT_NAMES
from streamdp.learning.experts.memory.other_groups import Others, Profile
from streamdp.learning.experts.memory.panel import Inputs, Panel
from streamdp.learning.experts.plans import Plans
from streamdp.learning.experts.publishing import inferred
from streamdp.learning.experts.publishing.moves import width_of_rank
from streamdp.learning.experts.update import Update
from streamdp.learning.learner import Features, Learner, Observation, Smoothed
from streamdp.learning.public_fit import PublicFit
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.types import Json, Prior

VERSION = 7
"""Of the form of the state."""

MOST_CALENDAR = 12
"""Quantiles up to which experts know the calendar: their states grow with the square."""


@dataclass(frozen=True, slots=True)
class ExpertMixture(Learner):
    """Mixture of experts: how a batch is drawn, and all its quantiles, from past releases.

    Args:
        tree: Over all quantiles.
        robust: Prior that holds when the past misleads.
        robust_weight: λ in (0, 1]: never more than (1/c)·ln(1/λ) worse than `robust`.
        guess: Location and spread of the column, before any release.
        expected_rows: Public guess of the number of rows of a batch; sets the noise law.
        public: What public rows of the same kind say, before any release.
        few: Whether a few quantiles may be measured, and the others inferred.
        broad: How batches are drawn of which nothing is known.
    """

    tree: QuantileTree
    robust: Prior
    robust_weight: float
    guess: tuple[float, float]
    expected_rows: int
    public: PublicFit | None = None
    few: bool = False
    broad: BroadShapes | None = None
    facts: Facts = field(init=False, repr=False, compare=False)
    plans: Plans = field(init=False, repr=False, compare=False)

    infers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        targets = np.array([float(q) for q in self.tree.quantiles])
        about = self.expected_rows, self.guess, self.robust, self.robust_weight
        facts = Facts(targets, self.tree.grid, *about)
        object.__setattr__(self, "facts", facts)
        plans = Plans.of(facts, self.tree, self.broad, few=self.few)
        object.__setattr__(self, "plans", plans)

    def describe(self) -> Json:
        """Public parameters a state depends on."""
        return {"learner": "expert-mixture", "version": VERSION, "guess": list(self.guess)}

    def init(self) -> Json:
        """Nothing released yet."""
        return {}

    def trees(self) -> tuple[QuantileTree, ...]:
        """Of all ways a batch may be drawn, the turns first; all cost the same epsilon."""
        return self.plans.trees()

    def way(self, state: Json, features: Features = (), calendar: Features = ()) -> Way:
        """How the next batch is drawn, from releases and public facts alone.

        Args:
            state: What was learned before.
            features: Configured public numbers of the batch.
            calendar: Where its window lies in the week, the day or the year.
        """
        inputs = self._inputs(features, calendar)
        point = np.array(state["point"]) if state else None
        return self.plans.way(self._panel(state, inputs), inputs, point)

    def told(self, way: Way, shown: Sequence[Profile]) -> Way:
        """How the batch is drawn, now that other groups of it are.

        Args:
            way: How it would be without them.
            shown: What their releases show, of one group or more.
        """
        panel = way.panel.with_others(Others.of(shown), self.facts)
        return self.plans.way(panel, way.inputs, way.point)

    def shown(self, way: Way, values: tuple[float, ...]) -> tuple[Profile, ...]:
        """Profile of a release, for the groups that are drawn after it."""
        profile = Update(self.plans, self.public, way, values).profile()
        return (profile,) if profile.finite() else ()

    def priors(self, state: Json, count: int, features: Features = ()) -> JointPrior:
        """Priors of all quantiles, were all drawn."""
        return self.drawing_all().way(state, features).prior

    def values(self, way: Way, drawn: tuple[int, ...]) -> tuple[int, ...]:
        """Cells of all quantiles: those drawn as they are, the others as they follow from them."""
        return inferred.cells(self.facts, way, drawn)

    def inferred(
        self, way: Way, drawn: tuple[int, ...], known: tuple[int, ...]
    ) -> dict[int, tuple[float, float]]:
        """Intervals that hold about 95 % of the quantiles that were not drawn, by index."""
        return inferred.intervals(self.facts, way, drawn, known)

    def width_of_rank(self, way: Way, value: float) -> float:
        """Value for a unit of rank at a single quantile, at most; 0 where nobody knows."""
        return width_of_rank(self.facts, way, value)

    def observe(self, state: Json, seen: Observation) -> Json:
        """The state after one more release, from the way that it was drawn in."""
        return self.learn(seen.way, seen.values)

    def learn(self, way: Way, values: tuple[float, ...]) -> Json:
        """The state after one more release; starts anew if it ceased to be finite.

        Args:
            way: How it was drawn.
            values: Of all quantiles; only those measured are looked at.
        """
        return Update(self.plans, self.public, way, values).state() or self.init()

    def smoothed(self, state: Json) -> tuple[Smoothed, ...]:
        """Belief about each quantile of the last batch, after its release.

        Returns:
            Points and the intervals that hold the quantile with about 95 %, non-decreasing over
            the quantiles; nothing before the first release. From releases alone, so free.
        """
        if not state:
            return ()
        each = zip(state["point"], state["lower"], state["upper"], strict=True)
        return tuple(itertools.starmap(Smoothed, each))

    def weights(self, state: Json) -> dict[str, float]:
        """Of the experts of each drift; equal before any release."""
        inputs = self._inputs((), ())
        panel = Panel.from_json(state) if state else self._panel(state, inputs)
        return dict(zip(DRIFT_NAMES, panel.drift_shares().tolist(), strict=True))

    def expecting(self, rows: int) -> ExpertMixture:
        """The same trees, read by the noise law of so many records."""
        broad = None if self.broad is None else replace(self.broad, rows=rows)
        return replace(self, expected_rows=rows, broad=broad)

    def drawing_all(self) -> ExpertMixture:
        """The same experts, with every quantile drawn each time."""
        return replace(self, few=False, broad=None)

    def _inputs(self, features: Features, calendar: Features) -> Inputs:
        calendar = calendar if len(self.facts.targets) <= MOST_CALENDAR else ()
        told = [each for each in (calendar, features) if each]
        told = told[:1] if calendar == features else told
        return tuple(np.array([1.0, *each]) for each in ((), *told))

    def _panel(self, state: Json, inputs: Inputs) -> Panel:
        """State, for these inputs."""
        if not state:
            return first_panel(self.facts, self.public, inputs)
        return Panel.from_json(state).told(inputs, self.facts)
