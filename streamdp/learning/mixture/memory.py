"""State of the mixture: what past releases taught, and the prior of the next batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from streamdp.learning.mixture.averages import Regression
from streamdp.learning.mixture.belief import BROAD, Belief, Update
from streamdp.learning.mixture.curves import MOVES, SIZES, Curves, broad_weights, first_weights
from streamdp.learning.mixture.distribution import Distribution
from streamdp.learning.mixture.records import RecordsPrior
from streamdp.types import FloatArray, Grid, Json
from streamdp.types.forms import rounded

OTHERS = "other groups"
"""Name of the curves of a batch as other groups of it show."""

FIRST_BROAD, LEAST_BROAD = 0.03, 0.01
"""Weight of broad curves at first, and at least."""

FORGET = 0.03
"""Least weight of a new release in the weights of curves and sizes."""


DIGITS = 8
"""Binary digits of weights that are remembered: `FORGET` is many times their last one."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchFacts:
    """Public facts of one batch, and what other groups of it show.

    Args:
        grid: Public cells.
        broad: Curves of which none was learned.
        inputs: Public numbers of the batch, a one first; shape (d,).
        others: Distribution of other groups of the batch, from their releases.
    """

    grid: Grid
    broad: Curves
    inputs: FloatArray
    others: Distribution | None = None


class Predictor(Protocol):
    """Predicts distributions of the next batch, and learns from its release."""

    def predict(self, inputs: FloatArray) -> dict[str, Distribution]:
        """Return believed distributions of a batch by name; none before the first release.

        Args:
            inputs: Public numbers of the batch, a one first; shape (d,).
        """

    def updated(self, inputs: FloatArray, after: Update) -> Self:
        """Return what is believed after one more release.

        Args:
            inputs: Public numbers of the batch, a one first; shape (d,).
            after: Belief about it after the release.
        """

    def finite(self) -> bool:
        """Return whether no number overflowed."""

    def to_json(self) -> Json:
        """Return a state that `restored` reads, of plain data and arrays, under own keys."""

    def restored(self, state: Json) -> Self:
        """Return what a state holds."""


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """State of the mixture after past releases.

    Args:
        releases: How many there were.
        predictors: What they say of the next batch.
        weights: Of curves by their names, of broad ones the sum; those of one batch are normalised
            together.
        size_weights: Of `SIZES`.
        records: How many a batch has.
        beside: What the distribution of other groups says of it.
        lost: Posterior probability that the stream has changed: weight of the curves about the
            guess after the last release. The next prior weights are (1 - lost)·learned +
            lost·initial.
        drawn: Newest values where quantiles are drawn, in the unit of the column.
        against: What releases say against public rows, in nats, at most 0.
    """

    releases: int
    predictors: tuple[Predictor, ...]
    weights: Mapping[str, FloatArray]
    size_weights: FloatArray
    records: RecordsPrior
    beside: Regression
    lost: float = 0.0
    drawn: tuple[float, ...] = ()
    against: float = 0.0

    @classmethod
    def start(cls, rows: int, predictors: tuple[Predictor, ...]) -> Self:
        """Return the memory before any release of so many expected records."""
        size_weights = np.full(len(SIZES), 1.0 / len(SIZES))
        return cls(
            0, predictors, {}, size_weights, RecordsPrior.expected(rows), Regression.start(1)
        )

    def curves(self, facts: BatchFacts) -> dict[str, Curves]:
        """Return the curves of a batch by component."""
        moved: dict[str, Distribution] = {}
        for predictor in self.predictors:
            moved |= predictor.predict(facts.inputs)
        if facts.others is not None:
            away = self.beside.predict(np.ones(1))
            moved[OTHERS] = facts.others.moved(facts.others.location_scale(), *away)
        found = {name: Curves(each, MOVES) for name, each in moved.items()}
        return found | {BROAD: facts.broad}

    def belief(self, facts: BatchFacts) -> Belief:
        """Return the prior of the next batch."""
        curves = self.curves(facts)
        weights = (1.0 - self.lost) * self._learned_weights(curves)
        weights += self.lost * _first_weights(curves)
        return Belief(facts.grid, curves, weights, self.size_weights, self.records, self.releases)

    def updated(self, facts: BatchFacts, after: Update) -> Memory:
        """Return the memory after one release; of hardly any records it learns their number alone.

        Args:
            facts: The batch.
            after: Belief about it after the release.
        """
        if after.number is not None and after.number.hardly_any:
            return replace(self, records=self.records.updated(after.number, self.releases))
        count = self.releases + 1
        rate = max(1.0 / (count + 5), FORGET)
        return replace(
            self,
            releases=count,
            predictors=tuple(each.updated(facts.inputs, after) for each in self.predictors),
            weights={**self.weights, **self._reweighed(after, rate)},
            size_weights=(1.0 - rate) * self.size_weights + rate * after.size_weights,
            records=self.records.updated(after.number, count),
            beside=self._beside(facts, after),
            lost=after.broad if self.releases else 0.0,
        )

    def _learned_weights(self, curves: Mapping[str, Curves]) -> FloatArray:
        """Return the learned weights of a batch's curves; they sum to one."""
        ends = np.cumsum([len(each.moves) for each in curves.values()])[:-1]
        first = zip(curves, np.split(_first_weights(curves), ends), strict=True)
        known = {name: self.weights.get(name, each) for name, each in first}
        known[BROAD] = known[BROAD].sum() * broad_weights(curves[BROAD])
        weights = np.concatenate(list(known.values()))
        return np.asarray(weights / weights.sum())

    def _reweighed(self, after: Update, rate: float) -> dict[str, FloatArray]:
        """Return weights mixed with the posterior ones, by component; none before two releases."""
        if not self.releases:
            return {}
        curves = after.before.groups
        mixed = (1.0 - rate) * self._learned_weights(curves) + rate * after.weights
        ends = np.cumsum([len(each.moves) for each in curves.values()])[:-1]
        weights = dict(zip(curves, np.split(mixed, ends), strict=True))
        return weights | {BROAD: np.maximum(weights[BROAD].sum(keepdims=True), LEAST_BROAD)}

    def _beside(self, facts: BatchFacts, after: Update) -> Regression:
        """Return the regression on other groups, updated if the batch had any."""
        if facts.others is None:
            return self.beside
        found = after.posterior_mean.distribution()
        return self.beside.updated(np.ones(1), found.away(facts.others.location_scale()))

    def component_weights(self) -> dict[str, float]:
        """Return the weights of components by name; they sum to one."""
        sums = {name: float(each.sum()) for name, each in self.weights.items()} or {BROAD: 1.0}
        whole = sum(sums.values())
        return {name: each / whole for name, each in sums.items()}

    def finite(self) -> bool:
        """Whether no number overflowed."""
        arrays = [*self.weights.values(), self.size_weights]
        finite = all(np.isfinite(each).all() for each in arrays)
        return finite and all(each.finite() for each in self.predictors)

    def to_json(self) -> Json:
        """Return a state that `restored` reads, of plain data and arrays."""
        state: Json = {
            "releases": self.releases,
            "weights": {name: rounded(each, DIGITS) for name, each in self.weights.items()},
            "sizes": rounded(self.size_weights, DIGITS),
            "records": self.records.to_json(),
            "beside": self.beside.to_json(),
            "lost": self.lost,
            "drawn": list(self.drawn),
        } | ({"against": self.against} if self.against else {})
        for predictor in self.predictors:
            state |= predictor.to_json()
        return state

    def restored(self, state: Json) -> Memory:
        """Return the memory that a state holds."""
        return Memory(
            int(state["releases"]),
            tuple(each.restored(state) for each in self.predictors),
            state["weights"],
            state["sizes"],
            RecordsPrior.from_json(state["records"]),
            Regression.from_json(state["beside"]),
            float(state["lost"]),
            tuple(map(float, state["drawn"])),
            float(state.get("against", 0.0)),
        )


def _first_weights(curves: Mapping[str, Curves]) -> FloatArray:
    """Return the weights of curves before any release, broad ones last; they sum to one."""
    share = (1.0 - FIRST_BROAD) / max(len(curves) - 1, 1)
    learned = [share * first_weights() for name in curves if name != BROAD]
    broad = (FIRST_BROAD if learned else 1.0) * broad_weights(curves[BROAD])
    return np.concatenate((*learned, broad))
