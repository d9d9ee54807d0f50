from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.types import CellCounts, Entropy
from tests.privacy.quantiles.law import Law, forking, law_of, replaced
from tests.privacy.quantiles.neighbours import Records, counts_of, level, unit_grid
from tests.privacy.quantiles.supremum import Cells

RECORDS: Records = (0, 0, 1, 2, 3, 3, 4, 5)
TREES = {
    "independent K=2": {"branching": 2, "node": "independent"},
    "independent K=4": {"branching": 4, "node": "independent"},
    "joint K=4": {"branching": 4, "node": "joint"},
    "edge": {"branching": 2, "node": "independent", "restriction": "edge"},
}


EPSILON = Fraction(3)
"""Where a tenth of it changes the law of these records most."""


def tree_of(name: str, epsilon: Fraction = EPSILON) -> QuantileTree:
    targets = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
    return QuantileTree(targets, epsilon, unit_grid(6), **TREES[name])  # type: ignore[arg-type]


def exact_law(tree: QuantileTree, statistic: CellCounts) -> Law[Cells]:
    priors = (level(6),) * 3
    with forking(1):
        return law_of(lambda entropy: tree.draw(statistic, priors, entropy))


def draws(
    tree: QuantileTree, statistic: CellCounts, count: int, entropy: Entropy
) -> Counter[Cells]:
    priors = (level(6),) * 3
    with replaced("GRAINS", 64, 1):
        return Counter(tree.draw(statistic, priors, entropy) for _ in range(count))


def p_value(observed: Counter[Cells], law: Law[Cells]) -> float:
    """Of a chi-square test; releases expected fewer than five times are one class."""
    from scipy.stats import chisquare

    total = sum(observed.values())
    common = [released for released in law if law[released] * total >= 5]
    found = [observed[released] for released in common]
    wanted = [float(law[released]) * total for released in common]
    if len(common) < len(law):
        found.append(total - sum(found))
        wanted.append(total - sum(wanted))
    return float(chisquare(found, np.array(wanted) * (total / sum(wanted))).pvalue)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", ["independent K=2", "joint K=4"])
def test_draws_follow_the_law_and_no_other(name: str) -> None:
    """Draws fit the exact law, and reject that of epsilon ± 10 %."""
    check(name, 3_000, PublicEntropy("sampler"))


@pytest.mark.long
@pytest.mark.parametrize("name", TREES)
def test_many_draws_follow_the_law_and_no_other(name: str) -> None:
    """With the system's entropy the fit holds at a resolution of a few parts in a thousand."""
    check(name, 100_000, OperatingSystemEntropy())


def check(name: str, count: int, entropy: Entropy) -> None:
    statistic = counts_of(RECORDS)
    observed = draws(tree_of(name), statistic, count, entropy)
    assert p_value(observed, exact_law(tree_of(name), statistic)) > 1e-6
    for factor in (Fraction(9, 10), Fraction(11, 10)):
        wrong = exact_law(tree_of(name, factor * EPSILON), statistic)
        assert p_value(observed, wrong) < 1e-4
