"""Workloads where the truth is known: streams, errors, traces, and what plans foretell."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from streamdp.errors import ConfigurationError
from streamdp.kinds.spec import BuildContext
from streamdp.kinds.workload.accuracy import AverageError
from streamdp.kinds.workload.build import build
from streamdp.kinds.workload.section import WorkloadSection
from streamdp.kinds.workload.study import NAMES, WorkloadStudy
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.simulation.comparison import replay

STUDY = WorkloadStudy()
SECTION = WorkloadSection.model_validate(
    {
        "kind": "workload",
        "source": "trips",
        "epsilon": "1/2",
        "expected_rows": 1000,
        "dimensions": {
            "city": {"values": ["a", "b", "c", "d"]},
            "hour": {"column": "at", "part": "hour"},
            "size": {"column": "x", "cuts": [10, 20, 30]},
        },
    }
)


def kind(learner: str, **keys: Any) -> Any:
    section = STUDY.variant(SECTION, learner, 1000).model_copy(update=keys)
    return build(section, BuildContext("add-remove", 1, 1, "duckdb", None))  # type: ignore[arg-type]


def errors(learner: str, stream: str, length: int = 16) -> Any:
    """Errors of the last half of a stream, shape (batches, items)."""
    batches = STUDY.synthetic(SECTION, stream, 1, length)
    made = STUDY.simulated(kind(learner), batches)
    shown = made if learner == "oracle" else None
    steps = replay(STUDY, made, batches, PublicEntropy(f"study:{learner}"), shown)
    return np.array([step.errors for step in steps])[length // 2 :]


@pytest.mark.parametrize("name", NAMES)
def test_streams_are_repeatable_and_of_their_size(name: str) -> None:
    """Every marginal of a batch holds as many records, about those expected."""
    first, again = (STUDY.synthetic(SECTION, name, 3, 4) for _ in range(2))
    for one, other in zip(first.counts, again.counts, strict=True):
        totals = {int(marginal.sum()) for marginal in one.marginals}
        assert len(totals) == 1
        assert 850 < STUDY.rows(one) < 1150
        for mine, its in zip(one.marginals, other.marginals, strict=True):
            np.testing.assert_array_equal(mine, its)


def test_only_what_repeats_repeats() -> None:
    """The fullest cell stays on a stable stream, and moves when values are relabelled."""
    fullest = {
        name: {
            int(each.marginals[1].argmax()) for each in STUDY.synthetic(SECTION, name, 1, 9).counts
        }
        for name in ("stable", "relabelled")
    }
    assert len(fullest["stable"]) == 1
    assert len(fullest["relabelled"]) > 3


def test_memory_pays_on_a_stable_stream() -> None:
    """Its errors are below those of releases that learn nothing; the oracle's are no worse."""
    learned, cold, oracle = (
        errors(name, "stable").mean() for name in ("hypotheses", "none", "oracle")
    )
    assert learned < 0.9 * cold
    assert oracle < 1.1 * learned


def test_without_a_learner_the_state_stays_as_it_began() -> None:
    """And every release is drawn as if it were the only one."""
    fresh = kind("none")
    batches = STUDY.synthetic(SECTION, "stable", 1, 2)
    plan = fresh.plan(fresh.init(), batches.batches[0])
    outcome = fresh.draw(plan, batches.counts[0], PublicEntropy("none"))
    assert fresh.learn(fresh.init(), plan, outcome) == fresh.init()
    assert outcome.auxiliary.fit.hypothesis == 0


def test_a_trace_has_cells_with_bands_and_weights_of_hypotheses() -> None:
    """The prior's band is ordered and comes to hold the truth."""
    batches = STUDY.synthetic(SECTION, "stable", 2, 12)
    made = kind("hypotheses")
    trace = STUDY.trace(made, replay(STUDY, made, batches, PublicEntropy("trace")))
    assert trace is not None
    assert trace.names[0] == "a"
    assert (np.diff(trace.bands, axis=2) >= 0).all()
    late = slice(6, None)
    held = (trace.bands[late, :, 0] <= trace.truth[late]) & (
        trace.truth[late] <= trace.bands[late, :, 3]
    )
    assert held.mean() > 0.6
    assert trace.weights is not None
    np.testing.assert_allclose(trace.weights.sum(axis=1), 1.0)


@pytest.mark.long
def test_plans_foretell_releases_with_a_memory_and_without() -> None:
    """Near what a replay shows; less with more epsilon."""
    foretold = AverageError().expected(kind("hypotheses"))
    assert foretold["average_error"] == pytest.approx(
        errors("hypotheses", "stable").mean(), rel=0.35
    )
    assert foretold["average_error_cold"] == pytest.approx(
        errors("none", "stable").mean(), rel=0.35
    )
    dearer = AverageError().expected(kind("hypotheses", epsilon=Fraction(3)))
    assert float(dearer["average_error"] or 1) < float(foretold["average_error"] or 0)


def test_domains_too_large_for_tables_are_refused() -> None:
    """With their size."""
    axes = {f"x{number}": {"cuts": list(range(40))} for number in range(8)}
    chain = [[f"x{number}", f"x{number + 1}"] for number in range(7)]
    body = {**SECTION.model_dump(exclude={"schedule"}), "dimensions": axes, "marginals": chain}
    with pytest.raises(ConfigurationError, match=str(42**8)):
        STUDY.synthetic(WorkloadSection.model_validate(body), "stable", 1, 2)
