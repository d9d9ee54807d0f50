"""The protocol of learners of quantiles: pure functions over past releases.

A learner makes the priors of the next release, or a release plan (`ReleasePlan`). It has no
argument for data: an `Observation` is all that it is told of a batch, and every part of that is
released or bought.

The simplest two stand here too: no learning, and the last release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self

from streamdp.mechanisms.histograms import Histogram, Histograms, NextCuts
from streamdp.mechanisms.quantile_tree.noisy_gradient import Slope
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import robust_laplaces
from streamdp.types import FloatArray, Json, Prior

Features = tuple[float, ...]
"""Public numbers of one batch (`learning.features`)."""


@dataclass(frozen=True, slots=True)
class Smoothed:
    """A quantile as all releases so far show it: a point, and an interval of about 95 %."""

    point: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class DrawnPlan:
    """A batch whose quantiles are drawn.

    Args:
        number: Index of the mechanism in `Learner.mechanisms`.
        basis: What the learner knew when it made the plan.
        tree: The mechanism.
        prior: Of the quantiles.
    """

    number: int
    basis: Any
    tree: QuantileTree
    prior: JointPrior


@dataclass(frozen=True, slots=True)
class CountedPlan:
    """A batch whose records are counted between cuts; its quantiles follow from the counts.

    Args:
        number: Index of the mechanism in `Learner.mechanisms`.
        basis: What the learner knew when it made the plan.
        histograms: The mechanism.
        next_cuts: Cuts of the next stage, from the counts so far.
    """

    number: int
    basis: Any
    histograms: Histograms
    next_cuts: NextCuts


@dataclass(frozen=True, slots=True)
class Reading:
    """What noisy counts say of a batch.

    Args:
        cells: For each quantile the cell of the estimate, and the ends of its interval.
        records: Their number, and the ends of its interval of 95 %; None if nobody knows.
        hardly_any: Whether there is probably next to none.
    """

    cells: tuple[tuple[int, int, int], ...]
    records: tuple[float, float, float] | None = None
    hardly_any: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class LinearPriors:
    """Priors Laplace((W_j·f)/φ_j, 1/φ_j) of some quantiles, f the public features of a batch.

    Args:
        levels: Of the quantiles, increasing, shape (l,); of a learner that is told no levels, none.
        weights: W, in the learner's own unit, shape (l, d); of the constant first.
        inverse_scales: φ, in that unit, shape (l,).
        effects: W/φ in the unit of the column: what one more of a feature moves a quantile by, and
            first where it lies if all are zero. Shape (l, d).
        scales: 1/φ in the unit of the column, shape (l,).
        last_loss: Surrogate loss of the last release under the prior before it, of all levels; None
            if nobody kept it.
        total_loss: The sum of these over all releases.
    """

    levels: FloatArray
    weights: FloatArray
    inverse_scales: FloatArray
    effects: FloatArray
    scales: FloatArray
    last_loss: float | None = None
    total_loss: float | None = None


ReleasePlan = DrawnPlan | CountedPlan
"""Release plan of one batch, fixed before data is touched."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One release, as a learner is told of it; all of it is released or bought.

    Args:
        values: Released, one a quantile.
        features: Public numbers of the batch.
        release_plan: How the batch was released, where the learner planned it.
        gradient: Noisy gradient by each θ' and then by each φ', where the learner bought one.
        counted: Noisy counts, where records were counted.
    """

    values: tuple[float, ...]
    features: Features = ()
    release_plan: Any = None
    gradient: tuple[float, ...] | None = None
    counted: tuple[Histogram, ...] | None = None


class Learner(Protocol):
    """Plans releases from past ones; has no argument for data.

    One that makes priors alone has the first four methods and inherits the others: it plans no
    release, so that every quantile is drawn under its `priors`, and tells nothing else.
    """

    __slots__ = ()

    counts_records: ClassVar[bool] = False
    """Whether released values may follow from noisy counts instead of being drawn."""

    def describe(self) -> Json:
        """Public parameters a state depends on."""
        ...

    def init(self) -> Json:
        """The state before the first release."""
        ...

    def priors(
        self, state: Json, count: int, features: Features = ()
    ) -> tuple[Prior, ...] | JointPrior:
        """Priors of `count` quantiles of the next batch."""
        ...

    def observe(self, state: Json, seen: Observation) -> Json:
        """The state after one more release."""
        ...

    def mechanisms(self) -> tuple[QuantileTree | Histograms, ...]:
        """Return the mechanisms of all its plans; none if it makes priors alone."""
        return ()

    def plan_release(
        self, state: Json, features: Features = (), calendar: Features = ()
    ) -> ReleasePlan | None:
        """Plan the next release; None to draw every quantile under `priors`."""
        return None

    def read(self, release_plan: Any, counted: tuple[Histogram, ...]) -> Reading:
        """Estimate quantiles and the number of records from noisy counts."""
        return Reading(())

    def drawn_before(self, seen: Observation) -> tuple[float, ...]:
        """Newest values drawn before a release; none where nobody keeps them."""
        return ()

    def priors_of(self, release_plan: Any) -> Any:
        """Return the priors of the quantiles behind a plan, were all drawn."""
        return release_plan.prior

    def with_other_groups(self, release_plan: Any, shown: Sequence[Any]) -> Any:
        """Return a group's plan, given what `evidence_for_groups` returned of those before it."""
        return release_plan

    def evidence_for_groups(self, seen: Observation) -> tuple[Any, ...]:
        """Return evidence for the groups released after this one (`kinds.grouped` hands it on)."""
        return ()

    def smoothed(self, state: Json) -> tuple[Smoothed, ...]:
        """An estimate of each quantile of the last batch; none if it is the release itself."""
        return ()

    def weights(self, state: Json) -> dict[str, float]:
        """Weights of the parts that it mixes, by name; nothing if it mixes none."""
        return {}

    def linear_priors(self, state: Json) -> LinearPriors | None:
        """Priors that depend on features linearly; None if it has none."""
        return None

    @property
    def gradient_share(self) -> Fraction:
        """Part of epsilon that buys gradients, in [0, 1)."""
        return Fraction(0)

    def slope(self, state: Json, count: int, features: Features = ()) -> Slope | None:
        """The gradient to buy, as a function of the true quantiles; None if it buys none."""
        return None

    def for_batch_size(self, rows: int) -> Self:
        """The learner for batches of so many records; its states stay as they are."""
        return self

    def without_counts(self) -> Self:
        """The learner with every quantile drawn, as the oracle of a simulation is taught."""
        return self


RATE = 0.1
"""Weight of the newest change in the running mean of absolute changes."""


@dataclass(frozen=True, slots=True)
class Fixed(Learner):
    """No learning: the same priors before every release.

    Args:
        first: One prior a quantile.
    """

    first: tuple[Prior, ...]

    def describe(self) -> Json:
        """Name the learner; it has no state that depends on more."""
        return {"learner": "none"}

    def init(self) -> Json:
        """Return no state."""
        return {}

    def priors(self, state: Json, count: int, features: Features = ()) -> tuple[Prior, ...]:
        """The first priors."""
        return self.first

    def observe(self, state: Json, seen: Observation) -> Json:
        """Return no state."""
        return {}


@dataclass(frozen=True, slots=True)
class LastRelease(Learner):
    """Prior of quantile j: (1 - λ)·Laplace(last value, mean absolute change) + λ·robust.

    The mean change is at first the scale of the guess, and never below the resolution.

    Args:
        robust: Prior that holds when the past misleads.
        robust_weight: λ in (0, 1].
        scale: First guess of how far a quantile moves between releases.
        resolution: Width of a cell, in the same unit.
        first: Priors before any release, shape (m,); by default the robust one.
    """

    robust: Prior
    robust_weight: float
    scale: float
    resolution: float
    first: tuple[Prior, ...] | None = None

    def describe(self) -> Json:
        """Public parameters a state depends on."""
        return {"learner": "last-release", "scale": self.scale, "resolution": self.resolution}

    def init(self) -> Json:
        """Return the state before any release."""
        return {"values": [], "changes": []}

    def priors(self, state: Json, count: int, features: Features = ()) -> tuple[Prior, ...]:
        """One prior for each of `count` quantiles, from the releases alone."""
        if not state["values"]:
            return self.first or (self.robust,) * count
        scales = [max(change, self.resolution) for change in state["changes"]]
        return robust_laplaces(state["values"], scales, self.robust, self.robust_weight)

    def observe(self, state: Json, seen: Observation) -> Json:
        """The state after one more release."""
        values = seen.values
        if not state["values"]:
            return {"values": list(values), "changes": [self.scale] * len(values)}
        moves = [abs(new - old) for new, old in zip(values, state["values"], strict=True)]
        changes = [
            (1.0 - RATE) * change + RATE * move
            for change, move in zip(state["changes"], moves, strict=True)
        ]
        return {"values": list(values), "changes": changes}
