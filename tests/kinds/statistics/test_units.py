"""Numbers of units, how many records they have, and what a bound leaves out."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.spec import BuildContext
from streamdp.kinds.statistics.build import build
from streamdp.kinds.statistics.kind import Statistics
from streamdp.kinds.statistics.measures.units import UnitSizes
from streamdp.kinds.statistics.section import StatisticsSection
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.types import Batch, UnitBound
from tests.contract.memory.engine import MemoryBackend

CUTS = [2, 3, 5, 10, 20]
LABEL = "share of records left out, of at most 20 a customer"


def kind(measures: dict[str, Any], rows: int, **options: Any) -> Statistics:
    """As it is built of a configuration."""
    about = {"kind": "statistics", "source": "s", "epsilon": 1, "measures": measures}
    section = StatisticsSection.model_validate(about | options)
    context = BuildContext("add-remove", rows, 1, "duckdb", None, unit="customer")  # type: ignore[arg-type]
    return build(section, context)


def released(made: Statistics, source: MemoryBackend, rows: int, days: int = 1) -> list[Any]:
    """Rows of the last of some releases of the same records."""
    state, charging = made.init(), UnitCharging(UnitBound("u", rows))
    for day in range(days):
        batch = Batch("s", str(day), day * 86_400, (day + 1) * 86_400)
        plan = made.plan(state, batch)
        statistic = source.answer(charging.bounded(plan.query, batch), batch)
        outcome = made.draw(plan, statistic, OperatingSystemEntropy())
        state = json.loads(json.dumps(made.learn(state, plan, outcome)))
        found = list(made.publish(state, outcome).rows)
    return found


def orders(chance: np.random.Generator, customers: int = 400) -> MemoryBackend:
    """Customers with one order mostly, and some with many."""
    sizes = np.minimum(chance.zipf(2.2, customers), 20)
    units = np.repeat(np.arange(customers), sizes)
    return MemoryBackend(
        {"u": units.tolist(), "g": chance.choice(["a", "b", "c"], len(units)).tolist()}
    )


def test_units_are_counted_whatever_number_of_records_counts() -> None:
    """The number of customers has the noise of one, where that of records has that of four."""
    source = orders(np.random.default_rng(1))
    made = kind({"customers": "units", "orders": "count"}, rows=4, epsilon=1000)
    customers, count = released(made, source, 4)
    assert customers["value"] == 400
    assert customers["statistic"] == "count of units (customer)"
    assert count["value"] == sum(min(n, 4) for n in Counter(source.columns["u"]).values())
    cheap = kind({"customers": "units", "orders": "count"}, rows=4)
    (units,), (records,) = (parts for parts in cheap.plan({}, Batch("s", "b")).mechanism.asked)
    assert records.noise.scale == 4 * units.noise.scale == 8


def test_a_unit_of_several_groups_counts_in_as_many_as_may_be() -> None:
    """The label says so, and noise grows with that number and not beyond the groups."""
    source = orders(np.random.default_rng(2))
    by: dict[str, Any] = {"by": "g", "groups": ["a", "b", "c"]}
    pairs = set(zip(source.columns["u"], source.columns["g"], strict=True))
    groups = Counter(unit for unit, _ in pairs)
    for rows, scale in ((1, 1), (2, 2), (5, 3)):
        made = kind({"customers": "units"}, rows, epsilon=1000, **by)
        found = released(made, source, rows)
        assert sum(row["value"] for row in found) == sum(min(n, rows) for n in groups.values())
        assert ("at most" in found[0]["statistic"]) == (rows < 3)
        (part,) = (
            kind({"customers": "units"}, rows, **by).plan({}, Batch("s", "b")).mechanism.asked[0]
        )
        assert part.noise.scale == scale


def test_what_a_bound_leaves_out_lies_within_its_interval() -> None:
    """For each bound, over many draws, with a law of sizes that its cells do not tell."""
    chance, held, widths = np.random.default_rng(3), [], []
    made = kind({"sizes": {"records_a_unit": CUTS}}, rows=2)
    for _ in range(60):
        source = orders(chance)
        sizes = np.array(list(Counter(source.columns["u"]).values()))
        rows = [row for row in released(made, source, 2) if row["statistic"] == LABEL]
        assert [row["cell"] for row in rows] == [f"rows: {k}" for k in (1, 2, 3, 5, 10)]
        for row, k in zip(rows, (1, 2, 3, 5, 10), strict=True):
            truth = np.maximum(sizes - k, 0).sum() / sizes.sum()
            held.append(row["lower"] <= truth <= row["upper"])
            widths.append(row["upper"] - row["lower"])
            assert 0 <= row["lower"] <= row["value"] <= row["upper"] <= 1
            assert row["smoothed_lower"] <= row["smoothed"] <= row["smoothed_upper"]
    assert np.mean(held) >= 0.95
    assert np.mean(widths) < 0.35


@pytest.mark.parametrize("units", [[0, 0, 0], [-3, -2, -9], [0, 0, 5], [10**9, 0, 0]], ids=str)
def test_any_numbers_make_shares(units: list[float]) -> None:
    """Also those of an empty batch, where all is possible."""
    found = UnitSizes("sizes", (2, 5)).left_out(np.array(units, dtype=float), np.full(3, 4.0), 2.1)
    point, lower, upper = found
    assert np.isfinite(found).all()
    assert (lower <= point).all()
    assert (point <= upper).all()
    if max(units) <= 0:
        assert upper[0] == 1.0


def test_what_cannot_be_meant_is_refused() -> None:
    """Sizes by group, which no bound looks at; cuts out of order; an unknown word."""
    with pytest.raises(ValidationError, match="put it in a release without by"):
        kind({"sizes": {"records_a_unit": CUTS}}, 1, by="g", groups=["a"])
    with pytest.raises(ValidationError, match="increasing"):
        kind({"sizes": {"records_a_unit": [3, 2]}}, 1)
    with pytest.raises(ValidationError, match="write count or units"):
        kind({"sizes": "customers"}, 1)
    assert (
        Fraction(
            kind({"a": "units"}, 3).plan({}, Batch("s", "b")).unit_event["events"][0]["epsilon"]
        )
        == 1
    )
