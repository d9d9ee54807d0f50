"""What one record changes of the integers that experts are scored from, over the noise on them."""

from fractions import Fraction

import numpy as np
import pytest

from streamdp.kinds.experts.kind import Experts
from streamdp.kinds.experts.losses import Actions, RuleLosses
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.types import Sums, TableCounts
from tests.kinds.experts.worlds import ACTIONS, BATCH, RULES, experts, statistics
from tests.privacy.choices import EXPERTS, MUTANTS, Mutant, experts_loss


@pytest.mark.parametrize("name", EXPERTS)
def test_noisy_losses_cost_epsilon(name: str) -> None:
    """The bound is met: one record may change all that its sensitivity says."""
    assert experts_loss(EXPERTS[name]) == pytest.approx(1.0)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutants_are_caught(mutant: Mutant) -> None:
    """Of experts and of selections: each loses well more than it says."""
    assert mutant.loss() > 1.3


@pytest.mark.parametrize("losses", [RULES, ACTIONS], ids=["rules", "actions"])
def test_losses_of_rules_are_their_errors(losses: RuleLosses | Actions) -> None:
    """With noise that is nearly nought, released losses are those of the batch."""
    kind = Experts(losses, Fraction(10**6), 100)
    statistic = statistics(losses)[3]
    plan = kind.plan(kind.init(), BATCH)
    drawn = kind.draw(plan, statistic, PublicEntropy("losses"))
    found = [row["loss"] for row in drawn.rows]
    if isinstance(statistic, Sums):
        expected = [0.5 + each / 2000 for each in statistic.values]
    else:
        label, x, y = (int(place[0]) for place in np.nonzero(statistic.marginals[0]))
        meets = [x - 1 >= t and y <= a and 4 not in (x, y) for t in range(3) for a in range(3)]
        expected = [float(met != bool(label)) / 100 for met in meets]
    assert found == pytest.approx(expected)


def test_intervals_hold_the_loss_as_often_as_they_say() -> None:
    """At least 95 % over many draws of an empty batch."""
    kind = experts(RULES, "add-remove")
    empty = TableCounts((np.zeros((2, 5, 5), dtype=np.int64),))
    plan, entropy = kind.plan(kind.init(), BATCH), PublicEntropy("intervals")
    rows = [row for _ in range(300) for row in kind.draw(plan, empty, entropy).rows]
    held = np.mean([row["lower"] <= 0 <= row["upper"] for row in rows])  # type: ignore[operator]
    assert 0.94 < held < 0.99
