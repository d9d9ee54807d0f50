"""Answer a list of questions from what is believed, and measure only where that is wrong.

Hardt & Rothblum's mechanism over the items of a workload, in the order they are configured. An item
is tested: is some count of it off by the tolerance or more? While the answer is no, the counts are
those of the current distribution, and the test was free. On yes the item is measured, the
distribution is refitted, the test is armed anew and asks of the same item again. A release has a
fixed number of measurements. Those that no test asked for are spent at the end on the items of
which past releases say least.

The questions are a list in the configuration, not calls that come one by one after the release.
All of them belong to one draw: its cost is one charge that is known before the batch is read, no
half-answered list has to survive a crash, and no noise of a test is ever kept.

With probability 1 - beta every count of an item that passed was within the tolerance of the
distribution it was tested against. That bound is proved, not estimated.

References:
    Hardt & Rothblum 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from streamdp.kinds.workload.fitting.distribution import Distribution
from streamdp.kinds.workload.fitting.marginals import Item
from streamdp.mechanisms.sparse_vector.above_threshold import AboveThreshold
from streamdp.types import Entropy, FloatArray, IntArray, Json

BETA = Fraction(1, 20)
"""Probability that any test of a release errs."""


@dataclass(frozen=True, slots=True)
class Gate:
    """The tests of a release.

    Args:
        epsilon: Pure loss of one run of tests, up to its yes.
        runs: The most runs of a release.
        items: How many items are tested.
        tolerance: Records by which a count may be off.
    """

    epsilon: Fraction
    runs: int
    items: int
    tolerance: int

    @property
    def tests(self) -> AboveThreshold:
        """Tests of one run; no item is tested twice in a run."""
        return AboveThreshold(self.epsilon, BETA / self.runs, horizon=self.items)

    @property
    def margin(self) -> float:
        """How far within the tolerance counts must be for a no to be sure, in records."""
        return self.tests.margin(1)

    @property
    def bound(self) -> float:
        """Bound on the error of an item that passes; counts and rounded masses are integers."""
        return self.tolerance - 0.5

    def arm(self, entropy: Entropy) -> Json:
        """The hidden noise of a run."""
        return self.tests.start(entropy)

    def is_off(
        self, run: Json, item: Item, counts: IntArray, current: Distribution, entropy: Entropy
    ) -> bool:
        """Whether some count is off by about the tolerance or more.

        Args:
            run: What `arm` returned.
            item: What is tested.
            counts: Of its cells. Private.
            current: What is believed of the batch; public.
            entropy: Source of chance.

        Privacy: the score max_cells |count - rounded mass| - tolerance moves by at most one
        between neighbours, under add/remove (one cell moves by one) and under substitute (two
        cells move by one each). All answers of a run, up to its yes, are pure `epsilon`.
        """
        masses = np.rint(current.masses(item)).astype(np.int64)
        score = int(np.abs(counts - masses).max()) - self.tolerance
        return self.tests.accept(run, Fraction(score), entropy)


@dataclass(frozen=True, slots=True, eq=False)
class Passed:
    """An item that a test found within the tolerance. Public.

    Args:
        masses: Of its cells, as they were tested.
        bound: What each count is within.
    """

    masses: FloatArray
    bound: float

    def around(self, masses: FloatArray) -> FloatArray:
        """The bound around masses that were fitted since."""
        return np.asarray(self.bound + np.abs(masses - self.masses))
