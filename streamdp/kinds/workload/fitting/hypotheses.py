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
`uniform` too is how concentrated items are (`concentration`): it says which to measure, and how far
to trust measurements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamdp.kinds.workload.fitting.concentration import Concentration
from streamdp.kinds.workload.fitting.distribution import Distribution, Potentials
from streamdp.kinds.workload.fitting.expected_errors import MOST_ITEMS, ExpectedErrors
from streamdp.kinds.workload.fitting.marginals import Workload
from streamdp.kinds.workload.fitting.spread import Spread
from streamdp.kinds.workload.fitting.unlisted import Unlisted
from streamdp.types import FloatArray

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
    def empty(cls, workload: Workload, expected_rows: float) -> Memory:
        """Return the memory before any release: the uniform distribution over the expected rows."""
        items, unlisted = len(workload.items), Unlisted.first(workload)
        even = unlisted.potentials(workload)
        learned = Spread.first(items), Concentration.first(items), unlisted
        return cls(0, expected_rows, even, even, (0.0, 0.0, 0.0), *learned)

    @classmethod
    def cold(cls, workload: Workload, expected_rows: float) -> Memory:
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

    def after(self, fit: Fit) -> Memory:
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
        return Memory(self.releases + 1, total, slow, fit.potentials, known, *learned)


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
    distribution: Distribution
    spread: Spread
    concentration: Concentration


def _behind(evidence: FloatArray, fit: Fit) -> float:
    """Return the uniform hypothesis's evidence; how far it may fall behind is capped."""
    lead = float((evidence + BIAS).max() - BIAS[UNIFORM])
    behind = min(lead - float(evidence[UNIFORM]), fit.most)
    if fit.hypothesis != UNIFORM:
        behind += FORGIVEN * (fit.most - behind)
    return lead - behind
