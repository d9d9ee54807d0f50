"""What `plan --error` says: a price with the wanted error, in the measure of the release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest

from streamdp.kinds.additive import AdditiveAccuracy, AdditiveKind
from streamdp.kinds.statistics.kind import Statistics
from streamdp.kinds.statistics.measures.counts import Count
from streamdp.kinds.statistics.measures.moments import Moment, MomentOf
from streamdp.kinds.statistics.spec import CountError
from streamdp.kinds.workload.accuracy import AverageError
from streamdp.kinds.workload.fitting.distribution import Workload
from streamdp.kinds.workload.kind import WorkloadRelease
from streamdp.kinds.workload.weights import PrivateWeights
from streamdp.privacy.filters import Measure
from streamdp.privacy.price import Price
from streamdp.types import Dimension, Grid, Row, TableCounts, TableQuery

MEASURES: tuple[Measure, ...] = ("epsilon", "rho")


@dataclass(frozen=True, slots=True)
class Records(AdditiveKind):
    name = "records"

    def question(self) -> TableQuery:
        return TableQuery((), ((),))

    def integers(self, statistic: TableCounts) -> list[int]:
        return [int(statistic.marginals[0].sum())]

    def rows(self, integers: Sequence[int]) -> tuple[Row, ...]:
        return ()


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("error", [3.5, 40.0, 2000.5])
def test_counts_are_as_near_as_was_asked_and_at_less_they_are_not(
    measure: Measure, error: float
) -> None:
    """The least price: the error of the kind at it, and at a little less."""
    shares = (Fraction(1, 3), Fraction(2, 3))
    kind = Statistics((Count("n"), Count("m")), shares, Price(Fraction(1), measure))
    found = CountError().price_for(kind, error)
    assert found is not None
    assert found.measure == measure
    reached = CountError().expected(replace(kind, price=found))["n error_95"]
    missed = CountError().expected(replace(kind, price=found.share(Fraction(99, 100))))
    assert reached is not None
    assert missed["n error_95"] is not None
    assert reached <= error < missed["n error_95"]


@pytest.mark.parametrize("measure", MEASURES)
def test_a_kind_of_integers_is_priced_alike(measure: Measure) -> None:
    """Of sensitivity one it is a count that has all of the price."""
    count = Statistics((Count("n"),), (Fraction(1),), Price(Fraction(1), measure))
    found = AdditiveAccuracy().price_for(Records(Price(Fraction(1), measure)), 25.0)
    assert found == CountError().price_for(count, 25.0)


def test_a_unit_pays_as_its_records_together() -> None:
    """In epsilon times its records, in rho times their square: back and forth."""
    for measure in MEASURES:
        price = Price(Fraction(2), measure)
        assert price.of_unit(3).amount == (6 if measure == "epsilon" else 18)
        assert price.of_unit(3).of_record(3) == price


@pytest.mark.thinned(2)
@pytest.mark.parametrize("measure", MEASURES)
def test_a_workload_has_a_price_for_an_error_and_a_larger_one_for_a_smaller(
    measure: Measure,
) -> None:
    """By replays, so about; none where no price that is tried is enough."""
    workload = Workload.of((2, 2), [(0,), (1,)])
    axes = tuple(Dimension(name, values=("a",), other=True) for name in "xy")
    mechanism = PrivateWeights(workload, Fraction(1), 400, loss=measure)
    kind = WorkloadRelease(axes, ("x", "y"), mechanism)
    near, far = (AverageError().price_for(kind, error) for error in (0.02, 0.1))
    assert near is not None
    assert far is not None
    assert near.measure == far.measure == measure
    assert near.amount > 2 * far.amount
    assert AverageError().price_for(kind, 1e-9) is None


@pytest.mark.parametrize("measure", MEASURES)
def test_each_measure_has_a_price_for_an_error_in_its_unit(measure: Measure) -> None:
    """Sums, means and variances too, where expected rows say what noise is divided by."""
    grid = Grid(Fraction(1, 2), 0, 400)
    which: tuple[Moment, ...] = ("sum", "mean", "variance")
    moments = tuple(MomentOf(f"a {each}", each, "x", grid, (200, 80)) for each in which)
    shares = (Fraction(1, 4),) * 4
    kind = Statistics((Count("n"), *moments), shares, Price(Fraction(1), measure))
    assert set(CountError().prices_for(kind, 90.0)) == {"n", "a sum"}
    kind = replace(kind, expected_rows=300)
    found = CountError().prices_for(kind, 90.0)
    assert set(found) == {"n", "a sum", "a mean", "a variance"}
    for name, price in found.items():
        assert price is not None
        reached = CountError().expected(replace(kind, price=price))[f"{name} error_95"]
        less = price.share(Fraction(95, 100))
        missed = CountError().expected(replace(kind, price=less))[f"{name} error_95"]
        assert reached is not None
        assert missed is not None
        assert reached <= 90.0 * 1.001
        assert missed > 90.0 * 0.999
