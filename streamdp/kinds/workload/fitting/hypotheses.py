"""Three hypotheses about the next batch, and the evidence of past releases for each.

* `uniform`: nothing repeats; only the total is known.
* `slow`: a running average of the potentials of past releases.
* `last`: the last release.

Each noisy count that is released is also a test of all three, free of charge. The one with the
most evidence, today's measurements included, is the prior of a batch. Evidence is bounded below,
so that one surprising batch is enough to leave a hypothesis, and decays. On a stream that repeats
nothing `uniform` wins within days, and a release is the one a mechanism without memory would make.

Evidence is by squared distances, as if all were equally sure. Where nothing repeats, what is
remembered is further from a batch than even cells are, by its own distance from them. The running
average learns nothing of a release that was fitted from `uniform`: all that was not measured is
even there. What is learned of such releases too is how concentrated items are (`concentration`):
it says which to measure, and how far to trust measurements.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamdp.kinds.workload.fitting.concentration import Concentration
from streamdp.kinds.workload.fitting.distribution import (
    LARGEST_POTENTIAL,
    Distribution,
    Potentials,
    distribution,
)
from streamdp.kinds.workload.fitting.evidence import evidence, most_shown, relative
from streamdp.kinds.workload.fitting.expected_errors import MOST_ITEMS, ExpectedErrors
from streamdp.kinds.workload.fitting.marginals import Workload
from streamdp.kinds.workload.fitting.refit import Measurement, refit
from streamdp.kinds.workload.fitting.spread import Spread
from streamdp.types import FloatArray

UNIFORM, SLOW, LAST = range(3)

PLIANCY = 8.0
"""φ of learned hypotheses for items of large cells: how far one is expected to be (`refit`)."""

CHANCE, OPEN = 2.0, 0.25
"""For smaller cells φ is so much, and so much more for each record of the mean cell."""

LEAST_PLIANCY, MOST_PLIANCY = 2.0, 200.0
"""φ of the uniform hypothesis."""

CONCENTRATED = 4.0
"""φ of the uniform hypothesis, over the variance of cells around even counts, over those."""

BIAS = np.array([-1.0, 4.0, 0.0])
"""Nats that the hypotheses are ahead at equal evidence."""

SHARE, LEAST_LEAD = 0.75, 2.0
"""Nats by which the past may be ahead of a batch: so much of what measurements of it would show on
the average over the items if the past had ended, at least the second."""

DECAY = 0.98
FLOOR = -8.0
"""The least evidence, in nats behind the best."""

TOTAL_SHARE = 0.15
"""Deviation of a batch's total from the expected one, over it."""

PACE, SLOWING = 0.25, 0.05
"""The weight of a release in the running average: max(PACE, 1/(1 + SLOWING·number))."""


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """State between releases: potentials, never the domain.

    Args:
        releases: How many there were.
        total: Expected records of the next batch.
        slow: Averaged potentials.
        last: Potentials of the last release.
        evidence: Nats for each hypothesis, the best at 0.
        spread: How far batches were from what was foretold.
        concentration: Of the items.
    """

    releases: int
    total: float
    slow: Potentials
    last: Potentials
    evidence: tuple[float, float, float]
    spread: Spread
    concentration: Concentration

    @classmethod
    def empty(cls, workload: Workload, expected_rows: float) -> Memory:
        """Before the first release: the uniform distribution over the expected rows."""
        zeros = tuple(np.zeros(item.size) for item in workload.items)
        learned = Spread.first(len(zeros)), Concentration.first(len(zeros))
        return cls(0, expected_rows, zeros, zeros, (0.0, 0.0, 0.0), *learned)

    @classmethod
    def cold(cls, workload: Workload, expected_rows: float) -> Memory:
        """Of one that trusts nothing but the uniform distribution over the expected rows."""
        never = (0.0, -1e9, -1e9)
        return replace(cls.empty(workload, expected_rows), releases=1, evidence=never)

    def potentials(self, hypothesis: int, workload: Workload) -> Potentials:
        """Of one hypothesis."""
        if hypothesis == UNIFORM:
            return tuple(np.zeros(item.size) for item in workload.items)
        return self.slow if hypothesis == SLOW else self.last

    def leading(self, evidence: Iterable[float], most: float = np.inf) -> int:
        """The hypothesis that more evidence, added to that of the past, speaks for.

        Args:
            evidence: Of today.
            most: Nats by which the others may be ahead of the uniform one before it.
        """
        if self.releases == 0:
            return SLOW
        past, today = np.array(self.evidence) + BIAS, np.array(list(evidence))
        best, lead = int(np.argmax(past)), float(past.max())
        past[UNIFORM] = max(past[UNIFORM], lead - most)
        if best != UNIFORM and today[UNIFORM] <= today[SLOW:].max():
            return SLOW + int(np.argmax((past + today)[SLOW:]))
        return int(np.argmax(past + today))

    def expected_errors(self, workload: Workload) -> ExpectedErrors | None:
        """Of a batch of which no value is known; None where nothing is foretold."""
        if not self.concentration.known or len(workload.items) > MOST_ITEMS:
            return None
        return ExpectedErrors(workload, self.concentration, self.total)

    def after(self, fit: Fit) -> Memory:
        """Update the state after a release.

        Args:
            fit: The release, all of it made of released counts and of this memory.
        """
        pace = max(PACE, 1.0 / (1.0 + SLOWING * self.releases))
        slow = self.slow
        if fit.hypothesis != UNIFORM:
            slow = tuple(
                (1.0 - pace) * old + pace * new
                for old, new in zip(self.slow, fit.potentials, strict=True)
            )
        evidence = DECAY * (np.array(self.evidence) + np.array(fit.evidence))
        evidence = np.maximum(evidence - evidence.max(), FLOOR)
        lead = float((evidence + BIAS).max()) - BIAS[UNIFORM]
        evidence[UNIFORM] = max(evidence[UNIFORM], lead - fit.most)
        first, second, third = (float(each) for each in evidence)
        total = (1.0 - pace) * self.total + pace * max(fit.distribution.total(), 1.0)
        known = (first, second, third)
        learned = fit.spread, fit.concentration
        return Memory(self.releases + 1, total, slow, fit.potentials, known, *learned)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A batch as its measurements and past releases show it.

    Args:
        hypothesis: The prior that was taken.
        evidence: Nats of today's measurements for each hypothesis.
        potentials: Of the fitted distribution.
        distribution: The same.
        spread: What is known of its errors, today's measurements included.
        concentration: Of the items, likewise.
    """

    hypothesis: int
    evidence: tuple[float, ...]
    most: float
    potentials: Potentials
    distribution: Distribution
    spread: Spread
    concentration: Concentration


class Fitting:
    """Fits one batch, measurement by measurement. Post-processing: it sees no record.

    Args:
        workload: Domain and items.
        memory: What past releases say.
        alone: Whether one measurement is all, and no other may find that the past has ended.
    """

    def __init__(self, workload: Workload, memory: Memory, alone: bool = False) -> None:
        self._alone = alone
        self._workload = workload
        self._memory = memory
        self._errors = memory.expected_errors(workload)
        self._means: dict[tuple[int, int], FloatArray] = {}
        self._priors = [
            distribution(workload, memory.potentials(each, workload), memory.total)
            if memory.releases
            else None
            for each in (UNIFORM, SLOW, LAST)
        ]

    def fit(self, measurements: tuple[Measurement, ...]) -> Fit:
        """The best hypothesis, refitted to the measurements."""
        nats = self._evidence(measurements)
        most = self._most_ahead(measurements)
        leading = self._memory.leading(nats, most)
        potentials = self._memory.potentials(leading, self._workload)
        total = self._memory.total
        if leading == UNIFORM:
            total = self._total(measurements)
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

    def gains(self, measurements: Sequence[Measurement], variance: float) -> FloatArray | None:
        """By how many records a measurement of each item lowers the errors of all, if known.

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
        measurements: Sequence[Measurement],
        concentration: Concentration,
        total: float,
    ) -> list[float]:
        """φ of each; under the uniform hypothesis by how uneven the measured items are."""
        if leading != UNIFORM:
            return [
                min(CHANCE + OPEN * self._memory.total / len(each.values), PLIANCY)
                for each in measurements
            ]
        found = concentration.of_items(self._workload)
        uneven = [(found[each.place] - 1.0) / len(each.values) for each in measurements]
        wanted = CONCENTRATED * total * float(np.mean(uneven or [1.0]))
        return [min(max(wanted, LEAST_PLIANCY), MOST_PLIANCY)] * len(measurements)

    def _is_uniform(self, hypothesis: int) -> bool:
        return hypothesis == UNIFORM or self._memory.releases == 0

    def _total(self, measurements: tuple[Measurement, ...]) -> float:
        """Records of the batch: what is expected, and the sums of what was measured.

        Of a fit that is as pliant as that of the uniform distribution: its own total would be the
        sum of noisy cells, which says little. Cells with a prior of their own make a better one.
        A sum further off than what is usual shows that the batch is not a usual one.
        """
        precision = sum(1.0 / (each.variance * len(each.values)) for each in measurements)
        expected = self._memory.total
        if not precision:
            return expected
        sums = sum(
            float(each.values.sum()) / (each.variance * len(each.values)) for each in measurements
        )
        seen = sums / precision
        usual = (TOTAL_SHARE * expected) ** 2
        prior = 1.0 / max(usual, (seen - expected) ** 2 - 1.0 / precision)
        return max((sums + prior * expected) / (precision + prior), 1.0)

    def prior_masses(self, hypothesis: int, place: int) -> FloatArray:
        """Counts of an item that a hypothesis foretells."""
        key = hypothesis, place
        if key not in self._means:
            item, prior = self._workload.items[place], self._priors[hypothesis]
            even = np.full(item.size, self._memory.total / item.size)
            self._means[key] = even if prior is None else prior.masses(item)
        return self._means[key]

    def _evidence(self, measurements: tuple[Measurement, ...]) -> tuple[float, ...]:
        """Nats of today's measurements for each hypothesis, the best at 0."""
        every, total = (UNIFORM, SLOW, LAST), self._memory.total
        return relative(
            [evidence(each, self._foretold(each, every), total) for each in measurements]
        )

    def _most_ahead(self, measurements: tuple[Measurement, ...]) -> float:
        """Nats by which the past may be ahead of these measurements."""
        if not measurements:
            return math.inf
        both, total, items = (UNIFORM, SLOW), self._memory.total, self._workload.items
        shown = [
            most_shown(
                Measurement(place, np.zeros(item.size), each.variance),
                [self.prior_masses(hypothesis, place) for hypothesis in both],
                total,
            )
            for each in measurements
            for place, item in enumerate(items)
        ]
        return max(SHARE * sum(shown) / len(items), LEAST_LEAD)

    def _foretold(self, each: Measurement, hypotheses: Sequence[int]) -> list[FloatArray]:
        return [self.prior_masses(hypothesis, each.place) for hypothesis in hypotheses]


def _settled(potential: FloatArray) -> FloatArray:
    """Potentials centred and cut, so that no stream can drive them out of range."""
    centred = potential - potential.mean()
    return np.asarray(np.clip(centred, -LARGEST_POTENTIAL, LARGEST_POTENTIAL))
