"""Three hypotheses about the next batch, and the evidence of past releases for each.

* `uniform`: nothing repeats; only the total is known.
* `slow`: a running average of the potentials of past releases.
* `last`: the last release.

Each noisy count that is released is also a test of all three, free of charge. The one with the
most evidence, today's measurements included, is the prior of a batch. Evidence is bounded below
and decays. The learned ones are ahead of `uniform` by no more nats than measurements show of items
on the average where the past has ended (`fitted`): one such batch is enough to leave them, whatever
nats are worth on a stream. On a stream that repeats nothing `uniform` wins within days, and a
release is the one a mechanism without memory would make.

Evidence is by squared distances, as if all were equally sure. Where nothing repeats, what is
remembered is further from a batch than even cells are, by its own distance from them. The running
average learns nothing of a release that was fitted from `uniform`: all that was not measured is
even there. The first release is the one of a mechanism without memory; it is all that is known
then, so the running average begins with it, and it is no evidence. What is learned of releases from
`uniform` too is how concentrated items are (`spread`): it says which to measure, and how far
to trust measurements.

**Unlisted cells**, `other` and nulls, which every batch has few of. Where nothing is remembered
cells are taken to be alike, but not these: each is expected to hold a fiftieth of the records, and
what releases show of them is averaged. That lasts where listed values change places.
Post-processing: it sees releases alone.

**Expected errors** that measurements would leave where no value repeats, by concentrations alone.
Distances are squared and over the records: q = c - 1 for an item of concentration c and even
shares; its sum of absolute differences is about √(q/(1 + q/4)), which is √q while it is small and
never more than 2. Of what is measured with noise N the part qN/(q + N) remains. An item that is not
measured is foretold as the product of its axes that are: it keeps its concentration above the
product's, over the product's root since few cells hold the most of it, and the errors of the axes.
Post-processing: it sees releases alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamdp.kinds.workload.fitting.distribution import (
    DomainMasses,
    Marginal,
    Potentials,
    Workload,
)
from streamdp.kinds.workload.fitting.spread import Concentration, Spread, noise_within, single_axes
from streamdp.types import FloatArray, Json

FIRST = 0.02
"""Share of a cell that is expected first, or that of a listed one if that is less."""

LEAST = 0.0005
"""Least share that is learned."""

Shares = tuple[tuple[float, ...], ...]
"""Shares of the cells of each axis that are not listed."""


@dataclass(frozen=True, slots=True)
class Unlisted:
    """Shares of the records that fall in cells that are not listed.

    Args:
        shares: Of each axis.
    """

    shares: Shares

    @classmethod
    def first(cls, workload: Workload) -> Unlisted:
        """Return the shares before the first release."""
        pairs = zip(workload.sizes, workload.unlisted, strict=True)
        return cls(tuple((min(FIRST, 1.0 / size),) * count for size, count in pairs))

    def after(self, fitted: DomainMasses, pace: float) -> Unlisted:
        """Shares after a release, of which the fit has so much weight."""
        total, found = max(fitted.total(), 1.0), list[tuple[float, ...]]()
        for axis, old in enumerate(self.shares):
            if not old:
                found.append(old)
                continue
            seen = fitted.marginal((axis,))[-len(old) :] / total
            moved = (1.0 - pace) * np.array(old) + pace * seen
            moved = np.maximum(moved, LEAST)
            moved /= max(1.0, float(moved.sum()) / (1.0 - LEAST))
            found.append(tuple(map(float, moved)))
        return Unlisted(tuple(found))

    def potentials(self, workload: Workload) -> Potentials:
        """Potentials of the distribution of which only these shares are known.

        Those of an axis are given to the smallest item that is a marginal of it.
        """
        logs = [np.zeros(item.shape) for item in workload.items]
        for axis, shares in enumerate(self.shares):
            holding = [
                place
                for place, item in enumerate(workload.items)
                if axis in item.axes and item.labels is None
            ]
            if not shares or not holding:
                continue
            place = min(holding, key=lambda each: workload.items[each].size)
            inner = workload.items[place].axes.index(axis)
            logs[place] += _spread(shares, workload.sizes[axis], inner, logs[place].ndim)
        return tuple(
            np.zeros(item.size) if item.labels is not None else each.reshape(-1)
            for item, each in zip(workload.items, logs, strict=True)
        )


def _spread(shares: Sequence[float], size: int, axis: int, axes: int) -> FloatArray:
    """Logarithms of the shares over that of a listed cell, along an axis of a table."""
    listed = (1.0 - sum(shares)) / (size - len(shares))
    along = np.zeros(size)
    along[-len(shares) :] = [math.log(share / listed) for share in shares]
    return along.reshape([size if place == axis else 1 for place in range(axes)])


MOST_ITEMS = 64
"""Most items of a workload whose errors are foretold: all pairs of them are looked at."""

Taken = Sequence[tuple[int, float]]
"""Measurements: the place of an item, and the variance of the noise of a cell."""

_TINY = 1e-9


class ExpectedErrors:
    """Expected errors of the items of a batch of which no value is known.

    Args:
        workload: Its items, at most `MOST_ITEMS`.
        concentration: What past releases say of them.
        total: Expected records.
    """

    def __init__(self, workload: Workload, concentration: Concentration, total: float) -> None:
        items, alone = workload.items, single_axes(workload)
        sizes = np.array([math.prod(workload.listed(item)) for item in items], dtype=np.float64)
        ratios = [
            [noise_within(workload, outer, inner) for inner in range(len(items))]
            for outer in range(len(items))
        ]
        self._noise = np.array(ratios) * (sizes / total) ** 2
        self._even = np.array([_even(item) for item in items])
        self._axes = np.array(list(alone.values()), dtype=np.intp)
        inside = [[item.labels is None and axis in item.axes for axis in alone] for item in items]
        self._inside = np.array(inside, dtype=np.float64).reshape(len(items), len(alone))
        self._concentrations = concentration.of_items(workload)

    def gains(self, taken: Taken, variance: float) -> FloatArray:
        """Return how much a measurement of each item lowers the errors of all together."""
        before = self._precision(taken)
        after = before + 1.0 / (self._noise * variance)
        return np.asarray(self._errors(before).sum() - self._errors(after).sum(axis=1))

    def average(self, rounds: int, variance: float) -> float:
        """Average error after so many measurements, each of the item that gains most."""
        taken: list[tuple[int, float]] = []
        for _ in range(rounds):
            taken.append((int(np.argmax(self.gains(taken, variance))), variance))
        return float(self._errors(self._precision(taken)).mean())

    def _precision(self, taken: Taken) -> FloatArray:
        found = np.zeros(len(self._noise))
        for place, variance in taken:
            found += 1.0 / (self._noise[place] * variance)
        return found

    def _errors(self, precision: FloatArray) -> FloatArray:
        """Σ|answer - count|/n of each item, shape (..., items) as that of the precisions."""
        far = np.maximum(self._concentrations - 1.0, _TINY)
        own = far / (1.0 + far * precision)
        covered = precision[..., self._axes] > 0.0
        product = np.exp((covered * np.log(self._concentrations[self._axes])) @ self._inside.T)
        product = np.maximum(product, self._even)
        left = np.maximum(self._concentrations - product, 0.0) / np.sqrt(product)
        left += (covered * own[..., self._axes]) @ self._inside.T
        squared = np.where(precision > 0.0, np.minimum(own, left), left)
        return np.asarray(np.sqrt(squared / (1.0 + squared / 4.0)))


def _even(item: Marginal) -> float:
    """Concentration of an item if the cells of its axes are even."""
    if item.labels is None:
        return 1.0
    shares = np.bincount(item.labels) / len(item.labels)
    return item.size * float((shares**2).sum())


UNIFORM, SLOW, LAST = range(3)

BIAS = np.array([-1.0, 4.0, 0.0])
"""Nats that the hypotheses are ahead at equal evidence."""

DECAY = 0.98
FLOOR = -8.0
"""The least evidence, in nats behind the best."""

FORGIVEN = 1 / 3
"""Share forgiven of the nats against the past, beyond the least, on a day it was chosen."""

PACE, SLOWING = 0.25, 0.05
"""The weight of a release in the running average: max(PACE, 1/(1 + SLOWING·number))."""


@dataclass(frozen=True, slots=True, eq=False)
class HypothesisState:
    """State between releases: potentials, never the domain.

    Args:
        releases: How many there were.
        total: Expected records of the next batch.
        slow: Averaged potentials.
        last: Potentials of the last release.
        evidence: Nats for each hypothesis, the best at 0.
        spread: How far batches were from what was foretold.
        concentration: Of the items.
        unlisted: Shares of the cells for what is not listed.
    """

    releases: int
    total: float
    slow: Potentials
    last: Potentials
    evidence: tuple[float, float, float]
    spread: Spread
    concentration: Concentration
    unlisted: Unlisted

    @classmethod
    def empty(cls, workload: Workload, expected_rows: float) -> HypothesisState:
        """Return the memory before any release: the uniform distribution over the expected rows."""
        items, unlisted = len(workload.items), Unlisted.first(workload)
        even = unlisted.potentials(workload)
        learned = Spread.first(items), Concentration.first(items), unlisted
        return cls(0, expected_rows, even, even, (0.0, 0.0, 0.0), *learned)

    @classmethod
    def cold(cls, workload: Workload, expected_rows: float) -> HypothesisState:
        """A memory that trusts nothing but the uniform distribution over the expected rows."""
        never = (0.0, -1e9, -1e9)
        return replace(cls.empty(workload, expected_rows), releases=1, evidence=never)

    def potentials(self, hypothesis: int, workload: Workload) -> Potentials:
        """The potentials that a hypothesis remembers."""
        if hypothesis == UNIFORM:
            return self.unlisted.potentials(workload)
        return self.slow if hypothesis == SLOW else self.last

    def leading(self, evidence: Sequence[float] = (0.0, 0.0, 0.0), most: float = math.inf) -> int:
        """The hypothesis that evidence, added to that of the past, speaks for.

        Args:
            evidence: Of today.
            most: Nats by which the learned ones may be ahead of the uniform one before it.
        """
        if self.releases == 0:
            return UNIFORM
        past, today = np.array(self.evidence) + BIAS, np.array(evidence)
        learned = SLOW + int(np.argmax((past + today)[SLOW:]))
        if int(np.argmax(past)) == UNIFORM:
            return int(np.argmax(past + today))
        behind = min(past[SLOW:].max() - past[UNIFORM], most)
        return UNIFORM if today[UNIFORM] - today[SLOW:].max() > behind else learned

    def expected_errors(self, workload: Workload) -> ExpectedErrors | None:
        """Expected errors of a batch of which no value is known; None where nothing is foretold."""
        if not self.concentration.known or len(workload.items) > MOST_ITEMS:
            return None
        return ExpectedErrors(workload, self.concentration, self.total)

    def after(self, fit: Fit) -> HypothesisState:
        """Update the state after a release.

        Args:
            fit: The release, all of it made of released counts and of this memory.
        """
        pace = max(PACE, 1.0 / (1.0 + SLOWING * self.releases))
        slow, found = self.slow, np.array(fit.evidence if self.releases else self.evidence)
        if fit.hypothesis != UNIFORM or not self.releases:
            slow = tuple(
                (1.0 - pace) * old + pace * new
                for old, new in zip(self.slow, fit.potentials, strict=True)
            )
        evidence = DECAY * (np.array(self.evidence) + found)
        evidence = np.maximum(evidence - evidence.max(), FLOOR)
        if math.isfinite(fit.most):
            evidence[UNIFORM] = _behind(evidence, fit)
        first, second, third = (float(each) for each in evidence)
        total = (1.0 - pace) * self.total + pace * max(fit.distribution.total(), 1.0)
        known = (first, second, third)
        unlisted = self.unlisted.after(fit.distribution, pace)
        learned = fit.spread, fit.concentration, unlisted
        return HypothesisState(self.releases + 1, total, slow, fit.potentials, known, *learned)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A batch as its measurements and past releases show it.

    Args:
        hypothesis: The prior that was taken.
        evidence: Nats of today's measurements for each hypothesis.
        most: Nats by which the past may be ahead of them; infinite if there are none.
        potentials: Of the fitted distribution.
        distribution: The same.
        spread: What is known of its errors, today's measurements included.
        concentration: Of the items, likewise.
    """

    hypothesis: int
    evidence: tuple[float, ...]
    most: float
    potentials: Potentials
    distribution: DomainMasses
    spread: Spread
    concentration: Concentration


def _behind(evidence: FloatArray, fit: Fit) -> float:
    """Return the uniform hypothesis's evidence; how far it may fall behind is capped."""
    lead = float((evidence + BIAS).max() - BIAS[UNIFORM])
    behind = min(lead - float(evidence[UNIFORM]), fit.most)
    if fit.hypothesis != UNIFORM:
        behind += FORGIVEN * (fit.most - behind)
    return lead - behind


DIGITS = 6
"""Decimals of a potential that are kept."""


def to_json(memory: HypothesisState) -> Json:
    """One number an answer and a hypothesis."""
    return {
        "releases": memory.releases,
        "total": memory.total,
        "slow": _lists(memory.slow),
        "last": _lists(memory.last),
        "evidence": list(memory.evidence),
        "omegas": list(memory.spread.omegas),
        "uniform": memory.spread.uniform,
        "ages": list(memory.spread.ages),
        "concentrations": list(memory.concentration.sums),
        "seen": list(memory.concentration.weights),
        "unlisted": [list(shares) for shares in memory.unlisted.shares],
    }


def from_json(state: Json, workload: Workload) -> HypothesisState:
    """The memory that was written.

    Raises:
        ValueError: It is of another workload.
    """
    first, second, third = map(float, state["evidence"])
    omegas = tuple(map(float, state["omegas"]))
    spread = Spread(omegas, float(state["uniform"]), tuple(map(int, state["ages"])))
    slow, last = (_arrays(state[name], workload) for name in ("slow", "last"))
    known = first, second, third
    concentration = Concentration.first(len(workload.items))
    if "seen" in state:  # earlier releases kept none
        sums, weights = (tuple(map(float, state[name])) for name in ("concentrations", "seen"))
        concentration = Concentration(sums, weights)
    unlisted = Unlisted.first(workload)
    if "unlisted" in state:
        unlisted = Unlisted(tuple(tuple(map(float, shares)) for shares in state["unlisted"]))
    releases, total = int(state["releases"]), float(state["total"])
    return HypothesisState(releases, total, slow, last, known, spread, concentration, unlisted)


def _lists(potentials: Potentials) -> list[list[float]]:
    return [np.round(each, DIGITS).tolist() for each in potentials]


def _arrays(lists: Sequence[Sequence[float]], workload: Workload) -> Potentials:
    arrays = tuple(np.array(each, dtype=np.float64) for each in lists)
    if [each.shape for each in arrays] != [(item.size,) for item in workload.items]:
        raise ValueError("the state is of another workload")
    return arrays
