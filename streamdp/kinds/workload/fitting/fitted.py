"""Fits a batch to its measurements, around the hypothesis that is believed of it.

Post-processing: it sees no record.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from streamdp.kinds.workload.fitting.distribution import (
    LARGEST_POTENTIAL,
    DomainMasses,
    NoisyMarginal,
    Potentials,
    Workload,
    distribution,
    refit,
)
from streamdp.kinds.workload.fitting.hypotheses import LAST, SLOW, UNIFORM, Fit, HypothesisState
from streamdp.kinds.workload.fitting.spread import Concentration, noise_within, schedule
from streamdp.types import FloatArray

KEPT = 0.8
"""Share of a squared distance from even cells that is kept: much of it is found by measuring."""

TEMPER = 3.0
"""Cells of a batch vary together, their noise does not: only one in so many is evidence."""

_TINY = 1e-9
_PLIANCY, _PLIANT_ROWS = 8.0, 40.0
_RELATIVE = 0.1
"""Variance of a cell's count around a learned hypothesis: of a mean count m, 2φ·m + 0.1·m², with φ
1 and 1 for so many records, at most 8."""


def evidence(
    measurement: NoisyMarginal, foretold: Sequence[FloatArray], total: float
) -> list[float]:
    """Nats for each hypothesis, up to a constant.

    By squared distances from what the hypotheses foretell, less the noise, over one variance.

    Args:
        measurement: Of an item.
        foretold: Its cells' counts under each hypothesis, first the uniform one.
        total: Expected records.
    """
    cells = float(len(measurement.values))
    variance = float(_variance(np.array(cells), measurement.variance, total))
    noise = cells * measurement.variance
    distances = [float(((measurement.values - mean) ** 2).sum()) - noise for mean in foretold]
    return [
        -kept * distance / (2.0 * variance)
        for kept, distance in zip((KEPT, 1.0, 1.0), distances, strict=True)
    ]


def most_shown(apart: FloatArray, cells: FloatArray, noise: float, total: float) -> FloatArray:
    """Return the log Bayes factor by which each item can tell learned counts from uniform ones.

    Args:
        apart: Squared distance of the learned counts of each item from even ones.
        cells: Of each item.
        noise: Variance of the noise of a cell.
        total: Expected records.
    """
    return np.asarray(apart / (2.0 * _variance(cells, noise, total)))


def _variance(cells: FloatArray, noise: float, total: float) -> FloatArray:
    mean = total / cells
    pliancy = min(_PLIANCY, 1.0 + total / _PLIANT_ROWS)
    return noise + TEMPER * (2.0 * pliancy * mean + _RELATIVE * mean**2)


def relative(nats: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Nats of hypotheses against several measurements together, with the best at 0."""
    together = np.sum(np.array(nats).reshape(-1, 3), axis=0)
    return tuple(float(each) for each in together - together.max())


OPEN = 0.6
"""Part of an item's ω by which a fit lets its cells differ from a learned hypothesis."""

LEAST_PLIANCY, MOST_PLIANCY = 2.0, 200.0
"""φ at least and at most."""

CONCENTRATED = 4.0
"""φ of the uniform hypothesis, over the variance of cells around even counts, over those."""

SHARE, LEAST_LEAD = 1.0, 2.0
"""Nats by which the past may be ahead of a measurement: so much of what it would show on the
average over the items if the past had ended, and of several the root of the squares, as what they
show by chance adds up; at least the second."""

BLIND_SHARE = 0.6
"""Share of what a measurement shows of its own item, where that was chosen without the batch: a
look would have found an item that shows more."""

TOTAL_SHARE = 0.15
"""Deviation of a batch's total from the expected one, over it."""

FAR = 2.5
"""Deviations, noise among them, from which on a batch is of another size than is remembered."""


def _priors(workload: Workload, memory: HypothesisState) -> list[DomainMasses]:
    """The distribution of each hypothesis; before a first release they are one and the same."""
    found: list[tuple[Potentials, DomainMasses]] = []
    for hypothesis in (UNIFORM, SLOW, LAST):
        potentials = memory.potentials(hypothesis, workload)
        known = [prior for of, prior in found if all(map(np.array_equal, of, potentials))]
        prior = known[0] if known else distribution(workload, potentials, memory.total)
        found.append((potentials, prior))
    return [prior for _, prior in found]


class Fitting:
    """Fits one batch, measurement by measurement. Post-processing: it sees no record.

    Args:
        workload: Domain and items.
        memory: What past releases say.
        blind: Whether all items are chosen without the batch where the past foretells it.
    """

    def __init__(self, workload: Workload, memory: HypothesisState, blind: bool = False) -> None:
        self._workload = workload
        self._memory = memory
        self._blind = blind
        self._errors = memory.expected_errors(workload)
        self._means: dict[tuple[int, int], FloatArray] = {}
        self._priors = _priors(workload, memory)
        self._apart = self._distances()

    def fit(self, measurements: tuple[NoisyMarginal, ...]) -> Fit:
        """The best hypothesis, refitted to the measurements."""
        nats, most = self._evidence(measurements), self._most_ahead(measurements)
        leading = self._memory.leading(nats, most)
        potentials = self._memory.potentials(leading, self._workload)
        total = self._total(leading, measurements)
        concentration = self._memory.concentration.after(self._workload, measurements, total)
        fitted = distribution(self._workload, potentials, total)
        pliancies = self._pliancies(leading, measurements, concentration, total)
        tilts = refit(self._workload, fitted, measurements, pliancies)
        if leading == UNIFORM:
            fitted.rescale(total)
        moved = tuple(
            _settled(each + tilts[place]) if place in tilts else each
            for place, each in enumerate(potentials)
        )
        spread = self._memory.spread.after(
            self._workload,
            measurements,
            [self.prior_masses(leading, each.place) for each in measurements],
            self._is_uniform(leading),
        )
        return Fit(leading, nats, most, moved, fitted, spread, concentration)

    def schedule(
        self, fit: Fit, measurements: Sequence[NoisyMarginal], variance: float, rounds: int
    ) -> tuple[int, ...]:
        """The items to measure next, from past releases and what is measured already.

        Args:
            fit: To the measurements.
            measurements: Of this batch.
            variance: Of the noise of the next.
            rounds: How many.
        """
        masses = [fit.distribution.masses(item) for item in self._workload.items]
        spread = self._memory.spread
        return schedule(self._workload, spread, masses, measurements, variance, rounds)

    def gains(self, measurements: Sequence[NoisyMarginal], variance: float) -> FloatArray | None:
        """Return by how many records a measurement of each item lowers the errors of all, if known.

        Args:
            measurements: What is measured already.
            variance: Of the noise of the next.
        """
        if self._errors is None:
            return None
        taken = [(each.place, each.variance) for each in measurements]
        return self._memory.total * self._errors.gains(taken, variance)

    def _pliancies(
        self,
        leading: int,
        measurements: Sequence[NoisyMarginal],
        concentration: Concentration,
        total: float,
    ) -> list[float]:
        """φ of each: how far it is expected to be from the hypothesis (`refit`).

        Under the uniform one by how uneven the measured items are.
        """
        if leading != UNIFORM:
            return [self._pliancy(leading, each.place) for each in measurements]
        found = concentration.of_items(self._workload)
        uneven = [(found[each.place] - 1.0) / len(each.values) for each in measurements]
        wanted = CONCENTRATED * total * float(np.mean(uneven or [1.0]))
        return [min(max(wanted, LEAST_PLIANCY), MOST_PLIANCY)] * len(measurements)

    def _pliancy(self, hypothesis: int, place: int) -> float:
        """φ of an item around a learned hypothesis.

        The variance m + ω·m² of a cell over its count, at the size of the item's usual cells: few
        large ones would let all small cells follow their noise.
        """
        masses = self.prior_masses(hypothesis, place)
        usual = float(masses.sum()) ** 2 / max(float(np.sqrt(masses).sum()) ** 2, _TINY)
        wanted = 1.0 + OPEN * self._memory.spread.omegas[place] * usual
        return min(max(wanted, LEAST_PLIANCY), MOST_PLIANCY)

    def _is_uniform(self, hypothesis: int) -> bool:
        return hypothesis == UNIFORM or self._memory.releases == 0

    def _total(self, leading: int, measurements: tuple[NoisyMarginal, ...]) -> float:
        """Records of the batch: what is expected, and the sums of what was measured.

        Of a fit that is as pliant as that of the uniform distribution: its own total would be the
        sum of noisy cells, which says little. Cells with a prior of their own make a better one,
        unless the sum is far off. A sum further off than what is usual shows that the batch is not
        a usual one.
        """
        precision = sum(1.0 / (each.variance * len(each.values)) for each in measurements)
        expected = self._memory.total
        if not precision:
            return expected
        sums = sum(
            float(each.values.sum()) / (each.variance * len(each.values)) for each in measurements
        )
        squared, usual = (sums / precision - expected) ** 2, (TOTAL_SHARE * expected) ** 2
        if leading != UNIFORM and squared < FAR**2 * (usual + 1.0 / precision):
            return expected
        prior = 1.0 / max(usual, squared - 1.0 / precision)
        return max((sums + prior * expected) / (precision + prior), 1.0)

    def prior_masses(self, hypothesis: int, place: int) -> FloatArray:
        """Counts of an item that a hypothesis foretells."""
        key = hypothesis, place
        if key not in self._means:
            item = self._workload.items[place]
            self._means[key] = self._priors[hypothesis].masses(item)
        return self._means[key]

    def _evidence(self, measurements: tuple[NoisyMarginal, ...]) -> tuple[float, ...]:
        """Nats of today's measurements for each hypothesis, the best at 0, at the batch's size."""
        every, expected = (UNIFORM, SLOW, LAST), self._memory.total
        total = self._total(SLOW, measurements)
        nats = []
        for each in self._telling(measurements):
            foretold = [total / expected * mean for mean in self._foretold(each, every)]
            nats.append(evidence(each, foretold, total))
        return relative(nats)

    def _telling(self, measurements: Sequence[NoisyMarginal]) -> list[NoisyMarginal]:
        """Those of which no other says the same: a table is far off where one within it is."""
        telling = []
        for number, each in enumerate(measurements):
            later = [other for other in measurements[number + 1 :] if other.place != each.place]
            within = (
                noise_within(self._workload, other.place, each.place)
                for other in (*measurements[:number], *later)
            )
            if not any(map(math.isfinite, within)):
                telling.append(each)
        return telling

    def _most_ahead(self, measurements: tuple[NoisyMarginal, ...]) -> float:
        """Nats by which the past may be ahead of these measurements."""
        if not measurements:
            return math.inf
        shown = []
        for each in self._telling(measurements):
            items = most_shown(*self._apart, each.variance, self._memory.total)
            usual, own = SHARE * float(items.mean()), BLIND_SHARE * float(items[each.place])
            shown.append(min(usual, own) if self._blind else usual)
        return max(math.hypot(*shown), LEAST_LEAD)

    def _distances(self) -> tuple[FloatArray, FloatArray]:
        """Squared distances of the items' running averages from even cells, and their cells."""
        places = range(len(self._workload.items))
        apart = [
            self.prior_masses(SLOW, each) - self.prior_masses(UNIFORM, each) for each in places
        ]
        squares = np.array([float((each**2).sum()) for each in apart])
        return squares, np.array([float(len(each)) for each in apart])

    def _foretold(self, each: NoisyMarginal, hypotheses: Sequence[int]) -> list[FloatArray]:
        return [self.prior_masses(hypothesis, each.place) for hypothesis in hypotheses]


def _settled(potential: FloatArray) -> FloatArray:
    """Potentials centred and cut, so that no stream can drive them out of range."""
    centred = potential - potential.mean()
    return np.asarray(np.clip(centred, -LARGEST_POTENTIAL, LARGEST_POTENTIAL))
