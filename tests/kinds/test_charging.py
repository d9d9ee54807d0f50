"""Groups of one release are charged the worst of the ways that any of them is drawn."""

import pytest

from streamdp.kinds.charging import UnitCharging, disjoint
from streamdp.kinds.grouped import Grouped
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.learning.learner import CountedPlan, DrawnPlan, ReleasePlan
from streamdp.privacy.amounts import nano_up
from streamdp.privacy.events import bounded_range, epsilon_of, pure, rho_of
from streamdp.types import Batch, CellQuery, Json, UnitBound
from tests.privacy.quantiles.neighbours import unit_grid
from tests.privacy.quantiles.test_counted import APART, BATCH, EPSILON, kind, learned

OLD = '["old"]'


@pytest.mark.parametrize("first", ["old", "new"])
def test_groups_are_charged_the_worst_of_their_ways(first: str) -> None:
    """One group is drawn from what was learned, the other as at its first release."""
    made = kind()
    state = learned(made, APART, 2)
    groups = ((first,), ("new" if first == "old" else "old",))
    plan = Grouped(made, ("group",), groups).plan({OLD: state}, BATCH)
    assert {type(each.mechanism.release_plan) for each in plan.mechanism} == {
        DrawnPlan,
        CountedPlan,
    }
    worst = max(rho_of(release_plan.event()) for release_plan in made.learner.mechanisms())
    assert UnitCharging().charge(plan).rho_nano == nano_up(worst)


@pytest.mark.parametrize("first", ["old", "new"])
def test_groups_of_different_trees_are_charged_the_largest_rho(
    first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a kind books one way at a time."""
    made = kind()
    state = learned(made, APART, 2)

    def one_way(self: Quantiles, release_plan: ReleasePlan) -> Json:
        return (
            release_plan.histograms if isinstance(release_plan, CountedPlan) else release_plan.tree
        ).event()

    monkeypatch.setattr(Quantiles, "_event", one_way)
    groups = ((first,), ("new" if first == "old" else "old",))
    plan = Grouped(made, ("group",), groups).plan({OLD: state}, BATCH)
    drawn = [rho_of(each.event) for each in plan.mechanism]
    assert len(set(drawn)) == 2
    assert rho_of(plan.event) == max(drawn)


def test_draws_of_unequal_price_on_disjoint_groups_cost_the_dearest() -> None:
    """In each measure for itself: pure draws cost four times the rho of bounded ones."""
    events = [bounded_range(EPSILON), pure(EPSILON / 2), pure(EPSILON)]
    together = disjoint(events, ["city"])
    assert epsilon_of(together) == EPSILON
    assert rho_of(together) == rho_of(pure(EPSILON))


def test_which_records_of_a_unit_count_is_chosen_anew_in_each_batch() -> None:
    """The same in every batch, a unit's late records would never count."""
    charging = UnitCharging(UnitBound("person", 1, "s"))
    query = CellQuery("x", unit_grid(3))
    batches = [Batch("s", key, 0, 86_400) for key in "abb"]
    first, second, again = (charging.bounded(query, batch).bound for batch in batches)
    assert first != second
    assert second == again
