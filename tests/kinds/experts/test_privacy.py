"""What one record changes of the integers that experts are scored from, over the noise on them."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from streamdp.kinds.experts import kind as kinds
from streamdp.kinds.experts.kind import Experts
from streamdp.kinds.experts.losses import Actions, Rules, sensitivity
from streamdp.kinds.rules.grid import RuleGrid, Threshold
from streamdp.mechanisms.simulation import PublicEntropy
from streamdp.types import Batch, Neighbours, Sums, TableCounts

CUTS = tuple(map(Fraction, range(3)))
RULES = Rules(RuleGrid((Threshold("x", ">=", "t", CUTS), Threshold("y", "<", "a", CUTS))), "late")
ACTIONS = Actions((("stay", "0.2"), ("go", "late"), ("wait", "x")), 10)
BATCH = Batch("s", "1")


def experts(losses: Rules | Actions, relation: Neighbours) -> Experts:
    return Experts(losses, Fraction(1, 2), 100, relation)


def statistics(losses: Rules | Actions) -> list[TableCounts | Sums]:
    """One record of each sort, alone."""
    if isinstance(losses, Actions):
        sums = itertools.product((-10, 0, 10), repeat=3)
        return [Sums(each) for each in sums]
    found: list[TableCounts | Sums] = []
    for place in itertools.product(range(2), range(5), range(5)):
        table = np.zeros((2, 5, 5), dtype=np.int64)
        table[place] = 1
        found.append(TableCounts((table,)))
    return found


def parts(losses: Rules | Actions, statistic: TableCounts | Sums) -> np.ndarray:
    """The integers that noise is added to, the level last."""
    return np.array([*losses.integers(statistic), losses.level(statistic) or 0])


def largest_loss(kind: Experts) -> float:
    """Σ |change|/scale over epsilon, for the worst neighbours: discrete Laplace noise is tight."""
    noise, losses = kind.noise(), kind.losses
    ones = [parts(losses, each) for each in statistics(losses)]
    nothing = [np.zeros_like(ones[0])]
    others = ones if kind.neighbours == "substitute" else nothing
    scales = np.full(len(ones[0]), float(noise.scale))
    scales[-1] = float(noise.level or 1)
    worst = max(float((abs(a - b) / scales).sum()) for a, b in itertools.product(ones, others))
    return worst / float(kind.epsilon)


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("losses", [RULES, ACTIONS], ids=["rules", "actions"])
def test_noisy_losses_cost_epsilon(losses: Rules | Actions, relation: Neighbours) -> None:
    """The bound is met: one record may change all that its sensitivity says."""
    assert largest_loss(experts(losses, relation)) == pytest.approx(1.0)


@pytest.mark.parametrize("losses", [RULES, ACTIONS], ids=["rules", "actions"])
def test_the_sensitivity_of_addition_under_substitution_is_caught(
    losses: Rules | Actions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant that forgets that a substituted record leaves one cell and enters another."""
    monkeypatch.setattr(kinds, "sensitivity", lambda of, _: sensitivity(of, "add-remove"))
    assert largest_loss(experts(losses, "substitute")) > 1.8


def test_one_price_for_each_action_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that takes the sensitivity of one action for that of all."""
    monkeypatch.setattr(kinds, "sensitivity", lambda of, _: of.denominator)
    assert largest_loss(experts(ACTIONS, "add-remove")) == pytest.approx(3.0)


@pytest.mark.parametrize("losses", [RULES, ACTIONS], ids=["rules", "actions"])
def test_losses_of_rules_are_their_errors(losses: Rules | Actions) -> None:
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
