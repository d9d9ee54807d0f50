"""The default learner: count records between public cuts, and estimate all quantiles from counts.

The first release is drawn by a tree, as without learning, unless other groups of the batch show
where it may lie. From then on noisy counts between public cuts show the whole distribution of a
batch, with less noise than drawn quantiles have. What past releases say is a mixture of many
believed distributions (`belief`), weighted by how well they foretold releases; the law of the noise
is known, so a release that says little teaches little. How a batch is released depends on past
releases alone, and costs the same epsilon in any case.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from streamdp.learning.learner import (
    CountedPlan,
    DrawnPlan,
    Features,
    Learner,
    Observation,
    Reading,
    ReleasePlan,
    Smoothed,
)
from streamdp.learning.mixture.averages import Averages
from streamdp.learning.mixture.belief import Belief, Update
from streamdp.learning.mixture.curves import broad_curves
from streamdp.learning.mixture.distribution import Distribution
from streamdp.learning.mixture.evidence import Evidence
from streamdp.learning.mixture.memory import BatchFacts, Memory, Predictor
from streamdp.learning.mixture.release_plan import cut_levels, cuts, expected_errors
from streamdp.mechanisms.histograms import Histogram, Histograms
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import Mixture, robust_laplaces
from streamdp.types import FloatArray, Json, Prior
from streamdp.types.forms import packed, unpacked

VERSION = 11
"""Version of the state's form."""

PUBLIC = 0.9
"""Weight of the priors of public rows beside learned ones, until releases contradict them."""

FAR = 0.1
"""A released value counts against the public priors if they give it less than this part of the mass
that the priors of its draw gave it."""

KEEP, MOST_AGAINST = 0.95, 20.0
"""Discount a release, and cap in nats, of the log Bayes factor against the public priors."""

LEVEL = 0.95
"""How often an interval is to hold its quantile."""

ROUNDING = 2.0**-6
"""Part of a cell that estimates of the last batch are rounded to."""

REMEMBERED_VALUES, REMEMBERED_RELEASES = 100, 40
"""Drawn values, and releases, that are kept at most: the newest."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupEvidence:
    """Posterior mean of a group's cdf after its release.

    Args:
        rows: Expected number of its records.
        distribution: As it is believed to be.
    """

    rows: int
    distribution: Distribution


@dataclass(frozen=True, slots=True, eq=False)
class PlanBasis:
    """What the learner knew when it planned a release.

    Args:
        memory: Of the releases before.
        facts: The batch.
        belief: About the batch.
        read: Posteriors that were found, by what was counted or drawn.
    """

    memory: Memory
    facts: BatchFacts
    belief: Belief
    read: dict[Hashable, Update] = field(default_factory=dict, repr=False)

    def counted(self, stages: tuple[Histogram, ...], histograms: Histograms) -> Update:
        """Return the posterior after these stages; next cuts, rows and state need it."""
        if stages not in self.read:
            variances = [histograms.noise(stage).variance for stage in range(len(stages))]
            about = self.memory.records, self.belief.marginal
            self.read[stages] = self.belief.after(Evidence.counted(stages, variances, *about))
        return self.read[stages]

    def drawn(self, values: tuple[float, ...], tree: QuantileTree, prior: JointPrior) -> Update:
        """Return the posterior after a draw; later groups and state need it."""
        if (values, prior) not in self.read:
            cells = np.rint(np.array(values) / float(tree.grid.resolution))
            evidence = Evidence.drawn(tree, cells, self.memory.records.mean, prior)
            self.read[values, prior] = self.belief.after(evidence)
        return self.read[values, prior]


@dataclass(frozen=True, slots=True)
class BayesianMixture(Learner):
    """Bayesian mixture of predictive distributions; plans releases and reads noisy counts.

    Args:
        tree: Over all quantiles.
        robust: Prior that holds when the past misleads.
        robust_weight: λ in (0, 1]: never more than (1/c)·ln(1/λ) worse than `robust`.
        guess: Location and spread of the column, before any release.
        expected_rows: Public guess of the number of rows of a batch.
        first: Tree and prior of a first release; of later ones too, where no batch is counted.
        histograms: Plans of counting later batches; none where quantiles are drawn.
        public: Priors that public rows make, one a quantile; none without. Where quantiles are
            drawn they stay beside the learned ones until releases contradict them.
    """

    tree: QuantileTree
    robust: Prior
    robust_weight: float
    guess: tuple[float, float]
    expected_rows: int
    first: tuple[QuantileTree, JointPrior]
    histograms: tuple[Histograms, ...] = ()
    public: tuple[Prior, ...] = ()
    targets: FloatArray = field(init=False, repr=False, compare=False)
    cut_levels: FloatArray = field(init=False, repr=False, compare=False)

    counts_records: ClassVar[bool] = True

    def __post_init__(self) -> None:
        targets = np.array([float(quantile) for quantile in self.tree.quantiles])
        object.__setattr__(self, "targets", targets)
        object.__setattr__(self, "cut_levels", cut_levels(targets))

    def describe(self) -> Json:
        """Public parameters a state depends on."""
        return {"learner": "expert-mixture", "version": VERSION, "guess": list(self.guess)}

    def init(self) -> Json:
        """Return the state before any release."""
        return {}

    def mechanisms(self) -> tuple[QuantileTree | Histograms, ...]:
        """Return the mechanisms of first and later releases; all cost the same epsilon."""
        return self.first[0], *self.histograms

    def plan_release(
        self, state: Json, features: Features = (), calendar: Features = ()
    ) -> ReleasePlan:
        """Plan the release of the next batch, from releases and public facts alone.

        Args:
            state: What was learned before.
            features: Configured public numbers of the batch.
            calendar: Where its window lies in the week, the day or the year.
        """
        numbers = calendar if calendar == features else (*calendar, *features)
        broad = broad_curves(self.tree.grid, self.guess)
        facts = BatchFacts(self.tree.grid, broad, np.array([1.0, *numbers]))
        return self._plan_release(self._memory(state), facts)

    def with_other_groups(
        self, release_plan: ReleasePlan, shown: Sequence[GroupEvidence]
    ) -> ReleasePlan:
        """Plan the release again, given what other groups of the batch have released."""
        basis: PlanBasis = release_plan.basis
        return self._plan_release(basis.memory, replace(basis.facts, others=together(shown)))

    def evidence_for_groups(self, seen: Observation) -> tuple[GroupEvidence, ...]:
        """Return the evidence of a release for later groups; none of hardly any records."""
        after = self._after(seen)
        if after.number is not None and after.number.hardly_any:
            return ()
        return (GroupEvidence(self.expected_rows, after.posterior_mean.distribution()),)

    def priors(self, state: Json, count: int, features: Features = ()) -> JointPrior:
        """Return the priors of all quantiles, were all drawn."""
        return self.priors_of(self.plan_release(state, features))

    def priors_of(self, release_plan: ReleasePlan) -> JointPrior:
        """Return the priors of all quantiles behind a plan, were all drawn."""
        return self._priors(release_plan.basis)

    def read(self, release_plan: ReleasePlan, counted: tuple[Histogram, ...]) -> Reading:
        """Estimate quantiles and the number of records from noisy counts.

        Of a batch that may have hardly any records nothing is known: a quantile may lie anywhere
        on the grid. Its value is that of the batches before.
        """
        seen = Observation((), release_plan=release_plan, counted=counted)
        after = self._after(seen)
        grid = self.tree.grid
        found = after.posterior_mean.distribution().quantile_cells(self.targets)
        low, high = after.interval(self.targets, LEVEL)
        ends = np.minimum(np.floor(low), found), found, np.maximum(np.ceil(high), found)
        lower, value, upper = (each.clip(grid.lower, grid.upper).astype(np.int64) for each in ends)
        number = after.number
        return Reading(
            tuple(zip(value.tolist(), lower.tolist(), upper.tolist(), strict=True)),
            None if number is None else (number.point, *number.interval()),
            number is not None and number.probably_few,
        )

    def drawn_before(self, seen: Observation) -> tuple[float, ...]:
        """Newest drawn values: they show steps, and of one quantile how thin batches are there."""
        basis: PlanBasis = seen.release_plan.basis
        return basis.memory.drawn

    def observe(self, state: Json, seen: Observation) -> Json:
        """Return the state after one more release, from the plan that it was drawn by."""
        basis: PlanBasis = seen.release_plan.basis
        after = self._after(seen)
        memory = basis.memory.updated(basis.facts, after)
        if not memory.finite():
            return self.init()
        if not self.histograms:
            count = min(max(REMEMBERED_VALUES // len(self.targets), 1), REMEMBERED_RELEASES)
            drawn = (*basis.memory.drawn, *seen.values)[-count * len(self.targets) :]
            memory = replace(memory, drawn=drawn)
        if self.public and not self.histograms and basis.memory.releases:
            memory = replace(memory, against=self._against(basis, seen.values))
        point = after.posterior_mean.distribution().quantile(self.targets)
        last = np.stack((point, *after.interval(self.targets, LEVEL)))
        return packed(memory.to_json() | {"last": np.rint(last / ROUNDING) * ROUNDING})

    def smoothed(self, state: Json) -> tuple[Smoothed, ...]:
        """Return point and interval of each quantile of the last batch, from releases alone."""
        if not state:
            return ()
        point, low, high = np.array(unpacked(state)["last"])
        unit = float(self.tree.grid.resolution)
        first, last = np.floor(np.minimum(low, point)), np.ceil(np.maximum(high, point))
        ends = first, np.minimum(point + 0.5, last), last
        lower, middle, upper = (
            each.clip(self.tree.grid.lower, self.tree.grid.upper) * unit for each in ends
        )
        each = zip(middle.tolist(), lower.tolist(), upper.tolist(), strict=True)
        return tuple(Smoothed(*one) for one in each)

    def weights(self, state: Json) -> dict[str, float]:
        """Return the weights of the mixture's components by name."""
        return self._memory(state).component_weights()

    def for_batch_size(self, rows: int) -> BayesianMixture:
        """Return the learner for batches of `rows` records."""
        return replace(self, expected_rows=rows)

    def without_counts(self) -> BayesianMixture:
        """The learner with every quantile drawn each time."""
        return replace(self, histograms=())

    def _memory(self, state: Json) -> Memory:
        start = Memory.start(self.expected_rows, self._predictors())
        return start.restored(unpacked(state)) if state else start

    def _predictors(self) -> tuple[Predictor, ...]:
        """Return the predictors in their initial state."""
        return (Averages.start(),)

    def _plan_release(self, memory: Memory, facts: BatchFacts) -> ReleasePlan:
        basis = PlanBasis(memory, facts, memory.belief(facts))
        alone = memory.releases == 0 and facts.others is None
        if alone or not self.histograms:
            return DrawnPlan(0, basis, self.first[0], self._priors(basis))
        best = self._best(basis.belief)
        histograms = self.histograms[best]

        def next_cuts(stages: tuple[Histogram, ...]) -> list[int]:
            if not stages:
                return cuts(basis.belief.marginal, self.cut_levels)
            return cuts(
                basis.counted(stages, histograms).posterior_mean.distribution(), self.cut_levels
            )

        return CountedPlan(1 + best, basis, histograms, next_cuts)

    def _best(self, belief: Belief) -> int:
        """Return the index of the histograms of least expected error."""
        at = np.unique(cuts(belief.marginal, self.cut_levels)).astype(float)
        plans = tuple(each.shares for each in self.histograms)
        noise = self.histograms[0].noise_at
        errors = expected_errors(
            belief, self.targets, at, plans, lambda share: noise(share).variance
        )
        return int(np.argmin(errors))

    def _priors(self, basis: PlanBasis) -> JointPrior:
        """Return Laplace priors about the believed quantiles; before any release, the first ones.

        They are as wide as curves differ there. First shapes stay: they hold where the guess does.
        """
        belief, first = basis.belief, self.first[1]
        if basis.memory.releases == 0:
            return first
        unit = float(self.tree.grid.resolution)
        places, scales = belief.centres(self.targets)
        each = places * unit, np.maximum(scales, 1.0) * unit
        return self._beside_public(
            first, robust_laplaces(*each, self.robust, self.robust_weight), basis.memory
        )

    def _beside_public(
        self, first: JointPrior, learned: tuple[Prior, ...], memory: Memory
    ) -> JointPrior:
        """Mix learned priors with those of public rows, by what releases say against the latter.

        With a weight λ of public rows a draw errs at most (1/c)·ln(1/λ) more than from them alone.
        """
        if not self.public:
            return replace(first, robust=learned)
        odds = PUBLIC / (1.0 - PUBLIC) * np.exp(memory.against)
        share = max(float(odds / (1.0 + odds)), self.robust_weight)
        pairs = zip(learned, self.public, strict=True)
        both = tuple(Mixture((1.0 - share, share), pair) for pair in pairs)
        return replace(first, robust=both)

    def _against(self, basis: PlanBasis, values: Sequence[float]) -> float:
        """Return the log Bayes factor of the public priors after one more release, at most 0.

        A value counts where public rows give it less than a part `FAR` of the mass that the priors
        of its draw do: a draw from narrow priors lies near them in any case.
        """
        half = float(self.tree.grid.resolution) / 2.0
        priors = self._priors(basis).robust
        found = 0.0
        for value, prior, public in zip(values, priors, self.public, strict=True):
            ends = np.array([value - half]), np.array([value + half])
            ratio = float((public.log_mass(*ends) - prior.log_mass(*ends))[0])
            found += min(ratio - math.log(FAR), 0.0) / len(self.public)
        return max(KEEP * basis.memory.against + found, -MOST_AGAINST)

    def _after(self, seen: Observation) -> Update:
        """Return the posterior after a release."""
        plan = seen.release_plan
        basis: PlanBasis = plan.basis
        if isinstance(plan, CountedPlan):
            return basis.counted(seen.counted or (), plan.histograms)
        return basis.drawn(seen.values, plan.tree, plan.prior)


def together(groups: Sequence[GroupEvidence]) -> Distribution:
    """Return the mean quantile function of some groups, weighted by the roots of their rows.

    Groups of one batch have its day in common, and often places and shapes too. How a group lies
    beside this mean is learned (`Memory.beside`).
    """
    mean, sum_of_roots = groups[0].distribution, np.sqrt(groups[0].rows)
    for group in groups[1:]:
        root = np.sqrt(group.rows)
        sum_of_roots += root
        mean = mean.towards(group.distribution, float(root / sum_of_roots))
    return mean
