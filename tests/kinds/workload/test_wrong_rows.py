"""What expected rows that are ten times too high or too low do to counts and their intervals."""

from __future__ import annotations

import numpy as np

from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.types import FloatArray
from tests.kinds.workload.test_study import SECTION, STUDY, kind

BATCHES = 16


def measured(factor: float) -> FloatArray:
    """Share of counts that their intervals hold and mean error, of each release; shape (k, 2)."""
    stream = STUDY.synthetic(SECTION, "stable", 1, BATCHES)
    made = kind("hypotheses", expected_rows=round(1000 * factor))
    entropy, state, found = PublicEntropy("wrong rows"), made.init(), []
    for batch, statistic in zip(stream.batches, stream.counts, strict=True):
        plan = made.plan(state, batch)
        outcome = made.draw(plan, statistic, entropy)
        state = made.learn(state, plan, outcome)
        counts = made.counts(statistic)
        true = np.concatenate([[counts[0].sum()], *[each.ravel() for each in counts]])
        ends = np.array([(row["lower"], row["upper"], row["value"]) for row in outcome.rows]).T
        held = (ends[0] <= true) & (true <= ends[1])
        found.append((held.mean(), np.abs(ends[2] - true).mean()))
    return np.array(found)


def test_wrong_expected_rows_cost_a_workload_little() -> None:
    """Its total is measured: intervals hold about as often, errors grow by less than a third."""
    right, high, low = (measured(factor)[1:].mean(axis=0) for factor in (1.0, 10.0, 0.1))
    for wrong in (high, low):
        assert wrong[0] > right[0] - 0.05
        assert wrong[1] < 4.0 / 3.0 * right[1]
    assert "expected rows" in SECTION.about_errors()
