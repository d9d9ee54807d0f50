"""Cells for what is not listed: few records are expected there, and what is seen is learned."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from streamdp.kinds.spec import BuildContext
from streamdp.kinds.workload.build import build
from streamdp.kinds.workload.fitting import fitted
from streamdp.kinds.workload.fitting.distribution import NoisyMarginal, Workload, distribution
from streamdp.kinds.workload.fitting.fitted import Fitting
from streamdp.kinds.workload.fitting.hypotheses import (
    SLOW,
    UNIFORM,
    HypothesisState,
    from_json,
    to_json,
)
from streamdp.kinds.workload.fitting.spread import Concentration
from streamdp.kinds.workload.section import WorkloadSection

ROWS = 1000.0


def configured(marginals: Any = 2) -> Workload:
    """Four values and `other`; three cells of cuts and nulls; `other` and nulls of two values."""
    section = WorkloadSection.model_validate(
        {
            "kind": "workload",
            "source": "s",
            "epsilon": 1,
            "expected_rows": ROWS,
            "dimensions": {
                "carrier": {"values": ["AA", "B6", "DL", "UA"]},
                "delay": {"cuts": [0, 10]},
                "place": {"values": ["in", "out"], "nulls": "cell"},
            },
            "marginals": marginals,
        }
    )
    public: Any = None
    return build(section, BuildContext("add-remove", 1, 1, "duckdb", public)).mechanism.workload


@pytest.mark.parametrize("marginals", [1, 2, [["carrier", "delay"], ["delay", "place"]]])
def test_a_fiftieth_is_expected_of_each_and_as_much_of_listed_cells(marginals: Any) -> None:
    """Whichever tables are asked for; all hypotheses begin there."""
    known = configured(marginals)
    memory = HypothesisState.empty(known, ROWS)
    found = Fitting(known, memory).fit(()).distribution
    assert found.marginal((0,)) == pytest.approx([245.0] * 4 + [20.0])
    assert found.marginal((1,)) == pytest.approx([980 / 3] * 3 + [20.0])
    assert found.marginal((2,)) == pytest.approx([480.0, 480.0, 20.0, 20.0])
    for place, item in enumerate(known.items):
        foretold = Fitting(known, memory).prior_masses(SLOW, place)
        np.testing.assert_allclose(foretold, found.masses(item))


def test_a_hypothesis_that_says_as_another_is_not_computed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One distribution before the first release, three after two that differ."""
    known, made = configured(), Mock(side_effect=distribution)
    monkeypatch.setattr(fitted, "distribution", made)
    memory = HypothesisState.empty(known, ROWS)
    Fitting(known, memory)
    assert made.call_count == 1
    for values in ([900.0, 50.0, 25.0, 15.0, 10.0], [10.0, 15.0, 25.0, 50.0, 900.0]):
        memory = memory.after(
            Fitting(known, memory).fit((NoisyMarginal(0, np.array(values), 30.0),))
        )
    made.reset_mock()
    Fitting(known, memory)
    assert made.call_count == 3


def test_what_releases_show_of_them_is_learned_where_nothing_repeats() -> None:
    """A third of the records at values that are not listed, and no nulls: after a few releases."""
    known, memory = configured(), HypothesisState.empty(configured(), ROWS)
    seen = np.array([100.0, 200.0, 300.0, 70.0, 330.0]), np.array([500.0, 300.0, 200.0, 0.0])
    for number in range(8):
        listed = [np.roll(values[:-1], number) for values in seen]
        turned = [np.append(each, values[-1]) for each, values in zip(listed, seen, strict=True)]
        measured = tuple(NoisyMarginal(place, values, 30.0) for place, values in enumerate(turned))
        memory = memory.after(Fitting(known, memory).fit(measured))
        memory = from_json(json.loads(json.dumps(to_json(memory))), known)
    fitting = Fitting(known, memory)
    assert fitting.prior_masses(UNIFORM, 0)[-1] == pytest.approx(330.0, rel=0.15)
    assert fitting.prior_masses(UNIFORM, 0)[:-1] == pytest.approx([670 / 4] * 4, rel=0.1)
    assert fitting.prior_masses(UNIFORM, 1)[-1] < 5.0
    assert np.ptp(fitting.prior_masses(UNIFORM, 0)[:-1]) == pytest.approx(0.0, abs=1e-9)


def test_a_state_from_before_they_were_kept_is_read() -> None:
    """What is foretold by its potentials stays; shares of cells begin at the first."""
    known = configured()
    state = to_json(HypothesisState.empty(known, ROWS))
    del state["unlisted"]
    state["slow"][0] = [1.0, 0.0, 0.0, 0.0, 0.0]
    memory = from_json(state, known)
    assert memory.unlisted == HypothesisState.empty(known, ROWS).unlisted
    assert memory.slow[0].tolist() == state["slow"][0]


def test_listed_cells_are_as_uneven_as_they_are_whatever_is_not_listed() -> None:
    """Half of the records at other values: even cells are told from uneven ones."""
    known = configured(1)
    even, uneven = [125.0] * 4, [350.0, 60.0, 50.0, 40.0]
    for listed, concentration in ((even, 1.0), (uneven, 1.0 + 4 * 0.0681)):
        seen = NoisyMarginal(0, np.array([*listed, 500.0]), 1e-9)
        learned = Concentration.first(len(known.items))
        for _ in range(300):
            learned = learned.after(known, (seen,), ROWS)
        assert learned.of_items(known)[0] == pytest.approx(concentration, abs=0.01)
