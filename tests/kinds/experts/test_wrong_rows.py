"""What expected rows that are ten times too high or too low do to losses and choices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.types import FloatArray, Sums
from tests.kinds.experts.worlds import ACTIONS, BATCH, experts


def released(rows: int) -> tuple[FloatArray, list[list[object]], float]:
    """Losses off a half with their ends, choices and weights, and the share that intervals hold."""
    kind = replace(experts(ACTIONS, "add-remove"), expected_rows=rows)
    entropy, chance, state = PublicEntropy("wrong rows"), np.random.default_rng(1), kind.init()
    losses, choices, held = [], [], []
    for _ in range(100):
        sums = Sums(tuple(chance.integers(-300, 300, 3).tolist()))
        plan = kind.plan(state, BATCH)
        outcome = kind.draw(plan, sums, entropy)
        state = kind.learn(state, plan, outcome)
        found = kind.publish(state, outcome).rows
        ends = np.array([(row["loss"], row["lower"], row["upper"]) for row in found])
        true = 0.5 + ACTIONS.matrix @ np.array(ACTIONS.integers(sums), dtype=float) / rows
        held.append((ends[:, 1] <= true) & (true <= ends[:, 2]))
        losses.append(ends - 0.5)
        choices.append([(row["chosen"], round(float(row["weight"] or 0), 6)) for row in found])
    return np.array(losses), [list(each) for each in choices], float(np.mean(held))


@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_wrong_expected_rows_change_the_unit_of_losses_and_no_choice(factor: float) -> None:
    """Losses are per expected record: intervals hold as often, weights and choices are the same."""
    right, choices, held = released(100)
    wrong, others, still = released(round(100 * factor))
    np.testing.assert_allclose(wrong * factor, right, rtol=1e-9, atol=1e-12)
    assert others == choices
    assert still == held >= 0.93
