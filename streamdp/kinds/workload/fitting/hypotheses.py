"""Three hypotheses about the next batch, and the evidence of past releases for each.

* `uniform`: nothing repeats; only the total is known.
* `slow`: a running average of the potentials of past releases.
* `last`: the last release.

Each noisy count that is released is also a test of all three, free of charge. The one with the
most evidence, today's measurements included, is the prior of a batch. Evidence is bounded below,
so that one surprising batch is enough to leave a hypothesis, and decays. On a stream that repeats
nothing `uniform` wins within days, and a release is the one a mechanism without memory would make.

`uniform` says that cells are anywhere, not that they are even. So an item of few cells, which
agrees with what is remembered by chance, is little evidence for it. The running average learns
nothing of a release that was fitted from `uniform`: all that was not measured is even there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from streamdp.kinds.workload.fitting.distribution import (
    LARGEST_POTENTIAL,
    Distribution,
    Potentials,
    distribution,
)
from streamdp.kinds.workload.fitting.marginals import Workload
from streamdp.kinds.workload.fitting.refit import Measurement, refit
from streamdp.kinds.workload.fitting.spread import Spread
from streamdp.types import FloatArray

UNIFORM, SLOW, LAST = range(3)

PLIANCY = (200.0, 8.0, 8.0)
"""φ of each hypothesis: how far a batch is expected to be from it (`refit`)."""

BIAS = np.array([-1.0, 4.0, 0.0])
"""Nats that the hypotheses are ahead at equal evidence."""

DECAY = 0.9
FLOOR = -8.0
"""The least evidence, in nats behind the best."""

TEMPER = 3.0
"""Cells of a batch vary together: evidence of one in so many is believed."""

_DISPERSION = 15.0
_RELATIVE = 0.1
"""Variance of a cell's count around a learned hypothesis: of a mean count m, 15·m + 0.1·m²."""

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
    """

    releases: int
    total: float
    slow: Potentials
    last: Potentials
    evidence: tuple[float, float, float]
    spread: Spread

    @classmethod
    def empty(cls, workload: Workload, expected_rows: float) -> Memory:
        """Before the first release: the uniform distribution over the expected rows."""
        zeros = tuple(np.zeros(item.size) for item in workload.items)
        spread = Spread.first(len(workload.items))
        return cls(0, expected_rows, zeros, zeros, (0.0, 0.0, 0.0), spread)

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

    def leading(self, evidence: Iterable[float]) -> int:
        """The hypothesis that more evidence, added to that of the past, speaks for."""
        if self.releases == 0:
            return SLOW
        return int(np.argmax(np.array(self.evidence) + np.array(list(evidence)) + BIAS))

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
        first, second, third = (float(each) for each in evidence)
        total = (1.0 - pace) * self.total + pace * max(fit.distribution.total(), 1.0)
        known = (first, second, third)
        return Memory(self.releases + 1, total, slow, fit.potentials, known, fit.spread)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A batch as its measurements and past releases show it.

    Args:
        hypothesis: The prior that was taken.
        evidence: Nats of today's measurements for each hypothesis.
        potentials: Of the fitted distribution.
        distribution: The same.
        spread: What is known of its errors, today's measurements included.
    """

    hypothesis: int
    evidence: tuple[float, ...]
    potentials: Potentials
    distribution: Distribution
    spread: Spread


class Fitting:
    """Fits one batch, measurement by measurement. Post-processing: it sees no record."""

    def __init__(self, workload: Workload, memory: Memory) -> None:
        self._workload = workload
        self._memory = memory
        self._means: dict[tuple[int, int], FloatArray] = {}
        self._priors = [
            distribution(workload, memory.potentials(each, workload), memory.total)
            if memory.releases
            else None
            for each in (UNIFORM, SLOW, LAST)
        ]

    def fit(self, measurements: tuple[Measurement, ...]) -> Fit:
        """The best hypothesis, refitted to the measurements."""
        evidence = self._evidence(measurements)
        leading = self._memory.leading(evidence)
        potentials = self._memory.potentials(leading, self._workload)
        total = self._memory.total
        if leading == UNIFORM:
            total = self._total(measurements)
        fitted = distribution(self._workload, potentials, total)
        tilts = refit(self._workload, fitted, measurements, PLIANCY[leading])
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
        return Fit(leading, evidence, moved, fitted, spread)

    def _is_uniform(self, hypothesis: int) -> bool:
        return hypothesis == UNIFORM or self._memory.releases == 0

    def _total(self, measurements: tuple[Measurement, ...]) -> float:
        """Records of the batch: what is expected, and the sums of what was measured.

        Of a fit that is as pliant as that of the uniform distribution: its own total would be the
        sum of noisy cells, which says little. Cells with a prior of their own make a better one.
        """
        expected = self._memory.total
        precision = 1.0 / (TOTAL_SHARE * expected) ** 2
        weighted = expected * precision
        for each in measurements:
            known = 1.0 / (each.variance * len(each.values))
            precision += known
            weighted += known * float(each.values.sum())
        return max(weighted / precision, 1.0)

    def prior_masses(self, hypothesis: int, place: int) -> FloatArray:
        """Counts of an item that a hypothesis foretells."""
        key = hypothesis, place
        if key not in self._means:
            item, prior = self._workload.items[place], self._priors[hypothesis]
            even = np.full(item.size, self._memory.total / item.size)
            self._means[key] = even if prior is None else prior.masses(item)
        return self._means[key]

    def _evidence(self, measurements: tuple[Measurement, ...]) -> tuple[float, ...]:
        """Log likelihoods: around the learned ones of equal variances, the uniform one's wider."""
        evidence = np.zeros(3)
        for each in measurements:
            mean = self._memory.total / len(each.values)
            near = each.variance + _DISPERSION * mean + _RELATIVE * mean**2
            wide = near + self._memory.spread.uniform * mean**2
            for hypothesis, variance in ((UNIFORM, wide), (SLOW, near), (LAST, near)):
                missed = each.values - self.prior_masses(hypothesis, each.place)
                evidence[hypothesis] -= float((missed**2).sum()) / (2.0 * variance * TEMPER)
            freedom = len(each.values) - 1
            evidence[UNIFORM] -= 0.5 * freedom * math.log(wide / near) / TEMPER
        return tuple(float(each) for each in evidence - evidence.max())


def _settled(potential: FloatArray) -> FloatArray:
    """Potentials centred and cut, so that no stream can drive them out of range."""
    centred = potential - potential.mean()
    return np.asarray(np.clip(centred, -LARGEST_POTENTIAL, LARGEST_POTENTIAL))
