"""Memory of past releases, and the belief about the next batch that follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from streamdp.learning.experts.arrays import packed, unpacked
from streamdp.learning.experts.belief import SIZES, After, Belief
from streamdp.learning.experts.broad import broad_weights
from streamdp.learning.experts.curves import MOVES, Curves, first_weights
from streamdp.learning.experts.distribution import Distribution, Place
from streamdp.learning.experts.inputs import Regression
from streamdp.learning.experts.records import Records
from streamdp.types import FloatArray, Grid, Json

STEPS = {"usual": 0.05, "of late": 0.3, "last": 1.0}
"""How far each remembered distribution goes towards that of a new batch, by its name."""

INPUTS, OTHERS, BROAD = "inputs", "other groups", "broad"
"""Names of further curves: as public numbers of the batch say, as other groups show, as guessed."""

FIRST_BROAD, LEAST_BROAD = 0.03, 0.01
"""Weight of broad curves at first, and at least."""

GUESSED = 10
"""Releases that are taken as they stand: beliefs before them are little more than a guess."""

FORGET = 0.03
"""Least weight of a new release in the weights of curves and sizes."""


@dataclass(frozen=True, slots=True, eq=False)
class Around:
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


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Of past releases.

    Args:
        releases: How many there were.
        past: Distributions by the names of `STEPS`; none before the first release.
        weights: Of curves by their names; those of one batch are normalised together.
        sizes: Of `SIZES`.
        records: How many a batch has.
        numbers: What public numbers of a batch say of it.
        beside: What the distribution of other groups says of it.
        origin: Where the first batch lay: numbers say how far others lie from it.
        lost: Weight of broad curves after the last release: as far as nothing that was learned
            holds, weights are those of a stream that begins.
        drawn: Newest values of a single quantile, in the unit of the column.
    """

    releases: int
    past: Mapping[str, Distribution]
    weights: Mapping[str, FloatArray]
    sizes: FloatArray
    records: Records
    numbers: Regression
    beside: Regression
    origin: Place
    lost: float = 0.0
    drawn: tuple[float, ...] = ()

    @classmethod
    def start(cls, rows: int) -> Self:
        """Before any release.

        Args:
            rows: Expected number of records of a batch.
        """
        sizes = np.full(len(SIZES), 1.0 / len(SIZES))
        nothing = Regression.start(1)
        return cls(0, {}, {}, sizes, Records.expected(rows), nothing, nothing, Place(0.0, 1.0))

    def curves(self, around: Around) -> dict[str, Curves]:
        """All curves that may be those of a batch, by name."""
        moved = self._believed(around)
        if around.others is not None:
            away = self.beside.foretold(np.ones(1))
            moved[OTHERS] = around.others.moved(around.others.lies(), *away)
        found = {name: Curves(each, MOVES) for name, each in moved.items()}
        return found | {BROAD: around.broad}

    def _believed(self, around: Around) -> dict[str, Distribution]:
        """What releases of the stream itself say of a batch, by name."""
        believed = dict(self.past)
        if self.past and len(around.inputs) > 1:
            away = self._numbers(around).foretold(around.inputs)
            believed[INPUTS] = self.past["usual"].moved(self.origin, *away)
        return believed

    def belief(self, around: Around) -> Belief:
        """Belief about the next batch."""
        curves = self.curves(around)
        weights = (1.0 - self.lost) * self._learned_weights(curves)
        weights += self.lost * _first_weights(curves)
        groups, records = tuple(curves.values()), self.records
        return Belief(around.grid, groups, weights, self.sizes, records, self.releases)

    def learned(self, around: Around, after: After) -> Memory:
        """The memory after one more release; one of hardly any records teaches their number.

        Args:
            around: The batch.
            after: Belief about it after the release.
        """
        if after.number is not None and after.number.hardly_any:
            return replace(self, records=self.records.learned(after.number, self.releases))
        found, count = after.known.distribution(), self.releases + 1
        rate = max(1.0 / (count + 5), FORGET)
        origin = self.origin if self.releases else found.lies()
        return replace(
            self,
            releases=count,
            past=self._remembered(found),
            weights={**self.weights, **self._reweighed(around, after, rate)},
            sizes=(1.0 - rate) * self.sizes + rate * after.sizes,
            records=self.records.learned(after.number, count),
            numbers=self._explained(around, after, found, origin),
            beside=self._beside(around, found),
            origin=origin,
            lost=float(after.weights[-len(around.broad.moves) :].sum()) if self.releases else 0.0,
        )

    def _remembered(self, found: Distribution) -> dict[str, Distribution]:
        """Remembered distributions, each its step towards a new one."""
        return {name: self._step(name, found) for name in STEPS}

    def _explained(
        self, around: Around, after: After, found: Distribution, origin: Place
    ) -> Regression:
        """The regression on public numbers after one more release."""
        known = self._numbers(around)
        if self.releases < GUESSED:
            return known.learned(around.inputs, found.away(origin))
        curves = [each.away(origin) for each in self.curves(around).values()]
        away, weights = np.array(found.away(origin)), self.belief(around).weights
        shown, variances = after.news(weights, np.concatenate(curves), away)
        (shift, stretch), (of_shift, of_stretch) = shown.tolist(), variances.tolist()
        return known.learned(around.inputs, (shift, stretch), (of_shift, of_stretch))

    def _learned_weights(self, curves: Mapping[str, Curves]) -> FloatArray:
        """Of the curves of a batch, as releases say; they sum to one."""
        ends = np.cumsum([len(each.moves) for each in curves.values()])[:-1]
        first = zip(curves, np.split(_first_weights(curves), ends), strict=True)
        weights = np.concatenate([self.weights.get(name, each) for name, each in first])
        return np.asarray(weights / weights.sum())

    def _reweighed(self, around: Around, after: After, rate: float) -> dict[str, FloatArray]:
        """Weights of the curves of a batch, by name; none before two releases."""
        if not self.releases:
            return {}
        curves = self.curves(around)
        mixed = (1.0 - rate) * self._learned_weights(curves) + rate * after.weights
        ends = np.cumsum([len(each.moves) for each in curves.values()])[:-1]
        weights = dict(zip(curves, np.split(mixed, ends), strict=True))
        broad = max(float(weights[BROAD].sum()), LEAST_BROAD)
        return weights | {BROAD: broad * broad_weights(around.broad)}

    def _step(self, name: str, found: Distribution) -> Distribution:
        """A remembered distribution, a step towards a new one."""
        if not self.releases:
            return found
        return self.past[name].towards(found, max(STEPS[name], 1.0 / (self.releases + 1)))

    def _beside(self, around: Around, found: Distribution) -> Regression:
        """The regression on other groups, once a batch was found beside them."""
        if around.others is None:
            return self.beside
        return self.beside.learned(np.ones(1), found.away(around.others.lies()))

    def shares(self) -> dict[str, float]:
        """Weights of curves by their names; they sum to one."""
        sums = {name: float(each.sum()) for name, each in self.weights.items()} or {BROAD: 1.0}
        whole = sum(sums.values())
        return {name: each / whole for name, each in sums.items()}

    def finite(self) -> bool:
        """Whether no number overflowed."""
        arrays = [*self.weights.values(), self.sizes]
        arrays += [part for each in self.past.values() for part in (each.cells, each.shares)]
        return all(np.isfinite(each).all() for each in arrays)

    def to_json(self) -> Json:
        """Exact."""
        return {
            "releases": self.releases,
            "past": {name: each.to_json() for name, each in self.past.items()},
            "weights": {name: packed(each) for name, each in self.weights.items()},
            "sizes": packed(self.sizes),
            "records": self.records.to_json(),
            "numbers": self.numbers.to_json(),
            "beside": self.beside.to_json(),
            "origin": [self.origin.centre, self.origin.width],
            "lost": self.lost,
            "drawn": list(self.drawn),
        }

    @classmethod
    def from_json(cls, state: Json) -> Self:
        """The inverse of `to_json`."""
        return cls(
            int(state["releases"]),
            {name: Distribution.from_json(each) for name, each in state["past"].items()},
            {name: unpacked(each) for name, each in state["weights"].items()},
            unpacked(state["sizes"]),
            Records.from_json(state["records"]),
            Regression.from_json(state["numbers"]),
            Regression.from_json(state["beside"]),
            Place(*map(float, state["origin"])),
            float(state["lost"]),
            tuple(map(float, state["drawn"])),
        )

    def _numbers(self, around: Around) -> Regression:
        """The regression, anew where the numbers are others."""
        count = len(around.inputs)
        known = self.numbers.products.shape[-1]
        return self.numbers if known == count else Regression.start(count)


def _first_weights(curves: Mapping[str, Curves]) -> FloatArray:
    """Of the curves of a batch while nothing was learned, broad ones last; they sum to one."""
    share = (1.0 - FIRST_BROAD) / max(len(curves) - 1, 1)
    learned = [share * first_weights() for name in curves if name != BROAD]
    broad = (FIRST_BROAD if learned else 1.0) * broad_weights(curves[BROAD])
    return np.concatenate((*learned, broad))
