"""Evidence from groups of a batch for the groups released after them.

Groups of one batch have its day in common, and often places and shapes too. The groups before, as
their releases show them, make one distribution; how a group lies beside it is learned
(`Memory.beside`). All of it follows from releases and from public numbers of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamdp.learning.mixture.distribution import Distribution


@dataclass(frozen=True, slots=True, eq=False)
class GroupEvidence:
    """Posterior mean of a group's cdf after its release.

    Args:
        rows: Expected number of its records.
        distribution: As it is believed to be.
    """

    rows: int
    distribution: Distribution


def together(groups: Sequence[GroupEvidence]) -> Distribution:
    """Return the mean quantile function of some groups, weighted by the roots of their rows."""
    mean, sum_of_roots = groups[0].distribution, np.sqrt(groups[0].rows)
    for group in groups[1:]:
        root = np.sqrt(group.rows)
        sum_of_roots += root
        mean = mean.towards(group.distribution, float(root / sum_of_roots))
    return mean
